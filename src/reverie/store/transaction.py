"""The verbs of a write transaction, for every dialect; the dialect binds the rows.

A dialect binds the rows of a few tables, and decides when a statement is sent: new rows may wait for others of their
table (`_add`), all other statements keep their order (`_do`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import msgspec

from reverie.core.entry import Document, Entry, EntryState, Link, Scope
from reverie.core.errors import Conflict, NotFound
from reverie.core.event import RULE_EVENTS, Event, NewEvent, chain
from reverie.core.query import Filter, Head
from reverie.core.subject import index_key, index_keys
from reverie.index.cache import IndexCache, PrivateIndexes
from reverie.index.postings import pack
from reverie.store.change import Changes
from reverie.store.change import change as decide
from reverie.store.rows import encode, positions_of, to_entry
from reverie.store.snapshot import ReadVerbs, Row

Vector = tuple[str, bytes]


class Tenant:
    """A tenant while a transaction holds its head."""

    __slots__ = ("first", "head", "log_key", "n", "opened", "position", "written")

    def __init__(self, row: Row) -> None:
        self.n, self.log_key = row[0], row[1]
        self.head = Head(row[2], row[3], row[4].hex(), row[5], row[6], row[7])
        """The head as of the events and entries added so far."""
        self.opened = self.head
        """The head as the transaction found it."""
        self.written = self.head
        """The head as the database has it inside the transaction."""
        self.first = positions_of(self.n)[0]
        self.position = max(row[8] or 0, self.first)
        """The last position that an entry has."""


class WriteVerbs(ReadVerbs):
    """One caller's part of a transaction that holds the tenant's head."""

    _batch: Any
    _held: Tenant
    _before: Head
    """The head before this body."""
    _first_seq: int
    _ids: list[Any]
    _answers: list[tuple[Any, tuple[str, bytes] | None]]
    _arrows: int
    _scrubbed: list[tuple[str, int]]
    """Entries whose words and vectors are destroyed: ref and position."""
    _read: dict[tuple[str, str], Entry]
    """Entries in their present state, by ref and id. Nothing else changes them: this transaction holds the head."""
    _left = False
    """Whether an entry left readable memory, or a lease or document was removed."""
    _grew = False
    """Whether an entry or a document was stored."""

    # the dialect

    @abstractmethod
    def _add(self, name: str, row: tuple[Any, ...]) -> None:
        """Add a row. It may wait for others of its table."""

    @abstractmethod
    def _do(self, name: str, bound: Any) -> None:
        """Run a statement after all earlier ones."""

    def _do_each(self, name: str, bound: Sequence[Any]) -> None:
        """The same statement for several rows."""
        for one in bound:
            self._do(name, one)

    @abstractmethod
    def _unsent(self, name: str, bound: Any) -> Sequence[Row]:
        """The rows of a query that does not depend on rows that wait, which are not sent."""

    @abstractmethod
    def _event_row(self, event: Event) -> tuple[Any, ...]: ...

    @abstractmethod
    def _entry_row(self, entry: Entry) -> tuple[Any, ...]: ...

    @abstractmethod
    def _id_key(self, entry: Entry) -> tuple[Any, ...]:
        """The key of a new id in a batch. Its last two values are bound by `id_taken`."""

    @abstractmethod
    def _answer_key(self, key: str) -> Any:
        """The key of an answer in a batch."""

    @abstractmethod
    def _model(self, vector: Vector | None) -> tuple[Any, bytes | None]:
        """Model and vector in the form of the table."""

    @abstractmethod
    def _change(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write changed fields of entries."""

    @abstractmethod
    def _drop_about(self, entry: Entry, *more: bytes) -> None:
        """Remove an entry from the index of subjects: from its own subjects and from these keys."""

    @abstractmethod
    def _text_destroyed(self) -> None:
        """Note that text was destroyed."""

    def _document_dropped(self) -> None:
        """Note that the body of a document was dropped."""

    # the verbs

    def _begin(self, held: Tenant, scope: Scope, now: int) -> None:
        """Bind this body to its tenant."""
        self._held = held
        self._scope, self.now = scope, now
        if scope.ref is not None:
            self._ref = scope.ref
        self._tenant = held.n
        self._log_key = held.log_key
        self._before = held.head
        self._first_seq = held.head.seq + 1
        self._arrows = 0
        self._ids, self._answers, self._scrubbed, self._read = [], [], [], {}

    def head(self) -> Head:
        return self._held.head

    @property
    def _cache(self) -> IndexCache:
        """The shared indexes, with what this body wrote added."""
        return PrivateIndexes(self._batch.indexes)

    def append(self, *events: NewEvent, tick: bool = True, received_epoch: int = 0) -> int:
        head = self._held.head
        seq, epoch, digest, rules_seq = head.seq, head.epoch, head.hash, head.rules_seq
        links: list[Event] = []
        for event in events:
            seq, epoch = seq + 1, max(epoch, received_epoch) + 1 if tick else epoch
            links.append(chain(event, seq=seq, epoch=epoch, at=self.now, prev_hash=digest))
            digest = links[-1].hash
            rules_seq = seq if event.type in RULE_EVENTS else rules_seq
        for row in list(map(self._event_row, links)):
            self._add("add_event", row)
        self._held.head = Head(seq, epoch, digest, head.entries, head.bytes, rules_seq)
        return seq

    def _count(self, entries: int, size: int) -> None:
        """Add entries and bytes to the figures of the head."""
        head = self._held.head
        self._held.head = msgspec.structs.replace(head, entries=head.entries + entries, bytes=head.bytes + size)

    def _logged(self, seq: int) -> None:
        if not self._first_seq <= seq <= self._held.head.seq:
            raise ValueError("a change needs an event of this transaction")

    def insert(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: Vector | None, minted: bool) -> Entry:
        self._logged(seq)
        held = self._held
        if self._scope.ref is not None and entry.ref != self._scope.ref:
            raise ValueError("the entry is outside the transaction's scope")
        if not minted:
            key = self._id_key(entry)
            # ids that are not yet sent are in new_ids, so nothing has to be sent for this look
            if key in self._batch.new_ids or self._unsent("id_taken", (held.n, *key[-2:])):
                raise Conflict("This memory already has an entry with that id.", code="id_taken", pointer="/id")
            self._batch.new_ids.add(key)
            self._ids.append(key)
        self._grew = True
        held.position += 1
        entry = msgspec.structs.replace(entry, position=held.position, born_seq=seq, epoch=held.head.epoch)
        self._count(1, len(entry.content.encode()))
        words = pack(terms, held.log_key)
        self._add("add_entry", self._entry_row(entry))
        for tag in entry.tags:
            self._add("add_tag", (held.n, entry.ref, tag, entry.position))
        if entry.subject or entry.tags:
            for who in index_keys(held.log_key, entry.subject, entry.tags):
                self._add("add_about", (held.n, who, entry.position))
        self._add("add_recall", (held.n, entry.ref, entry.position, seq, False, words, *self._model(vector)))
        return entry

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        found = super().at(positions, where)
        self._read.update(((entry.ref, entry.id), entry) for entry in found.values())
        return found

    def _stored(self, entry_id: str) -> Entry:
        if (self._ref, entry_id) in self._read:
            return self._read[self._ref, entry_id]
        rows = self._rows("get_any", (self._tenant, self._ref, self._key(entry_id)))
        if not rows:
            raise NotFound("This memory has no entry with that id.")
        return to_entry(rows[0])

    def change(self, entry_id: str, *, seq: int, expected: int | None = None, **changes: Unpack[Changes]) -> Entry:
        return self.change_each({entry_id: expected}, seq=seq, **changes)[0]

    def change_each(
        self, versions: Mapping[str, int | None], *, seq: int, **changes: Unpack[Changes]
    ) -> Sequence[Entry]:
        self._logged(seq)
        stored = [self._stored(entry_id) for entry_id in versions]
        made = [
            decide(before, changes, seq=seq, expected=expected)
            for before, expected in zip(stored, versions.values(), strict=True)
        ]
        cool: list[Entry] = []
        drop: list[Entry] = []
        rows: list[tuple[Any, ...]] = []
        for before, one in zip(stored, made, strict=True):
            after = one.after
            for since in one.absences:
                self._do("add_absence", (self._tenant, before.position, since, seq))
            if one.returns:
                self._set_recall(after, seq, None, None)  # older sources have no words until they are indexed
            self._left |= one.leaves
            if one.leaves and after.state is EntryState.DREAMT:
                cool.append(before)
            elif one.leaves or (before.state is EntryState.DREAMT and one.moved and after.gone_seq is not None):
                drop.append(before)
            rows.append(
                (
                    after.state.value,
                    after.archived,
                    after.pinned,
                    after.held,
                    encode(after.attributes) if after.attributes else "{}",
                    after.expires_at,
                    after.version,
                    after.gone_seq,
                    after.gone_seq is None,
                    self.now if one.moved else None,
                    self._tenant,
                    after.position,
                )
            )
            self._read[after.ref, after.id] = after
        if cool:
            self._cool_recall(cool, seq)
        if drop:
            self._drop_recall(drop)
        self._change(rows)
        return [one.after for one in made]

    def _cool_recall(self, entries: Sequence[Entry], seq: int) -> None:
        self._do_each("cool_recall", [(seq, self._tenant, entry.ref, entry.position) for entry in entries])

    def _drop_recall(self, entries: Sequence[Entry]) -> None:
        self._do_each("drop_recall", [(self._tenant, entry.ref, entry.position) for entry in entries])

    def _set_recall(self, entry: Entry, seq: int, terms: Sequence[str] | None, vector: Vector | None) -> None:
        """Set terms and vector; None leaves the value as it was."""
        words = None if terms is None else pack(terms, self._log_key)
        place = (self._tenant, entry.ref, entry.position, seq, entry.gone_seq is not None)
        self._do("set_recall", (*place, words, *self._model(vector)))

    def index(self, entry_id: str, *, seq: int, terms: Sequence[str] | None, vector: Vector | None) -> None:
        self._logged(seq)
        entry = self._stored(entry_id)
        if not _searchable(entry):
            raise NotFound("This entry is not readable, so it is not indexed.")
        self._set_recall(entry, seq, terms, vector)

    def rewrite(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: Vector | None) -> None:
        self._logged(seq)
        before = self._stored(entry.id)
        if before.state is EntryState.ERASED:
            raise NotFound("The text of this entry was destroyed.")
        attributes = encode(entry.attributes) if entry.attributes else "{}"
        tags = encode(list(entry.tags)) if entry.tags else "[]"
        bound = {name: getattr(entry.source, name) for name in ("actor", "role", "session", "run", "node")} | {
            "kind": entry.kind,
            "content": entry.content,
            "tags": tags,
            "subject": entry.subject,
            "attributes": attributes,
            "version": before.version + 1,
        }
        self._do("rewrite", {**bound, "seq": seq, "tenant": self._tenant, "n": before.position})
        self._count(0, len(entry.content.encode()) - before.byte_size)
        for tag in before.tags:
            self._do("drop_tag", (self._tenant, before.ref, tag, before.position))
        for tag in entry.tags:
            self._do("add_tag", (self._tenant, before.ref, tag, before.position))
        self._drop_about(before)
        for key in index_keys(self._log_key, entry.subject, entry.tags):
            self._do("add_about", (self._tenant, key, before.position))
        self._drop_recall([before])
        self._scrubbed.append((before.ref, before.position))
        if _searchable(before):
            self._set_recall(before, seq, terms, vector)
        self._read.pop((before.ref, entry.id), None)
        self._text_destroyed()

    def purge(self, *entry_ids: str, seq: int, subject: str | None = None) -> int:
        first = seq - len(entry_ids) + 1
        self._logged(first)
        self._logged(seq)
        found = list(enumerate(map(self._stored, entry_ids), first))
        if subject is not None:
            key = index_key(subject)
            for _, entry in found:
                self._drop_about(entry, key)
        alive = [(at, entry) for at, entry in found if entry.state is not EntryState.ERASED]
        if not alive:
            return 0
        place = {"tenant": self._tenant, "ref": self._ref}
        tags = [(self._tenant, self._ref, tag, entry.position) for _, entry in alive for tag in entry.tags]
        keys = [self._key(entry.id) for _, entry in alive]
        self._do_each("drop_tag", tags)
        self._do_each("drop_notes", [{**place, "id": key} for key in keys])
        self._do_each(
            "purge", [{"tenant": self._tenant, "n": entry.position, "seq": at, "now": self.now} for at, entry in alive]
        )
        self._drop_recall([entry for _, entry in alive])
        for _, entry in alive:
            self._scrubbed.append((entry.ref, entry.position))
            self._read.pop((entry.ref, entry.id), None)
        size = sum([entry.byte_size for _, entry in alive])
        self._count(-len(alive), -size)
        self._text_destroyed()
        return size

    def link(self, *links: Link) -> None:
        if not links:
            return
        last = self._held.head.seq
        self._logged(last)
        first = last * 1_000_000 + self._arrows + 1  # by log position, then as made
        self._arrows += len(links)
        self._add_links(list(enumerate(links, first)))

    @abstractmethod
    def _add_links(self, links: Sequence[tuple[int, Link]]) -> None:
        """Add links, each with its place in the order."""

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
        destroy: bool = False,
    ) -> Document:
        current = self._document(space, key)
        saved = self._put_document(space, key, body, current, seq=seq, expected=expected, meta=meta or {}, keep=keep)
        if destroy:
            self._text_destroyed()
        return saved

    def drop(
        self, space: str, key: str, *, seq: int, expected: int | None = None, keep: int = 1, destroy: bool = False
    ) -> bool:
        current = self._document(space, key)
        if current is None or (current.body is None and not destroy):
            if expected:
                raise Conflict(details={"expected": expected, "current": 0})
            return False
        self._put_document(space, key, None, current, seq=seq, expected=expected, meta={}, keep=keep)
        if destroy:
            self._text_destroyed()
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
        self._do("add_document", bound)
        kept = keep if body is None else max(keep, 1)
        self._do("trim_document", (self._tenant, space, key, version - kept))
        if body is None:
            self._left = True
            self._document_dropped()
        else:
            self._grew = True
        return Document(space, key, version, body, dict(meta), self.now, seq)

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        waiting: tuple[str, bytes] | None = self._batch.answers.get(self._answer_key(key))
        if waiting is not None:
            return waiting
        # answers that are not yet sent are in `answers`, so nothing has to be sent for this look
        rows = self._unsent("answer", (self._tenant, key, self.now))
        return (rows[0][0], rows[0][1]) if rows else None

    def remember_answer(self, key: str, digest: str, answer: bytes, *, until: int) -> None:
        self._add_answer((self._tenant, key, digest, answer, until))
        held = self._answer_key(key)
        self._answers.append((held, self._batch.answers.get(held)))
        self._batch.answers[held] = (digest, answer)

    def _add_answer(self, row: tuple[Any, ...]) -> None:
        self._do("add_answer", row)

    def _undo_waiting(self) -> None:
        """Take this body's ids and answers out of the batch."""
        self._batch.new_ids.difference_update(self._ids)
        for key, previous in reversed(self._answers):
            if previous is None:
                del self._batch.answers[key]
            else:
                self._batch.answers[key] = previous

    def keep_searches(self, body: bytes | None) -> None:
        if body is None:
            self._do("drop_searches", {"tenant": self._tenant, "ref": self._scope.ref})
        else:
            self._do("keep_searches", (self._tenant, self._ref, body, self.now))

    def trim(self) -> None:
        self._do("trim_answers", (self._tenant, self.now))

    def claim(self, name: str, holder: str, *, until: int) -> bool:
        bound = {"tenant": self._tenant, "name": name, "holder": holder, "until": until, "now": self.now}
        return bool(self._claim(bound))

    @abstractmethod
    def _claim(self, bound: Mapping[str, Any]) -> Sequence[Row]:
        """Take a lease; a row when it was taken."""

    def release(self, name: str, holder: str) -> None:
        self._do("release", (self._tenant, name, holder))

    def wake(self, at: int | None, *, exactly: bool = False) -> None:
        if exactly or at is not None:
            self._do("wake_exactly" if exactly else "wake", {"at": at, "tenant": self._tenant})


def _searchable(entry: Entry) -> bool:
    """Whether an entry belongs in an index, that of readable memory or that of cold storage."""
    return entry.gone_seq is None or entry.state is EntryState.DREAMT
