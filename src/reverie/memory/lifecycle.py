"""Life cycle of a stored entry: pin, hold, archive, retract, delete, restore, expire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.entry import FILE_KIND, READABLE, Entry, EntryState, Scope, check_namespace, valid_ref
from reverie.core.errors import Conflict, Forbidden, Held, Invalid, NotFound, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.core.ports import Embedder
from reverie.core.query import Page, pages
from reverie.memory.derivation import kin, no_entry
from reverie.memory.files import note_destruction
from reverie.memory.indexing import terms_and_vectors
from reverie.memory.insertion import session_mark
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING, may_see
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

SWEEP_BATCH = 500
Check = Callable[[Actor, Entry], None]
Act = Callable[[WriteTx, Actor, Entry], object]


class Lifecycle:
    """Changes of state. Each is one transaction with its event; `expected` is the version the caller saw."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def pin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Keep this entry out of dreams."""
        return self._change(actor, ref, entry_id, "PIN", "memory.pinned", expected, pinned=True)

    def unpin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Let dreams take it again."""
        return self._change(actor, ref, entry_id, "UNPIN", "memory.unpinned", expected, pinned=False)

    def hold(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Forbid erasing it, even by forget, until it is released."""
        actor.require(Right.ADMIN)
        return self._change(actor, ref, entry_id, "HOLD", "memory.held", expected, cold=True, held=True)

    def release(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """End a hold."""
        actor.require(Right.ADMIN)
        return self._change(actor, ref, entry_id, "RELEASE", "memory.released", expected, cold=True, held=False)

    def archive(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of recall and keep it."""
        return self._change(actor, ref, entry_id, "ARCHIVE", "memory.archived", expected, archived=True)

    def retract(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Withdraw it: by its author, or with authority 10."""

        gone = EntryState.RETRACTED
        return self._change(
            actor, ref, entry_id, "RETRACT", "memory.retracted", expected, check=_check_author, state=gone
        )

    def delete(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of every read at once. Its text stays in cold storage for the undo window, then is destroyed."""
        gone = EntryState.DELETED
        return self._change(actor, ref, entry_id, "DELETE", "memory.deleted", expected, check=_check_hold, state=gone)

    def delete_many(self, actor: Actor, places: Sequence[tuple[str, str]]) -> int:
        """Delete entries, each named by ref and id, in one transaction: all of them, or none. Returns their number.

        Raises NotFound when one of them is not readable.
        """
        actor.require(Right.WRITE)
        for ref, _ in places:
            self._writable(ref)

        def body(tx: WriteTx) -> int:
            for ref, entry_id in places:
                with tx.within(ref):
                    entry = _find(tx, actor, entry_id, cold=False)
                    _check_hold(actor, entry)
                    about = {"entry_id": entry.id, "session": session_mark(tx, entry)}
                    event = NewEvent("memory.deleted", "DELETE", actor.id, data={"ref": ref}, **about)
                    tx.change(entry.id, seq=tx.append(event), state=EntryState.DELETED)
            return len(places)

        return self._parts.store.write(Scope(actor.tenant), body) if places else 0

    def renew(self, actor: Actor, ref: str, entry_id: str, expires_at: int, *, expected: int | None = None) -> Entry:
        """Change its expiry."""
        if expires_at <= self._parts.clock.now():
            raise Invalid("expires_at has passed already.", pointer="/expires_at")
        return self._change(actor, ref, entry_id, "RENEW", "memory.renewed", expected, expires_at=expires_at)

    def erase(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> int:
        """Destroy its text now, readable or not; returns the bytes destroyed. Cannot be undone."""
        actor.require(Right.WRITE)
        self._writable(ref)

        def body(tx: WriteTx) -> int:
            return _erase(tx, actor, _at_version(_find(tx, actor, entry_id, cold=True), expected))

        return self._parts.store.write(Scope(actor.tenant, ref), body)

    def restore(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Make an archived, retracted or deleted entry readable again, while its text exists.

        Raises Conflict while something readable has its words already: a dream made from it, or, when it is a dream
        itself, the entries it was made from.
        """
        actor.require(Right.WRITE)
        self._writable(ref)

        def body(tx: WriteTx) -> Entry:
            entry = _at_version(_find(tx, actor, entry_id, cold=True), expected)
            return _restore(tx, actor, entry, embedder=self._parts.embedder)

        return self._parts.store.write(Scope(actor.tenant, ref), body)

    def sweep(self, actor: Actor) -> int:
        """Destroy entries that have expired or outlived the undo window; return their number."""
        return self.expire(actor) + self.retain(actor)

    def expire(self, actor: Actor) -> int:
        """Destroy what passed its expiry, readable or not. Readers stopped seeing it at that instant."""
        actor.require(Right.WRITE)

        def find(tx: ReadTx, cursor: str | None) -> Page[Entry]:
            return tx.scan(_EXPIRED, limit=SWEEP_BATCH, cursor=cursor)

        return self._sweep(actor, find, "memory.expired", "EXPIRE")

    def retain(self, actor: Actor) -> int:
        """Destroy texts past their retention: deleted entries and, where the tenant's policy says so, sources of
        dreams.
        """
        actor.require(Right.WRITE)
        total = 0
        for kept in retentions(self._rules.latest(actor.tenant).policy):
            before = self._parts.clock.now() - kept.kept_ms

            def find(tx: ReadTx, _: str | None, kept: Retention = kept, before: int = before) -> Page[Entry]:
                found = tx.cold(kept.state, before=before, limit=SWEEP_BATCH, files=kept.files)
                return Page(found, "more" if len(found) == SWEEP_BATCH else None)

            total += self._sweep(actor, find, "memory.purged", "RETAIN")
        return total

    def _sweep(
        self, actor: Actor, find: Callable[[ReadTx, str | None], Page[Entry]], type_: str, operation: str
    ) -> int:
        if self._parts.read_only:
            raise ReadOnly()
        total = 0

        def look(cursor: str | None) -> Page[Entry]:
            return self._parts.store.read(Scope(actor.tenant), lambda tx: find(tx, cursor))

        for page in pages(look):
            found = [entry for entry in page.items if not entry.held]
            for ref in sorted({entry.ref for entry in found}):
                seen = {entry.id: entry.version for entry in found if entry.ref == ref}

                def body(tx: WriteTx, seen: Mapping[str, int] = seen) -> int:
                    swept: list[Entry] = []
                    for entry_id, version in seen.items():
                        entry = tx.get(entry_id, where=ANYTHING)
                        still = entry is not None and (
                            (entry.expires_at is not None and entry.expires_at <= tx.now)
                            if type_ == "memory.expired"
                            else entry.version == version and entry.state is not EntryState.ERASED
                        )
                        if entry is not None and still and not entry.held:
                            swept.append(entry)
                    purge(tx, actor, *swept, operation=operation, type=type_)
                    tx.trim()
                    return len(swept)

                total += self._parts.store.write(Scope(actor.tenant, ref), body)
        return total

    def _change(
        self,
        actor: Actor,
        ref: str,
        entry_id: str,
        operation: str,
        type_: str,
        expected: int | None,
        *,
        cold: bool = False,
        check: Check | None = None,
        **changes: Any,
    ) -> Entry:
        actor.require(Right.WRITE)
        self._writable(ref)

        def body(tx: WriteTx) -> Entry:
            entry = _find(tx, actor, entry_id, cold=cold)
            if check:
                check(actor, entry)
            return _apply(tx, actor, _at_version(entry, expected), operation, type_, changes)

        return self._parts.store.write(Scope(actor.tenant, ref), body)

    def change_many(self, actor: Actor, ref: str, change: str, seen: Sequence[tuple[str, int]]) -> Mapping[str, int]:
        """Pin, archive, retract, restore or erase entries of a memory, each at the version the caller saw, in one
        transaction.

        An entry that changed since, is on hold or belongs to someone else is left alone. Returns the number of changed
        entries (`done`), and of those left alone by error code.
        """
        actor.require(Right.WRITE)
        self._writable(ref)
        acts: dict[str, Act] = {**_MANY, "restore": partial(_restore, embedder=self._parts.embedder)}
        act = acts.get(change)
        if act is None:
            raise Invalid(f"A change of many entries is one of {', '.join(acts)}.", pointer="/change")
        cold = change in ("erase", "restore")

        def body(tx: WriteTx) -> Mapping[str, int]:
            outcome: Counter[str] = Counter()
            for entry_id, version in seen:
                try:  # what is refused is refused before anything of it is written
                    act(tx, actor, _at_version(_find(tx, actor, entry_id, cold=cold), version))
                    outcome["done"] += 1
                except (NotFound, Conflict, Forbidden, Held) as refused:
                    outcome[refused.reason] += 1
            return outcome

        return self._parts.store.write(Scope(actor.tenant, ref), body)

    def _writable(self, ref: str) -> None:
        if self._parts.read_only:
            raise ReadOnly()
        if not valid_ref(ref):
            raise NotFound("There is no entry with that id in this memory.")


_EXPIRED = msgspec.structs.replace(ANYTHING, expired=True)


def purge(
    tx: WriteTx,
    actor: Actor,
    *entries: Entry,
    operation: str,
    type: str = "memory.purged",  # noqa: A002
    subject: str | None = None,
) -> int:
    """Destroy the texts of entries, with an event for each. An event names its entry; the text is nowhere.

    `subject`: the hash of the subject for which they are destroyed.
    """
    if not entries:
        return 0
    now, events = to_iso(tx.now), []
    for entry, size in zip(entries, [entry.byte_size for entry in entries], strict=True):
        data: dict[str, Any] = {"ref": entry.ref, "bytes": size}
        if operation == "FORGET":
            gone = {"unit_id": entry.id, "deleted_at": now, "reason": "forget", "purged_by": actor.id}
            data["tombstone"] = gone
        session = session_mark(tx, entry)
        events.append(NewEvent(type, operation, actor.id, entry_id=entry.id, session=session, data=data))
    total = tx.purge(*[entry.id for entry in entries], seq=tx.append(*events), subject=subject)
    for entry in entries:
        if entry.kind == FILE_KIND:
            note_destruction(tx, actor, entry)
    return total


def _find(tx: WriteTx, actor: Actor, entry_id: str, *, cold: bool) -> Entry:
    check_namespace(entry_id)
    entry = tx.get(entry_id, where=msgspec.structs.replace(ANYTHING, expired=False) if cold else None)
    if entry is None or entry.state is EntryState.ERASED or not may_see(actor, entry):
        raise no_entry(tx, entry_id)
    return entry


def _at_version(entry: Entry, expected: int | None) -> Entry:
    """The entry, when it is at the version that the caller saw."""
    if expected is not None and expected != entry.version:
        raise Conflict(details={"expected": expected, "current": entry.version})
    return entry


def _check_hold(_: Actor, entry: Entry) -> None:
    if entry.held:
        raise Held()


def _check_author(actor: Actor, entry: Entry) -> None:
    if entry.source.actor != actor.id and actor.authority < 10:
        raise Forbidden("Only its author, or authority 10, may retract an entry.")


def _apply(tx: WriteTx, actor: Actor, entry: Entry, operation: str, type_: str, changes: Mapping[str, Any]) -> Entry:
    """Change an entry, with its event, and return it. Where nothing would change there is no event."""
    if all(getattr(entry, name) == value for name, value in changes.items()):
        return entry
    mark = session_mark(tx, entry)
    event = NewEvent(type_, operation, actor.id, entry_id=entry.id, session=mark, data={"ref": entry.ref})
    return tx.change(entry.id, seq=tx.append(event), expected=entry.version, **changes)


def _pin(tx: WriteTx, actor: Actor, entry: Entry) -> None:
    _apply(tx, actor, entry, "PIN", "memory.pinned", {"pinned": True})


def _archive(tx: WriteTx, actor: Actor, entry: Entry) -> None:
    _apply(tx, actor, entry, "ARCHIVE", "memory.archived", {"archived": True})


def _retract(tx: WriteTx, actor: Actor, entry: Entry) -> None:
    _check_author(actor, entry)
    _apply(tx, actor, entry, "RETRACT", "memory.retracted", {"state": EntryState.RETRACTED})


def _erase(tx: WriteTx, actor: Actor, entry: Entry) -> int:
    _check_hold(actor, entry)
    tx.keep_searches(None)  # a question may repeat what is erased
    return purge(tx, actor, entry, operation="ERASE")


def _restore(tx: WriteTx, actor: Actor, entry: Entry, *, embedder: Embedder | None) -> Entry:
    if entry.gone_seq is None:
        raise Conflict("The entry is readable already.", code="already_readable")
    if any(tx.get(other) is not None for other in kin(tx, entry.id)):
        raise Conflict("A dream and its sources are never readable together. Undo the dream.", code="distilled")
    seq = tx.append(NewEvent("memory.restored", "RESTORE", actor.id, entry_id=entry.id, data={"ref": entry.ref}))
    state = entry.state if entry.state in READABLE else EntryState.ACTIVE
    after = tx.change(entry.id, seq=seq, expected=entry.version, state=state, archived=False)
    words, vector = terms_and_vectors([entry], embedder)[0]
    tx.index(entry.id, seq=seq, terms=words, vector=vector)
    return after


_MANY: Mapping[str, Act] = {
    "pin": _pin,
    "archive": _archive,
    "retract": _retract,
    "erase": _erase,
}


class Retention(msgspec.Struct, frozen=True):
    """Retention of the text of entries that left readable memory."""

    state: EntryState
    kept_ms: int
    files: bool = False
    """Entries of kind `file`, or all others."""


def retentions(policy: TenantPolicy) -> list[Retention]:
    """Return the retention of the text of entries that left readable memory, by their state."""
    found = [
        Retention(EntryState.DELETED, policy.undo_window_ms),
        Retention(EntryState.DELETED, policy.memory_version_retention_ms, files=True),
    ]
    if policy.cold_retention_ms is not None:
        found += [Retention(EntryState.DREAMT, policy.cold_retention_ms, files) for files in (False, True)]
    return found
