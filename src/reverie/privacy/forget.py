"""forget: everything about a subject, in every memory of the tenant, and in everything made from it.

Entries readable or cold, words, vectors, archives and every dream made from them go in one transaction; dreams are
made again from what remains. A certificate stays in the log: counts and keyed hashes, no text. A ledger beside the
database remembers that it happened, so that a restore from an older backup forgets again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import msgspec
import orjson
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Document, Entry, EntryState, Scope, check_namespace
from reverie.core.errors import Busy, Held, Invalid, ReadOnly
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.ports import ForgetLine
from reverie.core.query import Filter
from reverie.dreams.archive import ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE, Archives
from reverie.dreams.lineage import derived_from
from reverie.dreams.redream import Derived, Redone, Redream, has_text
from reverie.dreams.report import load_report, save_report
from reverie.memory.entries import SUBJECT_TAG, Entries
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.window.admin import drop_window
from reverie.window.transcript import SCOPE_ATTRIBUTE

_PAGE = 500
_TRIES = 5
UNDER_WAY_MS = 60_000
"""A forget without a certificate is under way for so long; after that it was cut off."""
_ALIVE = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED})


class Forgotten(Struct, frozen=True):
    """What a forget did, or (`preview`) would do."""

    forgotten: int
    """Entries about the subject."""
    derived: int
    """Dreams made from them, destroyed too."""
    redone: int
    """Dreams made again from what remains."""
    restored: int
    """Entries readable again because their dream could not be made again."""
    archives: int
    bytes: int
    refs: int
    held: int
    """Entries that a hold protects; a forget with any of them is refused."""
    preview: bool
    readable: int = 0
    """How many of all these could be read until now."""
    certificate: int | None = None
    """The log position of the certificate."""


class Moved(Exception):
    """Something about the subject changed between looking and erasing."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything about a subject, and everything made from it."""

    entries: Sequence[Entry]
    derived: Sequence[Derived]

    @property
    def ids(self) -> frozenset[tuple[str, str]]:
        return frozenset((entry.ref, entry.id) for entry in self.entries)


