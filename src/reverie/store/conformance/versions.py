"""Versions: changes are optimistic, and immutable fields do not change."""

from __future__ import annotations

from reverie.core.entry import EntryState
from reverie.core.errors import Conflict, NotFound
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_event, refuses
from reverie.store.contract import WriteTx


def go_up_by_one(lab: Lab) -> None:
    """Every change makes one version; the result is the entry as stored."""
    lab.put(id="a")
    assert lab.change("a", pinned=True).version == 2
    after = lab.change("a", pinned=False, attributes={"k": [1]}, held=True)
    assert (after.version, after.pinned, after.held, after.attributes) == (3, False, True, {"k": [1]})
    assert lab.get("a") == after


def an_unexpected_version_is_a_conflict(lab: Lab) -> None:
    """Neither the entry nor the log changes."""
    lab.put(id="a")
    lab.change("a", pinned=True, expected=1)
    with refuses(Conflict, "version_conflict"):
        lab.change("a", pinned=False, expected=1)
    entry = lab.get("a")
    assert entry is not None
    assert entry.pinned
    assert lab.head().seq == 2


def several_go_up_together(lab: Lab) -> None:
    """Each by one, at its own version, and out of every index; one unexpected version leaves all as they were."""
    for name in ("a", "b", "c"):
        lab.put(f"A kettle of {name}.", id=name)
    lab.change("b", pinned=True)

    def dreamt(tx: WriteTx, versions: dict[str, int | None]) -> list[tuple[int, int | None]]:
        seq = tx.append(make_event("memory.compacted"))
        found = tx.change_each(versions, seq=seq, state=EntryState.DREAMT)
        return [(entry.version, entry.gone_seq) for entry in found]

    with refuses(Conflict, "version_conflict"):
        lab.write(lambda tx: dreamt(tx, {"a": 1, "b": 1}))
    assert lab.ids() == ["c", "b", "a"]
    assert lab.write(lambda tx: dreamt(tx, {"b": 2, "a": None})) == [(3, 5), (2, 5)]
    assert lab.ids() == ["c"]
    assert lab.read(lambda tx: [hit.entry.id for hit in tx.match(["kettle"], Filter(), limit=5)]) == ["c"]
    assert {entry.id for entry in lab.read(lambda tx: tx.cold(EntryState.DREAMT, before=10**15, limit=5))} == {"a", "b"}


def what_is_unreadable_is_gone_from_its_position_on(lab: Lab) -> None:
    """`gone_seq` is the first departure, and empty again after a return."""
    lab.put(id="a")
    assert lab.change("a", state=EntryState.RETRACTED).gone_seq == 2
    assert lab.change("a", held=True).gone_seq == 2
    assert lab.change("a", state=EntryState.ACTIVE).gone_seq is None
    assert lab.change("a", archived=True).gone_seq == 5


def content_does_not_change(lab: Lab) -> None:
    """Flags and states change; text, tags, subject, kind, source and birth do not."""
    before = lab.put(id="a", tags=("t",), subject="ada")
    after = lab.change("a", state=EntryState.CONTESTED, pinned=True)
    for name in ("content", "tags", "subject", "kind", "source", "born_seq", "created_at", "position", "id", "ref"):
        assert getattr(after, name) == getattr(before, name)


def the_destroyed_cannot_change(lab: Lab) -> None:
    """A tombstone is final: no state, no words, no new text."""
    entry = lab.put(id="a")
    lab.purge("a")
    with refuses(NotFound):
        lab.change("a", state=EntryState.ACTIVE)
    with refuses(NotFound):
        lab.write(lambda tx: tx.index("a", seq=tx.append(make_event()), terms=["x"], vector=None))
    with refuses(NotFound):
        lab.write(lambda tx: tx.rewrite(entry, seq=tx.append(make_event()), terms=["x"], vector=None))
    tombstone = lab.get("a", where=ANYTHING)
    assert tombstone is not None
    assert tombstone.content == ""
