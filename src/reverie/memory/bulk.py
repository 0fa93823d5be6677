"""One change of every entry that a filter matches: previewed first, then applied to exactly those entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.entry import Entry
from reverie.core.errors import Conflict, NotFound
from reverie.core.query import Filter, Page, each
from reverie.memory.lifecycle import Lifecycle
from reverie.memory.read import MAX_PAGE, Reader

BATCH = 200
"""Entries changed in one transaction: other writers wait no longer than for that."""
_MOST_EVENTS = 10_000
_HARMLESS = frozenset({"memory.indexed", "memory.exported"})
_WHOLESALE = frozenset(
    {
        "memory.compacted",
        "memory.imported",
        "memory.forgotten",
        "memory.redacted",
        "agent.memory.consolidated",
        "dream.undone",
        "dream.redone",
    }
)
"""Events that may stand for changes of entries that they do not name."""


class BulkReach(Struct, frozen=True):
    """The matches of a filter at a log position: their number, and a page of them, newest first."""

    position: int
    count: int
    page: Page[Entry]


class Bulk:
    """Changes of everything that a filter matches."""

    def __init__(self, reader: Reader, lifecycle: Lifecycle) -> None:
        self._reader = reader
        self._lifecycle = lifecycle

    def reach(
        self,
        actor: Actor,
        ref: str,
        where: Filter,
        *,
        position: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> BulkReach:
        """Return a page of the matching entries, as of a log position: now, unless the caller continues an earlier
        preview.
        """
        at = self._reader.snapshot(actor) if position is None else position
        page = self._reader.page(actor, ref, where, limit=limit, cursor=cursor, as_of=at)
        whole = cursor is None and page.cursor is None
        return BulkReach(at, len(page.items) if whole else self._reader.count(actor, ref, where), page)

    def change(
        self, actor: Actor, ref: str, where: Filter, change: str, *, position: int, count: int
    ) -> Mapping[str, int]:
        """Change everything that matched at a log position: see `Lifecycle.change_many` for the answer.

        Raises Conflict, and changes nothing, when the filter matches something else by now.
        """
        seen = [(entry.id, entry.version) for entry in self._matches(actor, ref, where)]
        if len(seen) != count or self._differs(actor, ref, position, {entry_id for entry_id, _ in seen}):
            raise Conflict(
                "The matching entries changed since they were shown. Nothing was done: reload the list and try again.",
                code="selection_changed",
                details={"expected": count, "current": len(seen)},
            )
        outcome: Counter[str] = Counter()
        for start in range(0, len(seen), BATCH):
            outcome.update(self._lifecycle.change_many(actor, ref, change, seen[start : start + BATCH]))
        return outcome

    def _matches(self, actor: Actor, ref: str, where: Filter) -> Iterator[Entry]:
        return each(lambda cursor: self._reader.page(actor, ref, where, limit=MAX_PAGE, cursor=cursor))

    def _differs(self, actor: Actor, ref: str, position: int, matching: set[str]) -> bool:
        """Whether an entry came to match, changed, or may have ceased to match after a log position."""
        events = self._reader.events(actor, after=position, limit=_MOST_EVENTS)
        if len(events) == _MOST_EVENTS:
            return True
        touched: set[str] = set()
        for event in events:
            about_entries = event.type.startswith(("memory.", "dream.", "agent.memory."))
            if not about_entries or event.type in _HARMLESS or event.data.get("ref", ref) != ref:
                continue
            if event.entry_id is None or event.type in _WHOLESALE:
                return True
            touched.add(event.entry_id)
        return bool(touched & matching) or any(self._older(actor, ref, one, position) for one in touched)

    def _older(self, actor: Actor, ref: str, entry_id: str, position: int) -> bool:
        """Whether an entry was there at a position: one that came later and does not match changes nothing."""
        try:
            return self._reader.get(actor, ref, entry_id, cold=True).born_seq <= position
        except NotFound:
            return True
