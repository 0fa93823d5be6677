"""Reading as of a log position: what was readable there, as long as its text exists."""

from __future__ import annotations

from reverie.core.entry import EntryState
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_entry, make_event, refuses
from reverie.store.contract import WriteTx


def _restore(lab: Lab, entry_id: str) -> None:
    def body(tx: WriteTx) -> None:
        seq = tx.append(make_event("memory.restored", entry_id=entry_id))
        tx.change(entry_id, seq=seq, state=EntryState.ACTIVE, archived=False)
        tx.index(entry_id, seq=seq, terms=["kettle"], vector=None)

    lab.write(body)


def shows_each_position_as_it_was(lab: Lab) -> None:
    """Born, gone, back and gone again: every position keeps its answer."""
    lab.put(id="a")  # 1
    lab.put(id="b")  # 2
    lab.change("a", archived=True)  # 3
    lab.put(id="c")  # 4
    _restore(lab, "a")  # 5
    lab.change("b", state=EntryState.RETRACTED)  # 6
    lab.change("a", state=EntryState.DELETED)  # 7
    expected = {0: "", 1: "a", 2: "ab", 3: "b", 4: "bc", 5: "abc", 6: "ac", 7: "c"}
    for position, ids in expected.items():
        assert "".join(sorted(lab.ids(as_of=position))) == ids, position
        for entry_id in "abc":
            assert (lab.get(entry_id, as_of=position) is not None) == (entry_id in ids), (position, entry_id)


def a_destroyed_text_is_gone_from_the_past_too(lab: Lab) -> None:
    """Erasure reaches reads of the past."""
    lab.put(id="a")
    lab.put(id="b")
    lab.purge("a")
    assert lab.ids(as_of=2) == ["b"]
    assert lab.get("a", as_of=2) is None


def a_draft_never_appears_in_the_past(lab: Lab) -> None:
    """A draft does not enter old snapshots when it is published, retracted or deleted."""
    for fate in (EntryState.ACTIVE, EntryState.RETRACTED, EntryState.DELETED):
        lab.put(id=fate.value, state=EntryState.DRAFT)
        before = lab.head().seq
        assert lab.ids(as_of=before) == []
        lab.change(fate.value, state=fate)
        assert lab.ids(as_of=before) == [], fate
        assert lab.get(fate.value, as_of=before) is None
        if fate is EntryState.ACTIVE:
            assert lab.ids(as_of=lab.head().seq) == [fate.value]
            lab.purge(fate.value)


def filters_and_pages_work_in_the_past(lab: Lab) -> None:
    """Tags, kinds and cursors work together with `as_of`."""
    lab.put_many([make_entry(id=str(n), tags=("even",) if n % 2 == 0 else ()) for n in range(6)])
    position = lab.head().seq
    for n in range(6):
        lab.change(str(n), archived=True)
    assert lab.ids(Filter(tags=("even",)), as_of=position) == ["4", "2", "0"]
    first = lab.scan(limit=4, as_of=position)
    second = lab.scan(limit=4, as_of=position, cursor=first.cursor)
    assert [e.id for e in (*first.items, *second.items)] == ["5", "4", "3", "2", "1", "0"]
    assert second.cursor is None


def expiry_holds_in_the_past(lab: Lab) -> None:
    """An expired entry is not shown, at whatever position."""
    lab.put(id="a", expires_at=lab.clock.now() + 5)
    assert lab.ids(as_of=1) == ["a"]
    lab.clock.advance(5)
    assert lab.ids(as_of=1) == []
    assert lab.get("a", as_of=1) is None


def is_never_ignored(lab: Lab) -> None:
    """A filter that also asks for what is gone still reads as of the position; without a ref it is refused."""
    lab.put(id="a")
    lab.put(id="b")
    assert lab.ids(ANYTHING, as_of=1) == ["a"]
    with refuses(ValueError):
        lab.scan(ref=None, as_of=1)
