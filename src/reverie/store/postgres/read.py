"""Read transactions of PostgreSQL: one snapshot, one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from reverie.core.entry import Scope
from reverie.core.event import genesis
from reverie.core.query import Filter, Head
from reverie.index.cache import Found, IndexCache
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL, array, filter_parts, short_id, statement
from reverie.store.rows import without_tags
from reverie.store.snapshot import ReadVerbs, sides

Row = tuple[Any, ...]


class PostgresReadTx(ReadVerbs):
    """The verbs over one connection."""

    def __init__(self, connection: Connection, scope: Scope, now: int, cache: IndexCache, row: Row | None) -> None:
        self.scope = scope
        self.now = now
        self._connection = connection
        self._indexes = cache
        self._tenant = None
        self._log_key = b""
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

    def _many(self, values: Sequence[Any]) -> Any:
        return array(values)

    def _key(self, entry_id: str) -> str:
        return short_id(entry_id)

    def _place(self) -> dict[str, Any]:
        return {"tenant": self._tenant}

    def _span(self) -> dict[str, Any]:
        return {}

    def index_rows(self, *, after: int, since: int) -> Found:
        bound = {"tenant": self._tenant, "ref": self._ref, "after": after, "since": since}
        return self._fetch(SQL["index_rows"], bound)

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        bound = {"tenant": self._tenant, "ref": self._ref, "positions": array(positions), "now": self.now}
        before: dict[int, int | None] = {}
        after: dict[int, int | None] = {}
        for position, back, on in self._fetch(SQL["around"], bound | {"steps": steps}):
            before.update(pairwise([position, *back, None][: steps + 1]))
            after.update(pairwise([position, *on, None][: steps + 1]))
        return sides(before, after)

    def passing(self, where: Filter) -> list[int]:
        """Led by tags, or by what the planner finds best."""
        led, least, rest = without_tags(where)
        if led is None:
            rows = self._filtered("passing", where, ref=self._ref)
        else:
            rows = self._filtered("passing_tags", rest, ref=self._ref, led=led, least=least)
        return [row[0] for row in rows]
