"""Memory stores: a named collection of files, which is a ref with one document about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from reverie.core.actor import Actor, Right
from reverie.core.entry import FILE_KIND, Entry, EntryState, Scope
from reverie.core.errors import Held, IdempotencyReused, Invalid, NotFound
from reverie.core.event import NewEvent, answer_key, keyed_hash
from reverie.core.query import Filter, each
from reverie.memory import files
from reverie.memory.files import complement
from reverie.memory.policy import RuleBook, Rules, check_ref
from reverie.protocols.anthropic.errors import StoreArchived, StoreInUse, StoreLimit
from reverie.protocols.anthropic.names import DOOR, STORE, bare
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

T = TypeVar("T")
SPACE = "memstores"
BOUND_SPACE = "memref"
SUBJECT, REF = "reverie.subject", "reverie.ref"
MOST_LOOKED_AT = 1000
"""Documents looked at for one page, when filters leave most of them out."""
_STORES = "stores"
_PAGE = 500
_MOST_OF_SUBJECT = 256
_OWN = Filter(kinds=(FILE_KIND,), archived=None, expired=None)


class StoreRecord(Struct, frozen=True):
    """A memory store."""

    id: str
    name: str
    created_at: int
    updated_at: int
    ref: str
    description: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    archived_at: int | None = None
    bound: bool = False
    """Whether `ref` is a memory of other interfaces too."""
    dream: str | None = None
    """The dream whose output this is, until that dream has ended."""

    @property
    def subject(self) -> str | None:
        """Subject of every entry of the store."""
        return self.metadata.get(SUBJECT)


class ListPage(Struct, frozen=True):
    """One page of a list; `after` is where the next one begins, None at the end."""

    items: tuple[Any, ...]
    after: str | None = None


class Stores:
    """Create, read, change, archive and delete memory stores."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def create(
        self,
        actor: Actor,
        name: str,
        *,
        description: str | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> StoreRecord:
        """A new store. Names need not be unique. `reverie.ref` in the metadata binds it to a memory of the tenant."""
        actor.require(Right.WRITE)
        check_name(name)
        check_description(description or "")
        check_metadata(metadata or {})
        new_id = self._parts.ids.new()

        def prepare(rules: Rules) -> Callable[[WriteTx], StoreRecord]:
            about = self._clean(actor, name, description or "", metadata or {}, rules)

            def work(tx: WriteTx) -> str:
                self.add(tx, actor, new_id, name, about[0], about[1], rules)
                return new_id

            def body(tx: WriteTx) -> StoreRecord:
                request = [name, description, metadata]
                return load(tx, once(tx, rules, "memory_store.create", idempotency_key, request, work))

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant))

    def add(
        self,
        tx: WriteTx,
        actor: Actor,
        new_id: str,
        name: str,
        description: str,
        metadata: Mapping[str, str],
        rules: Rules,
        *,
        dream: str | None = None,
    ) -> StoreRecord:
        """Add a store, in a transaction. Its texts are redacted already."""
        if files.file_count(tx, _STORES) >= rules.policy.max_memory_stores:
            raise StoreLimit(f"A tenant has at most {rules.policy.max_memory_stores} memory stores.")
        bound = metadata.get(REF)
        if bound is not None:
            check_ref(bound, pointer=f"/metadata/{REF}")
            if tx.load(BOUND_SPACE, bound) is not None:
                raise Invalid("This ref is bound to another memory store.", pointer=f"/metadata/{REF}")
        seq = tx.append(_event("memory_store.created", actor, new_id))
        record = StoreRecord(
            id=new_id,
            name=name,
            created_at=tx.now,
            updated_at=tx.now,
            ref=bound or STORE + new_id,
            description=description,
            metadata=dict(metadata),
            bound=bound is not None,
            dream=dream,
        )
        save(tx, record, seq=seq)
        if bound is not None:
            tx.save(BOUND_SPACE, bound, new_id.encode(), seq=seq)
        files.count_files(tx, _STORES, 1, seq=seq)
        return record

    def get(self, actor: Actor, store_id: str) -> StoreRecord:
        """A store, also an archived one."""
        actor.require(Right.READ)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: load(tx, bare(STORE, store_id, "memory store")))

    def list(
        self,
        actor: Actor,
        *,
        since: int | None = None,
        until: int | None = None,
        archived: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> ListPage:
        """Stores, newest first."""
        actor.require(Right.READ)

        def wanted(record: StoreRecord) -> bool:
            return (
                (archived or record.archived_at is None)
                and (since is None or record.created_at >= since)
                and (until is None or record.created_at <= until)
            )

        def body(tx: ReadTx) -> ListPage:
            return list_documents(tx, SPACE, StoreRecord, wanted, limit=limit, after=after)

        return self._parts.store.read(Scope(actor.tenant), body)

    def named(self, actor: Actor, name: str) -> StoreRecord | None:
        """The newest store of a name that is not archived."""
        after: str | None = None
        while True:
            page = self.list(actor, limit=100, after=after)
            found = next((record for record in page.items if record.name == name), None)
            after = page.after
            if found is not None or after is None:
                return found

    def update(
        self,
        actor: Actor,
        store_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> StoreRecord:
        """Change a store. Metadata is a patch: a text sets, None removes, unnamed keys stay."""
        actor.require(Right.WRITE)
        if name is not None:
            check_name(name)
        check_description(description or "")

        def prepare(rules: Rules) -> Callable[[WriteTx], StoreRecord]:
            given = {key: value for key, value in (metadata or {}).items() if value is not None}
            check_metadata(given, whole=False)
            clean, own = self._clean(actor, name or "", description or "", given, rules)

            def body(tx: WriteTx) -> StoreRecord:
                before = load(tx, bare(STORE, store_id, "memory store"))
                if before.archived_at is not None:
                    raise StoreArchived("This memory store is archived and cannot be changed.")
                kept = {key: value for key, value in before.metadata.items() if key not in (metadata or {})}
                after = msgspec.structs.replace(
                    before,
                    name=before.name if name is None else name,
                    description=before.description if description is None else clean,
                    metadata=kept | own,
                )
                check_metadata(after.metadata)
                if after.metadata.get(REF) != before.metadata.get(REF):
                    raise Invalid(f"{REF} is set when the store is created.", pointer=f"/metadata/{REF}")
                if after == before:
                    return before
                after = msgspec.structs.replace(after, updated_at=tx.now)
                save(tx, after, seq=tx.append(_event("memory_store.updated", actor, before.id)))
                return after

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant))

    def archive(self, actor: Actor, store_id: str) -> StoreRecord:
        """Make a store read-only, for good. An archived store stays as it is."""
        actor.require(Right.WRITE)

        def body(tx: WriteTx) -> StoreRecord:
            before = load(tx, bare(STORE, store_id, "memory store"))
            if before.archived_at is not None:
                return before
            if before.dream is not None:
                raise StoreInUse()
            after = msgspec.structs.replace(before, archived_at=tx.now, updated_at=tx.now)
            save(tx, after, seq=tx.append(_event("memory_store.archived", actor, before.id)))
            return after

        return self._rules.guard(actor.tenant, lambda _: body, Scope(actor.tenant))

    def delete(self, actor: Actor, store_id: str) -> str:
        """Delete a store with everything in it, at once. Its texts rest for the undo window, then are destroyed."""
        record = self.get(actor, store_id)
        actor.require(Right.WRITE)

        def prepare(rules: Rules) -> Callable[[WriteTx], str]:
            def body(tx: WriteTx) -> str:
                current = load(tx, record.id)
                if current.dream is not None:
                    raise StoreInUse()
                delete(tx, actor, current, rest_ms=rules.policy.undo_window_ms)
                return current.id

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, record.ref))

    def _clean(
        self, actor: Actor, name: str, description: str, metadata: Mapping[str, str], rules: Rules
    ) -> tuple[str, dict[str, str]]:
        """Description and metadata without secrets; names that hold one are refused."""
        names = {"/name": name, **{f"/metadata/{at}": key for at, key in enumerate(metadata)}}
        names |= {f"/metadata/{key}": metadata[key] for key in (REF,) if key in metadata}
        self._rules.check_names(actor.tenant, names, rules=rules)
        redact = self._parts.redactor.text
        values = {key: redact(value, rules.known).text if value else value for key, value in metadata.items()}
        return redact(description, rules.known).text if description else "", values


