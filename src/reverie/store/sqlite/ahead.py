"""Runs heavy bodies ahead of their transaction: the rows are made on a snapshot, and the writer only inserts them.

A body that stores a thousand entries computes three times as long as its rows take to insert, and every other write
would wait for it. Here it runs in the thread of its caller, with pauses. The transaction takes over the rows if the
tenant has not changed since. Otherwise, or if the body does more than add rows, the transaction runs the body again.
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
        """Raise NotAhead when rows wait: they cannot be inserted, so a read would not see them."""
        if any(self.rows.values()):
            raise NotAhead

    def model(self, name: str) -> int:
        raise NotAhead(name)


class AheadTx(SqliteWriteTx):
    """A body's part of such a batch. Changes of stored rows raise NotAhead."""

    def __init__(self, batch: AheadBatch, scope: Scope) -> None:
        if batch.tenant(scope.tenant) is None:
            raise NotAhead
        super().__init__(batch, scope)

    def _changing(self) -> apsw.Connection:
        raise NotAhead


def run_ahead(batch: AheadBatch, scope: Scope, body: Callable[[WriteTx], T]) -> Callable[[SqliteWriteTx], T] | None:
    """Run a body on a snapshot. Returns a body that inserts its rows; None when that is not possible.

    A body that raises here runs again inside the transaction, and only that counts.
    """
    try:
        ahead = AheadTx(batch, scope)
        result = body(ahead)
    except Exception:
        return None

    def insert(tx: SqliteWriteTx) -> T:
        return result if tx.adopt(ahead) else body(tx)

    return insert
