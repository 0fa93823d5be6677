"""Read transactions of PostgreSQL: one snapshot, one scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from reverie.core.entry import CREDENTIAL_PREFIXES, Entry, Scope
from reverie.core.event import genesis
from reverie.core.query import Brief, Filter, Head
from reverie.index.cache import IndexCache, Positions, Promising
from reverie.index.segment import Row as IndexRow
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL, array, filter_parts, short_id, statement
from reverie.store.rows import to_entry, without_tags
from reverie.store.snapshot import READABLE, ReadVerbs, sides

Row = tuple[Any, ...]
_STEPS = 2
"""Distance up to which neighbours are prefetched."""
_STREAMED = 10_000
"""Number of events from which changes of a memory are read in parts."""
_READABLE = frozenset(state.value for state in READABLE.states)

FRESH = ("index_gone", "index_fresh", "index_scrubbed")
"""The queries whose rows make an `IndexTail`."""
MOST_FRESH = 2000
"""Limit of prefetched rows. With as many, there may be more, so all are read again."""


class IndexTail(NamedTuple):
    """Changes of a memory since its index was made, fetched with the snapshot."""

    since: int
    after: int
    gone: Sequence[Row]
    rows: Sequence[Any]
    scrubbed: Sequence[Row]


class _Ahead:
    """Prefetched rows. A snapshot does not change, so they stay valid."""

    def __init__(self, where: Filter) -> None:
        self.where = where
        self.rows: dict[int, Row] = {}
        """Entries as rows, by position."""
        self.fits: set[int] = set()
        """Positions that were asked for and match."""
        self.beside: set[int] = set()
        """Positions of their neighbours that match."""
        self.before: dict[int, list[int]] = {}
        self.after: dict[int, list[int]] = {}

    def pick(self, positions: Sequence[int], where: Filter, now: int) -> list[Row] | None:
        """The entries at these positions that match; None when not all are here, or the filter is another."""
        if not all(position in self.rows for position in positions):
            return None
        if where == self.where:
            return [self.rows[position] for position in positions if position in self.fits or position in self.beside]
        if where == READABLE:
            return [row for position in positions if _readable(row := self.rows[position], now)]
        return None

    def add_neighbours(self, rows: Sequence[Row]) -> None:
        """Add the rows of query `beside`. Entries already present are not changed."""
        for position, side, fits, *columns in rows:
            before, after = self.before.setdefault(position, []), self.after.setdefault(position, [])
            if side is not None:
                (before if side < 0 else after).append(columns[0])
                if columns[0] not in self.rows:
                    self.rows[columns[0]] = tuple(columns)
                    if fits:
                        self.beside.add(columns[0])


def _readable(row: Row, now: int) -> bool:
    """Whether a row of `columns` passes the filter `readable`."""
    return row[15] in _READABLE and not row[19] and (row[17] is None or row[17] > now) and row[24] is None


def _brief(row: Row) -> Brief:
    return Brief(row[0], row[2], row[16], row[4], row[8], row[11], row[6], row[9])


class PostgresReadTx(ReadVerbs):
    """The verbs of a read transaction on one connection."""

    _fresh: IndexTail | None = None
    _fetched: _Ahead | None = None
    _settled = True
    """Whether the data cannot change, so that rows may be prefetched."""

    def __init__(
        self,
        connection: Connection,
        scope: Scope,
        now: int,
        cache: IndexCache,
        row: Row | None,
        fresh: IndexTail | None = None,
    ) -> None:
        self._bind(scope)
        self.now = now
        self._connection = connection
        self._indexes = cache
        self._tenant = None
        self._log_key = b""
        self._fresh = fresh
        if row is not None:
            self._tenant, self._log_key = row[0], row[1]
            self._head = Head(row[2], row[3], row[4].hex(), row[5], row[6], row[7])
        else:
            self._head = Head(seq=0, epoch=0, hash=genesis(scope.tenant), entries=0, bytes=0)

    def _fetch(self, sql: bytes, bound: Any) -> list[Row]:
        return self._connection.execute(sql, bound, binary=True).fetchall()

    def _rows(self, name: str, bound: Any) -> Sequence[Row]:
        return self._fetch(SQL[name], bound)

    def _filtered(self, name: str, where: Filter, **bound: Any) -> Sequence[Row]:
        parts, values = filter_parts(where, self.now)
        return self._fetch(statement(name, parts), values | {"tenant": self._tenant} | bound)

    def _bind(self, scope: Scope) -> None:
        super()._bind(scope)
        self._fresh = self._fetched = None  # prefetched rows are of another memory

    def _many(self, values: Sequence[Any]) -> Any:
        return array(values)

    def _key(self, entry_id: str) -> str:
        return short_id(entry_id)

    def _place(self) -> dict[str, Any]:
        return {"tenant": self._tenant}

    def _span(self) -> dict[str, Any]:
        return {}

    def index_rows(self, *, after: int, since: int) -> Iterable[IndexRow]:
        fresh = self._fresh
        if fresh is not None and (fresh.after, fresh.since) == (after, since) and len(fresh.rows) < MOST_FRESH:
            return fresh.rows
        bound = {"tenant": self._tenant, "ref": self._ref, "after": after, "since": since}
        if self._settled and self.head().seq - since > _STREAMED:
            return self._streamed("index_rows", bound)
        rows: Any = self._fetch(SQL["index_rows"], bound)
        return rows  # type: ignore[no-any-return]

    def _streamed(self, name: str, bound: Mapping[str, Any]) -> Iterator[Any]:
        """The rows of a query, some thousand at a time."""
        with self._connection.cursor(name, binary=True) as cursor:
            cursor.itersize = 4096
            cursor.execute(SQL[name], bound)
            yield from cursor

    def index_gone(self, *, since: int) -> list[int]:
        fresh = self._fresh
        rows = fresh.gone if fresh is not None and fresh.since == since else self._gone("index_gone", since)
        return [row[0] for row in rows]

    def index_scrubbed(self, *, since: int) -> list[int]:
        """For the index cache: see `IndexedTx`."""
        fresh = self._fresh
        rows = fresh.scrubbed if fresh is not None and fresh.since == since else self._gone("index_scrubbed", since)
        return [row[0] for row in rows]

    def _gone(self, name: str, since: int) -> Sequence[Row]:
        return self._rows(name, {"tenant": self._tenant, "since": since, "ref": self._ref})

    def foremost(
        self, lists: Sequence[Positions], where: Filter, *, limit: int, promising: Promising | None = None
    ) -> Mapping[int, Brief]:
        """The first entries that match, in one round trip, with the neighbours of the most promising if requested."""
        if not self._settled:
            return super().foremost(lists, where, limit=limit)
        parts, bound = filter_parts(where, self.now)
        bound |= {"tenant": self._tenant, "ref": self._ref, "gone": where.gone, "limit": limit}
        asked: list[tuple[str, dict[str, Any]]]
        asked = [("foremost_rows", {"positions": array(positions)}) for positions in lists if positions]
        if asked and self._ahead and promising is not None:
            more = {"ahead": self._ahead, "credentials": list(CREDENTIAL_PREFIXES)}
            asked.append(("beside", {"positions": array(promising()), **more}))
        with self._connection.pipeline():
            found = [
                (name, self._connection.execute(statement(name, parts), bound | own, binary=True))
                for name, own in asked
            ]
        ahead = self._fetched = _Ahead(where)
        for name, cursor in found:
            if name == "beside":
                ahead.add_neighbours(cursor.fetchall())
            else:
                ahead.rows |= {row[0]: row for row in cursor.fetchall()}
                ahead.fits.update(ahead.rows)
        return {position: _brief(row) for position, row in ahead.rows.items() if position in ahead.fits}

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        rows = self._fetched.pick(positions, where, self.now) if self._fetched else None
        return super().briefs(positions, where) if rows is None else {row[0]: _brief(row) for row in rows}

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        rows = self._fetched.pick(positions, where, self.now) if self._fetched else None
        return super().at(positions, where) if rows is None else {row[0]: to_entry(row) for row in rows}

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        ahead = self._fetched
        if ahead is not None and steps == _STEPS and all(position in ahead.before for position in positions):
            rows = [(position, ahead.before[position], ahead.after[position]) for position in positions]
        else:
            bound = {"tenant": self._tenant, "ref": self._ref, "positions": array(positions), "now": self.now}
            rows = [(row[0], row[1], row[2]) for row in self._fetch(SQL["around"], bound | {"steps": steps})]
        before: dict[int, int | None] = {}
        after: dict[int, int | None] = {}
        for position, back, on in rows:
            before.update(_steps(position, back, steps))
            after.update(_steps(position, on, steps))
        return sides(before, after)

    def passing(self, where: Filter) -> list[int]:
        """The positions that match, found by tags or as the planner chooses."""
        led, least, rest = without_tags(where)
        if led is None:
            rows = self._filtered("passing", where, ref=self._ref)
        else:
            rows = self._filtered("passing_tags", rest, ref=self._ref, led=led, least=least)
        return [row[0] for row in rows]


def _steps(position: int, near: Sequence[int], steps: int) -> Iterable[tuple[int, int | None]]:
    """Each position on the way, with the next one."""
    way: list[Any] = [position, *near, None]
    return pairwise(way[: steps + 1])
