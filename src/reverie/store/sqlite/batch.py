"""One SQLite transaction for many waiting callers.

New rows are collected and inserted together; a body that only adds rows needs no savepoint, because undoing it is
forgetting what it collected.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import apsw

from reverie.core.event import genesis
from reverie.index.cache import IndexCache
from reverie.store.sqlite.read import QUERIES
from reverie.store.transaction import Tenant


class Batch:
    """One SQLite transaction, and the rows that wait to be inserted into it."""

    def __init__(self, db: apsw.Connection, now: int, models: Mapping[str, int], indexes: IndexCache) -> None:
        self.db = db
        self.indexes = indexes
        self.scrubbed: dict[tuple[int, str], tuple[Tenant, list[int]]] = {}
        """By memory: the tenant, and positions whose words and vectors are destroyed."""
        self.now = now
        self.tenants: dict[str, Tenant] = {}
        self.models = dict(models)
        """Numbers of embedding models, committed and new."""
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.waits = False
        """Whether rows may wait to be inserted."""
        self.new_ids: set[tuple[int, str, str]] = set()
        self.answers: dict[tuple[int, str], tuple[str, bytes]] = {}
        self.scrub = False
        """Whether text was destroyed, so that the write-ahead log must be emptied."""
        self.lost: BaseException | None = None
        """Set when waiting rows could not be inserted. Whose rows they were is unknown, so the whole batch fails."""

    def tenant(self, name: str) -> Tenant | None:
        held = self.tenants.get(name)
        if held is None:
            row = self.db.execute(QUERIES["tenant_to_write"], (name,)).fetchone()
            if row is None:
                return None
            held = self.tenants[name] = Tenant(row)
        return held

    def make_tenant(self, name: str) -> Tenant:
        bound = (name, secrets.token_bytes(32), bytes.fromhex(genesis(name)), self.now)
        self.db.execute(QUERIES["add_tenant"], bound)
        made = self.tenant(name)
        assert made is not None
        return made

    def add(self, query: str, row: tuple[Any, ...]) -> None:
        self.rows.setdefault(query, []).append(row)
        self.waits = True

    def flush(self) -> None:
        try:
            self._flush()
        except BaseException as fault:
            self.lost = fault
            raise

    def _flush(self) -> None:
        for sql, rows in self.rows.items():
            if rows:
                insert_many(self.db, sql, rows)
                rows.clear()
        self.waits = False
        for held in self.tenants.values():
            head = held.head
            if held.written != head:
                figures = (head.entries, head.bytes, head.rules_seq)
                self.db.execute(QUERIES["set_head"], (head.seq, head.epoch, bytes.fromhex(head.hash), *figures, held.n))
                held.written = head

    def model(self, name: str) -> int:
        """The number of a model that is not in `models` yet."""
        number: Any = self.db.execute(QUERIES["model"], (name,)).get
        if number is None:
            number = self.db.execute(QUERIES["add_model"], (name,)).get
        self.models[name] = number
        return int(number)


def insert_many(db: apsw.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many to a statement.

    The interpreter's lock is released and taken again at every step of a statement. With one row to a step, 64 waiting
    threads made the writer half as fast.
    """
    if len(rows) == 1:
        db.execute(sql, rows[0])
        return
    at = 0
    for size in _CHUNKS:
        while len(rows) - at >= size:
            db.execute(_chunked(sql, size), [value for row in rows[at : at + size] for value in row])
            at += size


_CHUNKS = (256, 64, 16, 4, 1)


@lru_cache(maxsize=1024)
def _chunked(sql: str, size: int) -> str:
    head, values = sql.rsplit("VALUES", 1)
    return head + "VALUES" + ",".join([values] * size)
