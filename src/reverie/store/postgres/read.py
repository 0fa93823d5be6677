"""Read transactions: one snapshot, one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from reverie.core.entry import Document, Entry, Link, Scope
from reverie.core.event import Event, genesis
from reverie.core.query import Asked, Brief, Filter, Head, Match, Page
from reverie.core.subject import index_key
from reverie.index.cache import Found, IndexCache
from reverie.index.postings import ask, hashed
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import (
    READABLE,
    SQL,
    array,
    filter_parts,
    short_id,
    statement,
)
from reverie.store.rows import (
    FIRST,
    LAST,
    LAST_CHARACTER,
    about,
    as_of_filter,
    encode,
    open_cursor,
    positions_of,
    to_document,
    to_entry,
    to_event,
    without_tags,
)

Row = tuple[Any, ...]


class PostgresReadTx:
    """One snapshot of one scope. `_tenant` is None when the tenant has never been written: everything is empty."""

    def __init__(self, connection: Connection, scope: Scope, now: int, cache: IndexCache, row: Row | None) -> None:
        self.scope = scope
        self.now = now
        self._connection = connection
        self._indexes = cache
        self._tenant: int | None = None
        self._log_key = b""
        if row is not None:
            self._tenant, self._log_key = row[0], row[1]
            self._head = Head(row[2], row[3], row[4].hex(), row[5], row[6], row[7])
        else:
            self._head = Head(seq=0, epoch=0, hash=genesis(scope.tenant), entries=0, bytes=0)

    def _fetch(self, sql: bytes, bound: Any) -> list[Row]:
        return self._connection.execute(sql, bound, binary=True).fetchall()

    @property
    def _ref(self) -> str:
        if self.scope.ref is None:
            raise ValueError("this needs a transaction that is bound to a ref")
        return self.scope.ref

    def _filtered(self, name: str, where: Filter, **bound: Any) -> list[Row]:
        parts, values = filter_parts(where, self.now)
        return self._fetch(statement(name, parts), values | {"tenant": self._tenant} | bound)

    def head(self) -> Head:
        return self._head

    def log_key(self) -> bytes:
        return self._log_key

    def get(self, entry_id: str, *, as_of: int | None = None, where: Filter | None = None) -> Entry | None:
        where = where or READABLE
        bound = {"ref": self._ref, "id": short_id(entry_id)}
        if as_of is None:
            rows = self._filtered("get", where, gone=where.gone, **bound)
        else:
            rows = self._filtered("get_as_of", as_of_filter(where), as_of=as_of, **bound)
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
        everywhere = self.scope.ref is None or where.gone or where.expired is not False
        bound: dict[str, Any] = {"ref": self.scope.ref if everywhere and as_of is None else self._ref}
        if as_of is not None:
            name, where = "scan_as_of", as_of_filter(where)
            bound["as_of"] = as_of
        elif everywhere:
            name = "scan_subject" if where.subject else "scan_expired" if where.expired else "scan_all"
            bound["gone"] = where.gone
        elif oldest_first:
            name = "scan_oldest"
        elif where.tags:
            name = "scan_tag"
            bound["tag"] = where.tags[0]
        else:
            name = "scan_newest"
        edge = LAST if name in ("scan_as_of", "scan_tag", "scan_newest") else FIRST
        bound |= {"at": edge if at is None else at, "n": edge if n is None else base + n, "limit": limit + 1}
        rows = self._filtered(name, where, **bound)
        items = [to_entry(row) for row in rows[:limit]]
        more = len(rows) > limit and items
        return Page(items, encode([items[-1].created_at, items[-1].position - base]) if more else None)

    def count(self, where: Filter) -> int:
        return int(self._filtered("count", where, ref=self.scope.ref, gone=where.gone)[0][0])

    def cold(self, *, before: int, limit: int) -> list[Entry]:
        return [to_entry(row) for row in self._fetch(SQL["scan_cold"], (self._tenant, before, limit))]

    def refs(self) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._fetch(SQL["refs"], (self._tenant, self.now))]

    def match(self, terms: Sequence[str | Asked], where: Filter, *, limit: int) -> list[Match]:
        if self._tenant is None or not terms:
            return []
        words = ask(terms, self._log_key)
        return self._cache.match(self, (self._tenant, self._ref), words, where, limit)

    def nearest(self, vector: bytes, where: Filter, *, limit: int) -> list[Match]:
        if self._tenant is None or not any(vector):
            return []
        return self._cache.nearest(self, (self._tenant, self._ref), vector, where, limit)

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        if self._tenant is None or not terms:
            return frozenset()
        found = self._cache.known(self, (self._tenant, self._ref), [hashed(term, self._log_key) for term in terms])
        return frozenset(term for term, has in zip(terms, found, strict=True) if has)

    def cosines(self, vector: bytes, positions: Sequence[int]) -> Mapping[int, Sequence[float]]:
        if self._tenant is None or not positions:
            return {}
        return self._cache.cosines(self, (self._tenant, self._ref), vector, positions)

    @property
    def _cache(self) -> IndexCache:
        return self._indexes

    def index_rows(self, *, after: int, since: int) -> Found:
        """For the index cache: see `IndexedTx`."""
        bound = {"tenant": self._tenant, "ref": self._ref, "after": after, "since": since}
        return self._fetch(SQL["index_rows"], bound)

    def index_gone(self, *, since: int) -> list[int]:
        """For the index cache: see `IndexedTx`."""
        return [row[0] for row in self._fetch(SQL["index_gone"], (self._tenant, since, self._ref))]

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        bound = {"tenant": self._tenant, "ref": self._ref, "positions": array(positions), "now": self.now}
        before: dict[int, int | None] = {}
        after: dict[int, int | None] = {}
        for position, back, on in self._fetch(SQL["around"], bound | {"steps": steps}):
            before.update(pairwise([position, *back, None][: steps + 1]))
            after.update(pairwise([position, *on, None][: steps + 1]))
        # what was come upon has the one it was found from on its other side
        back = {there: here for here, there in after.items() if there is not None} | before
        on = {there: here for here, there in before.items() if there is not None} | after
        return {position: (back.get(position), on.get(position)) for position in before.keys() | after.keys()}

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        rows = self._filtered("pick_briefs", where, ref=self._ref, positions=array(positions))
        return {row[0]: Brief(*row) for row in rows}

    def passing(self, where: Filter) -> list[int]:
        """For the index cache: see `IndexedTx`. Led by tags, or by what the planner finds best."""
        led, least, rest = without_tags(where)
        if led is None:
            rows = self._filtered("passing", where, ref=self._ref)
        else:
            rows = self._filtered("passing_tags", rest, ref=self._ref, led=led, least=least)
        return [row[0] for row in rows]

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        rows = self._filtered("pick", where, ref=self._ref, positions=array(positions))
        return {row[0]: to_entry(row) for row in rows}

    def about(self, subject: str, *, erased: bool = False) -> list[Entry]:
        rows = self._fetch(SQL["about"], {"tenant": self._tenant, "who": index_key(subject)})
        found = [entry for entry in map(to_entry, rows) if about(entry, subject, self._log_key, erased=erased)]
        return found if self.scope.ref is None else [entry for entry in found if entry.ref == self.scope.ref]

    def index_state(self, model: str) -> tuple[int, int]:
        bound = {"tenant": self._tenant, "ref": self.scope.ref, "model": model, "now": self.now}
        row = self._fetch(SQL["index_state"], bound)[0]
        return row[0], row[1]

    def unembedded(self, model: str, *, limit: int) -> list[Entry]:
        bound = {"tenant": self._tenant, "ref": self.scope.ref, "model": model, "limit": limit, "now": self.now}
        return [to_entry(row) for row in self._fetch(SQL["unembedded"], bound)]

    def links(self, entry_id: str, *, incoming: bool = False, type: str | None = None) -> list[Link]:  # noqa: A002
        sql = SQL["links_to" if incoming else "links_from"]
        rows = self._fetch(sql, (self._tenant, self._ref, short_id(entry_id)))
        return [Link(row[0], row[1], row[2], row[3]) for row in rows if type is None or row[2] == type]

    def read_log(self, *, after: int = 0, limit: int = 1000, types: Sequence[str] | None = None) -> list[Event]:
        bound = {
            "tenant": self._tenant,
            "after": after,
            "limit": limit,
            "types": None if types is None else list(types),
        }
        return [to_event(row) for row in self._fetch(SQL["read_log"], bound)]

    def read_run(self, run: str, *, skip: int = 0, limit: int = 1000) -> list[Event]:
        bound = {"tenant": self._tenant, "run": run, "skip": skip, "limit": limit}
        return [to_event(row) for row in self._fetch(SQL["read_run"], bound)]

    def load(self, space: str, key: str, *, version: int | None = None, dropped: bool = False) -> Document | None:
        document = self._document(space, key, version)
        return None if document is None or (document.body is None and not dropped) else document

    def _document(self, space: str, key: str, version: int | None = None) -> Document | None:
        rows = self._fetch(SQL["load"], {"tenant": self._tenant, "space": space, "key": key, "version": version})
        return to_document(rows[0]) if rows else None

    def documents(
        self, space: str, *, prefix: str = "", limit: int = 1000, cursor: str | None = None
    ) -> Page[Document]:
        bound = {
            "tenant": self._tenant,
            "space": space,
            "prefix": prefix,
            "beyond": prefix + LAST_CHARACTER,
            "after": cursor or "",
            "limit": limit + 1,
        }
        rows = self._fetch(SQL["documents"], bound)
        items = [to_document(row) for row in rows[:limit]]
        return Page(items, items[-1].key if len(rows) > limit and items else None)

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        rows = self._fetch(SQL["answer"], (self._tenant, key, self.now))
        return (rows[0][0], rows[0][1]) if rows else None
