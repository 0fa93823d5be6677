"""Read transactions: one snapshot, one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
from msgspec.structs import replace

from reverie.core.entry import Document, Entry, Link, Scope
from reverie.core.event import Event, genesis
from reverie.core.query import Asked, Brief, Filter, Head, Match, Page
from reverie.core.subject import index_key
from reverie.index.cache import Found, IndexCache
from reverie.index.postings import ask, hashed
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
from reverie.store.sql import load_queries
from reverie.store.sqlite.rows import filter_parameters

_RAW = load_queries("reverie.store.sqlite")
_FRAGMENTS = ("columns", "brief", "filter", "readable")


def _assembled(condition: str) -> dict[str, str]:
    fragments = {part: _RAW[part] for part in ("columns", "brief")}
    fragments["filter"] = _RAW[condition]
    return {name: sql.format(**fragments) for name, sql in _RAW.items() if name not in _FRAGMENTS}


QUERIES = _assembled("filter")
# The same queries for the filter that nearly every read has. Looking up a hundred entries takes 240 us instead of 380,
# because a row is judged by three conditions and not by thirteen.
PLAIN_QUERIES = _assembled("readable")
READABLE = Filter()
_FEW_EVENTS = 10_000


class SqliteReadTx:
    """One snapshot of one scope. `tenant` is None when the tenant has never been written: everything is empty."""

    def __init__(self, db: apsw.Connection, scope: Scope, now: int, cache: IndexCache) -> None:
        self.scope = scope
        self.now = now
        self._connection = db
        self._indexes = cache
        self._tenant: int | None = None
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

    def head(self) -> Head:
        return self._head

    def log_key(self) -> bytes:
        return self._log_key

    @property
    def _range(self) -> dict[str, int | None]:
        """Where this tenant's numbers are, of entries and of events; nowhere before it was written."""
        first, last = (None, None) if self._tenant is None else positions_of(self._tenant)
        return {"first": first, "last": last}

    @property
    def _ref(self) -> str:
        if self.scope.ref is None:
            raise ValueError("this verb needs a scope with a ref")
        return self.scope.ref

    def _filtered(self, name: str, where: Filter, **more: Any) -> apsw.Cursor:
        """Run a query that has a filter."""
        plain = where is READABLE or where == READABLE
        sql = (PLAIN_QUERIES if plain else QUERIES)[name]
        asked = {"now": self.now} if plain else filter_parameters(where, self.now)
        return self._db.execute(sql, {"tenant": self._tenant, **asked, **more})

    def get(self, entry_id: str, *, as_of: int | None = None, where: Filter | None = None) -> Entry | None:
        where = where or READABLE
        if as_of is None:
            found = self._filtered("get", where, ref=self._ref, id=entry_id, gone=int(where.gone))
        else:
            found = self._filtered("get_as_of", as_of_filter(where), ref=self._ref, id=entry_id, as_of=as_of)
        row = found.fetchone()
        return to_entry(row) if row else None

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
            bound["gone"] = int(where.gone)
        elif oldest_first:
            name = "scan_oldest"
        elif where.tags:
            name = "scan_tag"
            bound["tag"] = where.tags[0]
        else:
            name = "scan_newest"
        edge = LAST if name in ("scan_as_of", "scan_tag", "scan_newest") else FIRST
        bound |= {"at": edge if at is None else at, "n": edge if n is None else base + n, "limit": limit + 1}
        rows = self._filtered(name, where, **bound).fetchall()
        items = [to_entry(row) for row in rows[:limit]]
        more = len(rows) > limit and items
        return Page(items, encode([items[-1].created_at, items[-1].position - base]) if more else None)

    def count(self, where: Filter) -> int:
        return int(self._filtered("count", where, ref=self.scope.ref, gone=int(where.gone)).get)

    def cold(self, *, before: int, limit: int) -> list[Entry]:
        return [to_entry(row) for row in self._db.execute(QUERIES["scan_cold"], (self._tenant, before, limit))]

    def refs(self) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._db.execute(QUERIES["refs"], (self._tenant, self.now))]

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
        # Rows of all memories lie in one order: what few writes brought is read from its end.
        few = self.head().seq - since <= _FEW_EVENTS
        bound = {**self._range, "tenant": self._tenant, "ref": self._ref, "after": after, "since": since}
        rows: Any = self._db.execute(QUERIES["index_new" if few else "index_rows"], bound)
        return rows  # type: ignore[no-any-return]

    def index_gone(self, *, since: int) -> list[int]:
        """For the index cache: see `IndexedTx`."""
        return [row[0] for row in self._db.execute(QUERIES["index_gone"], (self._tenant, since, self._ref))]

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        before, after = self._walk("before", positions, steps), self._walk("after", positions, steps)
        # what a walk came upon has the one it came from on its other side
        back = {there: here for here, there in after.items() if there is not None} | before
        on = {there: here for here, there in before.items() if there is not None} | after
        return {position: (back.get(position), on.get(position)) for position in before.keys() | after.keys()}

    def _walk(self, name: str, positions: Sequence[int], steps: int) -> dict[int, int | None]:
        """Each position passed, and the next one on that side."""
        passed: dict[int, int | None] = {}
        edge = list(positions)
        for _ in range(steps):
            bound = {"tenant": self._tenant, "ref": self._ref, "positions": encode(edge), "now": self.now}
            rows: Any = self._db.execute(QUERIES[name], bound)
            found: dict[int, int | None] = dict(rows)
            passed |= found
            edge = [p for p in found.values() if p is not None and p not in passed]
        return passed

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        rows = self._filtered("pick_briefs", where, ref=self._ref, positions=encode(list(positions)))
        return {row[0]: Brief(*row) for row in rows}

    def passing(self, where: Filter) -> list[int]:
        """For the index cache: see `IndexedTx`. Led by a part of the filter that has an index."""
        bound: dict[str, Any] = {"ref": self._ref}
        led, least, rest = without_tags(where)
        if led is not None:
            name = "passing_tags"
            bound |= {"led": encode(led), "least": least}
        elif where.subject is not None:
            name, rest = "passing_subject", replace(where, subject=None)
            bound["subject"] = where.subject
        else:
            name, rest = "passing", replace(where, since=None, until=None)
            bound["first"] = FIRST if where.since is None else where.since
            bound["last"] = LAST if where.until is None else where.until
        return [row[0] for row in self._filtered(name, rest, **bound)]

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        rows = self._filtered("pick", where, ref=self._ref, positions=encode(list(positions)))
        return {row[0]: to_entry(row) for row in rows}

    def about(self, subject: str, *, erased: bool = False) -> list[Entry]:
        rows = self._db.execute(QUERIES["about"], (self._tenant, index_key(subject)))
        found = [entry for entry in map(to_entry, rows) if about(entry, subject, self._log_key, erased=erased)]
        return found if self.scope.ref is None else [entry for entry in found if entry.ref == self.scope.ref]

    def index_state(self, model: str) -> tuple[int, int]:
        bound = {"tenant": self._tenant, "ref": self.scope.ref, "model": model, "now": self.now}
        row: Any = self._db.execute(QUERIES["index_state"], bound).fetchone()
        return row[0], row[1]

    def unembedded(self, model: str, *, limit: int) -> list[Entry]:
        bound = {"tenant": self._tenant, "ref": self.scope.ref, "model": model, "limit": limit, "now": self.now}
        return [to_entry(row) for row in self._db.execute(QUERIES["unembedded"], bound)]

    def links(self, entry_id: str, *, incoming: bool = False, type: str | None = None) -> list[Link]:  # noqa: A002
        sql = QUERIES["links_to" if incoming else "links_from"]
        rows = self._db.execute(sql, (self._tenant, self._ref, entry_id))
        return [Link(row[0], row[1], row[2], row[3]) for row in rows if type is None or row[2] == type]

    def read_log(self, *, after: int = 0, limit: int = 1000, types: Sequence[str] | None = None) -> list[Event]:
        bound = {**self._range, "after": after, "limit": limit, "types": None if types is None else encode(list(types))}
        return [to_event(row) for row in self._db.execute(QUERIES["read_log"], bound)]

    def read_run(self, run: str, *, skip: int = 0, limit: int = 1000) -> list[Event]:
        bound = {**self._range, "run": run, "skip": skip, "limit": limit}
        return [to_event(row) for row in self._db.execute(QUERIES["read_run"], bound)]

    def load(self, space: str, key: str, *, version: int | None = None, dropped: bool = False) -> Document | None:
        document = self._document(space, key, version)
        return None if document is None or (document.body is None and not dropped) else document

    def _document(self, space: str, key: str, version: int | None = None) -> Document | None:
        bound = {"tenant": self._tenant, "space": space, "key": key, "version": version}
        row = self._db.execute(QUERIES["load"], bound).fetchone()
        return to_document(row) if row else None

    def documents(
        self, space: str, *, prefix: str = "", limit: int = 1000, cursor: str | None = None
    ) -> Page[Document]:
        after = cursor or ""
        bound = {"tenant": self._tenant, "space": space, "prefix": prefix, "after": after, "limit": limit + 1}
        bound["beyond"] = prefix + LAST_CHARACTER
        rows = self._db.execute(QUERIES["documents"], bound).fetchall()
        items = [to_document(row) for row in rows[:limit]]
        return Page(items, items[-1].key if len(rows) > limit and items else None)

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        row = self._db.execute(QUERIES["answer"], (self._tenant, key, self.now)).fetchone()
        return (row[0], row[1]) if row else None
