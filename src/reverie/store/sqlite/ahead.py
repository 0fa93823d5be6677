"""Heavy bodies ahead of their transaction: the rows are made on a snapshot, and the writer only inserts them.

A body that stores a thousand entries computes three times as long as its rows take to insert, and every other write
waits for it. Here it runs in the thread of its caller, with pauses. The transaction takes the rows over if the tenant
has not changed since; else, and where the body does more than add rows, it runs the body again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import apsw

from reverie.core.entry import Scope
from reverie.store.contract import WriteTx
from reverie.store.sqlite.batch import Batch
from reverie.store.sqlite.write import SqliteWriteTx

T = TypeVar("T")


class NotAhead(Exception):
    """The body does more than add rows."""


class AheadBatch(Batch):
    """Collects rows on a connection that only reads."""

    def flush(self) -> None:
        """Nothing is inserted: rows that a read would have to see stop the body."""
        if any(self.rows.values()):
            raise NotAhead

    def model(self, name: str) -> int:
        raise NotAhead(name)


class AheadTx(SqliteWriteTx):
    """A body's part of such a batch. Whatever changes stored rows stops the body."""

    def __init__(self, batch: AheadBatch, scope: Scope) -> None:
        if batch.tenant(scope.tenant) is None:
            raise NotAhead
        super().__init__(batch, scope)

    def _changing(self) -> apsw.Connection:
        raise NotAhead


def run_ahead(batch: AheadBatch, scope: Scope, body: Callable[[WriteTx], T]) -> Callable[[SqliteWriteTx], T] | None:
    """Run a body on a snapshot. Returns the body that inserts its rows; None where that cannot be done.

    What the body raised it raises again inside the transaction, which alone decides.
    """
    try:
        ahead = AheadTx(batch, scope)
        result = body(ahead)
    except Exception:
        return None

    def insert(tx: SqliteWriteTx) -> T:
        return result if tx.adopt(ahead) else body(tx)

    return insert