def load(tx: ReadTx, store_id: str) -> StoreRecord:
    """A store by its bare id. Raises NotFound."""
    document = tx.load(SPACE, complement(store_id))
    if document is None or not document.body:
        raise NotFound("There is no memory store with that id.")
    return msgspec.json.decode(document.body, type=StoreRecord)


def save(tx: WriteTx, record: StoreRecord, *, seq: int) -> None:
    """Write the document of a store."""
    tx.save(SPACE, complement(record.id), msgspec.json.encode(record), seq=seq)


def delete(tx: WriteTx, actor: Actor, record: StoreRecord, *, rest_ms: int) -> None:
    """Delete a store in a transaction of its ref. Of a bound ref only files go."""
    seq = tx.append(_event("memory_store.deleted", actor, record.id))
    for entry in own_entries(tx, record):
        if entry.held:
            raise Held()
        tx.change(entry.id, seq=seq, state=EntryState.DELETED)
    tx.drop(SPACE, complement(record.id), seq=seq, keep=0)
    if record.bound:
        tx.drop(BOUND_SPACE, record.ref, seq=seq, keep=0)
    files.count_files(tx, _STORES, -1, seq=seq)
    files.expire(tx, record.id, "*", ref=record.ref, at=tx.now + rest_ms, seq=seq)


