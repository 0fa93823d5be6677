"""Verification and export of the event log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import EntryState, Scope
from reverie.core.errors import ReverieError
from reverie.core.event import Event, genesis
from reverie.core.pause import pause
from reverie.core.query import Anchored, each
from reverie.memory.insertion import entry_hash
from reverie.memory.policy import LARGEST
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx

_PAGE = 200
CLOCK_SKEW_MS = 60_000
_VERIFIED = "verified/"
DESTROYING = frozenset({"memory.purged", "memory.expired"})
"""Events after which an entry has no text."""
Progress = Callable[[int, int], None]


class Verdict(Struct, frozen=True):
    """The result of verifying a tenant's log."""

    ok: bool
    events: int
    """Events checked."""
    entries: int
    """Entries whose text was compared with the log."""
    head: str
    broken_at: int | None = None
    """The first position at which something is wrong."""
    reason: str | None = None
    backwards: int = 0
    """Events dated more than a minute before one that precedes them: the clock had jumped ahead. The order is that of
    the log, whatever the times."""


class Proof(Struct, frozen=True):
    """The last time a tenant's log was verified."""

    at: int
    position: int
    """The head of the log then."""
    ok: bool


class Audit:
    """Reads the log and never changes it. Records when it was last verified."""

    def __init__(self, parts: Services) -> None:
        self._store = parts.store
        self._parts = parts

    def verify(self, actor: Actor, *, progress: Progress | None = None) -> Verdict:
        """Walk the whole chain on one snapshot and name the first broken link, if there is one.

        Checked: the log has no gap, every hash fits its event, every event names its predecessor, and the last event is
        the one that the tenant's head records; every entry in the log is stored, and its text is the one that was
        written, or is gone where the log says so. On SQLite also: the log reaches the position acknowledged last, which
        is noted outside the database. On PostgreSQL also: entries, vectors and documents fit their stored checksums.
        """
        actor.require(Right.READ)
        noted = self._store.anchored(actor.tenant)
        verdict = self._store.read(Scope(actor.tenant), lambda tx: _verify(tx, noted, progress))
        if verdict.ok and (damage := self._store.damaged(actor.tenant)) is not None:
            verdict = msgspec.structs.replace(verdict, ok=False, reason=damage)
        self._note(actor.tenant, Proof(self._parts.clock.now(), verdict.events, verdict.ok))
        return verdict

    def last(self, actor: Actor) -> Proof | None:
        """Return the last verification of the log through this store; None: never."""
        actor.require(Right.READ)
        noted = self._store.control(lambda tx: tx.setting(_VERIFIED + actor.tenant))
        return None if noted is None else msgspec.json.decode(noted, type=Proof)

    def _note(self, tenant: str, proof: Proof) -> None:
        """Record the verdict; it is returned even where it cannot be recorded: on a read-only host, or a full disk."""
        if not self._parts.read_only:
            with suppress(ReverieError):
                body = msgspec.json.encode(proof)
                self._store.control(lambda tx: tx.set_setting(_VERIFIED + tenant, body), write=True)

    def export(self, actor: Actor, *, after: int = 0) -> Iterator[Event]:
        """Every event after a position, in order."""
        actor.require(Right.READ)
        after = min(after, LARGEST)
        while True:
            events = self._page(actor, after)
            yield from events
            if len(events) < _PAGE:
                return
            after = events[-1].seq

    def _page(self, actor: Actor, after: int) -> list[Event]:
        return self._store.read(Scope(actor.tenant), lambda tx: tx.read_log(after=after, limit=_PAGE))


def _verify(tx: ReadTx, noted: Anchored | None, progress: Progress | None) -> Verdict:
    head = tx.head()
    expected_hash, expected_seq, last_epoch = genesis(tx.scope.tenant), 1, 0
    written: dict[tuple[str, str], tuple[int, str | None]] = {}
    """By ref and id: the position of the last event about the text of an entry, and the text's hash, None once it was
    destroyed."""

    def broken(seq: int, reason: str) -> Verdict:
        return Verdict(False, seq - 1, 0, head.hash, broken_at=seq, reason=reason)

    # Each event is checked against the one before it, then against the anchor outside the database: a chain that was
    # forged as a whole is sound in itself.
    after = latest = backwards = 0
    while True:
        events = tx.read_log(after=after, limit=_PAGE)
        for event in events:
            pause()
            if event.seq != expected_seq:
                return broken(expected_seq, "an event is missing")
            if event.prev_hash != expected_hash:
                return broken(event.seq, "the event does not name the hash of the one before it")
            if not event.sound():
                return broken(event.seq, "the event does not fit its hash")
            if event.epoch < last_epoch:
                return broken(event.seq, "the epoch goes back")
            if noted is not None and event.seq == noted.seq and not noted.fits(bytes.fromhex(event.hash)):
                return broken(event.seq, "the log is not the one that was acknowledged")
            expected_hash, expected_seq, last_epoch = event.hash, event.seq + 1, event.epoch
            # Clocks jump: an earlier time is counted and reported, and breaks nothing.
            backwards += event.at < latest - CLOCK_SKEW_MS
            latest = max(latest, event.at)
            if event.entry_id is not None and "ref" in event.data:
                named = (str(event.data["ref"]), event.entry_id)
                if "hash" in event.data:
                    written[named] = (event.seq, str(event.data["hash"]))
                elif event.type in DESTROYING:
                    written[named] = (event.seq, None)
        if progress:
            progress(expected_seq - 1, head.seq)
        if len(events) < _PAGE:
            break
        after = events[-1].seq
    # The chain alone cannot show that its end was cut off; the head and the anchor outside the database can.
    if expected_seq - 1 < head.seq:
        return broken(expected_seq, "the log ends before the head does")
    if expected_seq - 1 > head.seq:
        return broken(head.seq + 1, "the log has events after its head")
    if noted is not None and head.seq < noted.seq:
        return broken(head.seq + 1, f"acknowledged events are missing, up to {noted.seq}")
    if expected_hash != head.hash:
        return broken(max(head.seq, 1), "the head does not name the last event")
    return msgspec.structs.replace(_verify_entries(tx, written), backwards=backwards)


def _verify_entries(tx: ReadTx, written: dict[tuple[str, str], tuple[int, str | None]]) -> Verdict:
    head, key, checked = tx.head(), tx.log_key(), 0

    def broken(seq: int, reason: str) -> Verdict:
        return Verdict(False, head.seq, checked, head.hash, broken_at=seq, reason=reason)

    for entry in each(lambda cursor: tx.scan(ANYTHING, limit=_PAGE, cursor=cursor)):
        pause()
        seq, logged = written.pop((entry.ref, entry.id), (None, None))
        if seq is None:
            return broken(entry.born_seq, "a stored entry is not in the log")
        if entry.state is EntryState.ERASED:
            if logged is not None or entry.content:
                return broken(seq, "the text of an entry was destroyed without an event")
            continue
        if logged is None:
            return broken(seq, "the log says that a text was destroyed, and it is still there")
        if logged != entry_hash(key, entry):
            return broken(seq, "a stored entry is not as written")
        checked += 1
    if written:
        return broken(min(seq for seq, _ in written.values()), "a written entry is missing")
    return Verdict(True, head.seq, checked, head.hash)
