"""forget: everything about a subject, in every memory of the tenant, readable or cold."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.errors import Held, Invalid, ReadOnly
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.query import Filter
from reverie.host.lifecycle import purge
from reverie.host.parts import Parts
from reverie.host.read import ANYTHING
from reverie.store.contract import ReadTx, WriteTx

SUBJECT_TAG = "subject:"
_PAGE = 500


class Forgotten(Struct, frozen=True):
    """What a forget did, or (`preview`) would do."""

    forgotten: int
    bytes: int
    refs: int
    held: int
    """Entries that a hold protects; a forget with any of them is refused."""
    preview: bool
    certificate: int | None = None
    """The log position of the certificate: counts and keyed hashes, no text."""


class Forgetting:
    """Erasure by subject. One transaction: all of it, or none."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def forget(self, actor: Actor, subject: str, *, ref: str | None = None, preview: bool = False) -> Forgotten:
        """Destroy every entry about `subject`: its field, or the tag `subject:<subject>`. Never crosses a tenant."""
        actor.require(Right.READ if preview else Right.WRITE)
        if not subject or len(subject) > 256:
            raise Invalid("Name a subject of 1 to 256 characters.", pointer="/subject")
        if preview:
            return self._parts.store.read(Scope(actor.tenant), lambda tx: _count(list(_about(tx, subject, ref)), True))
        if self._parts.read_only:
            raise ReadOnly()

        def body(tx: WriteTx) -> Forgotten:
            found = list(_about(tx, subject, ref))
            counts = _count(found, False)
            if counts.held:
                raise Held(
                    f"{counts.held} of {counts.forgotten} entries about this subject are on hold. Nothing was erased.",
                    details={"held": counts.held, "found": counts.forgotten},
                )
            if not found:
                return counts
            for entry in found:
                purge(_within(tx, entry.ref), actor, entry, operation="FORGET")
            data = {
                "subject": keyed_hash(tx.log_key(), subject),
                "entries": counts.forgotten,
                "bytes": counts.bytes,
                "refs": counts.refs,
            }
            seq = tx.append(NewEvent("memory.forgotten", "FORGET", actor.id, data=data))
            return msgspec.structs.replace(counts, certificate=seq)

        return self._parts.store.write(Scope(actor.tenant), body)


def _within(tx: WriteTx, ref: str) -> WriteTx:
    """The same transaction, looking at one of its refs."""
    tx.scope = Scope(tx.scope.tenant, ref)
    return tx


def _about(tx: ReadTx, subject: str, ref: str | None) -> Iterator[Entry]:
    alive = frozenset(EntryState) - {EntryState.ERASED}
    everything = msgspec.structs.replace(ANYTHING, states=alive)
    seen: set[int] = set()
    for where in (
        msgspec.structs.replace(everything, subject=subject),
        msgspec.structs.replace(everything, any_tags=(SUBJECT_TAG + subject,)),
    ):
        yield from _unseen(tx, where, ref, seen)


def _unseen(tx: ReadTx, where: Filter, ref: str | None, seen: set[int]) -> Iterator[Entry]:
    cursor: str | None = None
    while True:
        page = tx.scan(where, limit=_PAGE, cursor=cursor)
        for entry in page.items:
            if entry.position not in seen and (ref is None or entry.ref == ref):
                seen.add(entry.position)
                yield entry
        cursor = page.cursor
        if cursor is None:
            return


def _count(found: list[Entry], preview: bool) -> Forgotten:
    return Forgotten(
        forgotten=len(found),
        bytes=sum(entry.byte_size for entry in found),
        refs=len({entry.ref for entry in found}),
        held=sum(entry.held for entry in found),
        preview=preview,
    )
