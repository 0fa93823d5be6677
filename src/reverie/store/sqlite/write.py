"""Write transactions of SQLite, many to a commit.

Each is one caller's part of a Batch. A body that changes stored rows gets a savepoint before its first change. A read
inserts the waiting rows first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from reverie.core.entry import Document, Entry, Link, Scope
from reverie.core.event import Event
from reverie.core.subject import index_keys
from reverie.store.rows import event_row, to_document, to_row
from reverie.store.snapshot import Row
from reverie.store.sqlite.batch import Batch
from reverie.store.sqlite.read import QUERIES, SqliteReadTx
from reverie.store.transaction import Vector, WriteVerbs


class SqliteWriteTx(SqliteReadTx, WriteVerbs):
    """One caller's part of a batch."""

    _batch: Batch

    def __init__(self, batch: Batch, scope: Scope) -> None:
        self._batch = batch
        held = batch.tenant(scope.tenant)
        self._made = held is None
        if held is None:
            batch.flush()
            batch.db.execute("SAVEPOINT body")
            held = batch.make_tenant(scope.tenant)
        self._begin(held, scope, batch.now)
        self._marks = {sql: len(rows) for sql, rows in batch.rows.items()}
        self._position = held.position
        self._saved = self._made
        self._destroyed = False

    @property
    def frees(self) -> bool:
        """Whether the body destroyed text, or only removed something (an entry, a lease).

        Then it is committed even when the disk is full.
        """
        return self._destroyed or (self._left and not self._grew)

    @property
    def _db(self) -> apsw.Connection:
        """The connection, after waiting rows were inserted: reads inside a write see everything written so far."""
        if self._saved or self._worked():
            return self._changing()
        self._batch.flush()
        self._marks.clear()
        return self._batch.db

    def _worked(self) -> bool:
        return self._held.head != self._before or any(
            len(rows) > self._marks.get(sql, 0) for sql, rows in self._batch.rows.items()
        )

    def _changing(self) -> apsw.Connection:
        """The connection, after a savepoint: from here on this body's work is in the database."""
        batch, held = self._batch, self._held
        if not self._saved:
            own = {sql: rows[self._marks.get(sql, 0) :] for sql, rows in batch.rows.items()}
            for sql, rows in batch.rows.items():
                del rows[self._marks.get(sql, 0) :]
            now, held.head = held.head, self._before
            batch.flush()
            batch.db.execute("SAVEPOINT body")
            self._saved = True
            held.head = now
            for sql, rows in own.items():
                batch.rows[sql].extend(rows)
            batch.waits = True
        if batch.waits:  # the head is written with the last rows
            batch.flush()
        return batch.db

    def undo(self) -> None:
        """Undo the work of this body."""
        batch, held = self._batch, self._held
        for sql, rows in batch.rows.items():
            del rows[0 if self._saved else self._marks.get(sql, 0) :]
        if self._saved:
            batch.db.execute("ROLLBACK TO body")
            batch.db.execute("RELEASE body")
            held.written = self._before
            batch.models.clear()
        held.head = self._before
        if self._made:
            del batch.tenants[self._scope.tenant]
        held.position = self._position
        self._undo_waiting()

    def done(self) -> None:
        """Keep the work of this body, which has ended."""
        for ref, position in self._scrubbed:
            self._batch.scrubbed.setdefault((self._held.n, ref), (self._held, []))[1].append(position)
        if self._saved:
            self._batch.flush()
            self._batch.db.execute("RELEASE body")

    def adopt(self, ahead: SqliteWriteTx) -> bool:
        """Take over the rows of a body that ran on a snapshot. False: the tenant has changed since."""
        own, other, batch, made = self._held, ahead._held, self._batch, ahead._batch
        same = (own.n, own.log_key, own.head, own.position) == (other.n, other.log_key, other.opened, ahead._position)
        if not same or self._worked():
            return False
        for sql, rows in made.rows.items():
            batch.rows.setdefault(sql, []).extend(rows)
            batch.waits = True
        batch.new_ids |= made.new_ids
        batch.answers |= made.answers
        self._ids, self._answers, self._arrows = ahead._ids, ahead._answers, ahead._arrows
        self._grew, self._left = ahead._grew, ahead._left
        own.head, own.position = other.head, other.position
        return True

    def _add(self, name: str, row: tuple[Any, ...]) -> None:
        self._batch.rows.setdefault(QUERIES[name], []).append(row)
        self._batch.waits = True

    def _do(self, name: str, bound: Any) -> None:
        self._changing().execute(QUERIES[name], bound)

    def _do_each(self, name: str, bound: Sequence[Any]) -> None:
        self._changing().executemany(QUERIES[name], bound)

    def _unsent(self, name: str, bound: Any) -> Sequence[Row]:
        return self._batch.db.execute(QUERIES[name], bound).fetchall()

    def _event_row(self, event: Event) -> tuple[Any, ...]:
        return (self._held.first + event.seq, *event_row(event))

    def _entry_row(self, entry: Entry) -> tuple[Any, ...]:
        return to_row(entry, self._held.n)

    def _id_key(self, entry: Entry) -> tuple[Any, ...]:
        return self._held.n, entry.ref, entry.id

    def _answer_key(self, key: str) -> Any:
        return self._held.n, key

    def _model(self, vector: Vector | None) -> tuple[Any, bytes | None]:
        if vector is None:
            return None, None
        number = self._batch.models.get(vector[0])
        return (self._batch.model(vector[0]) if number is None else number), vector[1]

    def _change(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._do_each("change", rows)

    def _drop_about(self, entry: Entry, *more: bytes) -> None:
        for key in (*index_keys(self._log_key, entry.subject, entry.tags), *more):
            self._do("drop_about", (self._tenant, key, entry.position))

    def _add_links(self, links: Sequence[tuple[int, Link]]) -> None:
        place = self._tenant, self._ref
        rows = [(*place, link.from_id, link.type, link.to_id, link.note, order) for order, link in links]
        self._changing().executemany(QUERIES["add_link"], rows)

    def _text_destroyed(self) -> None:
        self._batch.scrub = self._destroyed = True

    def _add_answer(self, row: tuple[Any, ...]) -> None:
        self._add("add_answer", row)

    def _document_dropped(self) -> None:
        self._batch.scrub = True

    def _document(self, space: str, key: str, version: int | None = None) -> Document | None:
        bound = {"tenant": self._tenant, "space": space, "key": key, "version": version}
        rows = self._unsent("load", bound)  # documents never wait: no flush needed
        return to_document(rows[0]) if rows else None

    def _claim(self, bound: Mapping[str, Any]) -> Sequence[Row]:
        self._left = True  # a sweep claims a lease before it erases
        return self._changing().execute(QUERIES["claim"], bound).fetchall()

    def release(self, name: str, holder: str) -> None:
        self._left = True
        super().release(name, holder)
