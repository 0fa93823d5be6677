"""forget: concurrent ones compose, previews count what happens, and the work is that of the subject's own entries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.conftest import EMBEDDER
from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Entry, EntryState, Scope, Source
from reverie.core.errors import Invalid, ReverieError
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.ports import ForgetLine
from reverie.core.subject import fold, subject_hash
from reverie.distil.plan import hot_texts
from reverie.host import Host
from reverie.memory.read import ANYTHING
from reverie.privacy.certificate import Incomplete, prove
from reverie.privacy.reach import Reach, Target, _derived, find
from reverie.providers.tokenizer import TokenCounter
from reverie.store.cipher import FileCipher
from reverie.store.conformance import HandClock
from reverie.store.contract import Store, WriteTx

REF = "bot"
COURTESY = "Thanks a lot everyone, that was a really lovely day, see you all next week!"
DAY = 86_400_000
MakeHost = Callable[..., Host]
MakeStore = Callable[..., Store]


class Gate:
    """A store on which each thread's first write waits until all have come to theirs: by then all have planned."""

    def __init__(self, store: Store, parties: int) -> None:
        self._store = store
        self._barrier = threading.Barrier(parties)
        self._through = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        if not getattr(self._through, "yes", False):
            self._through.yes = True
            self._barrier.wait(60)
        return self._store.write(scope, body)


def hosts(make_host: MakeHost, store: Any, number: int) -> list[Host]:
    """Hosts that share a store as processes do: nothing in memory keeps their forgets apart."""
    return [make_host(store=store, tokens=TokenCounter(), embedder=EMBEDDER) for _ in range(number)]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host(tokens=TokenCounter(), embedder=EMBEDDER)


def needle(person: str) -> str:
    return f"Quix{person}ticon"


def about(person: str, count: int = 3, first: int = 0) -> list[Draft]:
    return [
        Draft(
            content=f"{needle(person)} ordered crate {n} for hall {n * 7 + len(person)} and paid invoice {n * 31} in full.",
            subject=person,
            source=Source(actor="clerk"),
        )
        for n in range(first, first + count)
    ]


def notes(count: int, first: int = 0) -> list[Draft]:
    return [
        Draft(
            content=f"Order {n} left warehouse {n % 5} and its invoice {n * 31} was paid in full.",
            source=Source(actor="clerk"),
        )
        for n in range(first, first + count)
    ]


def dream(host: Host, ada: Actor, people: Sequence[str], *, plain: int = 12, ref: str = REF) -> None:
    for person in people:
        host.entries.put(ada, ref, about(person))
    host.entries.put(ada, ref, notes(plain))
    assert host.dreams.run(ada, DreamPlan(ref)) is not None


def stored(host: Host, ada: Actor, ref: str = REF) -> list[Entry]:
    """Every entry with text, readable or not."""
    where = Scope(ada.tenant, ref)
    found = host.parts.store.read(where, lambda tx: tx.scan(ANYTHING, limit=10_000)).items
    return [entry for entry in found if entry.state is not EntryState.ERASED]


def readable(host: Host, ada: Actor, ref: str = REF) -> list[str]:
    return sorted(entry.content for entry in host.reader.page(ada, ref, limit=1000).items)


def left_of(host: Host, ada: Actor, person: str) -> list[str]:
    """Where a needle of a person still is: entries, documents with all that is in them, the log."""
    found = [f"entry {entry.id}" for entry in stored(host, ada) if needle(person) in repr(entry)]
    for space in ("dream", "archive", "dream-work", "workspace"):
        page = host.parts.store.read(Scope(ada.tenant), lambda tx, space=space: tx.documents(space, limit=1000))
        found += [f"{space}/{d.key}" for d in page.items if needle(person) in repr((d.body, d.meta))]
    found += [f"event {e.seq}" for e in host.reader.events(ada, limit=10_000) if needle(person) in repr(e)]
    return found


def together(*work: Callable[[], object]) -> list[object]:
    """Each in a thread of its own; what they returned or raised."""
    answers: list[object] = [None] * len(work)

    def run(at: int) -> None:
        try:
            answers[at] = work[at]()
        except Exception as fault:
            answers[at] = fault

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# concurrent forgets


