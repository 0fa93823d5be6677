"""Everything `Memory` and `Ref` promise, embedded and over HTTP alike."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import reverie
from reverie import Filter

BERTHS = [
    f"The club with number {number} pays {number + 3} euros for its berth at pier {number}." for number in range(12)
]


def test_an_entry_is_stored_read_and_found(memory: reverie.Memory) -> None:
    notes = memory.ref("team/notes")
    when = datetime(2026, 3, 1, 12, tzinfo=UTC)
    receipt = notes.put(
        "Ana prefers e-mail.",
        tags=["preference", "é"],
        subject="ana",
        attributes={"n": 1, "deep": {"a": [None, 2.5]}},
        created_at=when,
        source={"actor": "desk", "session": "s-1", "trust": 7},
        pinned=True,
    )
    entry = notes.get(receipt.id)
    assert (entry.content, entry.tags, entry.subject, entry.pinned) == (
        "Ana prefers e-mail.",
        ("preference", "é"),
        "ana",
        True,
    )
    assert entry.attributes == {"n": 1, "deep": {"a": [None, 2.5]}}
    assert entry.created_at == int(when.timestamp() * 1000) == receipt.created_at
    assert (entry.source.actor, entry.source.session, entry.source.trust) == ("desk", "s-1", 7)
    assert entry.state is reverie.EntryState.ACTIVE
    assert (entry.ref, entry.version, entry.born_seq) == ("team/notes", 1, receipt.seq)
    found = notes.search("how does Ana want to be reached?")
    assert isinstance(found, reverie.SearchResult)
    assert found[0].entry.id == receipt.id
    assert [hit.text for hit in found] == ["Ana prefers e-mail."]
    assert (len(found), found.index(found[0]), list(found[:1])) == (1, 0, [found[0]])
    assert memory.refs() == [("team/notes", 1)]
    assert memory.refs("team/") == [("team/notes", 1)]
    assert memory.refs("other") == []


def test_a_secret_is_counted_and_never_stored(memory: reverie.Memory) -> None:
    secret = "ghp_" + hashlib.sha256(b"made up").hexdigest()[:36]
    receipt = memory.ref("notes").put(f"The token is {secret}")
    assert sum(receipt.findings.values()) == 1
    assert secret not in memory.ref("notes").get(receipt.id).content


def test_many_are_stored_together_and_read_to_the_end(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    receipts = notes.put_many([*(f"Note {number}." for number in range(24)), {"content": "Last.", "tags": ["t"]}])
    assert len({receipt.id for receipt in receipts}) == 25
    page = notes.list(limit=10)
    assert [entry.content for entry in page.items[:2]] == ["Last.", "Note 23."]
    again = notes.list(limit=10, cursor=page.cursor)
    assert not {entry.id for entry in again.items} & {entry.id for entry in page.items}
    assert [entry.content for entry in notes.entries()][-1] == "Note 0."
    assert len(list(notes.entries())) == 25
    assert [entry.content for entry in notes.entries(Filter(tags=("t",)))] == ["Last."]
    assert list(notes.entries(Filter(kinds=()))) == []
    assert next(iter(notes.entries(Filter(any_tags=("t", "u"), pinned=False, since=0)))).content == "Last."


def test_since_and_until_are_words_in_a_time_zone(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    for age in (9, 2, 1):
        notes.put(f"The lighthouse was painted {age} days before.", created_at=noon - timedelta(days=age))

    def days(entries: Any) -> list[int]:
        return [int(entry.content.split()[4]) for entry in entries]

    assert days(notes.entries(since="day before yesterday")) == [1, 2]
    assert days(notes.entries(until="vorgestern")) == [2, 9]
    assert days(notes.list(since="yesterday", until="hier").items) == [1]
    assert days(notes.entries(since=noon - timedelta(days=2), until=noon - timedelta(days=1))) == [2]
    assert {1} <= set(days(hit.entry for hit in notes.search("the painted lighthouse", since="3d"))) <= {1, 2}
    found = notes.search("the painted lighthouse", until="3d")
    assert days(hit.entry for hit in found) == [9]
    assert "9 days" in notes.context("the painted lighthouse", until="3d").text
    assert notes.context("the painted lighthouse", since="tomorrow").text == ""
    # half past midnight in the far east is the day before in UTC
    day = noon - timedelta(days=20)
    notes.put("The lighthouse was painted 20 days before.", created_at=day.replace(hour=23))
    assert days(notes.entries(until=f"{day:%Y-%m-%d}")) == [20]
    assert days(notes.entries(until=f"{day:%Y-%m-%d}", zone="Pacific/Auckland")) == []
    memory.set_policy(zone="Pacific/Auckland")
    assert days(notes.entries(until=f"{day:%Y-%m-%d}")) == []
    for wrong in ("once upon a time", "", "2026-13-01"):
        with pytest.raises(reverie.Invalid):
            notes.search("lighthouse", since=wrong)
    with pytest.raises(reverie.Invalid):
        notes.list(since="yesterday", zone="Mars/Olympus")
    with pytest.raises(reverie.Invalid):
        notes.list(Filter(since=0), since="yesterday")


def test_a_retry_does_nothing_twice(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    first = notes.put("Once.", idempotency_key="k1")
    second = notes.put("Once.", idempotency_key="k1")
    assert (first.id, first.replayed, second.id, second.replayed) == (second.id, False, first.id, True)
    with pytest.raises(reverie.IdempotencyReused):
        notes.put("Twice.", idempotency_key="k1")
    assert len(list(notes.entries())) == 1


def test_an_entry_is_superseded(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    old = notes.put("The office is in Lyon.")
    new = notes.supersede(old.id, "The office is in Nantes.", tags=["place"], expected=1)
    assert [entry.id for entry in notes.entries()] == [new.id]
    assert [(link.to_id, link.type) for link in notes.links(new.id)] == [(old.id, "supersedes")]
    assert [link.from_id for link in notes.links(old.id, incoming=True)] == [new.id]
    assert notes.get(old.id, cold=True).state is reverie.EntryState.SUPERSEDED
    with pytest.raises(reverie.NotFound):
        notes.supersede(old.id, "The office is in Brest.")
    with pytest.raises(reverie.Conflict):
        notes.supersede(new.id, "The office is in Brest.", expected=9)
    assert memory.verify().ok


def test_an_entry_has_a_life(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    entry = notes.put("Something.").id
    assert notes.pin(entry).pinned
    assert not notes.unpin(entry).pinned
    later = datetime.now(UTC) + timedelta(days=3)
    assert notes.renew(entry, later).expires_at == int(later.timestamp() * 1000)
    assert notes.archive(entry).archived
    with pytest.raises(reverie.NotFound):
        notes.get(entry)
    assert [one.id for one in notes.entries(Filter(archived=True, gone=True))] == [entry]
    assert notes.restore(entry).archived is False
    assert notes.delete(entry).state is reverie.EntryState.DELETED
    notes.restore(entry)
    assert notes.erase(entry) == len("Something.")
    with pytest.raises(reverie.NotFound):
        notes.get(entry, cold=True)
    assert memory.sweep() == 0


def test_a_read_as_of_a_position(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    entry = notes.put("Early.").id
    position = memory.snapshot()
    notes.delete(entry)
    notes.put("Late.")
    assert [one.content for one in notes.entries(as_of=position)] == ["Early."]
    assert notes.get(entry, as_of=position).content == "Early."


def test_context_keeps_to_its_budget(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS)
    packed = notes.context("what does the club with number 4 pay?", budget=120)
    assert packed.tokens <= packed.budget == 120
    assert "7 euros" in packed.text


def test_a_search_explains_itself(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS)
    found = notes.search("pier 4", limit=2, explain=True, mode="words", where=Filter(pinned=False))
    assert found.explanation is not None
    assert found.explanation.hits[0].id == found[0].entry.id
    assert found.explanation.cut.limit == 2
    assert found.mode == "words"


def test_a_dream_from_plan_to_undo(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS)
    plan = notes.plan_dream(4000)
    assert (plan.sources, plan.feasible) == (12, True)
    steps: list[tuple[str, int, int]] = []
    report = notes.dream(4000, progress=lambda *step: steps.append(step))
    assert report is not None
    assert steps
    assert report.tokens_used <= 4000
    assert [one.id for one in memory.dreams.list()] == [one.id for one in memory.dreams.list("notes")] == [report.id]
    assert memory.dreams.list("other") == []
    assert memory.dreams.get(report.id).checksum == report.checksum
    assert memory.dreams.verify(report.id).ok
    assert memory.dreams.diff(report.id).dream == report.id
    assert report.checksum is not None
    assert hashlib.sha256(memory.archive(report.checksum)).hexdigest() == report.checksum
    assert report.output_id is not None
    assert len(notes.why(report.output_id).sources) == 12
    source = report.sources[0].id
    assert list(notes.derived(source)) == [report.output_id]
    assert [one["outputId"] for one in memory.index()["archives"]] == [report.output_id]
    assert memory.index("other")["archives"] == []
    assert memory.dreams.undo(report.id).state == "undone"
    assert len(list(notes.entries())) == 12
    with pytest.raises(reverie.NotUndoable):
        memory.dreams.undo(report.id)
    assert memory.ref("empty").dream(4000) is None


def test_a_budget_that_is_too_small_names_the_one_that_is_enough(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS)
    with pytest.raises(reverie.TokenBudgetExceeded) as refused:
        notes.dream(40)
    assert refused.value.details["minimumRequired"] > 40


def test_consolidation(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(["The lamp is green.", "The lamp is green.", "Something else entirely."])
    done = notes.consolidate()
    assert (done.input_count, done.output_count, done.duplicates) == (3, 2, 1)


def test_forgetting(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put("Ana lives in Lyon.", subject="ana")
    notes.put("The lamp is green.")
    assert memory.forget("ana", preview=True).forgotten == 1
    done = memory.forget("ana", ref="notes")
    assert (done.forgotten, done.preview) == (1, False)
    assert done.certificate is not None
    assert [entry.content for entry in notes.entries()] == ["The lamp is green."]


def test_the_log(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    first = notes.put("One.")
    notes.put("Two.")
    events = memory.events()
    assert [event.type for event in events if event.type == "memory.written"] == ["memory.written"] * 2
    assert all(event.sound() for event in events)
    assert [event.entry_id for event in memory.events(limit=1, types=["memory.written"])] == [first.id]
    assert memory.events(after=memory.snapshot()) == []
    assert memory.events(types=[]) == []
    verdict = memory.verify()
    assert (verdict.ok, verdict.events) == (True, memory.snapshot())
    assert memory.stats()["entries"] == 2


def test_events_are_followed_as_they_happen(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put("Before.")
    seen: list[str] = []
    three = threading.Event()

    def listen() -> None:
        for event in memory.follow(after=0, types=["memory.written"]):
            seen.append(str(event.entry_id))
            if len(seen) == 3:
                three.set()

    thread = threading.Thread(target=listen)
    thread.start()
    ids = [notes.put(f"Note {number}.").id for number in range(2)]
    assert three.wait(60)
    assert seen[1:] == ids
    memory.close()
    thread.join(60)
    assert not thread.is_alive()


def test_policy_and_secrets(memory: reverie.Memory) -> None:
    assert memory.policy().dream_budget == 8000
    assert memory.set_policy(dream_budget=900).dream_budget == 900
    with pytest.raises(reverie.Invalid):
        memory.set_policy(no_such_thing=1)
    value = hashlib.sha256(b"known").hexdigest()
    memory.register_secret("door", value)
    entry = memory.ref("notes").put(f"It opens with {value}.").id
    assert "[REDACTED:door]" in memory.ref("notes").get(entry).content


def test_schedules(memory: reverie.Memory) -> None:
    made = memory.schedule("0 3 * * *", ref="notes", zone="Europe/Paris", older_than="2d", jitter="5m", budget=4000)
    assert (made.cron, made.zone, made.older_than_ms, made.jitter_ms) == (
        "0 3 * * *",
        "Europe/Paris",
        172800000,
        300000,
    )
    (due,) = memory.schedules()
    assert due.schedule == made
    assert due.next_at is not None
    memory.unschedule(made.id)
    assert list(memory.schedules()) == []
    with pytest.raises(reverie.NotFound):
        memory.unschedule(made.id)


def test_an_export_is_a_bundle(memory: reverie.Memory) -> None:
    memory.ref("notes").put("Carried \u2028 away.")
    lines = list(memory.export())
    assert lines[0].startswith(b'{"type":"manifest"')
    assert b'"type":"end"' in lines[-1]
    assert sum(b"Carried" in line for line in lines) == 1
    assert all(line.endswith(b"\n") for line in lines)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda notes: notes.put(" "), reverie.Invalid),
        (lambda notes: notes.put("x" * 70_000), reverie.TooLarge),
        (lambda notes: notes.put("x", tags="one"), reverie.Invalid),
        (lambda notes: notes.get("nothing"), reverie.NotFound),
        (lambda notes: notes.pin("nothing"), reverie.NotFound),
        (lambda notes: notes.list(limit=0), reverie.Invalid),
        (lambda notes: notes.list(cursor="!"), reverie.Invalid),
        (lambda notes: notes.search(""), reverie.Invalid),
        (lambda notes: notes.dream(distiller="no-such"), reverie.Invalid),
        (lambda notes: notes.dream(after="nowhere"), reverie.Invalid),
        (lambda notes: notes.memory.ref("provider_window:x").put("x"), reverie.UnsupportedRef),
        (lambda notes: notes.memory.dreams.get("nothing"), reverie.NotFound),
        (lambda notes: notes.memory.schedule("every day"), reverie.Invalid),
        (lambda notes: notes.memory.archive("nothing"), reverie.NotFound),
    ],
)
def test_the_same_mistake_is_the_same_error(memory: reverie.Memory, call: Any, kind: type[Exception]) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS[:3])
    with pytest.raises(kind) as raised:
        call(notes)
    assert type(raised.value) is kind
    assert len(list(notes.entries())) == 3


def test_what_a_thing_is(memory: reverie.Memory, tenant: str) -> None:
    assert repr(memory).startswith(f"<Memory of tenant {tenant}")
    assert repr(memory.ref("notes")).startswith("<Ref notes of <Memory")
    assert repr(memory.dreams).startswith("<Dreams of <Memory")


def test_old_names_keep_working_and_say_so(memory: reverie.Memory) -> None:
    notes = memory.ref("notes")
    notes.put_many(BERTHS)
    report = notes.dream(4000)
    assert report is not None
    with pytest.deprecated_call():
        assert [one.id for one in memory.dreams()] == [report.id]
    with pytest.deprecated_call():
        assert memory.dream(report.id).checksum == report.checksum
    with pytest.deprecated_call():
        assert memory.diff(report.id).dream == report.id
    with pytest.deprecated_call():
        assert memory.verify_dream(report.id).ok
    with pytest.deprecated_call():
        assert memory.undo(report.id).state == "undone"
