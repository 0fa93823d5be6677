"""Dreams as documents: request, status and changes. Ids, counts and hashes, no texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from reverie.core.errors import Invalid, NotFound
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.memory.files import complement
from reverie.protocols.anthropic import stores
from reverie.protocols.anthropic.names import DREAM, bare
from reverie.store.contract import ReadTx, WriteTx

SPACE = "memdreams"
ACTIVE_SPACE = "memdreaming"
"""Dreams that have not ended, by id."""
TEXT_SPACE = "memdreamtext"
"""Transcripts that came with a dream, redacted, until it has ended."""
FINAL = frozenset({"completed", "failed", "canceled"})
STATUSES = ("pending", "running", "completed", "failed", "canceled")
MOST_ACTIVE = 100
MODEL_FREE_MS = 15 * 60_000


class DreamFault(Struct, frozen=True):
    """The reason a dream failed."""

    type: str
    message: str


class Options(Struct, frozen=True):
    """Reverie's additions to the request."""

    budget: int | None = None
    fit: bool = True
    condense: bool = False
    exclude: tuple[str, ...] = ()


class FileChange(Struct, frozen=True):
    """Change made by a dream to one file."""

    file: str
    operation: str
    before: str | None = None
    """Version before; None: there was no file."""
    after: str | None = None
    """Version after; None: the file is gone."""
    path: str = ""


class DreamRecord(Struct, frozen=True):
    """A dream of a memory store."""

    id: str
    store: str
    model: str
    distiller: str
    created_at: int
    actor: str
    status: str = "pending"
    sessions: tuple[str, ...] | None = None
    instructions: str | None = None
    existing: bool = False
    """`update_existing`: the result goes into the input store."""
    output: str | None = None
    run: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    archived_at: int | None = None
    error: DreamFault | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    options: Options = Options()
    transcripts: tuple[tuple[str, str], ...] = ()
    """Id and SHA-256 of each transcript that came with the request."""
    report: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[FileChange, ...] = ()
    cloned: Mapping[str, str] = field(default_factory=dict)
    """Version of each file of the clone, by file id."""
    state: str = "done"
    """`undone` after an undo."""


class Canceled(Exception):
    """The dream was canceled while it was being dreamt."""


def load(tx: ReadTx, dream_id: str) -> DreamRecord:
    """A dream by its bare id. Raises NotFound."""
    document = tx.load(SPACE, complement(dream_id))
    if document is None or not document.body:
        raise NotFound("There is no dream with that id.")
    return msgspec.json.decode(document.body, type=DreamRecord)


def find(tx: ReadTx, name: str) -> DreamRecord:
    """A dream by the id the protocol knows it by."""
    return load(tx, bare(DREAM, name, "dream"))


def save(tx: WriteTx, actor: str, record: DreamRecord) -> int:
    """Store a dream with its event. A final one leaves the active list, and its transcripts are dropped."""
    data = {"dream": record.id, "store": record.store, "status": record.status}
    seq = tx.append(NewEvent("memory_dream.changed", "MEMORY_DREAM", actor, data=data))
    tx.save(SPACE, complement(record.id), msgspec.json.encode(record), seq=seq)
    if record.status not in FINAL:
        tx.save(ACTIVE_SPACE, record.id, b"1", seq=seq)
        tx.wake(tx.now)
        return seq
    tx.drop(ACTIVE_SPACE, record.id, seq=seq, keep=0)
    tx.drop(TEXT_SPACE, record.id, seq=seq, keep=0)
    if record.output is not None:
        release(tx, record, seq=seq)
    return seq


def release(tx: WriteTx, record: DreamRecord, *, seq: int) -> None:
    """Release the output store."""
    try:
        store = stores.load(tx, record.output or "")
    except NotFound:
        return
    if store.dream == record.id:
        stores.save(tx, msgspec.structs.replace(store, dream=None), seq=seq)


def active(tx: ReadTx) -> Iterator[DreamRecord]:
    """Dreams that have not ended, oldest first."""
    for document in tx.documents(ACTIVE_SPACE, limit=MOST_ACTIVE).items:
        yield load(tx, document.key)


def upcoming_dream(tx: ReadTx) -> int | None:
    """Return the time of the next check for dreams that wait or were abandoned: now, while there are any."""
    return tx.now if tx.documents(ACTIVE_SPACE, limit=1).items else None


def check_options(options: Options, policy: TenantPolicy) -> None:
    """Refuse a budget above the tenant's."""
    if options.budget is not None and not 1 <= options.budget <= policy.dream_budget:
        raise Invalid(
            f"reverie.budget: it is a whole number from 1 to {policy.dream_budget}.", pointer="/reverie/budget"
        )


def check_time(tx: ReadTx, record: DreamRecord, policy: TenantPolicy) -> None:
    """Raise TimeoutError when a dream took longer than it may."""
    most = MODEL_FREE_MS if record.distiller == "extractive" else policy.model_seconds_per_dream * 1000
    if tx.now - (record.started_at or tx.now) > most:
        raise TimeoutError
