"""Expiry: enforced by every read, to the millisecond, before anything is swept."""

from __future__ import annotations

from reverie.core.entry import EntryState
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, same_but


def holds_to_the_millisecond(lab: Lab) -> None:
    """An entry is readable until one millisecond before its expiry, and gone from then on, in every kind of read."""
    vector = bytes([100] * 8)
    entry = lab.put("Ephemeral kettle.", id="a", tags=("t",), expires_at=lab.clock.now() + 10, vector=("m", vector))

    def sightings() -> set[bool]:
        where = Filter()
        return {
            lab.get("a") is not None,
            lab.ids() == ["a"],
            lab.ids(oldest_first=True) == ["a"],
            lab.ids(Filter(tags=("t",))) == ["a"],
            lab.ids(ref=None) == ["a"],
            lab.read(lambda tx: tx.count(where)) == 1,
            lab.read(lambda tx: tx.refs(), ref=None) == [("notes", 1)],
            len(lab.read(lambda tx: tx.match(["kettle"], where, limit=5))) == 1,
            len(lab.read(lambda tx: tx.nearest(("m", vector), where, limit=5))) == 1,
            len(lab.read(lambda tx: tx.at([entry.position], where))) == 1,
            lab.read(lambda tx: tx.index_state("m")) == (1, 1),
        }

    lab.clock.advance(9)
    assert sightings() == {True}
    lab.clock.advance(1)
    assert sightings() == {False}


def expired_entries_can_be_found_for_sweeping(lab: Lab) -> None:
    """`expired=True` finds them in every ref; with `gone` also what was archived or deleted meanwhile."""
    soon = lab.clock.now() + 1
    lab.put(id="a", expires_at=soon)
    lab.put(id="b", expires_at=soon, ref="other")
    lab.put(id="archived", expires_at=soon)
    lab.put(id="purged", expires_at=soon)
    lab.put(id="stays", expires_at=soon + 1)
    lab.put(id="for ever")
    lab.change("archived", archived=True)
    lab.purge("purged")
    lab.clock.advance(1)
    due = Filter(states=frozenset(EntryState), archived=None, expired=True)
    assert lab.ids(due, ref=None) == ["a", "b"]
    assert lab.ids(same_but(due, gone=True), ref=None) == ["a", "b", "archived"]
    assert "a" in lab.ids(ANYTHING)


def an_expiry_can_be_moved(lab: Lab) -> None:
    """`change` sets a new expiry."""
    lab.put(id="a", expires_at=lab.clock.now() + 1)
    lab.change("a", expires_at=lab.clock.now() + 100)
    lab.clock.advance(99)
    assert lab.get("a") is not None
    lab.clock.advance(1)
    assert lab.get("a") is None
