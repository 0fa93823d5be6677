"""Cold storage: bringing its index up to date costs what changed, however many sources it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reverie.core.entry import EntryState, Scope
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.store.conformance import make_entry, make_event
from reverie.store.conformance.lab import put
from reverie.store.contract import ReadTx, Store, WriteTx
from reverie.store.snapshot import ReadVerbs

SCOPE = Scope("acme", "notes")
COUNT = 60
FEW = 6
"""Rows: a few for the change itself, far below the number of sources."""
COLD = Filter(states=frozenset({EntryState.DREAMT}), gone=True)
Act = Callable[[WriteTx], object]


def cold(tx: ReadTx) -> list[str]:
    return sorted(match.entry.id for match in tx.cold_index().find(["kettle"], None, COLD, limit=2 * COUNT))


def event(type_: str, entry_id: str | None = None) -> NewEvent:
    return make_event(type_, entry_id=entry_id)


def change(entry_id: str, type_: str, **changes: Any) -> Act:
    return lambda tx: tx.change(entry_id, seq=tx.append(event(type_, entry_id)), **changes)


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    store = make_store()

    def fill(tx: WriteTx) -> None:
        for n in range(COUNT):
            put(tx, make_entry(id=f"{n:02}", ref="notes", content="a kettle"))
        for n in range(9):
            put(tx, make_entry(id=f"hot{n}", ref="notes", content="a kettle"))
        seq = tx.append(event("memory.compacted"))
        tx.change_each({f"{n:02}": None for n in range(COUNT)}, seq=seq, state=EntryState.DREAMT)

    store.write(SCOPE, fill)
    assert len(store.read(SCOPE, cold)) == COUNT
    return store


@pytest.fixture
def rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each query of a read, but for those that look up what was found."""
    counts: list[int] = []
    kind = store.read(SCOPE, type)
    real = kind._rows  # type: ignore[attr-defined]

    def counted(tx: ReadVerbs, name: str, bound: Any) -> Sequence[Any]:
        found: Sequence[Any] = real(tx, name, bound)
        counts.append(len(found))
        return found

    monkeypatch.setattr(kind, "_rows", counted)
    return counts


ELSEWHERE: dict[str, Act] = {
    "a policy": lambda tx: tx.append(event("policy.changed")),
    "a job": lambda tx: tx.append(*[event("job.changed")] * 40),
    "a hot entry deleted": change("hot1", "memory.deleted", state=EntryState.DELETED),
    "a hot entry purged": lambda tx: tx.purge("hot1", seq=tx.append(event("memory.purged", "hot1"))),
    "a hot entry indexed again": lambda tx: tx.index(
        "hot1", seq=tx.append(event("memory.indexed")), terms=["cup"], vector=None
    ),
}
AWAY: dict[str, Act] = {
    "purged": lambda tx: tx.purge("07", seq=tx.append(event("memory.purged", "07"))),
    "expired": lambda tx: tx.purge("07", seq=tx.append(event("memory.expired", "07"))),
    "deleted": change("07", "memory.deleted", state=EntryState.DELETED),
    "archived": change("07", "memory.archived", archived=True),
    "retracted": change("07", "memory.retracted", state=EntryState.RETRACTED),
    "superseded": change("07", "memory.superseded", state=EntryState.SUPERSEDED),
    "restored": change("07", "memory.restored", state=EntryState.ACTIVE),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_what_takes_nothing_out_of_cold_storage_reads_none_of_its_positions(
    store: Store, rows: list[int], what: str
) -> None:
    store.write(SCOPE, ELSEWHERE[what])
    rows.clear()
    assert len(store.read(SCOPE, cold)) == COUNT
    assert sum(rows) <= FEW


@pytest.mark.parametrize("how", AWAY)
def test_what_leaves_cold_storage_is_all_that_is_read(store: Store, rows: list[int], how: str) -> None:
    store.write(SCOPE, AWAY[how])
    rows.clear()
    assert store.read(SCOPE, cold) == [f"{n:02}" for n in range(COUNT) if n != 7]
    assert store.read(SCOPE, lambda tx: len(tx.cold_index())) == COUNT - 1
    assert sum(rows) <= FEW


def test_what_came_back_and_left_again_is_no_longer_there(store: Store, rows: list[int]) -> None:
    """The events of an undo and of a consolidation do not name the entries they change."""

    def body(tx: WriteTx) -> None:
        for n in range(4):
            tx.change(f"{n:02}", seq=tx.append(event("dream.undone")), state=EntryState.ACTIVE)
        for n in range(2):
            seq = tx.append(event("agent.memory.consolidated"))
            tx.change(f"{n:02}", seq=seq, state=EntryState.SUPERSEDED)
        tx.change("03", seq=tx.append(event("memory.compacted")), state=EntryState.DREAMT)

    store.write(SCOPE, body)
    rows.clear()
    assert store.read(SCOPE, cold) == [f"{n:02}" for n in range(3, COUNT)]
    assert sum(rows) <= 2 * FEW
