"""Read transactions of SQLite: one snapshot, one scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
from msgspec.structs import replace

from reverie.core.entry import EntryState, Scope
from reverie.core.event import genesis
from reverie.core.query import Filter, Head
from reverie.index.cache import IndexCache
from reverie.index.segment import Row as IndexRow
from reverie.store.rows import FIRST, LAST, encode, positions_of, without_tags
from reverie.store.snapshot import READABLE, ReadVerbs, Row, sides
from reverie.store.sql import load_queries
from reverie.store.sqlite.rows import filter_parameters

_RAW = load_queries("reverie.store.sqlite")
_FRAGMENTS = ("columns", "brief", "filter", "readable")


def _assembled(condition: str) -> dict[str, str]:
    fragments = {part: _RAW[part] for part in ("columns", "brief")}
    fragments["filter"] = _RAW[condition]
    return {name: sql.format(**fragments) for name, sql in _RAW.items() if name not in _FRAGMENTS}


QUERIES = _assembled("filter")
# The same queries for the filter of nearly every read. Looking up a hundred entries takes 240 us instead of 380,
# because a row is tested by three conditions instead of thirteen.
PLAIN_QUERIES = _assembled("readable")
_FEW_EVENTS = 10_000


class SqliteReadTx(ReadVerbs):
    """The verbs of a read transaction on one connection."""

    def __init__(self, db: apsw.Connection, scope: Scope, now: int, cache: IndexCache) -> None:
        self._scope, self.now = scope, now
        if scope.ref is not None:
            self._ref = scope.ref
        self._connection = db
        self._indexes = cache
        self._tenant = None
        self._log_key = b""
        row = db.execute(QUERIES["tenant"], (scope.tenant,)).fetchone()
        if row:
            self._tenant, self._log_key = row[0], row[1]
            self._head = Head(row[2], row[3], row[4].hex(), row[5], row[6], row[7])
        else:
            self._head = Head(seq=0, epoch=0, hash=genesis(scope.tenant), entries=0, bytes=0)

    @property
    def _db(self) -> apsw.Connection:
        return self._connection

    def _rows(self, name: str, bound: Any) -> Sequence[Row]:
        return self._db.execute(QUERIES[name], bound).fetchall()

    def _filtered(self, name: str, where: Filter, **bound: Any) -> Sequence[Row]:
        plain = where is READABLE or where == READABLE
        sql = (PLAIN_QUERIES if plain else QUERIES)[name]
        asked = {"now": self.now} if plain else filter_parameters(where, self.now)
        return self._db.execute(sql, {"tenant": self._tenant, **asked, **bound}).fetchall()

    def _many(self, values: Sequence[Any]) -> Any:
        return encode(list(values))

    def _place(self) -> dict[str, Any]:
        """Number range of this tenant's entries and events; empty before its first write."""
        first, last = (None, None) if self._tenant is None else positions_of(self._tenant)
        return {"first": first, "last": last}

    def _span(self) -> dict[str, Any]:
        base, top = positions_of(self._tenant or 0)
        return {"base": base, "top": top}

    def index_rows(self, *, after: int, since: int) -> Iterable[IndexRow]:
        # Rows of all memories are in one order: after few writes, the end of the table is read.
        few = self.head().seq - since <= _FEW_EVENTS
        bound = {**self._place(), "tenant": self._tenant, "ref": self._ref, "after": after, "since": since}
        rows: Any = self._db.execute(QUERIES["index_new" if few else "index_rows"], bound)
        return rows  # type: ignore[no-any-return]

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        return sides(self._walk("before", positions, steps), self._walk("after", positions, steps))

    def _walk(self, name: str, positions: Sequence[int], steps: int) -> dict[int, int | None]:
        """Each position passed, with the next one on that side."""
        passed: dict[int, int | None] = {}
        edge = list(positions)
        for _ in range(steps):
            bound = {"tenant": self._tenant, "ref": self._ref, "positions": encode(edge), "now": self.now}
            rows: Any = self._db.execute(QUERIES[name], bound)
            found: dict[int, int | None] = dict(rows)
            passed |= found
            edge = [p for p in found.values() if p is not None and p not in passed]
        return passed

    def count(self, where: Filter) -> int:
        """Count matching entries. By kind, actor and absence of a session, only indexes are read."""
        rest = replace(where, kinds=None, without_kinds=(), actor=None, not_by=None, sessionless=False)
        if self._scope.ref is None or rest != READABLE:
            return super().count(where)
        bound = {"tenant": self._tenant, "ref": self._ref, **filter_parameters(where, self.now)}
        narrow = where.kinds is not None or where.without_kinds or where.actor is not None
        names = ["count_readable"] if narrow else ["count_hot", "count_expired"]
        names += ["count_by"] if where.not_by is not None else []
        names += ["count_in_sessions"] if where.sessionless else []
        found, *others = [int(self._rows(name, bound)[0][0]) for name in names]
        return found - sum(others)

    def passing(self, where: Filter) -> list[int]:
        """The positions that match, found by a part of the filter that has an index."""
        bound: dict[str, Any] = {"ref": self._ref}
        led, least, rest = without_tags(where)
        if led is not None:
            name = "passing_tags"
            bound |= {"led": encode(led), "least": least}
        elif where.subject is not None:
            name, rest = "passing_subject", replace(where, subject=None)
            bound["subject"] = where.subject
        elif where.session is not None:
            name, rest = "passing_session", where
        elif where.pinned:
            name, rest = "passing_pinned", where
        elif where.actor is not None and EntryState.DRAFT not in where.states:
            name, rest = "passing_actor", where
        elif where.kinds is not None and EntryState.DRAFT not in where.states:
            name, rest = "passing_kinds", where
        else:
            name, rest = "passing", replace(where, since=None, until=None)
            bound["first"] = FIRST if where.since is None else where.since
            bound["last"] = LAST if where.until is None else where.until
        return [row[0] for row in self._filtered(name, rest, **bound)]