def test_two_subjects_of_one_dream_forgotten_at_once_are_both_gone(
    make_host: MakeHost, make_store: MakeStore, ada: Actor
) -> None:
    store = make_store()
    (first,) = hosts(make_host, store, 1)
    dream(first, ada, ("ana", "bo"))
    one, other = hosts(make_host, Gate(store, 2), 2)
    done: Any = together(lambda: one.forget.forget(ada, "ana"), lambda: other.forget.forget(ada, "bo"))
    assert [(answer.forgotten, answer.redone) for answer in done] == [(3, 1), (3, 1)]
    assert all(answer.certificate for answer in done)
    for person in ("ana", "bo"):
        assert left_of(first, ada, person) == []
    (text,) = readable(first, ada)
    assert "Order" in text
    assert first.audit.verify(ada).ok


def test_rounds_of_concurrent_forgets_leave_one_dream(make_host: MakeHost, make_store: MakeStore, ada: Actor) -> None:
    store = make_store()
    (first,) = hosts(make_host, store, 1)
    people = ("ana", "bo", "cleo", "dov", "eli", "fay")
    dream(first, ada, people)
    for pair in (people[:2], people[2:4], people[4:]):
        one, other = hosts(make_host, Gate(store, 2), 2)
        together(
            lambda one=one, pair=pair: one.forget.forget(ada, pair[0]),
            lambda other=other, pair=pair: other.forget.forget(ada, pair[1]),
        )
        assert len(readable(first, ada)) == 1
    assert [person for person in people if left_of(first, ada, person)] == []


def test_twenty_at_once_leave_the_dreams_that_twenty_in_turn_leave(
    make_host: MakeHost, make_store: MakeStore, ada: Actor
) -> None:
    people = [f"person{n}" for n in range(20)]
    left = []
    for name, at_once in (("a.db", True), ("b.db", False)):
        (host,) = hosts(make_host, make_store(name), 1)
        for person in people:
            host.entries.put(ada, REF, about(person, 2))
        host.entries.put(ada, REF, notes(12))
        assert host.dreams.run(ada, DreamPlan(REF)) is not None
        work = [lambda host=host, person=person: host.forget.forget(ada, person) for person in people]
        done: Any = together(*work) if at_once else [one() for one in work]
        assert all(answer.certificate for answer in done)
        left.append(readable(host, ada))
    assert left[0] == left[1]
    assert len(left[0]) == 1


