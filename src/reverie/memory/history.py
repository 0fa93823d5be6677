"""Memory as it was at an instant: entries made by then that had not left by then."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import READABLE, Entry, EntryState, Scope, valid_ref
from reverie.core.errors import Invalid
from reverie.core.query import Filter, Flow, each
from reverie.memory.read import ANYTHING, MAX_PAGE
from reverie.services import Services
from reverie.store.contract import ReadTx


class Day(Struct, frozen=True):
    """A day, or a few, of a tenant's log."""

    at: int
    """Midnight at which it begins, UTC."""
    days: int
    changes: int
    """Events of the log."""
    entries: int
    """Readable entries at its end."""
    position: int
    """The last log position by its end."""


class History:
    """Reads by the clock rather than by log position."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts

    def list(
        self,
        actor: Actor,
        ref: str,
        *,
        limit: int = 0,
        tag: str | None = None,
        entry_id: str | None = None,
        at: int | None = None,
    ) -> list[Entry]:
        """Entries newest first; none for a malformed or unknown name. `limit` 0: as many as one page has.

        With `at`: those made by that instant that were readable then. Entries that have expired by now are left out.
        """
        actor.require(Right.READ)
        if limit < 0:
            raise Invalid("limit is not negative.", pointer="/limit")
        if not valid_ref(ref):
            return []
        most = min(limit or MAX_PAGE, MAX_PAGE)
        tags = (tag,) if tag is not None else ()

        def body(tx: ReadTx) -> list[Entry]:
            if at is None:
                if entry_id is not None:
                    found = tx.get(entry_id, where=Filter(tags=tags))
                    return [found] if found is not None else []
                return list(tx.scan(Filter(tags=tags), limit=most).items)
            there = _entries_at(tx, tags, at)
            if entry_id is not None:
                there = [entry for entry in there if entry.id == entry_id]
            return sorted(there, key=lambda entry: (-entry.created_at, -entry.position))[:most]

        return self._parts.store.read(Scope(actor.tenant, ref), body)

    def position(self, actor: Actor, at: int) -> int:
        """The last log position at or before an instant."""
        actor.require(Right.READ)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: _position(tx, at))

    def series(self, actor: Actor, *, since: int, until: int, most: int = 60) -> Sequence[Day]:
        """Changes and readable entries by days, or by spans of whole days when there would be more than `most`.

        Days are UTC. An entry that left readable memory and came back counts as if it had stayed. Reads a few rows of
        the log for each point, however many entries there are.
        """
        actor.require(Right.READ)
        now = self._parts.clock.now()
        first, last = since // MS_PER_DAY, min(until, now) // MS_PER_DAY
        if last < first:
            return []
        step = -(-(last - first + 1) // most)
        starts = [day * MS_PER_DAY for day in range(first, last + 1, step)]
        ends = [min(start + step * MS_PER_DAY - 1, now) for start in starts]

        def body(tx: ReadTx) -> tuple[list[Flow], int]:
            return tx.flow([starts[0] - 1, *ends, now]), sum(count for _, count in tx.refs())

        flows, readable = self._parts.store.read(Scope(actor.tenant), body)
        points: list[Day] = []
        for at in range(len(starts), 0, -1):
            readable += flows[at + 1].left - (flows[at + 1].stored - flows[at].stored)
            changes = flows[at].position - flows[at - 1].position
            points.append(Day(starts[at - 1], step, max(0, changes), max(0, readable), flows[at].position))
        return points[::-1]


def _entries_at(tx: ReadTx, tags: tuple[str, ...], at: int) -> list[Entry]:
    last = _position(tx, at)
    where = msgspec.structs.replace(ANYTHING, tags=tags, expired=False)
    found = each(lambda cursor: tx.scan(where, limit=MAX_PAGE, cursor=cursor))
    return [entry for entry in found if entry.created_at <= at and _was_there(entry, last)]


def _was_there(entry: Entry, last: int) -> bool:
    if entry.state is EntryState.ERASED:
        return False
    if entry.gone_seq is None:
        return entry.state in READABLE and not entry.archived
    return entry.gone_seq > last


def _position(tx: ReadTx, at: int) -> int:
    """The last log position at or before an instant."""
    low, high = 0, tx.head().seq
    while low < high:
        middle = (low + high + 1) // 2
        event = tx.read_log(after=middle - 1, limit=1)
        if event and event[0].at <= at:
            low = middle
        else:
            high = middle - 1
    return low
