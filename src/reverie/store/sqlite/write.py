"""Write transactions, many to a commit.

Each is one caller's part of a Batch. A body that changes stored rows gets a savepoint before the first change. Anything
that must see stored rows flushes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from reverie.core.entry import Document, Entry, EntryState, Link, Scope
from reverie.core.errors import Conflict, NotFound
from reverie.core.event import RULE_EVENTS, NewEvent, chain, encode_data
from reverie.core.query import Head
from reverie.core.subject import index_key, index_keys
from reverie.index.cache import IndexCache
from reverie.index.postings import pack
from reverie.store.change import change as decide
from reverie.store.rows import encode, to_document, to_entry, to_row
from reverie.store.sqlite.batch import Batch
from reverie.store.sqlite.read import QUERIES, SqliteReadTx

Vector = tuple[str, bytes]


class SqliteWriteTx(SqliteReadTx):
    """One caller's part of a batch."""

    def __init__(self, batch: Batch, scope: Scope) -> None:
        self._batch = batch
        held = batch.tenant(scope.tenant)
        self._made = held is None
        if held is None:
            batch.flush()
            batch.db.execute("SAVEPOINT body")
            held = batch.make_tenant(scope.tenant)
        self._held = held
        self.scope = scope
        self.now = batch.now
        self._tenant = self._held.n
        self._log_key = self._held.log_key
        self._first_seq = self._held.seq + 1
        self._before = self._held.state()
        self._marks = {sql: len(rows) for sql, rows in batch.rows.items()}
        self._position = held.position
        self._ids: list[tuple[int, str, str]] = []
        self._answers: list[tuple[tuple[int, str], tuple[str, bytes] | None]] = []
        self._saved = self._made
        self._arrows = 0
        self._destroyed = self._left = self._grew = False

    @property
    def frees(self) -> bool:
        """Whether it destroyed text, or only took something out (an entry, a lease): then a full disk is no reason
        to refuse it."""
        return self._destroyed or (self._left and not self._grew)

    @property
    def argument(self) -> SqliteWriteTx:
        """What the body is given."""
        return self

    @property
    def _db(self) -> apsw.Connection:
        """The connection, after what waits was inserted: reads inside a write see everything written so far."""
        if self._saved or self._worked():
            return self._changing()
        self._batch.flush()
        self._marks.clear()
        return self._batch.db

    def _worked(self) -> bool:
        if self._held.state() != self._before:
            return True
        return any(len(rows) > self._marks.get(sql, 0) for sql, rows in self._batch.rows.items())

    def _changing(self) -> apsw.Connection:
        """The connection, behind a savepoint: from here on this body's work is in the database."""
        batch, held = self._batch, self._held
        if not self._saved:
            own = {sql: rows[self._marks.get(sql, 0) :] for sql, rows in batch.rows.items()}
            for sql, rows in batch.rows.items():
                del rows[self._marks.get(sql, 0) :]
            now = held.state()
            held.back_to(self._before)
            batch.flush()
            batch.db.execute("SAVEPOINT body")
            self._saved = True
            held.back_to(now)
            for sql, rows in own.items():
                batch.rows[sql].extend(rows)
        batch.flush()
        return batch.db

    def undo(self) -> None:
        """Leave no trace of this body."""
        batch, held = self._batch, self._held
        for sql, rows in batch.rows.items():
            del rows[0 if self._saved else self._marks.get(sql, 0) :]
        if self._saved:
            batch.db.execute("ROLLBACK TO body")
            batch.db.execute("RELEASE body")
            held.written = self._before
            batch.models.clear()
        held.back_to(self._before)
        if self._made:
            del batch.tenants[self.scope.tenant]
        held.position = self._position
        batch.new_ids.difference_update(self._ids)
        for key, previous in reversed(self._answers):
            if previous is None:
                del batch.answers[key]
            else:
                batch.answers[key] = previous

    def done(self) -> None:
        """The body is through; its work stays."""
        if self._saved:
            self._batch.flush()
            self._batch.db.execute("RELEASE body")

    def head(self) -> Head:
        return self._held.state()

    @property
    def _cache(self) -> IndexCache:
        """Nothing is held: what this body reads may yet change, and be undone."""
        return IndexCache()

    def append(self, event: NewEvent, *, tick: bool = True, received_epoch: int = 0) -> int:
        held = self._held
        if tick:
            held.epoch = max(held.epoch, received_epoch) + 1
        link = chain(event, seq=held.seq + 1, epoch=held.epoch, at=self.now, prev_hash=held.hash)
        row = (
            held.first + link.seq,
            link.epoch,
            link.at,
            link.type,
            link.operation,
            link.actor,
            link.session,
            link.entry_id,
            link.conflict_id,
            link.task_id,
            encode_data(link.data),
            bytes.fromhex(link.prev_hash),
            bytes.fromhex(link.hash),
        )
        self._batch.add(QUERIES["add_event"], row)
        held.seq, held.hash = link.seq, link.hash
        if link.type in RULE_EVENTS:
            held.rules_seq = link.seq
        return link.seq

    def _logged(self, seq: int) -> None:
        if not self._first_seq <= seq <= self._held.seq:
            raise ValueError("a change needs an event of this transaction")

    def insert(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: Vector | None, minted: bool) -> Entry:
        self._logged(seq)
        self._grew = True
        batch, held = self._batch, self._held
        if self.scope.ref is not None and entry.ref != self.scope.ref:
            raise ValueError("the entry is outside the transaction's scope")
        if not minted:
            key = (held.n, entry.ref, entry.id)
            if key in batch.new_ids or batch.db.execute(QUERIES["id_taken"], key).fetchone():
                raise Conflict("This memory already has an entry of that id.", code="id_taken", pointer="/id")
            batch.new_ids.add(key)
            self._ids.append(key)
        held.position += 1
        entry = msgspec.structs.replace(entry, position=held.position, born_seq=seq, epoch=held.epoch)
        batch.add(QUERIES["add_entry"], to_row(entry, held.n))
        held.entries += 1
        held.bytes += len(entry.content.encode())
        for tag in entry.tags:
            batch.add(QUERIES["add_tag"], (held.n, entry.ref, tag, entry.position))
        for who in index_keys(held.log_key, entry.subject, entry.tags):
            batch.add(QUERIES["add_about"], (held.n, who, entry.position))
        model, data = (batch.model(vector[0]), vector[1]) if vector is not None else (None, None)
        row = (entry.position, held.n, entry.ref, seq, 0, pack(terms, held.log_key), model, data)
        batch.add(QUERIES["add_recall"], row)
        return entry

    def _stored(self, entry_id: str) -> Entry:
        row = self._db.execute(QUERIES["get_any"], (self._tenant, self._ref, entry_id)).fetchone()
        if row is None:
            raise NotFound("This memory has no entry of that id.")
        return to_entry(row)

    def change(
        self,
        entry_id: str,
        *,
        seq: int,
        expected: int | None = None,
        state: EntryState | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
        held: bool | None = None,
        attributes: Mapping[str, Any] | None = None,
        expires_at: int | None = None,
    ) -> Entry:
        self._logged(seq)
        before = self._stored(entry_id)
        made = decide(
            before,
            seq=seq,
            expected=expected,
            state=state,
            archived=archived,
            pinned=pinned,
            held=held,
            attributes=attributes,
            expires_at=expires_at,
        )
        after = made.after
        db = self._changing()
        for since in made.absences:
            db.execute(QUERIES["add_absence"], (self._tenant, before.position, since, seq))
        if made.returns:
            self._set_recall(before, seq, None, None)  # found by nothing until it is indexed
        if made.leaves:
            self._left = True
            self._drop_recall(before)
        bound = (
            after.state.value,
            int(after.archived),
            int(after.pinned),
            int(after.held),
            encode(after.attributes) if after.attributes else "{}",
            after.expires_at,
            after.version,
            after.gone_seq,
            after.gone_seq,
            self.now if made.moved else None,
            after.position,
            self._tenant,
        )
        db.execute(QUERIES["change"], bound)
        return after

    def _drop_recall(self, entry: Entry) -> None:
        self._changing().execute(QUERIES["drop_recall"], (entry.position,))

    def _set_recall(self, entry: Entry, seq: int, terms: Sequence[str] | None, vector: Vector | None) -> None:
        """What is None stays as it was."""
        words = None if terms is None else pack(terms, self._log_key)
        model, data = (self._batch.model(vector[0]), vector[1]) if vector is not None else (None, None)
        bound = (entry.position, self._tenant, entry.ref, seq, 1, words, model, data)
        self._changing().execute(QUERIES["set_recall"], bound)

    def index(self, entry_id: str, *, seq: int, terms: Sequence[str] | None, vector: Vector | None) -> None:
        self._logged(seq)
        entry = self._stored(entry_id)
        if entry.gone_seq is not None:
            raise NotFound("This entry is not readable, so it is not indexed.")
        self._set_recall(entry, seq, terms, vector)

    def rewrite(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: Vector | None) -> None:
        self._logged(seq)
        before = self._stored(entry.id)
        if before.state is EntryState.ERASED:
            raise NotFound("The text of this entry was destroyed.")
        db = self._changing()
        attributes = encode(entry.attributes) if entry.attributes else "{}"
        tags = encode(list(entry.tags)) if entry.tags else "[]"
        bound = (
            entry.content,
            tags,
            entry.subject,
            attributes,
            before.version + 1,
            before.position,
            self._tenant,
        )
        db.execute(QUERIES["rewrite"], bound)
        self._held.bytes += len(entry.content.encode()) - before.byte_size
        for tag in before.tags:
            db.execute(QUERIES["drop_tag"], (self._tenant, before.ref, tag, before.position))
        for tag in entry.tags:
            db.execute(QUERIES["add_tag"], (self._tenant, before.ref, tag, before.position))
        self._drop_about(before)
        for key in index_keys(self._log_key, entry.subject, entry.tags):
            db.execute(QUERIES["add_about"], (self._tenant, key, before.position))
        self._drop_recall(before)
        if before.gone_seq is None:
            self._set_recall(before, seq, terms, vector)
        self._batch.scrub = self._destroyed = True

    def purge(self, entry_id: str, *, seq: int, subject: str | None = None) -> int:
        self._logged(seq)
        entry = self._stored(entry_id)
        if subject is not None:
            self._drop_about(entry, index_key(subject))
        if entry.state is EntryState.ERASED:
            return 0
        db = self._changing()
        self._drop_recall(entry)
        for tag in entry.tags:
            db.execute(QUERIES["drop_tag"], (self._tenant, entry.ref, tag, entry.position))
        db.execute(QUERIES["drop_notes"], (self._tenant, entry.ref, entry.id))
        db.execute(QUERIES["purge"], (seq, self.now, entry.position, self._tenant))
        self._held.entries -= 1
        self._held.bytes -= entry.byte_size
        self._batch.scrub = self._destroyed = True
        return entry.byte_size

    def _drop_about(self, entry: Entry, *more: bytes) -> None:
        for key in (*index_keys(self._log_key, entry.subject, entry.tags), *more):
            self._changing().execute(QUERIES["drop_about"], (self._tenant, key, entry.position))

    def link(self, link: Link) -> None:
        self._logged(self._held.seq)
        self._arrows += 1
        order = self._held.seq * 1_000_000 + self._arrows  # by log position, then as made
        bound = (self._tenant, self._ref, link.from_id, link.type, link.to_id, link.note, order)
        self._changing().execute(QUERIES["add_link"], bound)

    def save(
        self,
        space: str,
        key: str,
        body: bytes,
        *,
        seq: int,
        expected: int | None = None,
        meta: Mapping[str, Any] | None = None,
        keep: int = 1,
    ) -> Document:
        self._grew = True
        return self._put_document(space, key, body, seq=seq, expected=expected, meta=meta or {}, keep=keep)

    def drop(self, space: str, key: str, *, seq: int, expected: int | None = None, keep: int = 1) -> bool:
        current = self._document(space, key)
        if current is None or current.body is None:
            if expected:
                raise Conflict(details={"expected": expected, "current": 0})
            return False
        self._put_document(space, key, None, seq=seq, expected=expected, meta={}, keep=keep)
        self._batch.scrub = self._left = True
        return True

    def _put_document(
        self,
        space: str,
        key: str,
        body: bytes | None,
        *,
        seq: int,
        expected: int | None,
        meta: Mapping[str, Any],
        keep: int,
    ) -> Document:
        self._logged(seq)
        current = self._document(space, key)
        live = current.version if current is not None and current.body is not None else 0
        if expected is not None and expected != live:
            raise Conflict(details={"expected": expected, "current": live})
        version = (current.version if current else 0) + 1
        db = self._changing()
        bound = (self._tenant, space, key, version, body, encode(dict(meta)), self.now, seq)
        db.execute(QUERIES["add_document"], bound)
        db.execute(QUERIES["trim_document"], (self._tenant, space, key, version - max(keep, 1)))
        return Document(space, key, version, body, dict(meta), self.now, seq)

    def _document(self, space: str, key: str, version: int | None = None) -> Document | None:
        bound = {"tenant": self._tenant, "space": space, "key": key, "version": version}
        row = self._batch.db.execute(QUERIES["load"], bound).fetchone()  # documents never wait: no flush needed
        return to_document(row) if row else None

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        waiting = self._batch.answers.get((self._held.n, key))
        if waiting is not None:
            return waiting
        row = self._batch.db.execute(QUERIES["answer"], (self._tenant, key, self.now)).fetchone()
        return (row[0], row[1]) if row else None

    def remember_answer(self, key: str, digest: str, answer: bytes, *, until: int) -> None:
        self._batch.add(QUERIES["add_answer"], (self._tenant, key, digest, answer, until))
        held = (self._held.n, key)
        self._answers.append((held, self._batch.answers.get(held)))
        self._batch.answers[held] = (digest, answer)

    def trim(self) -> None:
        self._changing().execute(QUERIES["trim_answers"], (self._tenant, self.now))

    def claim(self, name: str, holder: str, *, until: int) -> bool:
        self._left = True  # who sweeps claims a lease first
        bound = {"tenant": self._tenant, "name": name, "holder": holder, "until": until, "now": self.now}
        return self._changing().execute(QUERIES["claim"], bound).fetchone() is not None

    def release(self, name: str, holder: str) -> None:
        self._left = True
        self._changing().execute(QUERIES["release"], (self._tenant, name, holder))

    def wake(self, at: int | None, *, anew: bool = False) -> None:
        if anew or at is not None:
            bound = {"at": at, "tenant": self._tenant}
            self._changing().execute(QUERIES["wake_anew" if anew else "wake"], bound)
