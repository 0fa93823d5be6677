"""One PostgreSQL transaction of one tenant, and the statements that wait to be sent.

Statements wait until something must be read or the transaction ends; then they are sent together, in one round trip.
New rows of a table become one statement.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from psycopg import Cursor

from reverie.core.event import genesis
from reverie.index.cache import IndexCache
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL, TYPES, array
from reverie.store.transaction import Tenant

Row = tuple[Any, ...]
Work = list[dict[bytes, list[Row]] | tuple[bytes, Any]]
"""Pending statements, in order: groups of rows by their statement, and single statements."""


class Batch:
    """A transaction that holds the head of its tenant. `alone`: it runs only one body, so undoing is a rollback."""

    def __init__(
        self, connection: Connection, name: str, now: int, row: Row, *, made: bool, alone: bool, indexes: IndexCache
    ) -> None:
        self.connection = connection
        self.indexes = indexes
        self.scrubbed: dict[str, list[int]] = {}
        """By ref: positions whose words and vectors are destroyed."""
        self.name = name
        self.now = now
        self.alone = alone
        self.held = Tenant(row)
        self.made = made
        """Whether the tenant was made in this transaction."""
        self.waiting: Work = []
        self.new_ids: set[tuple[str, str]] = set()
        self.answers: dict[str, tuple[str, bytes]] = {}
        self.destroyed = False
        """Whether text was destroyed, so that the server must remove old rows. Noted in the same transaction."""
        self.kept = 0
        """Number of bodies whose work stays."""

    @property
    def logged(self) -> bool:
        """Whether anything was appended to the log."""
        return self.held.head.seq != self.held.opened.seq

    def send(self, work: Work, query: tuple[bytes, Any] | None = None) -> list[Row]:
        """Send statements and a query in one round trip. Returns the rows of the query."""
        execute = self.connection.execute
        if not work:
            return execute(*query, binary=True).fetchall() if query else []
        with self.connection.pipeline():
            send_all(self.connection, work)
            found = execute(*query, binary=True) if query else None
        work.clear()
        return found.fetchall() if found else []

    def commit(self) -> str | None:
        """Send the waiting statements and commit, in one round trip. Returns the server's answer."""
        held = self.held
        head = held.head
        if head != held.opened:
            figures = (head.entries, head.bytes, head.rules_seq, held.position)
            bound = (head.seq, head.epoch, bytes.fromhex(head.hash), *figures, held.n)
            self.waiting.append((SQL["set_head"], bound))
        if self.destroyed:
            self.waiting.append((SQL["owe_vacuum"], (secrets.token_hex(16),)))
        ended: Cursor[Row]
        with self.connection.pipeline():
            send_all(self.connection, self.waiting)
            ended = self.connection.execute(b"COMMIT")
        return ended.statusmessage


def send_all(connection: Connection, work: Work) -> None:
    """Send statements without waiting for their results."""
    for item in work:
        if isinstance(item, tuple):
            connection.execute(*item)
            continue
        for sql, rows in item.items():
            _send(connection, sql, rows)


def _send(connection: Connection, sql: bytes, rows: Sequence[Row]) -> None:
    """Send one statement for all rows, with an array for each column.

    A statement with a placeholder for every value would be parsed again every time, which cost half of the processor
    time of a batch.
    """
    if len(rows) == 1:
        connection.execute(sql, rows[0])
        return
    columns = list(zip(*rows, strict=True))
    if sql == SQL["change"]:
        connection.execute(SQL["change_many"], [*map(array, columns), columns[10][0], array(columns[11])])
        return
    if sql == SQL["drop_recall"]:
        bound = (columns[0][0], array(sorted(set(columns[1]))), array(columns[2]))
        connection.execute(SQL["drop_recall_many"], bound)
        return
    if sql == SQL["cool_recall"]:
        connection.execute(SQL["cool_recall_many"], (*map(array, (columns[0], columns[2], columns[3])), columns[1][0]))
        return
    same = tuple([column.count(column[0]) == len(column) for column in columns])
    alike = [column[0] for column, one in zip(columns, same, strict=True) if one]
    connection.execute(_many(sql, same), [*alike, *(array(c) for c, one in zip(columns, same, strict=True) if not one)])


@lru_cache(maxsize=256)
def _many(sql: bytes, same: tuple[bool, ...]) -> bytes:
    """An insert for many rows. A column with the same value in all rows is bound once."""
    head, _, rest = sql.decode().partition("VALUES")
    names = head[head.index("(") + 1 : head.index(")")].replace("\n", " ").split(", ")
    types = [TYPES.get(name.strip(), "text") for name in names]
    picked = ", ".join(
        f"%s::{kind}" if one else f"u.c{n}" for n, (kind, one) in enumerate(zip(types, same, strict=True))
    )
    varied = [n for n, one in enumerate(same) if not one]
    arrays = ", ".join(f"%s::{types[n]}[]" for n in varied)
    columns = ", ".join(f"c{n}" for n in varied)
    _, conflict, action = rest.partition("ON CONFLICT")
    return f"{head}SELECT {picked} FROM unnest({arrays}) AS u ({columns}) {conflict}{action}".encode()  # noqa: S608


def merge(work: Work, more: Work) -> None:
    """Append `more` to `work`. Adjacent groups of rows become one."""
    if work and more and isinstance(work[-1], dict) and isinstance(more[0], dict):
        group, first = work[-1], more[0]
        for sql, rows in first.items():
            group.setdefault(sql, []).extend(rows)
        work.extend(more[1:])
    else:
        work.extend(more)


def new_tenant(name: str, now: int) -> tuple[bytes, Row]:
    """The statement that makes a tenant with an empty log."""
    return SQL["add_tenant"], (name, secrets.token_bytes(32), bytes.fromhex(genesis(name)), now)
