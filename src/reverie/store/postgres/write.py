"""Write transactions. Several callers' bodies may share one: see writer.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reverie.core.entry import Document, Entry, EntryState, Link, Scope
from reverie.core.errors import Conflict, NotFound
from reverie.core.event import RULE_EVENTS, NewEvent, chain, encode_data
from reverie.core.query import Filter, Head
from reverie.core.subject import index_key, index_keys
from reverie.index.cache import IndexCache
from reverie.index.postings import pack
from reverie.store.change import change as decide
from reverie.store.postgres.batch import Batch, Row, Work, merge
from reverie.store.postgres.read import PostgresReadTx
from reverie.store.postgres.rows import SQL, long_id, short_id
from reverie.store.rows import encode, to_entry, to_row

Vector = tuple[str, bytes]


class PostgresWriteTx(PostgresReadTx):
    """One caller's part of a transaction."""

    def __init__(self, batch: Batch, scope: Scope) -> None:
        self._batch = batch
        self._held = batch.held
        self.scope = scope
        self.now = batch.now
        self._tenant = self._held.n
        self._log_key = self._held.log_key
        self._first_seq = self._held.seq + 1
        self._before = self._held.state()
        self._own: Work = []
        self._ids: list[tuple[str, str]] = []
        self._answers: list[tuple[str, tuple[str, bytes] | None]] = []
        self.saved = False
        """Whether work of this body is in the database."""
        self._arrows = 0
        self._read: dict[str, Entry] = {}
        """Entries of the bound ref as they are now. Nobody else changes them: this transaction holds the head."""
        self._changed: set[int] = set()
        """Positions of the entries whose change waits: a statement changes each of its entries once."""

    def _fetch(self, sql: bytes, bound: Any) -> list[Row]:
        """Rows as of everything written so far."""
        if not self._own:
            return self._batch.send(self._batch.waiting, (sql, bound))
        self._save()
        return self._batch.send(self._own, (sql, bound))

    def _save(self) -> None:
        """From here on this body's work is in the database, behind a savepoint when others share the transaction."""
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

    def _later(self, name: str, bound: Any) -> None:
        self._own.append((SQL[name], bound))

    def done(self) -> None:
        """The body is through; its work stays."""
        if self.saved and not self._batch.alone:
            self._own.append((b"RELEASE SAVEPOINT body", ()))
        if self.saved:
            self._batch.send(self._own)
        else:
            merge(self._batch.waiting, self._own)
        self._batch.kept += 1

    def undo(self) -> None:
        """Leave no trace of this body."""
        batch = self._batch
        if self.saved and not batch.alone:
            batch.connection.execute(b"ROLLBACK TO SAVEPOINT body")
            batch.connection.execute(b"RELEASE SAVEPOINT body")
        self._own = []
        self._held.back_to(self._before)
        batch.new_ids.difference_update(self._ids)
        for key, previous in reversed(self._answers):
            if previous is None:
                del batch.answers[key]
            else:
                batch.answers[key] = previous

    def head(self) -> Head:
        return self._held.head()

    @property
    def _cache(self) -> IndexCache:
        """Nothing is held: what this body reads may yet change, and be undone."""
        return IndexCache()

    def append(self, event: NewEvent, *, tick: bool = True, received_epoch: int = 0) -> int:
        held = self._held
        if tick:
            held.epoch = max(held.epoch, received_epoch) + 1
        link = chain(event, seq=held.seq + 1, epoch=held.epoch, at=self.now, prev_hash=held.hash)
        run = link.data.get("run")
        row = (
            held.n,
            link.seq,
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
            run if isinstance(run, str) else None,
        )
        self._add("add_event", row)
        held.seq, held.hash = link.seq, link.hash
        if link.type in RULE_EVENTS:
            held.rules_seq = link.seq
        return link.seq

    def _logged(self, seq: int) -> None:
        if not self._first_seq <= seq <= self._held.seq:
            raise ValueError("a change needs an event of this transaction")

    def insert(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: Vector | None, minted: bool) -> Entry:
        self._logged(seq)
        batch, held = self._batch, self._held
        if self.scope.ref is not None and entry.ref != self.scope.ref:
            raise ValueError("the entry is outside the transaction's scope")
        short = short_id(entry.id)
        if not minted:
            key = (entry.ref, short)
            # ids that are not yet sent are in new_ids, so nothing has to be sent for this look
            if key in batch.new_ids or batch.send([], (SQL["id_taken"], (held.n, *key))):
                raise Conflict("This memory already has an entry of that id.", code="id_taken", pointer="/id")
            batch.new_ids.add(key)
            self._ids.append(key)
        held.position += 1
        entry = msgspec.structs.replace(entry, position=held.position, born_seq=seq, epoch=held.epoch)
        row = to_row(entry, held.n)
        self._add("add_entry", (*row[:3], short, *row[4:], long_id(entry.id, short)))
        held.entries += 1
        held.bytes += len(entry.content.encode())
        for tag in entry.tags:
            self._add("add_tag", (held.n, entry.ref, tag, entry.position))
        for who in index_keys(held.log_key, entry.subject, entry.tags):
            self._add("add_about", (held.n, who, entry.position))
        row = (held.n, entry.ref, entry.position, seq, False, pack(terms, held.log_key), *(vector or (None, None)))
        self._add("add_recall", row)
        return entry

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        found = super().at(positions, where)
        self._read.update((entry.id, entry) for entry in found.values())
        return found

    def _stored(self, entry_id: str) -> Entry:
        known = self._read.get(entry_id)
        if known is not None:
            return known
        rows = self._fetch(SQL["get_any"], (self._tenant, self._ref, short_id(entry_id)))
        if not rows:
            raise NotFound("This memory has no entry of that id.")
        return to_entry(rows[0])

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
        for since in made.absences:
            self._later("add_absence", (self._tenant, before.position, since, seq))
        if made.returns:
            self._set_recall(before, seq, None, None)  # found by nothing until it is indexed
        if made.leaves:
            self._drop_recall(before)
        bound = (
            after.state.value,
            after.archived,
            after.pinned,
            after.held,
            encode(after.attributes) if after.attributes else "{}",
            after.expires_at,
            after.version,
            after.gone_seq,
            after.gone_seq is None,
            self.now if made.moved else None,
            self._tenant,
            after.position,
        )
        if before.position in self._changed:
            self._own.append({})
            self._changed.clear()
        self._changed.add(before.position)
        self._add("change", bound)
        self._read[entry_id] = after
        return after

    def _drop_recall(self, entry: Entry) -> None:
        self._add("drop_recall", (self._tenant, entry.ref, entry.position))

    def _set_recall(self, entry: Entry, seq: int, terms: Sequence[str] | None, vector: Vector | None) -> None:
        """What is None stays as it was."""
        words = None if terms is None else pack(terms, self._log_key)
        bound = (self._tenant, entry.ref, entry.position, seq, True, words, *(vector or (None, None)))
        self._later("set_recall", bound)

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
        attributes = encode(entry.attributes) if entry.attributes else "{}"
        tags = encode(list(entry.tags)) if entry.tags else "[]"
        bound = (entry.content, tags, entry.subject, attributes, before.version + 1, self._tenant, before.position)
        self._later("rewrite", bound)
        self._read.pop(entry.id, None)
        self._held.bytes += len(entry.content.encode()) - before.byte_size
        for tag in before.tags:
            self._later("drop_tag", (self._tenant, before.ref, tag, before.position))
        for tag in entry.tags:
            self._later("add_tag", (self._tenant, before.ref, tag, before.position))
        self._drop_about(before)
        for key in index_keys(self._log_key, entry.subject, entry.tags):
            self._later("add_about", (self._tenant, key, before.position))
        self._drop_recall(before)
        if before.gone_seq is None:
            self._set_recall(before, seq, terms, vector)
        self._batch.destroyed = True

    def purge(self, entry_id: str, *, seq: int, subject: str | None = None) -> int:
        self._logged(seq)
        entry = self._stored(entry_id)
        if subject is not None:
            self._drop_about(entry, index_key(subject))
        if entry.state is EntryState.ERASED:
            return 0
        for tag in entry.tags:
            self._later("drop_tag", (self._tenant, entry.ref, tag, entry.position))
        self._later("drop_notes", {"tenant": self._tenant, "ref": entry.ref, "id": short_id(entry.id)})
        self._later("purge", (seq, self.now, self._tenant, entry.position))
        self._read.pop(entry_id, None)
        self._drop_recall(entry)
        self._held.entries -= 1
        self._held.bytes -= entry.byte_size
        self._batch.destroyed = True
        return entry.byte_size

    def _drop_about(self, entry: Entry, *more: bytes) -> None:
        keys = [*index_keys(self._log_key, entry.subject, entry.tags), *more]
        if keys:  # and the row without a key, should a process of an older release have written the entry
            self._later("drop_about", (self._tenant, [*keys, b""], entry.position))

    def link(self, link: Link) -> None:
        self._logged(self._held.seq)
        self._arrows += 1
        order = self._held.seq * 1_000_000 + self._arrows  # by log position, then as made
        start, end = short_id(link.from_id), short_id(link.to_id)
        ends = (long_id(link.from_id, start), long_id(link.to_id, end))
        self._add("add_link", (self._tenant, self._ref, start, link.type, end, link.note, order, *ends))

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
        current = self._document(space, key)
        return self._put_document(space, key, body, current, seq=seq, expected=expected, meta=meta or {}, keep=keep)

    def drop(self, space: str, key: str, *, seq: int, expected: int | None = None, keep: int = 1) -> bool:
        current = self._document(space, key)
        if current is None or current.body is None:
            if expected:
                raise Conflict(details={"expected": expected, "current": 0})
            return False
        self._put_document(space, key, None, current, seq=seq, expected=expected, meta={}, keep=keep)
        return True

    def _put_document(
        self,
        space: str,
        key: str,
        body: bytes | None,
        current: Document | None,
        *,
        seq: int,
        expected: int | None,
        meta: Mapping[str, Any],
        keep: int,
    ) -> Document:
        self._logged(seq)
        live = current.version if current is not None and current.body is not None else 0
        if expected is not None and expected != live:
            raise Conflict(details={"expected": expected, "current": live})
        version = (current.version if current else 0) + 1
        bound = (self._tenant, space, key, version, body, encode(dict(meta)), self.now, seq)
        self._later("add_document", bound)
        self._later("trim_document", (self._tenant, space, key, version - max(keep, 1)))
        return Document(space, key, version, body, dict(meta), self.now, seq)

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        waiting = self._batch.answers.get(key)
        if waiting is not None:
            return waiting
        # answers that are not yet sent are in `answers`, so nothing has to be sent for this look
        rows = self._batch.send([], (SQL["answer"], (self._tenant, key, self.now)))
        return (rows[0][0], rows[0][1]) if rows else None

    def remember_answer(self, key: str, digest: str, answer: bytes, *, until: int) -> None:
        self._later("add_answer", (self._tenant, key, digest, answer, until))
        self._answers.append((key, self._batch.answers.get(key)))
        self._batch.answers[key] = (digest, answer)

    def trim(self) -> None:
        self._later("trim_answers", (self._tenant, self.now))

    def claim(self, name: str, holder: str, *, until: int) -> bool:
        bound = {"tenant": self._tenant, "name": name, "holder": holder, "until": until, "now": self.now}
        self._save()
        return bool(self._fetch(SQL["claim"], bound))

    def release(self, name: str, holder: str) -> None:
        self._later("release", (self._tenant, name, holder))

    def wake(self, at: int | None, *, anew: bool = False) -> None:
        if anew or at is not None:
            self._later("wake_anew" if anew else "wake", {"at": at, "tenant": self._tenant})