class Forget:
    """Erasure by subject, through lineage."""

    def __init__(self, parts: Services, rules: RuleBook, writing: Entries, archives: Archives) -> None:
        self._parts = parts
        self._rules = rules
        self._archives = archives
        self._redoing = Redream(parts, writing)
        self._certified: dict[str, int] = {}
        """Tenant: how many lines of the ledger were compared with its log."""

    def forget(
        self,
        actor: Actor,
        subject: str,
        *,
        ref: str | None = None,
        preview: bool = False,
        before: int | None = None,
    ) -> Forgotten:
        """Destroy every entry about `subject` (its field, or the tag `subject:<subject>`) and all that came of it.

        One transaction: all of it, or none. Never crosses a tenant. Refused while a hold protects any of it.
        `before`: only entries made before that instant.
        """
        actor.require(Right.READ if preview else Right.WRITE)
        if not subject or len(subject) > 256:
            raise Invalid("Name a subject of 1 to 256 characters.", pointer="/subject")
        check_namespace(ref)
        if not preview and self._parts.read_only:
            raise ReadOnly()
        for _ in range(_TRIES):
            found = self._parts.store.read(Scope(actor.tenant), lambda tx: _find(tx, subject, ref, before))
            counts = _count(found, preview=preview)
            if preview:
                return counts
            if counts.held:
                raise Held(
                    f"{counts.held} entries about this subject are on hold. Nothing was erased.",
                    details={"held": counts.held, "found": counts.forgotten},
                )
            if not found.entries and not found.derived:
                return counts
            try:
                return self._erase(actor, subject, ref, before, found, counts)
            except Moved:
                continue
        raise Busy("Entries about this subject change faster than they can be forgotten. Try again.")

    def _erase(
        self, actor: Actor, subject: str, ref: str | None, before: int | None, found: Found, counts: Forgotten
    ) -> Forgotten:
        def prepare(rules: Rules) -> Callable[[WriteTx], Forgotten]:
            redone = [self._redoing.prepare(actor, item, rules) for item in found.derived]

            def body(tx: WriteTx) -> Forgotten:
                if _find(tx, subject, ref, before).ids != found.ids:
                    raise Moved
                archives = self._destroy(tx, actor, found)
                restored = 0
                for item in redone:
                    within(tx, item.derived.entry.ref)
                    self._redoing.apply(tx, actor, item)
                    restored += len(item.restore)
                within(tx, None)
                self._reindex(tx, redone)
                hashed = keyed_hash(tx.log_key(), subject)
                made = sum(item.output is not None for item in redone)
                data = {
                    "subject": hashed,
                    "scope": keyed_hash(tx.log_key(), ref) if ref else None,
                    "entries": counts.forgotten,
                    "derived": counts.derived,
                    "redone": made,
                    "archives": archives,
                    "bytes": counts.bytes,
                    "refs": counts.refs,
                }
                seq = tx.append(NewEvent("memory.forgotten", "FORGET", actor.id, data=data))
                if self._parts.ledger is not None:
                    # before the commit: a crash in between forgets once more after a restore, never once less
                    self._parts.ledger.add(tenant=actor.tenant, subject=hashed, ref=ref, at=tx.now)
                return msgspec.structs.replace(
                    counts, certificate=seq, redone=made, restored=restored, archives=archives
                )

            return body

        return self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant))

    def _destroy(self, tx: WriteTx, actor: Actor, found: Found) -> int:
        """Purge the entries and what was made from them, with reports marked and archives dropped."""
        archives = 0
        for entry in found.entries:
            purge(within(tx, entry.ref), actor, entry, operation="FORGET")
        for item in found.derived:
            purge(within(tx, item.entry.ref), actor, item.entry, operation="FORGET")
            if item.report is None:
                continue
            seq = tx.head().seq
            report = load_report(tx, item.report.id)
            save_report(tx, msgspec.structs.replace(report, state="redone", statements=()), seq=seq)
            if report.checksum and tx.load(ARCHIVE_SPACE, report.checksum) is not None:
                self._archives.drop(tx, actor, report.checksum)
                archives += 1
        everything = [*found.entries, *(item.entry for item in found.derived)]
        for key in sorted({str(e.attributes[SCOPE_ATTRIBUTE]) for e in everything if SCOPE_ATTRIBUTE in e.attributes}):
            drop_window(tx, actor, key)  # a conversation about the subject goes with its provider window
        named = {item.report.id for item in found.derived if item.report is not None}
        if named:
            for document in _all_documents(tx, WORK_SPACE):
                if orjson.loads(document.body or b"{}").get("dream") in named:
                    tx.drop(WORK_SPACE, document.key, seq=tx.head().seq)
        return archives

    def _reindex(self, tx: WriteTx, redone: Sequence[Redone]) -> None:
        if redone:
            add = [item.index for item in redone if item.index is not None]
            gone = [item.derived.entry.id for item in redone]
            self._archives.reindex(tx, "", add=add, remove=gone, keep=1)

    def replay(self, actor: Actor) -> int:
        """Forget again what the ledger says was forgotten: after a restore from an older backup. Returns how many."""
        actor.require(Right.WRITE)
        return self.again(actor, self._parts.ledger.of(actor.tenant)) if self._parts.ledger else 0

    def again(self, actor: Actor, lines: Sequence[ForgetLine]) -> int:
        """Forget what these lines name, whatever of it there is. Returns how many of them found something."""
        actor.require(Right.WRITE)
        if not lines:
            return 0

        def subjects(tx: ReadTx) -> dict[str, str]:
            key = tx.log_key()
            return {keyed_hash(key, subject): subject for subject in _subjects(tx)}

        known = self._parts.store.read(Scope(actor.tenant), subjects)
        done = 0
        for item in lines:
            subject = known.get(item.subject)
            if subject is not None and self.forget(actor, subject, ref=item.ref, before=item.at).forgotten:
                done += 1
        return done

    def cut_off(self, actor: Actor) -> list[ForgetLine]:
        """Forgets that this machine's ledger names and the log has no certificate of, each named once.

        Either the process died between the two, or the database was restored from an older backup.
        """
        if self._parts.ledger is None or self._parts.read_only:
            return []
        compared = self._certified.get(actor.tenant, 0)
        before = self._parts.clock.now() - UNDER_WAY_MS
        lines = self._parts.ledger.of(actor.tenant)[compared:]
        ripe = list(takewhile(lambda line: line.at <= before, lines))
        if not ripe:
            return []

        def body(tx: ReadTx) -> dict[object, int]:
            found: dict[object, int] = {}
            after = 0
            while events := tx.read_log(after=after, types=("memory.forgotten",)):
                found |= {event.data.get("subject"): event.at for event in events}
                after = events[-1].seq
            return found

        last = self._parts.store.read(Scope(actor.tenant), body)
        self._certified[actor.tenant] = compared + len(ripe)
        missing = [line for line in ripe if last.get(line.subject, -1) < line.at]
        return list({(line.subject, line.ref): line for line in missing}.values())


def within(tx: WriteTx, ref: str | None) -> WriteTx:
    """The same transaction, looking at one of its refs (or at all)."""
    tx.scope = Scope(tx.scope.tenant, ref)
    return tx


