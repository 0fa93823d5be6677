"""The verbs of a read transaction, for every dialect; the dialect binds the rows.

A dialect supplies the queries by name (`queries.sql` of its package, the same names everywhere) and binds lists and
ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any

from reverie.core.entry import Document, Entry, EntryState, Link, Scope
from reverie.core.event import Event
from reverie.core.query import Brief, Filter, Flow, Head, HybridMatch, Lease, Match, Page, QueryWord, Vector
from reverie.core.subject import index_key, subject_hashes
from reverie.index.cache import IndexCache, Positions, Promising
from reverie.index.postings import ask, hashed
from reverie.index.segment import Row as IndexRow
from reverie.store.cold import ColdIndex
from reverie.store.rows import (
    FEW_TYPES,
    FIRST,
    LAST,
    LAST_CHARACTER,
    about,
    after_ids,
    after_refs,
    as_of_filter,
    encode,
    open_cursor,
    positions_of,
    to_document,
    to_entry,
    to_event,
)

Row = Sequence[Any]
READABLE = Filter()
LIVE = READABLE.states | {EntryState.DRAFT}
"""The states of entries that are not gone."""
_TAKEN_OUT = (
    "memory.archived",
    "memory.contested",
    "memory.deleted",
    "memory.expired",
    "memory.purged",
    "memory.retracted",
    "memory.settled",
    "memory.superseded",
)
"""Types of events that may take the entry they name out of cold storage without making it readable."""


class ReadVerbs(ABC):
    """One snapshot of one scope. `_tenant` is None for a tenant that was never written: everything is empty."""

    now: int
    _scope: Scope
    _ref: str
    """The memory that the transaction is bound to."""
    _tenant: int | None
    _log_key: bytes
    _head: Head
    _indexes: IndexCache
    _ahead: int = 0
    """Number of entries whose neighbours will be requested."""

    # the dialect

    @abstractmethod
    def _rows(self, name: str, bound: Any) -> Sequence[Row]:
        """The rows of a query."""

    @abstractmethod
    def _filtered(self, name: str, where: Filter, **bound: Any) -> Sequence[Row]:
        """The rows of a query that has a filter."""

    @abstractmethod
    def _many(self, values: Sequence[Any]) -> Any:
        """Several values as one parameter."""

    def _key(self, entry_id: str) -> str:
        """The form of an id in the tables."""
        return entry_id

    @abstractmethod
    def _place(self) -> dict[str, Any]:
        """Parameters that locate the tenant's events."""

    @abstractmethod
    def _span(self) -> dict[str, Any]:
        """Parameters that locate the tenant's entries, for a walk through all of them."""

    @abstractmethod
    def index_rows(self, *, after: int, since: int) -> Iterable[IndexRow]:
        """For the index cache: see `IndexedTx`."""

    @abstractmethod
    def passing(self, where: Filter) -> list[int]:
        """For the index cache: see `IndexedTx`."""

    # the scope

    @property
    def scope(self) -> Scope:
        return self._scope

    @contextmanager
    def within(self, ref: str | None) -> Iterator[None]:
        outer = self._scope
        self._bind(Scope(outer.tenant, ref))
        try:
            yield
        finally:
            self._bind(outer)

    def _bind(self, scope: Scope) -> None:
        self._scope = scope
        if scope.ref is not None:
            self._ref = scope.ref
        else:
            self.__dict__.pop("_ref", None)

    def __getattr__(self, name: str) -> Any:
        if name == "_ref":
            raise ValueError("this verb needs a scope with a ref")
        raise AttributeError(name)

    # the verbs

    def head(self) -> Head:
        return self._head

    def log_key(self) -> bytes:
        return self._log_key

    @property
    def _cache(self) -> IndexCache:
        return self._indexes

    def get(self, entry_id: str, *, as_of: int | None = None, where: Filter | None = None) -> Entry | None:
        where = where or READABLE
        key = self._key(entry_id)
        if as_of is None:
            rows = self._filtered("get", where, ref=self._ref, id=key, gone=where.gone)
        else:
            rows = self._filtered("get_as_of", as_of_filter(where), ref=self._ref, id=key, as_of=as_of)
        return to_entry(rows[0]) if rows else None

    def scan(
        self,
        where: Filter,
        *,
        limit: int,
        cursor: str | None = None,
        as_of: int | None = None,
        oldest_first: bool = False,
    ) -> Page[Entry]:
        base = positions_of(self._tenant)[0] if self._tenant is not None else 0
        at, n = open_cursor(cursor)
        everywhere = self._scope.ref is None or where.gone or where.expired is not False
        bound: dict[str, Any] = {"ref": self._scope.ref if everywhere and as_of is None else self._ref}
        if as_of is not None:
            name, where = "scan_as_of", as_of_filter(where)
            bound["as_of"] = as_of
        elif everywhere:
            name = "scan_subject" if where.subject else "scan_expired" if where.expired else "scan_all"
            bound["gone"] = where.gone
            if name == "scan_all":
                bound |= self._span()
        elif oldest_first:
            name = "scan_oldest"
        elif where.task is not None:
            name = "scan_task"
        elif where.tags:
            name = "scan_tag"
            bound["tag"] = where.tags[0]
        else:
            name = "scan_newest"
        edge = LAST if name in ("scan_as_of", "scan_tag", "scan_task", "scan_newest") else FIRST
        bound |= {"at": edge if at is None else at, "n": edge if n is None else base + n, "limit": limit + 1}
        rows = self._filtered(name, where, **bound)
        items = [to_entry(row) for row in rows[:limit]]
        more = len(rows) > limit and items
        return Page(items, encode([items[-1].created_at, items[-1].position - base]) if more else None)

    def count(self, where: Filter) -> int:
        if self._scope.ref and not where.gone and (where.tags or where.any_tags or where.subject):
            return len(self.passing(where))  # led by an index; others are not looked at
        if self._scope.ref and where == Filter(states=where.states, archived=where.archived, gone=True, expired=None):
            return self._tally(where)
        return int(self._filtered("count", where, ref=self._scope.ref, gone=where.gone)[0][0])

    def _tally(self, where: Filter) -> int:
        """Count by state alone, from indexes. What is not gone is not archived, and readable or a draft."""
        live = where.states & LIVE
        if live and live != LIVE:
            return int(self._filtered("count", where, ref=self._ref, gone=True)[0][0])
        found = int(self._filtered("count_left", where, ref=self._ref)[0][0])
        if live and not where.archived:
            found += int(self._rows("count_live", {"tenant": self._tenant, "ref": self._ref})[0][0])
        return found

    def cold(self, state: EntryState, *, before: int, limit: int, files: bool = False) -> list[Entry]:
        asked = (self._tenant, state.value, before, files, limit)
        return [to_entry(row) for row in self._rows("scan_cold", asked)]

    def left(self, where: Filter, *, limit: int) -> list[Entry]:
        return [to_entry(row) for row in self._filtered("scan_left", where, ref=self._ref, limit=limit)]

    def refs(self, prefix: str = "") -> list[tuple[str, int]]:
        bound = (self._tenant, prefix, after_refs(prefix), self.now)
        return [(row[0], row[1]) for row in self._rows("refs", bound)]

    def ids(self, prefix: str, *, limit: int) -> list[str]:
        bound = (self._tenant, self._ref, prefix, after_ids(prefix), limit)
        return [row[0] for row in self._rows("ids", bound)]

    def facets(self, *, most: int) -> Mapping[str, list[tuple[str, int]]]:
        bound = {"tenant": self._tenant, "ref": self._ref, "now": self.now, "most": most}
        found: dict[str, list[tuple[str, int]]] = {}
        for name, value, entries in self._rows("facets", bound):
            found.setdefault(name, []).append((value, int(entries)))
        return found

    def leases(self, *, limit: int) -> list[Lease]:
        bound = (self._tenant, self.now, limit)
        return [Lease(name, holder, int(until)) for name, holder, until in self._rows("leases", bound)]

    def match(self, terms: Sequence[str | QueryWord], where: Filter, *, limit: int) -> list[Match]:
        if self._tenant is None or not terms:
            return []
        words = ask(terms, self._log_key)
        return self._cache.match(self, (self._tenant, self._ref), words, where, limit)

    def nearest(self, vector: Vector, where: Filter, *, limit: int) -> list[Match]:
        if self._tenant is None or not any(vector[1]):
            return []
        return self._cache.nearest(self, (self._tenant, self._ref), vector, where, limit)

    def find(
        self,
        terms: Sequence[str | QueryWord],
        vector: Vector | None,
        where: Filter,
        *,
        limit: int,
        meaning: float = 1.0,
        ahead: int = 0,
    ) -> list[HybridMatch]:
        vector = vector if vector is not None and any(vector[1]) else None
        if self._tenant is None or (not terms and vector is None):
            return []
        words = ask(terms, self._log_key)
        self._ahead = ahead
        return self._cache.find(self, (self._tenant, self._ref), words, vector, where, limit, meaning)

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        if self._tenant is None or not terms:
            return frozenset()
        found = self._cache.known(self, (self._tenant, self._ref), [hashed(term, self._log_key) for term in terms])
        return frozenset(term for term, has in zip(terms, found, strict=True) if has)

    def cold_index(self) -> ColdIndex:
        return ColdIndex(self, self._cache, (self._tenant or 0, self._ref))

    def cold_rows(self, *, since: int) -> Iterable[IndexRow]:
        """For `ColdIndex`: the index rows that came to cold storage after a log position."""
        rows: Any = self._rows("cold_rows", {"tenant": self._tenant, "ref": self._ref, "since": since})
        return rows  # type: ignore[no-any-return]

    def cold_left(self, *, since: int) -> list[int]:
        """For `ColdIndex`: positions that left cold storage after a log position.

        An entry that becomes readable is indexed again, and one that leaves readable memory has the position in
        `gone_seq`. Entries that leave otherwise are named by their events.
        """
        left = [
            row[0] for row in self._rows("cold_returned", {"tenant": self._tenant, "ref": self._ref, "since": since})
        ]
        left += self.index_gone(since=since)
        types = self._many(_TAKEN_OUT)
        named = self._rows("named", {**self._place(), "since": since, "types": types})
        if named:
            ids = self._many([self._key(row[0]) for row in named])
            left += [row[0] for row in self._rows("not_cold", {"tenant": self._tenant, "ref": self._ref, "ids": ids})]
        return left

    def cold_positions(self) -> list[int]:
        """For `ColdIndex`: all positions in cold storage that have an index row."""
        return [row[0] for row in self._rows("cold_positions", {"tenant": self._tenant, "ref": self._ref})]

    def cosines(self, vector: Vector, positions: Sequence[int]) -> Mapping[int, Sequence[float]]:
        if self._tenant is None or not positions:
            return {}
        return self._cache.cosines(self, (self._tenant, self._ref), vector, positions)

    def hash_at(self, seq: int) -> str:
        """For the index cache: see `IndexedTx`."""
        events = self.read_log(after=seq - 1, limit=1)
        return events[0].hash if events else ""

    def index_gone(self, *, since: int) -> list[int]:
        """For the index cache: see `IndexedTx`."""
        bound = {"tenant": self._tenant, "since": since, "ref": self._ref}
        return [row[0] for row in self._rows("index_gone", bound)]

    def index_scrubbed(self, *, since: int) -> Sequence[int]:  # noqa: ARG002
        """For the index cache: see `IndexedTx`."""
        return ()

    def foremost(
        self,
        lists: Sequence[Positions],
        where: Filter,
        *,
        limit: int,
        promising: Promising | None = None,  # noqa: ARG002
    ) -> Mapping[int, Brief]:
        """For the index cache: see `IndexedTx`."""
        if all(len(positions) <= limit for positions in lists):
            return self.briefs(list(dict.fromkeys(chain.from_iterable(lists))), where)
        found: dict[int, Brief] = {}
        for positions in lists:
            bound = {"ref": self._ref, "positions": self._many(positions), "gone": where.gone, "limit": limit}
            found |= {row[0]: Brief(*row) for row in self._filtered("foremost", where, **bound)}
        return found

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        many = self._many(positions)
        rows = self._filtered("pick_briefs", where, ref=self._ref, positions=many, gone=where.gone)
        return {row[0]: Brief(*row) for row in rows}

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        many = self._many(positions)
        rows = self._filtered("pick", where, ref=self._ref, positions=many, gone=where.gone)
        return {row[0]: to_entry(row) for row in rows}

    def about(self, subject: str, *, erased: bool = False) -> list[Entry]:
        rows = self._rows("about", {"tenant": self._tenant, "who": index_key(subject)})
        same = cache(lambda name: subject in subject_hashes(self._log_key, name))  # each spelling once, not each entry
        found = [entry for entry in map(to_entry, rows) if about(entry, same, erased=erased)]
        return found if self._scope.ref is None else [entry for entry in found if entry.ref == self._scope.ref]

    def index_state(self, model: str) -> tuple[int, int]:
        bound = {"tenant": self._tenant, "ref": self._scope.ref, "model": model, "now": self.now}
        row = self._rows("index_state", bound)[0]
        return row[0], row[1]

    def unembedded(self, model: str, *, limit: int) -> list[Entry]:
        bound = {"tenant": self._tenant, "ref": self._scope.ref, "model": model, "limit": limit, "now": self.now}
        return [to_entry(row) for row in self._rows("unembedded", bound)]

    def links(self, *entry_ids: str, incoming: bool = False, type: str | None = None) -> list[Link]:  # noqa: A002
        ends = self._many([self._key(entry_id) for entry_id in entry_ids])
        rows = self._rows("links_to" if incoming else "links_from", (self._tenant, self._ref, ends))
        return [Link(row[0], row[1], row[2], row[3]) for row in rows if type is None or row[2] == type]

    def read_log(
        self, *, after: int = 0, before: int | None = None, limit: int = 1000, types: Sequence[str] | None = None
    ) -> list[Event]:
        bound: dict[str, Any] = {**self._place(), "after": after, "limit": limit}
        if before is not None:
            bound["before"] = before
        if types is not None and len(types) <= FEW_TYPES:
            return self._of_types(types, bound)
        bound["types"] = None if types is None else self._many(types)
        return [to_event(row) for row in self._rows("read_log" if before is None else "read_log_back", bound)]

    def _of_types(self, types: Sequence[str], bound: Mapping[str, Any]) -> list[Event]:
        back = "before" in bound
        name = "read_type_back" if back else "read_type"
        rows = [row for one in dict.fromkeys(types) for row in self._rows(name, {**bound, "type": one})]
        rows.sort(key=lambda row: row[0], reverse=back)
        return [to_event(row) for row in rows[: bound["limit"]]]

    def flow(self, instants: Sequence[int]) -> list[Flow]:
        if self._tenant is None:
            return [Flow(0, 0, 0) for _ in instants]
        bound = {**self._place(), "head": self.head().seq, "instants": self._many(instants)}
        at = {row[0]: row[1] for row in self._rows("positions_at", bound)}
        positions = [at.get(instant, 0) for instant in instants]
        asked = {**self._place(), "first": positions_of(self._tenant)[0], "positions": self._many(positions)}
        stored = {row[0]: row[1] for row in self._rows("stored_by", asked)}
        found = []
        for position, before in zip(positions, [*positions[:1], *positions], strict=False):
            left = self._rows("left_between", (self._tenant, before, position))[0][0]
            found.append(Flow(position, stored.get(position, 0), int(left)))
        return found

    def read_run(self, run: str, *, skip: int = 0, limit: int = 1000) -> list[Event]:
        bound = {**self._place(), "run": run, "skip": skip, "limit": limit}
        return [to_event(row) for row in self._rows("read_run", bound)]

    def load(self, space: str, key: str, *, version: int | None = None, dropped: bool = False) -> Document | None:
        document = self._document(space, key, version)
        return None if document is None or (document.body is None and not dropped) else document

    def _document(self, space: str, key: str, version: int | None = None) -> Document | None:
        rows = self._rows("load", {"tenant": self._tenant, "space": space, "key": key, "version": version})
        return to_document(rows[0]) if rows else None

    def documents(
        self, space: str, *, prefix: str = "", limit: int = 1000, cursor: str | None = None, dropped: bool = False
    ) -> Page[Document]:
        bound = {
            "dropped": dropped,
            "tenant": self._tenant,
            "space": space,
            "prefix": prefix,
            "beyond": prefix + LAST_CHARACTER,
            "after": cursor or "",
            "limit": limit + 1,
        }
        rows = self._rows("documents", bound)
        items = [to_document(row) for row in rows[:limit]]
        return Page(items, items[-1].key if len(rows) > limit and items else None)

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        rows = self._rows("answer", (self._tenant, key, self.now))
        return (rows[0][0], rows[0][1]) if rows else None

    def searches(self) -> dict[str, bytes]:
        rows = self._rows("searches", {"tenant": self._tenant, "ref": self._scope.ref})
        return {row[0]: bytes(row[1]) for row in rows}


def sides(
    before: Mapping[int, int | None], after: Mapping[int, int | None]
) -> Mapping[int, tuple[int | None, int | None]]:
    """The neighbours, on both sides, of every position that a walk passed.

    The position from which a walk came is the neighbour on the other side.
    """
    back = {there: here for here, there in after.items() if there is not None} | dict(before)
    on = {there: here for here, there in before.items() if there is not None} | dict(after)
    return {position: (back.get(position), on.get(position)) for position in before.keys() | after.keys()}