def own_entries(tx: ReadTx, record: StoreRecord) -> list[Entry]:
    """Readable entries of the files of a store."""
    found = each(lambda cursor: tx.scan(_OWN, limit=_PAGE, cursor=cursor))
    return [entry for entry in found if entry.attributes.get("store") == STORE + record.id]


def list_documents(
    tx: ReadTx, space: str, kind: type[T], wanted: Callable[[T], bool], *, limit: int, after: str | None
) -> ListPage:
    """List documents of a space that match, in order of their keys; at most this many are read for one page."""
    items: list[T] = []
    looked = 0
    while True:
        page = tx.documents(space, cursor=after, limit=min(max(limit - len(items), 1), 100))
        for document in page.items:
            record = msgspec.json.decode(document.body or b"", type=kind)
            after = document.key
            if wanted(record):
                items.append(record)
        looked += len(page.items)
        if page.cursor is None:
            return ListPage(tuple(items))
        if len(items) >= limit or looked >= MOST_LOOKED_AT:
            return ListPage(tuple(items), after)


def once(tx: WriteTx, rules: Rules, use: str, key: str | None, request: object, work: Callable[[WriteTx], str]) -> str:
    """The id that `work` made. With an idempotency key that was used before, the id it made then: `work` is not run."""
    if key is None:
        return work(tx)
    if not 0 < len(key) <= 255:
        raise Invalid("An Idempotency-Key is 1 to 255 characters.", pointer="/Idempotency-Key")
    digest = keyed_hash(tx.log_key(), msgspec.json.encode(request).decode())
    name = answer_key(tx.log_key(), use, key)
    stored = tx.recall_answer(name)
    if stored is not None:
        if stored[0] != digest:
            raise IdempotencyReused()
        return stored[1].decode()
    made = work(tx)
    tx.remember_answer(name, digest, made.encode(), until=tx.now + rules.policy.idempotency_ms)
    return made


def of_door(actor: Actor) -> Actor:
    """The same caller, through this protocol."""
    return dataclasses.replace(actor, door=DOOR)


def check_name(name: str) -> None:
    """1 to 255 characters, none of them a control character."""
    if not 1 <= len(name) <= 255:
        raise Invalid("name: it has 1 to 255 characters.", pointer="/name")
    _check_text(name, "name")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        raise Invalid("name: it has a control character.", pointer="/name")


def check_description(description: str) -> None:
    """At most 1,024 characters."""
    if len(description) > 1024:
        raise Invalid("description: it has at most 1,024 characters.", pointer="/description")
    _check_text(description, "description")


def check_metadata(metadata: Mapping[str, str], *, whole: bool = True) -> None:
    """At most 16 pairs, keys of 1 to 64 and values of up to 512 characters; a subject has up to 256, as in entries."""
    if whole and len(metadata) > 16:
        raise Invalid("metadata: it has at most 16 pairs.", pointer="/metadata")
    for key, value in metadata.items():
        if not 1 <= len(key) <= 64:
            raise Invalid("metadata: a key has 1 to 64 characters.", pointer="/metadata")
        if len(value) > 512:
            raise Invalid("metadata: a value has at most 512 characters.", pointer="/metadata")
        if key == SUBJECT and len(value) > _MOST_OF_SUBJECT:
            raise Invalid(f"{SUBJECT}: it has at most {_MOST_OF_SUBJECT} characters.", pointer=f"/metadata/{SUBJECT}")
        _check_text(key + value, "metadata")


def _check_text(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{name}: it is not valid Unicode.", pointer=f"/{name}") from None
    if "\0" in text:
        raise Invalid(f"{name}: it has a NUL character.", pointer=f"/{name}")


def _event(name: str, actor: Actor, store_id: str) -> NewEvent:
    return NewEvent(name, "MEMORY_STORE", actor.id, data={"store": store_id})
