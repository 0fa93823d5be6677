"""Retention of files: versions past their retention, and deleted stores.

The time at which a text is due is recorded when it is replaced or deleted, so a sweep reads no more than what is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from reverie.core.actor import Actor, Right
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import FILE_KIND, Entry, EntryState, Scope
from reverie.core.errors import ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import Filter, each
from reverie.memory import files
from reverie.memory.files import COUNT_SPACE, DUE_SPACE, Due
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

_BATCH = 200
_WHOLE = "*"
_TEXTS = Filter(
    kinds=(FILE_KIND,), states=frozenset(EntryState) - {EntryState.ERASED}, archived=None, gone=True, expired=None
)


class FileRetention:
    """Destroys versions that outlived their retention."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def sweep(self, actor: Actor) -> int:
        """Destroy the versions that are due; return the number of those with text. A held version waits a day."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        total = 0
        while True:

            def look(tx: ReadTx) -> Sequence[Due]:
                return list(files.due(tx, limit=_BATCH))

            found = self._parts.store.read(Scope(actor.tenant), look)
            for one in found:
                scope = Scope(actor.tenant, one.ref)
                more = True
                while more:
                    done, more = self._parts.store.write(scope, lambda tx, one=one: _destroy(tx, actor, one))  # type: ignore[misc]
                    total += done
            if len(found) < _BATCH:
                return total


def _destroy(tx: WriteTx, actor: Actor, due: Due) -> tuple[int, bool]:
    """(versions destroyed, whether there is more to do). One transaction, safe to repeat."""
    if tx.load(DUE_SPACE, due.key) is None:
        return 0, False
    seq = tx.append(NewEvent("document.dropped", "RETAIN", actor.id, data={"space": DUE_SPACE}))
    if due.what == _WHOLE:
        return _destroy_store(tx, actor, due, seq)
    tx.drop(DUE_SPACE, due.key, seq=seq, keep=0)
    version = files.load_version(tx, due.store, due.what)
    if version is None:
        return 0, False
    file = files.find_file(tx, due.store, version.file)
    if file is not None and version.id in file.recent:  # it is kept as long as the file exists
        return 0, False
    entry = tx.get(version.id, where=ANYTHING) if version.text else None
    if entry is not None and entry.held:
        files.expire(tx, due.store, due.what, ref=due.ref, at=tx.now + MS_PER_DAY, seq=seq)
        return 0, False
    destroyed = _purge(tx, actor, [entry] if entry is not None else [])
    files.drop_version(tx, due.store, version, seq=seq)
    return destroyed, False


def _destroy_store(tx: WriteTx, actor: Actor, due: Due, seq: int) -> tuple[int, bool]:
    texts = each(lambda cursor: tx.scan(_TEXTS, limit=_BATCH, cursor=cursor))
    mine = (entry for entry in texts if str(entry.attributes.get("store", "")).endswith(due.store) and not entry.held)
    if own := list(islice(mine, _BATCH)):
        return _purge(tx, actor, own), True
    for space in (files.paths(due.store), files.ids(due.store), files.versions(due.store), files.histories(due.store)):
        page = tx.documents(space, limit=_BATCH)
        for document in page.items:
            tx.drop(space, document.key, seq=seq, keep=0)
        if page.items:
            return 0, True
    tx.drop(COUNT_SPACE, due.store, seq=seq, keep=0)
    tx.drop(DUE_SPACE, due.key, seq=seq, keep=0)
    return 0, False


def _purge(tx: WriteTx, actor: Actor, entries: Sequence[Entry]) -> int:
    texts = [entry for entry in entries if entry.state is not EntryState.ERASED]
    purge(tx, actor, *texts, operation="RETAIN")
    return len(texts)
