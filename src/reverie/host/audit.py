"""The log, proved: verify, export, tail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import EntryState, Scope
from reverie.core.event import Event, genesis
from reverie.host.parts import Parts
from reverie.host.read import ANYTHING
from reverie.host.write import entry_hash
from reverie.store.contract import ReadTx

_PAGE = 2000
Progress = Callable[[int, int], None]


class Verdict(Struct, frozen=True):
    """Whether a tenant's log holds."""

    ok: bool
    events: int
    """Events checked."""
    entries: int
    """Entries whose text was compared with the log."""
    head: str
    broken_at: int | None = None
    """The first position at which something is wrong."""
    reason: str | None = None


class Audit:
    """Reads the log; changes nothing."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store

    def verify(self, actor: Actor, *, progress: Progress | None = None) -> Verdict:
        """Walk the whole chain on one snapshot and name the first broken link, if there is one.

        Checked: no gap, every hash fits its event, every event names its predecessor, the tip is the one the tenant's
        head records, and the text of every stored entry is the text the log saw written.
        """
        actor.require(Right.READ)
        return self._store.read(Scope(actor.tenant), lambda tx: _verify(tx, progress))

    def export(self, actor: Actor, *, after: int = 0) -> Iterator[Event]:
        """Every event after a position, in order."""
        actor.require(Right.READ)
        while True:
            events = self._page(actor, after)
            yield from events
            if len(events) < _PAGE:
                return
            after = events[-1].seq

    def _page(self, actor: Actor, after: int) -> list[Event]:
        return self._store.read(Scope(actor.tenant), lambda tx: tx.read_log(after=after, limit=_PAGE))


def _verify(tx: ReadTx, progress: Progress | None) -> Verdict:
    head = tx.head()
    expected_hash, expected_seq, last_epoch = genesis(tx.scope.tenant), 1, 0
    written: dict[tuple[str, str], str] = {}

    def broken(seq: int, reason: str) -> Verdict:
        return Verdict(False, seq - 1, 0, head.hash, broken_at=seq, reason=reason)

    after = 0
    while True:
        events = tx.read_log(after=after, limit=_PAGE)
        for event in events:
            if event.seq != expected_seq:
                return broken(expected_seq, "an event is missing")
            if event.prev_hash != expected_hash:
                return broken(event.seq, "the event does not name the hash of the one before it")
            if not event.sound():
                return broken(event.seq, "the event does not fit its hash")
            if event.epoch < last_epoch:
                return broken(event.seq, "the epoch goes back")
            expected_hash, expected_seq, last_epoch = event.hash, event.seq + 1, event.epoch
            if event.entry_id is not None and "hash" in event.data and "ref" in event.data:
                written[(str(event.data["ref"]), event.entry_id)] = str(event.data["hash"])
        if progress:
            progress(expected_seq - 1, head.seq)
        if len(events) < _PAGE:
            break
        after = events[-1].seq
    if expected_seq - 1 != head.seq:
        return broken(expected_seq, "the log ends before the head does")
    if expected_hash != head.hash:
        return broken(max(head.seq, 1), "the head does not name the last event")
    return _verify_entries(tx, written)


def _verify_entries(tx: ReadTx, written: dict[tuple[str, str], str]) -> Verdict:
    head, key, checked = tx.head(), tx.log_key(), 0
    where = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED})
    cursor: str | None = None
    while True:
        page = tx.scan(where, limit=_PAGE, cursor=cursor)
        for entry in page.items:
            logged = written.get((entry.ref, entry.id))
            if logged is None or logged != entry_hash(key, entry):
                reason = "a stored entry is not in the log" if logged is None else "a stored entry is not as written"
                return Verdict(False, head.seq, checked, head.hash, broken_at=entry.born_seq, reason=reason)
            checked += 1
        cursor = page.cursor
        if cursor is None:
            return Verdict(True, head.seq, checked, head.hash)
