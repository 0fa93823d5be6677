"""Memories: the files of a store. Create, read, list, change, rename and delete, one transaction each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.entry import FILE_KIND, Draft, Entry, EntryState, Link, Scope, Source
from reverie.core.errors import Held, NotFound, StoreBusy
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.core.retry import Moved, retry
from reverie.core.run import mark
from reverie.memory import files
from reverie.memory.entries import Entries
from reverie.memory.files import KEPT_VERSIONS, File, FileVersion, VersionIds
from reverie.memory.insertion import store_entry
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.anthropic import stores
from reverie.protocols.anthropic.content import Clean, check_content, check_free, check_room
from reverie.protocols.anthropic.errors import (
    PreconditionFailed,
    ReadOnlyMemory,
    SecretInContent,
    StoreArchived,
)
from reverie.protocols.anthropic.listing import (
    Memory,
    all_files,
    all_names,
    entry_memory,
    list_files,
    load_memory,
    other_entries,
)
from reverie.protocols.anthropic.names import (
    ENTRIES,
    MEMORY,
    STORE,
    VERSION,
    bare,
    check_path,
    check_prefix,
)
from reverie.protocols.anthropic.stores import ListPage, StoreRecord, of_door, once
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

T = TypeVar("T")


class Memories:
    """The files of memory stores."""

    def __init__(self, parts: Services, rules: RuleBook, entries: Entries) -> None:
        self._parts = parts
        self._rules = rules
        self._entries = entries
        self._version_ids = VersionIds()

    # reading

    def get(self, actor: Actor, store_id: str, memory_id: str) -> Memory:
        """A memory with its content."""
        actor.require(Right.READ)
        record = self.store_of(actor, store_id)
        return self._parts.store.read(Scope(actor.tenant, record.ref), lambda tx: self._load(tx, record.id, memory_id))

    def at(self, actor: Actor, store_id: str, path: str) -> Memory | None:
        """The memory at a path, with its content."""
        actor.require(Right.READ)
        record = self.store_of(actor, store_id)

        def body(tx: ReadTx) -> Memory | None:
            current = stores.load(tx, record.id)
            if current.bound and path.startswith(ENTRIES):
                return next((memory for memory in other_entries(tx, current) if memory.file.path == path), None)
            file = files.load_file(tx, record.id, path)
            return load_memory(tx, current, file) if file is not None else None

        return self._parts.store.read(Scope(actor.tenant, record.ref), body)

    def list(
        self,
        actor: Actor,
        store_id: str,
        *,
        prefix: str = "/",
        depth: int = 0,
        limit: int = 20,
        after: str | None = None,
    ) -> ListPage:
        """Memories below a folder and (with depth 1) the folders in it, in order of their paths."""
        actor.require(Right.READ)
        check_prefix(prefix)
        record = self.store_of(actor, store_id)

        def body(tx: ReadTx) -> ListPage:
            return list_files(tx, stores.load(tx, record.id), prefix, depth, limit, after)

        return self._parts.store.read(Scope(actor.tenant, record.ref), body)

    def names(self, actor: Actor, store_id: str, folder: str) -> Sequence[File]:
        """Every file below a folder, with path and size. The contents are not read."""
        actor.require(Right.READ)
        check_prefix(folder)
        record = self.store_of(actor, store_id)
        scope = Scope(actor.tenant, record.ref)
        return self._parts.store.read(scope, lambda tx: all_names(tx, stores.load(tx, record.id), folder))

    def of_entry(self, actor: Actor, record: StoreRecord, entry: Entry) -> Memory | None:
        """The memory that an entry of a store's ref is the newest version of."""
        if entry.kind != FILE_KIND:
            return entry_memory(record, entry)
        name = str(entry.attributes.get("memory", "")).removeprefix(MEMORY)

        def body(tx: ReadTx) -> Memory | None:
            file = files.find_file(tx, record.id, name)
            return load_memory(tx, record, file, entry) if file is not None and file.version == entry.id else None

        return self._parts.store.read(Scope(actor.tenant, record.ref), body)

    def store_of(self, actor: Actor, store_id: str) -> StoreRecord:
        """The store with an id. Its ref never changes."""
        name = bare(STORE, store_id, "memory store")
        return self._parts.store.read(Scope(actor.tenant), lambda tx: stores.load(tx, name))

    # writing

    def create(
        self,
        actor: Actor,
        store_id: str,
        path: str,
        content: str,
        *,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Memory:
        """A new memory. Raises PathConflict when one is at the path, above it or below it."""
        actor = of_door(actor)
        actor.require(Right.WRITE)
        check_path(path)
        record = self.store_of(actor, store_id)
        new_id = self._parts.ids.new()

        def prepare(rules: Rules) -> Callable[[WriteTx], Memory]:
            seen = self.store_of(actor, store_id)
            clean = self.clean(actor, seen, new_id, path, content, rules, session=session)

            def work(tx: WriteTx) -> str:
                current = self._writable(tx, seen)
                check_free(tx, current, path)
                check_room(tx, current, [clean], rules.policy, new=1)
                self.write(tx, actor, current, None, new_id, path, clean, rules.policy, session=session)
                return new_id

            def body(tx: WriteTx) -> Memory:
                request = [record.id, path, content]
                made = once(tx, rules, "memory.create", idempotency_key, request, work)
                file = files.find_file(tx, record.id, made)
                if file is None:
                    raise NotFound("The memory that this request made is gone.")
                if file.sha256 != clean.sha256:  # changed since the request was first carried out
                    return self._load(tx, record.id, MEMORY + made)
                return Memory(record, file, clean.text, clean.findings)

            return body

        return self._guard(actor, record, prepare)

    def update(
        self,
        actor: Actor,
        store_id: str,
        memory_id: str,
        *,
        content: str | None = None,
        path: str | None = None,
        expected: str | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Memory:
        """Change content, path or both. Without a difference nothing is written.

        `expected`: the SHA-256 the stored content must have, else PreconditionFailed; unless the memory already is as
        asked.
        """
        actor = of_door(actor)
        actor.require(Right.WRITE)
        if path is not None:
            check_path(path)
        record = self.store_of(actor, store_id)

        def prepare(rules: Rules) -> Callable[[WriteTx], Memory]:
            seen = self.get(actor, store_id, memory_id)
            if seen.read_only:
                raise ReadOnlyMemory()
            text = seen.content if content is None else content
            wanted = seen.file.path if path is None else path
            clean = self.clean(actor, seen.store, seen.file.id, wanted, text or "", rules, session=session)

            def work(tx: WriteTx) -> str:
                current = self._writable(tx, seen.store)
                now = self._load(tx, record.id, memory_id)
                if now.file.version != seen.file.version:
                    raise Moved
                if now.file.sha256 == clean.sha256 and now.file.path == wanted:
                    return now.file.version
                if expected is not None and expected != now.file.sha256:
                    raise PreconditionFailed()
                if now.file.path != wanted:
                    check_free(tx, current, wanted, moving=now.file.path)
                check_room(tx, current, [clean], rules.policy)
                file = self.write(
                    tx, actor, current, now.file, now.file.id, wanted, clean, rules.policy, session=session
                )
                return file.version

            def body(tx: WriteTx) -> Memory:
                request = [record.id, memory_id, content, path, expected]
                version = once(tx, rules, "memory.update", idempotency_key, request, work)
                now = self._load(tx, record.id, memory_id)
                if now.file.version == version:
                    return Memory(now.store, now.file, clean.text, clean.findings)
                return now  # changed since the request was first carried out

            return body

        return self._guard(actor, record, prepare)

    def delete(
        self,
        actor: Actor,
        store_id: str,
        memory_id: str,
        *,
        expected: str | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Delete a memory; its versions stay readable until their retention ends."""
        actor = of_door(actor)
        actor.require(Right.WRITE)
        record = self.store_of(actor, store_id)

        def prepare(rules: Rules) -> Callable[[WriteTx], str]:
            clean = self._session(actor, session, rules)

            def work(tx: WriteTx) -> str:
                now = self._load(tx, record.id, memory_id)
                if now.read_only:
                    raise ReadOnlyMemory()
                if expected is not None and expected != now.file.sha256:
                    raise PreconditionFailed()
                self.remove(tx, actor, record, now.file, rules.policy, session=clean)
                return now.file.id

            request = [record.id, memory_id, expected]
            return lambda tx: once(tx, rules, "memory.delete", idempotency_key, request, work)

        return self._guard(actor, record, prepare)

    def delete_below(self, actor: Actor, store_id: str, folder: str, *, session: str | None = None) -> int:
        """Delete every memory below a folder, all of them or none; return their number."""
        actor = of_door(actor)
        actor.require(Right.WRITE)
        record = self.store_of(actor, store_id)

        def prepare(rules: Rules) -> Callable[[WriteTx], int]:
            clean = self._session(actor, session, rules)

            def body(tx: WriteTx) -> int:
                current = stores.load(tx, record.id)
                results = [memory.file for memory in all_files(tx, current, folder)]
                for file in results:
                    self.remove(tx, actor, current, file, rules.policy, session=clean)
                return len(results)

            return body

        return self._guard(actor, record, prepare)

    def move_below(self, actor: Actor, store_id: str, folder: str, target: str, *, session: str | None = None) -> int:
        """Move every memory below a folder to another, all of them or none. Each keeps its id."""
        actor = of_door(actor)
        actor.require(Right.WRITE)
        record = self.store_of(actor, store_id)
        scope = Scope(actor.tenant, record.ref)

        def prepare(rules: Rules) -> Callable[[WriteTx], int]:
            def look(tx: ReadTx) -> list[Memory]:
                return all_files(tx, stores.load(tx, record.id), folder)

            found = self._parts.store.read(scope, look)
            moves = []
            for memory in found:
                path = target + memory.file.path[len(folder) :]
                check_path(path)
                text = memory.content or ""
                clean = self.clean(actor, memory.store, memory.file.id, path, text, rules, session=session)
                moves.append((memory.file, path, clean))

            def body(tx: WriteTx) -> int:
                current = self._writable(tx, record)
                now = {memory.file.id: memory.file for memory in all_files(tx, current, folder)}
                if any(file.id not in now or now[file.id].version != file.version for file, _, _ in moves):
                    raise Moved
                if len(now) != len(moves):
                    raise Moved
                for file, path, clean in moves:
                    check_free(tx, current, path, moving=file.path)
                    self.write(tx, actor, current, file, file.id, path, clean, rules.policy, session=session)
                return len(moves)

            return body

        return self._guard(actor, record, prepare)

    def _guard(self, actor: Actor, record: StoreRecord, prepare: Callable[[Rules], Callable[[WriteTx], T]]) -> T:
        return retry(
            lambda _: self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, record.ref)),
            busy=lambda: StoreBusy("The memory changes faster than it can be written. Try again."),
        )

    def _writable(self, tx: ReadTx, seen: StoreRecord) -> StoreRecord:
        current = stores.load(tx, seen.id)
        if current.archived_at is not None:
            raise StoreArchived()
        if current.subject != seen.subject:
            raise Moved
        return current

    def _load(self, tx: ReadTx, store_id: str, memory_id: str) -> Memory:
        record = stores.load(tx, store_id)
        if record.bound and memory_id.startswith(MEMORY):  # ids of its entries may be of the caller's own making
            entry = tx.get(memory_id.removeprefix(MEMORY))
            if entry is not None and entry.kind != FILE_KIND:
                return entry_memory(record, entry)
        file = files.find_file(tx, store_id, bare(MEMORY, memory_id, "memory"))
        memory = load_memory(tx, record, file) if file is not None else None
        if memory is None:
            raise NotFound("There is no memory with that id.")
        return memory

    def _session(self, actor: Actor, session: str | None, rules: Rules) -> str | None:
        if not session:
            return None
        return self._parts.redactor.text(session, self._rules.known(actor.tenant, None, rules)).text

    def clean(
        self,
        actor: Actor,
        record: StoreRecord,
        file_id: str,
        path: str,
        text: str,
        rules: Rules,
        *,
        session: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> Clean:
        """A text ready to be written. Redacted; refused when it is too large or (by policy) holds a secret."""
        check_content(text, rules.policy)
        self._rules.check_names(actor.tenant, {"/path": path}, rules=rules)
        if not text or text.isspace():
            return Clean(text, None, {})
        draft = Draft(
            content=text,
            kind=FILE_KIND,
            tags=tags,
            subject=record.subject,
            attributes={"path": path, "memory": MEMORY + file_id, "store": STORE + record.id},
            source=Source(session=session, trust=10) if session else Source(),
        )
        item = self._entries.prepare(actor, record.ref, [draft], _for_files(rules))[0]
        results = {kind: count for kind, count in item.findings.items() if count}
        if results and rules.policy.store_secrets == "refuse":
            raise SecretInContent(details={"kinds": sorted(results)})
        return Clean(item.entry.content, item, results)

    def write(
        self,
        tx: WriteTx,
        actor: Actor,
        record: StoreRecord,
        before: File | None,
        file_id: str,
        path: str,
        clean: Clean,
        policy: TenantPolicy,
        *,
        session: str | None = None,
        made_from: tuple[str, ...] = (),
    ) -> File:
        """The next version of a memory: entry, link, index, row and event, in a transaction of the store's ref."""
        at = max(tx.now, before.updated_at if before else 0)
        version = self._version_ids.new(at, after=before.version if before else None)
        operation = "created" if before is None else "modified"
        data = _data(record, file_id, version, operation) | {"bytes": clean.size} | mark(tx, actor)
        old = tx.get(before.version, where=None) if before is not None and before.text else None
        seq = tx.append(NewEvent("memory.version", "FILE", actor.id, data=data))
        position = 0
        if clean.item is not None:
            entry = clean.item.entry
            attributes = {**entry.attributes, "version": VERSION + version}
            pinned = entry.pinned or (old is not None and old.pinned)
            # whom the words of the last version were about, those of the next may be about too
            tags = tuple(dict.fromkeys((*entry.tags, *(old.tags if old is not None else ()))))
            entry = msgspec.structs.replace(
                entry, id=version, attributes=attributes, created_at=at, expires_at=None, pinned=pinned, tags=tags
            )
            item = msgspec.structs.replace(clean.item, entry=entry, minted=True)
            stored = store_entry(tx, actor, item, operation="FILE")
            position, session = stored.position, stored.source.session
        elif session:
            session = self._parts.redactor.text(session, self._rules.current(actor.tenant).known).text
        if old is not None:
            tx.change(old.id, seq=seq, state=EntryState.SUPERSEDED)
            if clean.item is not None:
                tx.link(Link(version, old.id, "supersedes"))
        file = File(
            id=file_id,
            path=path,
            version=version,
            sha256=clean.sha256,
            size=clean.size,
            created_at=before.created_at if before else at,
            updated_at=at,
            text=clean.item is not None,
            position=position,
            recent=(version, *(before.recent if before else ()))[:KEPT_VERSIONS],
        )
        stale = files.load_file(tx, record.id, path)
        if stale is not None and stale.id != file_id:  # another interface retired its entry
            files.drop_file(tx, record.id, stale, seq=seq)
        files.save_file(tx, record.id, file, seq=seq, before=before)
        row = FileVersion(
            id=version,
            file=file_id,
            operation=operation,
            created_at=at,
            actor=actor.id,
            session=session,
            path=path,
            sha256=clean.sha256,
            size=clean.size,
            text=file.text,
            blank=None if file.text else clean.text,
            findings=dict(clean.findings),
            made_from=made_from,
        )
        files.save_version(tx, record.id, row, seq=seq)
        if before is not None and len(before.recent) >= KEPT_VERSIONS:
            over = tx.now + policy.memory_version_retention_ms
            files.expire(tx, record.id, before.recent[-1], ref=record.ref, at=over, seq=seq)
        return file

    def remove(
        self,
        tx: WriteTx,
        actor: Actor,
        record: StoreRecord,
        file: File,
        policy: TenantPolicy,
        *,
        session: str | None = None,
    ) -> None:
        """Delete a memory, in a transaction of the store's ref."""
        at = max(tx.now, file.updated_at)
        version = self._version_ids.new(at, after=file.version)
        data = _data(record, file.id, version, "deleted") | mark(tx, actor)
        seq = tx.append(NewEvent("memory.version", "FILE", actor.id, data=data))
        if file.text:
            entry = tx.get(file.version)
            if entry is not None:
                if entry.held:
                    raise Held()
                tx.change(entry.id, seq=seq, state=EntryState.DELETED)
        files.drop_file(tx, record.id, file, seq=seq)
        row = FileVersion(version, file.id, "deleted", at, actor.id, session, file.path)
        files.save_version(tx, record.id, row, seq=seq)
        over = tx.now + policy.memory_version_retention_ms
        for name in (version, *file.recent):
            files.expire(tx, record.id, name, ref=record.ref, at=over, seq=seq)


def _data(record: StoreRecord, file_id: str, version: str, operation: str) -> dict[str, Any]:
    return {
        "ref": record.ref,
        "store": record.id,
        "memory": file_id,
        "version": version,
        "operation": operation,
    }


def _for_files(rules: Rules) -> Rules:
    """The rules with the limits of files."""
    policy = dataclasses.replace(rules.policy, max_entry_bytes=rules.policy.max_memory_bytes)
    return dataclasses.replace(rules, policy=policy)