def test_a_forget_that_never_gets_through_plans_inside_its_transaction(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something about the subject changes between every plan and its commit; nothing waits for ever."""
    dream(host, ada, ("ana",))
    guarded, turns = host.rules.guard, iter(range(100))

    def meddling(tenant: str, prepare: Any, scope: Scope) -> Any:
        def prepared(rules: Any) -> Any:
            made = prepare(rules)
            if scope.ref is None:
                host.entries.put(ada, REF, about("ana", 1, first=100 + next(turns)))
            return made

        return guarded(tenant, prepared, scope)

    monkeypatch.setattr(host.forget, "_rules", _Meddled(host.rules, meddling))
    done = host.forget.forget(ada, "ana")
    assert done.certificate
    assert left_of(host, ada, "ana") == []


class _Meddled:
    def __init__(self, rules: Any, guarded: Callable[..., Any]) -> None:
        self._rules, self.guarded = rules, guarded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rules, name)


# against everything else


@pytest.mark.parametrize("what", ["dream", "undo", "consolidate", "scan", "retain", "put"])
def test_a_forget_and_anything_else_at_once(
    make_host: MakeHost, make_store: MakeStore, ada: Actor, clock: HandClock, tmp_path: Any, what: str
) -> None:
    """Both have planned before either commits. In whichever order they do, the certificate is true."""
    store = make_store()
    (first,) = hosts(make_host, store, 1)
    dream(first, ada, ("ana", "bo"))
    report = first.lineage.reports(ada)[0]
    first.entries.put(ada, REF, [*about("ana", 3, first=50), *notes(8, first=60)])
    if what == "retain":
        first.rules.set_policy(ada, {"cold_retention_ms": 7 * DAY})
        clock.advance(8 * DAY)
    cipher = FileCipher(tmp_path / "key")
    if what == "scan":
        make_host(store=store, cipher=cipher).rules.register(ada, "crates", "crate 50 for hall")
    gate = Gate(store, 2)
    one, other = (make_host(store=gate, tokens=TokenCounter(), embedder=EMBEDDER, cipher=cipher) for _ in "ab")
    against: dict[str, Callable[[], object]] = {
        "dream": lambda: other.dreams.run(ada, DreamPlan(REF)),
        "undo": lambda: other.lineage.undo(ada, report.id),
        "consolidate": lambda: other.consolidator.run(ada, REF),
        "scan": lambda: other.rescan.scan(ada),
        "retain": lambda: other.lifecycle.retain(ada),
        "put": lambda: other.entries.put(ada, REF, notes(2, first=90)),
    }
    done, met = together(lambda: one.forget.forget(ada, "ana"), against[what])
    assert not isinstance(done, Exception), done
    assert met is None or not isinstance(met, Exception) or isinstance(met, ReverieError), met
    assert left_of(first, ada, "ana") == []
    assert first.audit.verify(ada).ok
    assert first.forget.forget(ada, "ana", preview=True).forgotten == 0
    assert "Order" in " ".join(readable(first, ada))
    assert what == "retain" or needle("bo") in " ".join(entry.content for entry in stored(first, ada))


# preview


def test_a_preview_counts_what_a_forget_does(make_host: MakeHost, make_store: MakeStore, ada: Actor) -> None:
    chance = random.Random(7)
    for round_ in range(6):
        (host,) = hosts(make_host, make_store(f"{round_}.db"), 1)
        people = ("ana", "bo", "cleo")
        for night in range(3):
            drafts = [draft for person in people for draft in about(person, chance.randint(0, 2), first=night * 10)]
            drafts += notes(chance.randint(0, 6), first=night * 10)
            drafts += [Draft("ok", subject=chance.choice(people)), Draft("fine, thanks")][: chance.randint(0, 2)]
            if drafts:
                host.entries.put(ada, chance.choice((REF, "desk")), drafts)
            for ref in (REF, "desk"):
                try:
                    host.dreams.run(ada, DreamPlan(ref))
                except ReverieError:
                    continue
        for person in people:
            ref = chance.choice((None, REF))
            preview = host.forget.forget(ada, person, ref=ref, preview=True)
            effect = host.forget.forget(ada, person, ref=ref)
            names = ("forgotten", "derived", "redone", "restored", "archives", "bytes", "refs", "readable", "ways")
            assert [getattr(preview, n) for n in names] == [getattr(effect, n) for n in names]


def test_a_preview_says_that_entries_become_readable_again(host: Host, ada: Actor) -> None:
    host.entries.put(
        ada, REF, [Draft("Zanzibar keeps parrots and feeds them twice a day.", subject="zed"), Draft(COURTESY)]
    )
    assert host.dreams.run(ada, DreamPlan(REF)) is not None
    preview = host.forget.forget(ada, "zed", preview=True)
    assert (preview.redone, preview.restored) == (0, 1)
    assert host.forget.forget(ada, "zed").restored == 1


# bounded work


def cost(make_host: MakeHost, store: Store, ada: Actor, *, others: int, dreams: int) -> tuple[int, int, int]:
    """Transactions, calls and rows of forgetting one subject of 3 entries and one dream, among so much else."""
    counted = Counted(store)
    host = make_host(store=counted, tokens=TokenCounter(), embedder=None)
    for number in range(dreams):
        host.entries.put(ada, f"other{number}", notes(8, first=number * 8))
        assert host.dreams.run(ada, DreamPlan(f"other{number}")) is not None
        host.entries.put(ada, f"other{number}", about("gone", 1))
        host.forget.forget(ada, "gone")
    if others:
        drafts = [Draft(f"line {n}", subject=f"s{n % 50}", tags=(f"subject:t{n % 70}",)) for n in range(others)]
        host.entries.put(ada, "pile", drafts)
    dream(host, ada, ("ana",))
    host.rules.current(ada.tenant)
    counted.transactions = counted.calls = counted.rows = 0
    done = host.forget.forget(ada, "ana")
    assert (done.forgotten, done.redone) == (3, 1)
    return counted.transactions, counted.calls, counted.rows


def test_a_forget_costs_what_its_own_entries_and_dreams_explain(
    make_host: MakeHost, make_store: MakeStore, ada: Actor, engine: str
) -> None:
    others, dreams = (10_000, 50) if engine == "sqlite" else (1000, 5)
    alone = cost(make_host, make_store("few.db"), ada, others=0, dreams=0)
    among = cost(make_host, make_store("many.db"), ada, others=others, dreams=dreams)
    assert among == alone
    assert among[0] <= 4


def test_the_ledger_is_read_from_where_it_was_left(make_host: MakeHost, ada: Actor, tmp_path: Any) -> None:
    from reverie.privacy.ledger import FileLedger

    ledger = FileLedger(tmp_path / "forgotten.jsonl")
    for number in range(3):
        ledger.add(ForgetLine(tenant=ada.tenant, subject=f"{number:064d}", ref=None, at=number))
        assert len(ledger.of(ada.tenant)) == number + 1
    assert ledger._seen[1] == (tmp_path / "forgotten.jsonl").stat().st_size


# reach


def test_what_a_caller_wrote_beside_the_text_goes_too(host: Host, ada: Actor) -> None:
    words = needle("ana")
    draft = Draft(
        content=f"{words} called.",
        subject="ana",
        tags=(f"tag-{words}",),
        attributes={"place": words, words: 1},
        source=Source(actor=words, role=words, session=words, run=words, node=words),
    )
    (receipt,) = host.entries.put(ada, REF, [draft], idempotency_key="once")
    assert host.reader.get(ada, REF, receipt.id).source.session == words
    assert host.forget.forget(ada, "ana").forgotten == 1
    assert left_of(host, ada, "ana") == []
    row = host.parts.store.read(Scope(ada.tenant, REF), lambda tx: tx.get(receipt.id, where=ANYTHING))
    assert words not in repr(row)


def test_an_archive_whose_dream_was_destroyed_before_is_reached(host: Host, ada: Actor, clock: HandClock) -> None:
    host.rules.set_policy(ada, {"cold_retention_ms": 7 * DAY})
    dream(host, ada, ("ana",))
    (output,) = [entry for entry in stored(host, ada) if entry.kind == "dream"]
    host.lifecycle.erase(ada, REF, output.id)
    clock.advance(8 * DAY)
    host.lifecycle.retain(ada)
    assert stored(host, ada) == []
    assert left_of(host, ada, "ana") != []
    done = host.forget.forget(ada, "ana")
    assert (done.forgotten, done.derived, done.archives) == (0, 0, 1)
    assert done.certificate
    assert left_of(host, ada, "ana") == []


def test_two_subjects_go_one_after_the_other_when_their_sources_are_destroyed(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    dream(host, ada, ("ana", "bo"))
    clock.advance(8 * DAY)
    host.lifecycle.retain(ada)
    assert host.forget.forget(ada, "ana").derived == 1
    assert left_of(host, ada, "ana") == []
    assert host.forget.forget(ada, "bo").derived == 1
    assert left_of(host, ada, "bo") == []
    assert "Order" in " ".join(readable(host, ada))


def test_a_dream_of_dreams_that_was_made_again_can_be_undone(host: Host, ada: Actor) -> None:
    dream(host, ada, ("ana",))
    first = {entry.content for entry in stored(host, ada) if entry.state is EntryState.DREAMT}
    host.entries.put(ada, REF, notes(10, first=40))
    assert host.dreams.run(ada, DreamPlan(REF)) is not None
    assert host.forget.forget(ada, "ana").redone == 1
    (report,) = [report for report in host.lineage.reports(ada) if report.state == "done"]
    host.lineage.undo(ada, report.id)
    texts = readable(host, ada)
    assert set(texts) == {text for text in first if needle("ana") not in text} | {
        d.content for d in notes(10, first=40)
    }


def test_a_note_that_pretends_to_be_a_dream_takes_no_other_dream_with_it(host: Host, ada: Actor) -> None:
    dream(host, ada, ("bo",))
    (report,) = host.lineage.reports(ada)
    host.entries.put(ada, REF, [Draft("Zed was here.", subject="zed", attributes={"dream": report.id})])
    assert host.forget.forget(ada, "zed").archives == 0
    assert host.lineage.report(ada, report.id).state == "done"
    assert host.lineage.verify(ada, report.id).ok


# asking


@pytest.mark.parametrize("asked", ["ana", "ANA", "  Ana ", "ANA\t", "a\u200bna", "\uff21na"])
def test_case_and_surrounding_space_do_not_count(host: Host, ada: Actor, asked: str) -> None:
    host.entries.put(ada, REF, [Draft("One.", subject="Ana"), Draft("Two.", tags=("subject:aNA ",)), Draft("Three.")])
    preview = host.forget.forget(ada, asked, preview=True)
    assert preview.ways == {"subject": 1, "tag": 1}
    assert host.forget.forget(ada, asked).forgotten == 2
    assert readable(host, ada) == ["Three."]


def test_invisible_characters_and_unicode_forms_do_not_count(host: Host, ada: Actor) -> None:
    """Neither in labels, nor in the sources of a dream, nor in words that mention the subject."""
    told = {"bo\u200b": "Bo decided to use port 7001.", "cy": "Cy decided to use port 7002."}
    drafts = [Draft(f"{text} {COURTESY}", subject=name) for name, text in told.items() for _ in range(3)]
    host.entries.put(ada, REF, drafts)
    assert host.dreams.run(ada, DreamPlan(REF)) is not None
    host.entries.put(ada, REF, [Draft("I met \uff22\u00ado."), Draft("Nobody was there.")])
    done = host.forget.forget(ada, "Bo", mentions=True)
    assert done.ways["subject"] == 3
    assert done.ways["mention"] == 1
    assert not any("7001" in text or "met" in text for text in readable(host, ada))
    assert any("7002" in text for text in readable(host, ada))


def test_an_older_ledger_still_forgets_a_subject_with_an_invisible_character(
    make_host: MakeHost, make_store: Callable[..., Store], ada: Actor
) -> None:
    host = make_host(store=make_store())
    host.entries.put(ada, REF, [Draft("One.", subject="A\u200bna"), Draft("Two.", subject="Ana")])
    key = host.parts.store.read(Scope(ada.tenant), lambda tx: tx.log_key())
    line = ForgetLine(ada.tenant, keyed_hash(key, "a\u200bna"), None, host.parts.clock.now(), folded=True)
    assert host.forget.again(ada, [line]) == 1
    assert readable(host, ada) == ["Two."]


def test_an_empty_subject_is_refused(host: Host, ada: Actor) -> None:
    for subject in ("", "  ", "x" * 257):
        with pytest.raises(Invalid):
            host.forget.forget(ada, subject)


def test_without_a_label_it_says_how_many_mention_the_words(host: Host, ada: Actor) -> None:
    texts = ["Ana Lopez called.", "ANA\n LOPEZ!", "Tirana Lopez", "ana lopezian", "We met ana-lopez.", "Nothing."]
    host.entries.put(ada, REF, [Draft(text) for text in texts])
    for preview in (True, False):
        found = host.forget.forget(ada, "ana lopez", preview=preview)
        assert (found.forgotten, found.mentioned, found.certificate) == (0, 2, None)
    assert len(readable(host, ada)) == 6


def test_mentions_are_forgotten_on_request_and_the_certificate_says_by_which_way(host: Host, ada: Actor) -> None:
    dream(host, ada, ("ana",))
    host.entries.put(
        ada,
        REF,
        [
            Draft("I saw Ana today."),
            Draft("A banana."),
            Draft("x", attributes={"met": ["ana"]}),
            Draft("y", subject="ANA"),
        ],
    )
    preview = host.forget.forget(ada, "ana", mentions=True, preview=True)
    done = host.forget.forget(ada, "ana", mentions=True)
    assert preview.ways == done.ways == {"subject": 4, "mention": 2, "lineage": 1}
    (event,) = host.reader.events(ada, types=("memory.forgotten",))
    assert event.data["ways"] == {"subject": 4, "mention": 2, "lineage": 1}
    assert "A banana." in readable(host, ada)
    assert "I saw Ana today." not in readable(host, ada)
    assert host.forget.forget(ada, "ana", mentions=True, preview=True).forgotten == 0


def test_a_mention_written_while_a_forget_plans_goes_too(
    make_host: MakeHost, make_store: MakeStore, ada: Actor
) -> None:
    store = make_store()
    (first,) = hosts(make_host, store, 1)
    first.entries.put(ada, REF, [Draft("Ana called."), *notes(3)])

    class Late:
        done = False

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def write(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
            if not self.done:
                self.done = True
                first.entries.put(ada, REF, [Draft("Ana called again.")])
            return store.write(scope, body)

    (other,) = hosts(make_host, Late(), 1)
    assert other.forget.forget(ada, "Ana", mentions=True).forgotten == 2
    assert not [text for text in readable(first, ada) if "Ana" in text]


def test_a_ledger_forgets_again_by_label_and_by_mention(
    make_host: MakeHost, make_store: MakeStore, ada: Actor, clock: HandClock, tmp_path: Any
) -> None:
    from reverie.privacy.ledger import FileLedger

    ledger = FileLedger(tmp_path / "forgotten.jsonl")
    host = make_host(store=make_store(), ledger=ledger)
    host.entries.put(ada, REF, [Draft("One.", subject="Ana"), Draft("Ana Lopez called."), Draft("Bo called.")])
    host.forget.forget(ada, "ana")
    host.forget.forget(ada, "ANA lopez", mentions=True)
    clock.advance(1)
    host.entries.put(ada, REF, [Draft("Two.", subject="Ana")])
    restored = [Draft("One.", subject="Ana", created_at=1), Draft("It was ana  LOPEZ.", created_at=1)]
    host.entries.put(ada, REF, restored)
    assert host.forget.replay(ada) == 2
    assert readable(host, ada) == ["Bo called.", "Two."]
    assert "Lopez" not in (tmp_path / "forgotten.jsonl").read_text().title()


def test_a_compaction_that_lost_a_source_gives_the_others_back(host: Host, ada: Actor) -> None:
    """Its text is joined and says of no line whose it is, so nothing of it can stay."""
    said = {name: f"We decided that {name} opens the pier at nine. {COURTESY}" for name in ("ana", "bo", "cy")}
    ids = [host.entries.put(ada, REF, [Draft(text, subject=name)])[0].id for name, text in said.items()]
    assert host.passes.compact(ada, REF)
    host.lifecycle.erase(ada, REF, ids[1])
    preview = host.forget.forget(ada, "ana", preview=True)
    assert preview.restored == host.forget.forget(ada, "ana").restored == 1
    assert readable(host, ada) == [said["cy"]]


def test_a_forget_that_is_repeated_reaches_no_further_the_next_time(
    make_host: MakeHost, make_store: MakeStore, ada: Actor, clock: HandClock, tmp_path: Any
) -> None:
    from reverie.privacy.ledger import FileLedger

    host = make_host(store=make_store(), ledger=FileLedger(tmp_path / "forgotten.jsonl"))
    host.entries.put(ada, REF, [Draft("One.", subject="Ana")])
    host.forget.forget(ada, "ana")
    clock.advance(1)
    host.entries.put(ada, REF, [Draft("Two.", subject="Ana")])
    clock.advance(1)
    for _ in range(2):  # each time an older backup was restored
        host.entries.put(ada, REF, [Draft("One.", subject="Ana", created_at=1)])
        assert host.forget.replay(ada) == 1
        assert readable(host, ada) == ["Two."]


def test_a_backup_that_is_older_than_two_forgets_of_one_subject_is_made_to_forget_both(
    make_host: MakeHost, make_store: MakeStore, ada: Actor, clock: HandClock, tmp_path: Any
) -> None:
    from reverie.privacy.certificate import CERTIFIED
    from reverie.privacy.forget import UNDER_WAY_MS
    from reverie.privacy.ledger import FileLedger

    store = make_store()

    def start() -> Host:
        return make_host(store=store, ledger=FileLedger(tmp_path / "forgotten.jsonl"))

    def older(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.dropped", "TEST", "test", data={}))
        for document in tx.documents(CERTIFIED).items:
            tx.drop(CERTIFIED, document.key, seq=seq, keep=0)

    host = start()
    host.entries.put(ada, REF, [Draft("Ana called.")])
    host.forget.forget(ada, "ana", mentions=True)
    clock.advance(10)
    host.entries.put(ada, REF, [Draft("One.", subject="Ana")])
    host.forget.forget(ada, "ana")
    store.write(Scope(ada.tenant), older)
    host.entries.put(ada, REF, [Draft("One.", subject="Ana"), Draft("Ana called.", created_at=1)])
    clock.advance(UNDER_WAY_MS)
    host = start()
    first, second = host.forget.cut_off(ada)
    assert host.forget.again(ada, [first]) == 1
    assert host.forget.cut_off(ada) == []
    host = start()  # after a crash between the two
    assert host.forget.cut_off(ada) == [second]
    assert host.forget.again(ada, [second]) == 1
    assert readable(host, ada) == []
    assert start().forget.cut_off(ada) == []


def test_the_report_of_a_dream_that_was_made_again_says_nothing_of_its_sources(host: Host, ada: Actor) -> None:
    """Only counts and hashes stay of it: a memory under constant forgetting has many, and they are never read again."""
    dream(host, ada, ["ana"], plain=40)
    before = host.lineage.reports(ada, ref=REF)[0]
    assert host.forget.forget(ada, "ana").redone == 1
    old, new = (host.lineage.report(ada, one) for one in (before.id, host.lineage.reports(ada, ref=REF)[0].id))
    assert (old.state, new.state) == ("redone", "done")
    assert (old.sources, old.statements, old.collapsed, old.gates, old.about) == ([], [], [], {}, {})
    assert len(new.sources) == 40


def test_a_dream_of_dreams_made_again_saves_what_both_saved_of_the_remaining_entries(host: Host, ada: Actor) -> None:
    """The console adds up the dreams in force: the first dream is none any more, so the new one counts its entries."""

    def saved() -> int:
        reports = host.lineage.reports(ada)
        return sum(one.taken_tokens - one.output_tokens for one in reports if one.state in ("done", "superseded"))

    dream(host, ada, ("ana",), plain=40)
    host.entries.put(ada, REF, notes(30, first=50))
    assert host.dreams.run(ada, DreamPlan(REF)) is not None
    before = saved()
    assert host.forget.forget(ada, "ana").redone == 1
    (report,) = [one for one in host.lineage.reports(ada) if one.state == "done"]
    entries = [entry for entry in stored(host, ada) if entry.state is EntryState.DREAMT]
    assert report.taken_tokens == sum(map(TokenCounter().count, hot_texts(entries)))
    assert before * 0.8 < saved() <= before


class Passes(list[Entry]):
    """Entries that count how often they are gone through."""

    count = 0

    def __iter__(self) -> Iterator[Entry]:
        self.count += 1
        return super().__iter__()


def test_a_subject_in_many_memories_is_gone_through_once_and_not_once_for_each(host: Host, ada: Actor) -> None:
    for number in range(30):
        host.entries.put(ada, f"chat/{number}", [Draft(f"Ana was here, {number}.", subject="ana")])

    def body(tx: Any) -> tuple[int, int]:
        target = Target(subject_hash(tx.log_key(), "ana"))
        reach = find(tx, target)
        planned, proved = Passes(reach.entries), Passes(reach.entries)
        _derived(tx, target, planned, [], set())
        with pytest.raises(Incomplete):  # nothing was destroyed
            prove(tx, target, Reach(reach.position, proved), 0)
        return planned.count, proved.count

    planned, proved = host.parts.store.write(Scope(ada.tenant), body)
    assert max(planned, proved) < 5


def test_a_question_that_cannot_name_the_subject_costs_no_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forget asks this of every recorded question of the tenant, while other writers wait."""
    hashed: list[str] = []
    monkeypatch.setattr(
        "reverie.privacy.reach.keyed_hash", lambda key, text: hashed.append(text) or keyed_hash(key, text)
    )
    known = Target(subject_hash(b"key", "Ana  López"), folded=fold("Ana  López"))
    blind = Target(known.subject)
    assert not known.named_in("When does the harbour office open on public holidays?", b"key")
    assert hashed == []
    for text in ("Does ANA  LÓPEZ like tea?", "Anan  López?", "ana lopez", "Tirana  López", ""):
        assert known.named_in(text, b"key") == blind.named_in(text, b"key")
    assert known.named_in("Does ANA  LÓPEZ like tea?", b"key")