def _find(tx: ReadTx, subject: str, ref: str | None, before: int | None) -> Found:
    seen: set[int] = set()
    entries: list[Entry] = []
    for where in (
        msgspec.structs.replace(_ALIVE, subject=subject),
        msgspec.structs.replace(_ALIVE, any_tags=(SUBJECT_TAG + subject,)),
    ):
        found = _unseen(tx, where, seen)
        entries += [e for e in found if (ref is None or e.ref == ref) and (before is None or e.created_at <= before)]
    made = [entry for entry in entries if entry.attributes.get("dream")]
    plain = [entry for entry in entries if not entry.attributes.get("dream")]
    derived: dict[tuple[str, str], Derived] = {}
    reports = _reports(tx)
    original, scope = {entry.id for entry in plain}, tx.scope
    hashed = keyed_hash(tx.log_key(), subject)
    for name in sorted({entry.ref for entry in entries}):
        tx.scope = Scope(scope.tenant, name)
        ids = derived_from(tx, [entry.id for entry in plain if entry.ref == name])
        ids |= {entry.id for entry in made if entry.ref == name}
        for entry_id in sorted(ids):
            entry = tx.get(entry_id, where=_ALIVE)
            if entry is not None:
                derived[(name, entry_id)] = _derived(tx, entry, original | ids, reports, hashed)
    tx.scope = scope
    return Found(plain, list(derived.values()))


def _derived(tx: ReadTx, entry: Entry, excluded: set[str], reports: dict[str, str], subject: str) -> Derived:
    """What remains of a derived entry. A source that is itself derived stands for its own sources."""
    report_id = reports.get(entry.id)
    report = load_report(tx, report_id) if report_id else None
    remaining: dict[str, Entry] = {}
    forgotten: set[str] = set()
    lost = 0
    edge, seen = [entry.id], {entry.id}
    while edge:
        at = edge.pop()
        about = _about(tx, reports.get(at))
        for link in tx.links(at, type="distilled-from"):
            source = tx.get(link.to_id, where=ANYTHING)
            if link.to_id in excluded:
                forgotten.add(link.to_id)
                if source is not None and source.attributes.get("dream") and link.to_id not in seen:
                    seen.add(link.to_id)
                    edge.append(link.to_id)
            elif subject in about.get(link.to_id, ()):
                forgotten.add(link.to_id)
            elif source is not None and has_text(source):
                remaining[source.id] = source
            else:
                lost += 1
    return Derived(entry, report, list(remaining.values()), lost, frozenset(forgotten))


def _about(tx: ReadTx, report_id: str | None) -> Mapping[str, Sequence[str]]:
    return load_report(tx, report_id).about if report_id else {}


def _reports(tx: ReadTx) -> dict[str, str]:
    """Dream ids by the entry they made."""
    found = {}
    for document in _all_documents(tx, DREAM_SPACE):
        output = orjson.loads(document.body or b"{}").get("output_id")
        if output:
            found[str(output)] = document.key
    return found


def _all_documents(tx: ReadTx, space: str) -> Iterator[Document]:
    cursor: str | None = None
    while True:
        page = tx.documents(space, limit=_PAGE, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def _unseen(tx: ReadTx, where: Filter, seen: set[int]) -> Iterator[Entry]:
    cursor: str | None = None
    while True:
        page = tx.scan(where, limit=_PAGE, cursor=cursor)
        for entry in page.items:
            if entry.position not in seen:
                seen.add(entry.position)
                yield entry
        cursor = page.cursor
        if cursor is None:
            return


def _subjects(tx: ReadTx) -> set[str]:
    """Every subject the tenant's stored entries are about."""
    found: set[str] = set()
    for entry in _unseen(tx, _ALIVE, set()):
        if entry.subject:
            found.add(entry.subject)
        found |= {tag.removeprefix(SUBJECT_TAG) for tag in entry.tags if tag.startswith(SUBJECT_TAG)}
    return found


def _count(found: Found, *, preview: bool) -> Forgotten:
    everything = [*found.entries, *(item.entry for item in found.derived)]
    return Forgotten(
        forgotten=len(found.entries),
        derived=len(found.derived),
        redone=sum(item.entry.gone_seq is None and bool(item.remaining) for item in found.derived),
        restored=0,
        archives=sum(item.report is not None and bool(item.report.checksum) for item in found.derived),
        bytes=sum(entry.byte_size for entry in everything),
        refs=len({entry.ref for entry in everything}),
        held=sum(entry.held for entry in everything),
        preview=preview,
        readable=sum(entry.gone_seq is None for entry in everything),
    )
