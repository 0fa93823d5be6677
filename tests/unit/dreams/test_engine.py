"""The dream engine through the host: budget, gates, commit, archive, undo."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.dream import After, DreamPlan, GateFailed, NotUndoable, Selector, TokenBudgetExceeded
from reverie.core.entry import Draft, EntryState, Scope, Source
from reverie.core.errors import Busy, Conflict, Held, Invalid
from reverie.core.event import NewEvent
from reverie.distil.request import DistilledText, Request
from reverie.dreams.archive import DREAM_SPACE
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.store.cipher import FileCipher
from reverie.store.conformance import HandClock
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore

DAY = 86_400_000
MakeHost = Callable[..., Host]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host(tokens=TokenCounter(), embedder=EMBEDDER)


def notes(count: int, *, subject: str | None = None, first: int = 0) -> list[Draft]:
    return [
        Draft(
            content=f"Order {n} left warehouse {n % 5} and its invoice {n * 31} was paid in full.",
            subject=subject,
            source=Source(actor="clerk"),
        )
        for n in range(first, first + count)
    ]


def put(host: Host, actor: Actor, drafts: list[Draft], ref: str = "bot") -> list[str]:
    return [receipt.id for receipt in host.entries.put(actor, ref, drafts)]


def texts(host: Host, actor: Actor, ref: str = "bot") -> list[str]:
    return [entry.content for entry in host.reader.page(actor, ref, limit=1000).items]


class Saying:
    """A distiller that says what it is told to."""

    name = "saying"
    fingerprint = "saying/1"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def distil(self, request: Request) -> DistilledText:
        self.requests.append(request)
        return DistilledText(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def test_many_become_one_and_the_sources_leave_readable_memory(host: Host, ada: Actor) -> None:
    ids = put(host, ada, notes(30))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    (entry,) = host.reader.page(ada, "bot").items
    assert entry.id == report.output_id
    assert entry.kind == "dream"
    assert {link.to_id for link in host.reader.links(ada, "bot", entry.id)} == set(ids)
    assert report.tokens_used <= report.budget
    assert report.output_tokens < report.input_tokens
    assert host.reader.get(ada, "bot", ids[0], cold=True).state is EntryState.DREAMT
    assert host.search.search(ada, "bot", "order 3 warehouse").hits[0].entry.id == entry.id
    assert host.audit.verify(ada).ok


def test_the_event_names_up_to_a_hundred_sources_and_none_above(host: Host, ada: Actor) -> None:
    for ref, count in (("small", 100), ("large", 101)):
        put(host, ada, notes(count), ref)
        host.dreams.run(ada, DreamPlan(ref))
    small, large = [e.data for e in host.reader.events(ada, types=("memory.compacted",))]
    assert len(small["source_ids"]) == 100
    assert "source_ids" not in large
    assert large["sources"] == 101


def test_a_budget_of_exactly_the_minimum_succeeds_and_one_less_writes_nothing(host: Host, ada: Actor) -> None:
    put(host, ada, notes(20))
    with pytest.raises(TokenBudgetExceeded) as refused:
        host.dreams.run(ada, DreamPlan("bot", budget=1))
    least = refused.value.details["minimumRequired"]
    assert refused.value.details == {"budget": 1, "minimumRequired": least}
    head = host.reader.snapshot(ada)
    with pytest.raises(TokenBudgetExceeded):
        host.dreams.run(ada, DreamPlan("bot", budget=least - 1))
    assert host.reader.snapshot(ada) == head
    report = host.dreams.run(ada, DreamPlan("bot", budget=least))
    assert report is not None
    assert report.tokens_used <= least


def test_a_budget_is_clamped_to_the_policy_and_defaults_to_it(host: Host, ada: Actor) -> None:
    host.rules.set_policy(ada, {"dream_budget": 3000})
    put(host, ada, notes(20))
    assert host.dreams.plan(ada, DreamPlan("bot", budget=99_999)).budget == 3000
    assert host.dreams.plan(ada, DreamPlan("bot")).budget == 3000
    with pytest.raises(Invalid):
        host.dreams.plan(ada, DreamPlan("bot", budget=0))


def test_planning_touches_nothing(host: Host, ada: Actor) -> None:
    put(host, ada, notes(10))
    before = host.reader.snapshot(ada)
    estimate = host.dreams.plan(ada, DreamPlan("bot"))
    assert estimate.feasible
    assert estimate.sources == 10
    assert host.reader.snapshot(ada) == before


def test_pinned_held_and_recent_entries_stay_out(host: Host, ada: Actor, clock: HandClock) -> None:
    old = put(host, ada, notes(6))
    host.lifecycle.pin(ada, "bot", old[0])
    host.lifecycle.hold(ada, "bot", old[1])
    clock.advance(2 * DAY)
    fresh = put(host, ada, notes(2, first=90))
    plan = DreamPlan("bot", selector=Selector(older_than_ms=DAY))
    estimate = host.dreams.plan(ada, plan)
    assert estimate.left_out == {"pinned": 1, "held": 1, "recent": 2}
    host.dreams.run(ada, plan)
    readable = {entry.id for entry in host.reader.page(ada, "bot").items}
    assert {old[0], old[1], *fresh} <= readable


def test_fewer_than_two_entries_are_nothing_to_do(host: Host, ada: Actor) -> None:
    put(host, ada, notes(1))
    assert host.dreams.run(ada, DreamPlan("bot")) is None
    assert host.dreams.run(ada, DreamPlan("empty")) is None


def test_what_must_be_kept_is_kept_word_for_word(host: Host, ada: Actor) -> None:
    put(host, ada, notes(30))
    rule = "Never deploy on Fridays without the release manager."
    (ruled,) = put(host, ada, [Draft(content=rule, kind="constraint")])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    assert {"source": ruled, "why": "kind", "required": True, "state": "quoted"} in report.gates["items"]
    assert rule.rstrip(".") in texts(host, ada)[0]
    assert report.gates["must_keep"]["missing"] == 0


def test_the_archive_is_canonical_and_anyone_can_recompute_its_checksum(host: Host, ada: Actor) -> None:
    put(host, ada, notes(12))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    stored = host.archives.get(ada, str(report.checksum))
    assert hashlib.sha256(stored).hexdigest() == report.checksum
    document = orjson.loads(stored)
    again = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert again == stored
    assert set(document) == {"schema", "tokenBudget", "tokenizerName", "sources", "content"}
    assert document["content"] == texts(host, ada)[0]
    assert host.lineage.verify(ada, report.id).ok


def test_undo_restores_memory_exactly_and_only_once(host: Host, ada: Actor) -> None:
    put(host, ada, notes(15))
    before = [(e.id, e.content, e.tags, e.state, e.created_at) for e in host.reader.page(ada, "bot").items]
    found = [hit.entry.id for hit in host.search.search(ada, "bot", "invoice 93 warehouse").hits]
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    host.lineage.undo(ada, report.id)
    after = [(e.id, e.content, e.tags, e.state, e.created_at) for e in host.reader.page(ada, "bot").items]
    assert after == before
    assert [hit.entry.id for hit in host.search.search(ada, "bot", "invoice 93 warehouse").hits] == found
    assert not host.archives.index(ada)["archives"]
    with pytest.raises(NotUndoable):
        host.lineage.undo(ada, report.id)


def test_an_undo_indexes_no_words_that_a_scan_took_out_meanwhile(
    make_host: MakeHost, ada: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, value = make_host(tokens=TokenCounter(), cipher=FileCipher(tmp_path / "key")), "tangerine zeppelin brackwater"
    put(host, ada, [Draft(f"{draft.content} Say {value} at the gate.") for draft in notes(15)])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    store: Any = host.parts.store
    real = store.write

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()  # between the preparation of the undo and its transaction
        host.rules.register(ada, "gate", value)
        assert host.rescan.scan(ada).affected
        return real(*given)

    monkeypatch.setattr(store, "write", meanwhile)
    host.lineage.undo(ada, report.id)
    assert len(host.reader.page(ada, "bot", limit=100).items) == 15
    assert not host.search.search(ada, "bot", "brackwater zeppelin").hits
    assert len(host.search.search(ada, "bot", "invoice 93 warehouse", limit=20).hits) == 15


def test_a_dream_and_its_sources_are_never_readable_together(host: Host, ada: Actor) -> None:
    ids = put(host, ada, notes(12))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    assert report.output_id is not None
    with pytest.raises(Conflict) as caught:
        host.lifecycle.restore(ada, "bot", ids[0])
    assert caught.value.reason == "distilled"
    host.lifecycle.delete(ada, "bot", report.output_id)
    host.lifecycle.restore(ada, "bot", ids[0])  # now nothing readable has its words
    with pytest.raises(Conflict):
        host.lifecycle.restore(ada, "bot", report.output_id)
    put(host, ada, notes(11, first=12))
    newer = host.dreams.run(ada, DreamPlan("bot"))
    assert newer is not None
    with pytest.raises(NotUndoable, match="newer"):
        host.lineage.undo(ada, report.id)
    host.lineage.undo(ada, newer.id)
    host.lineage.undo(ada, report.id)
    assert set(ids) <= {entry.id for entry in host.reader.page(ada, "bot", limit=1000).items}


def test_reads_as_of_a_position_are_not_changed_by_dream_or_undo(host: Host, ada: Actor) -> None:
    put(host, ada, notes(5))
    early = host.reader.snapshot(ada)
    as_then = [e.id for e in host.reader.page(ada, "bot", as_of=early).items]
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    dreamt = host.reader.snapshot(ada)
    host.lineage.undo(ada, report.id)
    assert [e.id for e in host.reader.page(ada, "bot", as_of=early).items] == as_then
    assert [e.id for e in host.reader.page(ada, "bot", as_of=dreamt).items] == [report.output_id]


def test_sources_rest_until_the_tenant_says_otherwise_and_undo_works_as_long(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    ids = put(host, ada, notes(5))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    clock.advance(400 * DAY)
    assert host.lifecycle.retain(ada) == 0
    host.lineage.undo(ada, report.id)
    assert {e.id for e in host.reader.page(ada, "bot").items} == set(ids)


def test_after_the_retention_the_sources_are_destroyed_and_undo_says_so(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    host.rules.set_policy(ada, {"cold_retention_ms": 7 * DAY})
    ids = put(host, ada, notes(5))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    clock.advance(8 * DAY)
    assert host.lifecycle.retain(ada) == 5
    with pytest.raises(NotUndoable):
        host.lineage.undo(ada, report.id)
    assert texts(host, ada)
    assert host.lineage.why(ada, "bot", str(report.output_id)).sources[0].content is None
    assert ids


def test_a_dream_of_dreams_starts_from_the_originals_while_they_rest(host: Host, ada: Actor) -> None:
    first = put(host, ada, notes(20))
    one = host.dreams.run(ada, DreamPlan("bot"))
    second = put(host, ada, notes(20, first=50))
    two = host.dreams.run(ada, DreamPlan("bot"))
    assert one is not None
    assert two is not None
    sources = {link.to_id for link in host.reader.links(ada, "bot", str(two.output_id)) if link.type != "supersedes"}
    assert sources == {*first, *second}
    assert list(two.superseded) == [one.output_id]
    assert len(host.reader.page(ada, "bot").items) == 1
    host.lineage.undo(ada, two.id)
    assert {e.id for e in host.reader.page(ada, "bot").items} == {one.output_id, *second}
    host.lineage.undo(ada, one.id)
    assert {e.id for e in host.reader.page(ada, "bot", limit=1000).items} == {*first, *second}


def test_archive_and_purge_without_a_distiller(host: Host, ada: Actor) -> None:
    put(host, ada, notes(3), "a")
    gone = put(host, ada, notes(3), "p")
    shelved = host.dreams.run(ada, DreamPlan("a", distiller="none", after=After.ARCHIVE))
    purged = host.dreams.run(ada, DreamPlan("p", distiller="none", after=After.PURGE))
    assert shelved is not None
    assert purged is not None
    assert purged.reclaimed_bytes > 0
    assert not texts(host, ada, "a")
    assert not texts(host, ada, "p")
    host.lineage.undo(ada, shelved.id)
    assert len(texts(host, ada, "a")) == 3
    with pytest.raises(NotUndoable):
        host.lineage.undo(ada, purged.id)
    assert gone


def test_an_entry_that_changes_meanwhile_is_left_alone_and_reported(host: Host, ada: Actor) -> None:
    ids = put(host, ada, notes(10))

    class Meddling(Saying):
        def distil(self, request: Request) -> DistilledText:
            if not self.requests:
                host.lifecycle.pin(ada, "bot", ids[3])
                put(host, ada, notes(1, first=500))
            return super().distil(request)

    distiller = Meddling("Order 1 left warehouse 1 and its invoice 31 was paid in full.")
    report = host.dreams.run(ada, DreamPlan("bot"), distiller=distiller)
    assert report is not None
    assert report.changed_meanwhile == 1
    assert len(distiller.requests) == 2
    assert ids[3] in {entry.id for entry in host.reader.page(ada, "bot").items}
    assert host.reader.get(ada, "bot", ids[3]).pinned


def test_two_dreamers_on_one_memory_one_is_told(host: Host, ada: Actor) -> None:
    put(host, ada, notes(5))

    class Nested(Saying):
        def distil(self, request: Request) -> DistilledText:
            with pytest.raises(Busy):
                host.dreams.run(ada, DreamPlan("bot"))
            return super().distil(request)

    assert host.dreams.run(ada, DreamPlan("bot"), distiller=Nested("Order 1 left warehouse 1.")) is not None


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("Order 1 left warehouse 77 and invoice 4242 was paid.", "invented"),
        ("Order 1 left warehouse 1 and its invoice 31 was not paid in full.", "negation"),
        ("Order " * 4000, "smaller"),
    ],
)
def test_a_text_that_fails_a_gate_is_repaired_once_and_then_refused(
    host: Host, ada: Actor, text: str, gate: str
) -> None:
    put(host, ada, notes(10))
    head = host.reader.snapshot(ada)
    distiller = Saying(text)
    with pytest.raises(GateFailed) as refused:
        host.dreams.run(ada, DreamPlan("bot"), distiller=distiller)
    assert gate in refused.value.details["gates"]
    assert len(distiller.requests) == 2
    assert gate in distiller.requests[1].complaints
    assert host.reader.snapshot(ada) == head


def test_secrets_in_the_output_are_redacted_whole_split_or_encoded(host: Host, ada: Actor) -> None:
    secret = "correct-horse-battery-42"
    host.rules.register_run(ada, "run-1", {"vault": secret})
    put(host, ada, notes(10))
    encoded = base64.b64encode(secret.encode()).decode()
    said = f"Order 1 left warehouse 1. {secret} {secret[:9]}\n{secret[9:]} {encoded} [BYOK:abc]"
    report = host.dreams.run(ada, DreamPlan("bot", run="run-1"), distiller=Saying(said))
    assert report is not None
    (text,) = texts(host, ada)
    assert secret not in text.replace("\n", "")
    assert encoded not in text
    assert "BYOK" not in text
    assert text.count("[REDACTED:vault]") == 3
    assert "[REDACTED:byok]" in text


def test_the_same_sources_give_the_same_bytes_whatever_the_insertion_order(make_host: MakeHost, ada: Actor) -> None:
    checksums = set()
    drafts = [
        Draft(content=d.content, id=f"m{n}", created_at=1_700_000_000_000 + n * 1000, source=d.source)
        for n, d in enumerate(notes(60))
    ]
    for seed in range(3):
        host = make_host(tokens=TokenCounter(), store=SqliteStore(":memory:"))
        random.Random(seed).shuffle(drafts)
        put(host, ada, drafts)
        report = host.dreams.run(ada, DreamPlan("bot"))
        assert report is not None
        checksums.add(report.checksum)
    assert len(checksums) == 1


def test_fit_takes_the_oldest_part_and_goes_on_the_next_night(host: Host, ada: Actor) -> None:
    host.rules.set_policy(ada, {"dream_budget": 1500, "hot_target": "800"})
    put(host, ada, notes(200))
    with pytest.raises(TokenBudgetExceeded):
        host.dreams.run(ada, DreamPlan("bot", budget=1500))
    nights, left = 0, 200
    while left > 1 and nights < 50:
        report = host.dreams.run(ada, DreamPlan("bot", fit=True))
        if report is None:
            break
        assert report.tokens_used <= 1500
        nights += 1
        left = report.left_for_later
    kinds = [entry.kind for entry in host.reader.page(ada, "bot", limit=1000).items]
    assert kinds.count("note") <= 1
    assert 3 <= nights < 50


def test_the_index_says_what_there_is_and_holds_no_secret(host: Host, ada: Actor) -> None:
    put(host, ada, notes(10))
    host.dreams.run(ada, DreamPlan("bot"))
    (item,) = host.archives.index(ada, ref="bot")["archives"]
    assert item["sourceCount"] == 10
    assert item["topics"]
    assert "bot" in host.archives.index_page(ada)
    assert not host.archives.index(ada, ref="other")["archives"]


def test_archives_outlive_nothing_but_their_retention(host: Host, ada: Actor, clock: HandClock) -> None:
    put(host, ada, notes(10))
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    clock.advance(29 * DAY)
    assert host.archives.collect(ada) == 0
    clock.advance(2 * DAY)
    assert host.archives.collect(ada) == 1
    assert not host.archives.index(ada)["archives"]
    assert texts(host, ada)
    assert [e.type for e in host.reader.events(ada)][-2:] == ["archive.collected", "workspace.updated"]


def test_trust_of_a_dream_is_that_of_its_weakest_source(host: Host, ada: Actor) -> None:
    put(host, ada, notes(5))
    put(host, ada, [Draft(content="Order 900 may have left warehouse 2.", source=Source(actor="web", trust=2))])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    assert host.reader.get(ada, "bot", str(report.output_id)).source.trust == 2
    host.lineage.undo(ada, report.id)
    host.rules.set_policy(ada, {"dream_trust": 5})
    assert host.dreams.plan(ada, DreamPlan("bot")).left_out == {"trust": 1}


def test_everything_derived_from_an_entry_is_one_query(host: Host, ada: Actor) -> None:
    ids = put(host, ada, notes(10))
    one = host.dreams.run(ada, DreamPlan("bot"))
    put(host, ada, notes(10, first=40))
    two = host.dreams.run(ada, DreamPlan("bot"))
    assert one is not None
    assert two is not None
    assert host.lineage.derived(ada, "bot", ids[0]) == sorted([str(one.output_id), str(two.output_id)])


def test_forgetting_a_subject_redoes_the_dreams_made_from_it(host: Host, ada: Actor) -> None:
    put(host, ada, notes(12))
    put(host, ada, [Draft(content="Zanzibar keeps parrots near invoice 31 and order 7.", subject="zed")])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    assert "Zanzibar" in texts(host, ada)[0]
    preview = host.forget.forget(ada, "zed", preview=True)
    assert (preview.forgotten, preview.derived) == (1, 1)
    done = host.forget.forget(ada, "zed")
    assert (done.forgotten, done.derived, done.redone) == (1, 1, 1)
    (text,) = texts(host, ada)
    assert "Zanzibar" not in text
    assert "Order" in text
    with pytest.raises(NotUndoable):
        host.lineage.undo(ada, report.id)
    assert host.audit.verify(ada).ok
    assert host.forget.forget(ada, "zed").forgotten == 0


def test_forgetting_after_the_sources_were_destroyed_drops_the_lines_that_owe_to_them(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    put(host, ada, notes(12))
    put(host, ada, [Draft(content="Zanzibar keeps parrots.", subject="zed", kind="decision")])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    clock.advance(8 * DAY)
    host.lifecycle.retain(ada)
    done = host.forget.forget(ada, "zed")
    assert done.derived == 1
    left = " ".join(texts(host, ada))
    assert "Zanzibar" not in left
    assert "Order" in left


def test_when_too_little_remains_the_other_sources_are_readable_again(host: Host, ada: Actor) -> None:
    put(host, ada, [Draft(content="Zanzibar keeps parrots and feeds them twice a day.", subject="zed")])
    (kept,) = put(host, ada, [Draft(content="Thanks a lot, have a great weekend everyone!")])
    assert host.dreams.run(ada, DreamPlan("bot")) is not None
    done = host.forget.forget(ada, "zed")
    assert done.restored == 1
    assert [entry.id for entry in host.reader.page(ada, "bot").items] == [kept]


def test_a_hold_blocks_a_forget_visibly(host: Host, ada: Actor) -> None:
    (held,) = put(host, ada, [Draft(content="Zanzibar keeps parrots.", subject="zed")])
    host.lifecycle.hold(ada, "bot", held)
    with pytest.raises(Held) as refused:
        host.forget.forget(ada, "zed")
    assert refused.value.details == {"held": 1, "found": 1}
    assert texts(host, ada)


def test_consolidation_keeps_what_is_told_of_different_things(host: Host, ada: Actor, clock: HandClock) -> None:
    for number in range(4):
        put(host, ada, [Draft(content=f"Deploy number {number} took {number * 7 + 3} minutes in all.")])
        put(host, ada, [Draft(content=f"Wagon {number} was painted green by the crew.")])
        clock.advance(1000)
    done = host.consolidator.run(ada, "bot")
    assert (done.input_count, done.output_count) == (8, 8)


def test_consolidation_merges_supersedes_and_is_idempotent(host: Host, ada: Actor, clock: HandClock) -> None:
    by = Source(actor="clerk")
    for text in (
        "The customer budget is 12000 EUR for this quarter.",
        "Ships leave the harbour at noon.",
        "The customer budget is 15000 EUR for this quarter.",
        "Ships leave the harbour at noon.",
        "Ships leave the harbour at noon!",
    ):
        put(host, ada, [Draft(content=text, source=by)])
        clock.advance(1000)
    first = host.consolidator.run(ada, "bot")
    assert (first.input_count, first.output_count) == (5, 2)
    assert (first.duplicates, first.outdated) == (2, 1)
    assert set(texts(host, ada)) == {
        "The customer budget is 15000 EUR for this quarter.",
        "Ships leave the harbour at noon!",
    }
    strong = next(e for e in host.reader.page(ada, "bot").items if "Ships" in e.content)
    assert strong.attributes["corroborated"] == 3
    head = host.reader.snapshot(ada)
    second = host.consolidator.run(ada, "bot")
    assert (second.input_count, second.output_count, second.merged) == (2, 2, [])
    assert host.reader.snapshot(ada) == head
    assert host.audit.verify(ada).ok


def test_consolidation_takes_an_entry_whose_author_wrote_a_count_of_its_own(host: Host, ada: Actor) -> None:
    for times in ("many", None, [1], 2.5, -7, 2**53 - 1):
        draft = Draft("Ships leave the harbour at noon.", attributes={"corroborated": times})
        put(host, ada, [draft, Draft("Ships leave the harbour at noon.")])
    assert host.consolidator.run(ada, "bot").duplicates == 11
    (left,) = host.reader.page(ada, "bot").items
    assert left.attributes["corroborated"] == 2**53 - 1
    assert host.audit.verify(ada).ok


def test_a_memory_of_nothing_but_repetitions_becomes_one_line(host: Host, ada: Actor) -> None:
    """The text is compared with all that leaves, not with the one copy that the distiller was given."""
    for _ in range(6):
        host.entries.put(ada, "twice", [Draft("The quarterly report is due on the last Friday of the month.")])
    report = host.dreams.run(ada, DreamPlan("twice", fit=True))
    assert report is not None
    assert report.hot_after < report.hot_before // 2
    (left,) = host.reader.page(ada, "twice", limit=10).items
    assert "due on the last Friday of the month (\u00d76)" in left.content


def test_a_part_leaves_entries_alone_that_would_not_become_smaller(host: Host, ada: Actor) -> None:
    own = put(
        host,
        ada,
        [Draft(content=text) for text in ("Ines keeps the office keys.", "The ferry to Brava leaves at 6:40.")],
    )
    tests = put(host, ada, [Draft(content=f"Tests: {400 + n} passed, 3 skipped in {40 + n} s.") for n in range(6)])
    report = host.dreams.run(ada, DreamPlan("bot", fit=True))
    assert report is not None
    assert {source.id for source in report.sources} == set(tests)
    assert set(report.stayed) == set(own)
    assert report.hot_after < report.hot_before
    assert (report.hot_target, report.above_target) == (0, None)


def test_a_question_stays_with_the_answer_that_stays(host: Host, ada: Actor) -> None:
    user, assistant = Source(actor="user"), Source(actor="assistant")
    asked = put(
        host,
        ada,
        [
            Draft(content="And how do I prevent it?", source=user),
            Draft(content="Never lift the crates alone, always use the trolley.", source=assistant),
        ],
    )
    tests = put(host, ada, [Draft(content=f"Tests: {400 + n} passed, 3 skipped in {40 + n} s.") for n in range(6)])
    report = host.dreams.run(ada, DreamPlan("bot", fit=True))
    assert report is not None
    assert {source.id for source in report.sources} == set(tests)
    assert set(report.stayed) == set(asked)


def test_the_report_says_why_hot_memory_is_above_its_target(host: Host, ada: Actor) -> None:
    host.rules.set_policy(ada, {"hot_target": "20"})
    rules = [f"Never open valve {n} while pump {n + 7} is running." for n in range(12)]
    put(host, ada, [Draft(content=text) for text in (*rules, *["Thanks a lot, have a great weekend everyone!"] * 3)])
    report = host.dreams.run(ada, DreamPlan("bot", fit=True))
    assert report is not None
    assert report.hot_target == 20
    assert report.above_target == "must_keep"


def test_numbers_of_any_length_do_not_keep_a_memory_from_its_dream(host: Host, ada: Actor) -> None:
    """Python converts no more than 4300 digits to an integer: one such entry stopped every dream of its memory."""
    long = "7" * 5000
    put(host, ada, [Draft(f"The box holds marbles (×{long}), said Anna of Leeds."), *notes(10)])
    put(host, ada, [Draft(f"disk of log-3 at {n}{long} % full") for n in range(1, 5)])
    assert host.dreams.run(ada, DreamPlan("bot")) is not None


def test_a_dream_over_an_entry_that_only_calls_itself_a_dream_can_be_undone(host: Host, ada: Actor) -> None:
    ids = put(host, ada, [Draft("The kettle in Leeds costs 30 euros and Anna paid for it.", kind="dream"), *notes(30)])
    report = host.dreams.run(ada, DreamPlan("bot"))
    assert report is not None
    assert ids[0] in report.superseded
    assert host.lineage.undo(ada, report.id).state == "undone"
    assert {entry.id for entry in host.reader.page(ada, "bot", limit=100).items} == set(ids)


def test_a_cursor_of_raised_digits_is_refused(host: Host, ada: Actor) -> None:
    with pytest.raises(Invalid):
        host.lineage.page(ada, cursor="²")


def test_a_dream_is_found_by_the_beginning_of_its_id_behind_hundreds_of_another_memory(host: Host, ada: Actor) -> None:
    def body(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("memory.compacted", "DREAM", ada.id, data={}))
        for number in range(600):
            tx.save(DREAM_SPACE, f"01{number:04}", b"{}", seq=seq, meta={"ref": "crowd"}, keep=1)
        tx.save(DREAM_SPACE, "01X", b"{}", seq=seq, meta={"ref": "bot"}, keep=1)

    host.parts.store.write(Scope(ada.tenant), body)
    assert host.lineage.ids(ada, "01", ref="bot") == ["01X"]
    assert len(host.lineage.ids(ada, "01")) == 10


def test_a_commitment_stays_until_it_has_fired(host: Host, ada: Actor) -> None:
    """One that left readable memory, or was merged with one of the same words, would never fire."""
    now = host.parts.clock.now()
    due = [now + DAY, now + 2 * DAY, now - 2 * DAY]
    text = "Call the clinic about the blood test of Marta."
    kept = put(host, ada, [Draft(text, kind="commitment", attributes={"due": at}) for at in due])
    waits = put(host, ada, [Draft("Tell Ana.", kind="commitment", attributes={"when": {"tag": "home"}})])
    put(host, ada, notes(40))
    assert host.consolidator.run(ada, "bot").merged == []
    assert host.dreams.run(ada, DreamPlan("bot", budget=8000)) is not None
    left = {entry.id for entry in host.reader.page(ada, "bot", limit=1000).items}
    assert left >= {*kept[:2], *waits}
    assert kept[2] not in left
