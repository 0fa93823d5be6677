"""Write transactions of PostgreSQL. Several callers' bodies may share one: see writer.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reverie.core.entry import Entry, Link, Scope
from reverie.core.event import Event
from reverie.core.subject import index_keys
from reverie.store.postgres.batch import Batch, Row, Work, merge
from reverie.store.postgres.read import PostgresReadTx
from reverie.store.postgres.rows import SQL, long_id, short_id
from reverie.store.rows import event_row, to_row
from reverie.store.transaction import Vector, WriteVerbs


class PostgresWriteTx(PostgresReadTx, WriteVerbs):
    """One caller's part of a transaction."""

    _batch: Batch
    _settled = False

    def __init__(self, batch: Batch, scope: Scope) -> None:
        self._batch = batch
        self._begin(batch.held, scope, batch.now)
        self._position = batch.held.position
        self._own: Work = []
        self.saved = False
        """Whether work of this body is in the database."""
        self._changed: set[int] = set()
        """Positions of the entries whose change waits: one statement may change each entry only once."""

    def _fetch(self, sql: bytes, bound: Any) -> list[Row]:
        """The rows of a query, which sees everything written so far."""
        if not self._own:
            return self._batch.send(self._batch.waiting, (sql, bound))
        self._save()
        return self._batch.send(self._own, (sql, bound))

    def _save(self) -> None:
        """Put this body's work into the database, after a savepoint when others share the transaction."""
        if not self.saved:
            self.saved = True
            if not self._batch.alone:
                merge(self._batch.waiting, [(b"SAVEPOINT body", ())])
            merge(self._batch.waiting, self._own)
            self._own = self._batch.waiting
            self._batch.waiting = []

    def _add(self, name: str, row: Row) -> None:
        if not self._own or isinstance(self._own[-1], tuple):
            self._own.append({})
        group = self._own[-1]
        assert isinstance(group, dict)
        group.setdefault(SQL[name], []).append(row)

    def _do(self, name: str, bound: Any) -> None:
        self._own.append((SQL[name], bound))

    def _unsent(self, name: str, bound: Any) -> Sequence[Row]:
        return self._batch.send([], (SQL[name], bound))

    def done(self) -> None:
        """Keep the work of this body, which has ended."""
        for ref, position in self._scrubbed:
            self._batch.scrubbed.setdefault(ref, []).append(position)
        if self.saved and not self._batch.alone:
            self._own.append((b"RELEASE SAVEPOINT body", ()))
        if self.saved:
            self._batch.send(self._own)
        else:
            merge(self._batch.waiting, self._own)
        self._batch.kept += 1

    def undo(self) -> None:
        """Undo the work of this body."""
        batch = self._batch
        if self.saved and not batch.alone:
            batch.connection.execute(b"ROLLBACK TO SAVEPOINT body")
            batch.connection.execute(b"RELEASE SAVEPOINT body")
        self._own = []
        batch.held.head, batch.held.position = self._before, self._position
        self._undo_waiting()

    def _event_row(self, event: Event) -> Row:
        run = event.data.get("run")
        return (self._held.n, event.seq, *event_row(event), run if isinstance(run, str) else None)

    def _entry_row(self, entry: Entry) -> Row:
        short = short_id(entry.id)
        row = to_row(entry, self._held.n)
        return (*row[:3], short, *row[4:], long_id(entry.id, short))

    def _add_links(self, links: Sequence[tuple[int, Link]]) -> None:
        for order, link in links:
            start, end = short_id(link.from_id), short_id(link.to_id)
            ends = (long_id(link.from_id, start), long_id(link.to_id, end))
            self._add("add_link", (self._tenant, self._ref, start, link.type, end, link.note, order, *ends))

    def _id_key(self, entry: Entry) -> Row:
        return entry.ref, short_id(entry.id)

    def _answer_key(self, key: str) -> Any:
        return key

    def _model(self, vector: Vector | None) -> tuple[Any, bytes | None]:
        return vector or (None, None)

    def _change(self, rows: Sequence[Row]) -> None:
        positions = {row[-1] for row in rows}
        if not positions.isdisjoint(self._changed):
            self._own.append({})
            self._changed.clear()
        self._changed |= positions
        for row in rows:
            self._add("change", row)

    def _cool_recall(self, entries: Sequence[Entry], seq: int) -> None:
        for entry in entries:
            self._add("cool_recall", (seq, self._tenant, entry.ref, entry.position))

    def _drop_recall(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._add("drop_recall", (self._tenant, entry.ref, entry.position))

    def _drop_about(self, entry: Entry, *more: bytes) -> None:
        keys = [*index_keys(self._log_key, entry.subject, entry.tags), *more]
        if keys:  # also the row without a key, in case a process of an older release wrote the entry
            self._do("drop_about", (self._tenant, [*keys, b""], entry.position))

    def _text_destroyed(self) -> None:
        self._batch.destroyed = True

    def _claim(self, bound: Mapping[str, Any]) -> Sequence[Row]:
        self._save()
        return self._fetch(SQL["claim"], bound)
