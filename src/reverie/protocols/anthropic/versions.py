"""Versions: every change of a memory, kept for a while, and redacted for good when asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import EntryState, Scope
from reverie.core.errors import Held, NotFound
from reverie.core.event import NewEvent
from reverie.memory import files
from reverie.memory.files import FileVersion, complement
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.protocols.anthropic import stores
from reverie.protocols.anthropic.errors import VersionIsHead
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import MEMORY, VERSION, actor_document, bare
from reverie.protocols.anthropic.stores import MOST_LOOKED_AT, ListPage, StoreRecord, of_door
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx


class Version(Struct, frozen=True):
    """A version with its text."""

    store: StoreRecord
    row: FileVersion
    content: str | None = None


class VersionFilter(Struct, frozen=True):
    """Filter on versions. All given conditions must hold."""

    memory_id: str | None = None
    operation: str | None = None
    api_key_id: str | None = None
    session_id: str | None = None
    service_account_id: str | None = None
    since: int | None = None
    until: int | None = None

    def fits(self, row: FileVersion) -> bool:
        """Whether a row has the wanted operation and author; file and time are checked elsewhere."""
        actor: Mapping[str, str] = actor_document(row.actor, row.session)
        criteria = {
            "api_key_id": self.api_key_id,
            "session_id": self.session_id,
            "service_account_id": self.service_account_id,
        }
        if self.operation is not None and row.operation != self.operation:
            return False
        return all(value is None or actor.get(name) == value for name, value in criteria.items())


class Versions:
    """The history of memory stores."""

    def __init__(self, parts: Services, rules: RuleBook, memories: Memories) -> None:
        self._parts = parts
        self._rules = rules
        self._memories = memories

    def get(self, actor: Actor, store_id: str, version_id: str) -> Version:
        """A version with its text, unless that is destroyed."""
        actor.require(Right.READ)
        record = self._memories.store_of(actor, store_id)
        name = bare(VERSION, version_id, "memory version")

        def body(tx: ReadTx) -> Version:
            stores.load(tx, record.id)
            return _view(tx, record, _load(tx, record, name))

        return self._parts.store.read(Scope(actor.tenant, record.ref), body)

    def list(
        self, actor: Actor, store_id: str, wanted: VersionFilter, *, limit: int = 20, after: str | None = None
    ) -> ListPage:
        """List versions, newest first. Those of one memory come from its own list, whatever the store's size."""
        actor.require(Right.READ)
        record = self._memories.store_of(actor, store_id)

        def body(tx: ReadTx) -> ListPage:
            stores.load(tx, record.id)
            return _list(tx, record, wanted, limit, after)

        return self._parts.store.read(Scope(actor.tenant, record.ref), body)

    def redact(self, actor: Actor, store_id: str, version_id: str) -> Version:
        """Destroy text, path, hash and size of a version for good. A redacted version stays as it is."""
        actor = of_door(actor)
        actor.require(Right.WRITE)
        record = self._memories.store_of(actor, store_id)
        name = bare(VERSION, version_id, "memory version")

        def body(tx: WriteTx) -> Version:
            stores.load(tx, record.id)
            row = _load(tx, record, name)
            if row.redacted_at is not None:
                return _view(tx, record, row)
            file = files.find_file(tx, record.id, row.file)
            if file is not None and file.version == row.id:
                raise VersionIsHead()
            entry = tx.get(row.id, where=ANYTHING) if row.text else None
            if entry is not None and entry.state is not EntryState.ERASED:
                if entry.held:
                    raise Held()
                purge(tx, actor, entry, operation="REDACT")
            row = _load(tx, record, name)
            if row.redacted_at is None:  # it had no text of its own
                data = {"ref": record.ref, "store": record.id, "memory": row.file, "version": row.id}
                seq = tx.append(NewEvent("memory.version_redacted", "REDACT", actor.id, data=data))
                row = files.without_text(row, actor, tx.now)
                files.save_version(tx, record.id, row, seq=seq)
            return _view(tx, record, row)

        def prepare(_: object) -> Callable[[WriteTx], Version]:
            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, record.ref))


def _load(tx: ReadTx, record: StoreRecord, name: str) -> FileVersion:
    row = files.load_version(tx, record.id, name)
    if row is None:
        raise NotFound("There is no memory version with that id.")
    return row


def _view(tx: ReadTx, record: StoreRecord, row: FileVersion) -> Version:
    if not row.text:
        return Version(record, row, row.blank)
    entry = tx.get(row.id, where=ANYTHING)
    return Version(record, row, entry.content if entry is not None else None)


def _list(tx: ReadTx, record: StoreRecord, wanted: VersionFilter, limit: int, after: str | None) -> ListPage:
    """List rows in order; at most this many are read for one page."""
    space, head = files.versions(record.id), ""
    if wanted.memory_id is not None:
        space, head = files.histories(record.id), bare(MEMORY, wanted.memory_id, "memory") + "/"
    start = files.first_key(wanted.until) if wanted.until is not None else ""
    after = after or head + start
    items: list[Version] = []
    looked = 0
    while True:
        page = tx.documents(space, cursor=after or None, limit=min(max(limit - len(items), 1), 100))
        for document in page.items:
            if not document.key.startswith(head):
                return ListPage(tuple(items))
            after = document.key
            name = complement(document.key[len(head) :])
            row = files.load_version(tx, record.id, name) if head else None
            if row is None and not head:
                row = msgspec.json.decode(document.body or b"", type=FileVersion)
            if row is None:
                continue
            if wanted.since is not None and row.created_at < wanted.since:
                return ListPage(tuple(items))
            if wanted.fits(row):
                items.append(_view(tx, record, row))
        looked += len(page.items)
        if page.cursor is None:
            return ListPage(tuple(items))
        if len(items) >= limit or looked >= MOST_LOOKED_AT:
            return ListPage(tuple(items), after)
