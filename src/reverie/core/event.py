"""The event log: every change, in order, without any text of entries.

An event carries ids, counts and keyed hashes, never text and never a plain hash of text (a short secret can be
guessed from one). Its hash covers the canonical JSON of the event without the hash itself, so that anyone can recompute
it from the document that every door shows.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import force_setattr

from reverie.core.canonical import is_plain, sha256
from reverie.core.clock import to_datetime, to_iso
from reverie.core.errors import Invalid

EVENT_TYPES: Mapping[str, str] = {
    "memory.written": "an entry became readable",
    "memory.pinned": "an entry was pinned: dreams leave it as it is",
    "memory.unpinned": "an entry was unpinned",
    "memory.held": "a hold was put on an entry: it may not be erased until released",
    "memory.released": "a hold on an entry ended",
    "memory.archived": "an entry was archived: it is kept, out of lists, search and prompts",
    "memory.restored": "an archived or retired entry is readable again",
    "memory.retracted": "an entry was withdrawn by its author",
    "memory.superseded": "an entry was replaced by another",
    "memory.deleted": "an entry left every read; its text waits for destruction",
    "memory.renewed": "the expiry of an entry changed",
    "memory.expired": "an entry passed its expiry and was swept",
    "memory.purged": "the text of an entry was destroyed",
    "memory.forgotten": "everything about a subject was erased; this is the certificate",
    "searches.forgotten": "no entry was about the subject of a forget; recorded searches that name it were dropped",
    "memory.redacted": "a scan found a secret in stored text and replaced it",
    "memory.indexed": "vectors of entries were computed again",
    "memory.imported": "a bundle was imported",
    "memory.exported": "a bundle was exported",
    "memory.compacted": "many entries became one: a dream",
    "agent.memory.consolidated": "standing memory was reconciled: duplicates merged, outdated statements superseded",
    "dream.undone": "a dream was taken back and its sources are readable again",
    "dream.redone": "a dream was made again from what remained after a forget",
    "memory.version": "a file of a memory store was created, modified or deleted",
    "memory.version_redacted": "a version of a file lost its text, path and hash for good",
    "memory_dream.changed": "a dream of a memory store was requested, began, ended, or was canceled or undone",
    "memory_store.created": "a memory store was created",
    "memory_store.updated": "the name, description or metadata of a memory store changed",
    "memory_store.archived": "a memory store was archived: its files are read-only",
    "memory_store.deleted": "a memory store was deleted with its files",
    "archive.collected": "the archive of a dream was deleted at the end of its retention",
    "workspace.updated": "a workspace file got a new version",
    "schedule.saved": "a schedule was created or changed",
    "schedule.dropped": "a schedule was removed",
    "schedule.fired": "a scheduled run was started",
    "schedule.ran": "a scheduled run ended, with its outcome",
    "run.started": "a run began; the events of its work name it in `data.run`",
    "run.pausing": "a run was asked to pause; it pauses at its next step",
    "run.resuming": "a run was resumed before its pause had taken effect",
    "run.paused": "a run stopped between two steps until it is resumed",
    "run.resumed": "a paused run continues (`data.run`), or a run whose process died was taken over (`data.resumed`)",
    "run.replayed": "a new run was made from the recorded events of a run",
    "node.started": "a step of a run began",
    "node.completed": "a step of a run ended successfully",
    "node.failed": "a step of a run failed, with the code of the error",
    "agent.reasoned": "an agent looked up what it knows about a task: how many entries, and which",
    "agent.decided": "an agent answered a task or escalated it, with its confidence in thousandths",
    "run.completed": "a run ended successfully",
    "run.failed": "a run failed, with the code of the error",
    "run.cancelling": "a run was asked to stop; it ends at its next step",
    "run.cancelled": "a run ended because it was asked to",
    "job.changed": "a job of the queue was added, started, finished, failed, given up, retried or discarded",
    "commitment.fired": "an intention found in memory came due, or its condition became true",
    "memory.corroborated": "an entry was repeated: its count went up",
    "document.saved": "a record other than an entry was saved: a session, an agent or a commitment",
    "document.dropped": "a document that is not memory was dropped",
    "model.reserved": "the most that a call to a model can use was reserved before the call",
    "model.settled": "the actual usage of a call to a model was recorded",
    "provider_window_updated": "a conversation's provider window grew by a turn",
    "provider_window_reset": "a provider window was dropped and started over",
    "provider_window_rewound": "an item was removed from a provider window",
    "provider_window_dropped": "a provider window was removed",
    "remote_compaction_started": "a provider was about to be asked to compact a window",
    "remote_compaction_committed": "a provider compacted a window",
    "remote_compaction_failed": "a compaction failed; the window stayed as it was",
    "remote_compaction_rejected": "a compaction's answer was not usable; the window stayed as it was",
    "remote_compaction_abandoned": "the outcome of a compaction is unknown; the window stayed as it was",
    "remote_compaction_unavailable": "this provider has no way left to compact",
    "server_side_disabled": "server-side compaction was switched off after faults",
    "server_side_overdue": "server-side compaction did not happen when it was due",
    "policy.changed": "the tenant's policy changed",
    "secret.registered": "a known secret was registered",
    "secret.removed": "a known secret was removed from the registry",
    "tenant.created": "the tenant's first event",
    "agent.joined": "an agent registered in the Field",
    "agent.left": "an agent left the Field",
    "agent.failed": "an agent's task failed",
    "memory.recorded": "an agent recorded a unit in the Field",
    "memory.contested": "a unit is part of an open conflict",
    "memory.settled": "a unit is no longer contested",
    "memory.enriched": "a unit that waited for its vector got it",
    "conflict.detected": "two units contradict each other",
    "conflict.resolving": "a conflict is being resolved",
    "conflict.vote": "an agent voted on a conflict",
    "conflict.escalated": "a conflict waits for a human",
    "conflict.resolved": "a conflict was resolved",
    "task.created": "a task was created",
    "task.assigned": "a task was assigned",
    "task.state_changed": "the state of a task changed",
    "task.completed": "a task was completed",
    "handoff.initiated": "a task was offered to another agent",
    "handoff.accepted": "a task was taken over",
    "handoff.rejected": "a task was given back",
    "session.opened": "a session was used for the first time",
    "session.created": "a session was created",
    "session.joined": "agents joined a session",
    "session.left": "an agent left a session",
    "session.paused": "a session was paused",
    "session.resumed": "a session was resumed",
    "session.ended": "a session ended for good",
    "session.policy_changed": "a session's policy changed",
    "field.compacted": "a COMPACT was carried out: its strategy and counts",
    "field.attuned": "an agent read the Field",
    "field.read": "an agent queried the Field",
    "field.subscribed": "an agent subscribed to events",
    "field.unsubscribed": "an agent ended a subscription",
}
"""Every event type with its meaning; doors and docs are checked against it."""

RULE_EVENTS = frozenset({"policy.changed", "secret.registered", "secret.removed"})
"""Events after which a writer must load policy and known secrets again before it stores anything."""


class NewEvent(Struct, frozen=True):
    """An event about to be appended; the log adds position, time and hashes."""

    type: str
    operation: str
    actor: str
    entry_id: str | None = None
    session: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    conflict_id: str | None = None
    task_id: str | None = None


class Event(Struct, frozen=True):
    """One row of the log."""

    seq: int
    epoch: int
    at: int
    type: str
    operation: str
    actor: str
    session: str | None
    entry_id: str | None
    conflict_id: str | None
    task_id: str | None
    data: Mapping[str, Any]
    prev_hash: str
    hash: str

    @property
    def time(self) -> datetime:
        """`at` as an aware datetime, UTC."""
        return to_datetime(self.at)

    def document(self) -> dict[str, Any]:
        """The event as every door shows it. `hash` is the SHA-256 of the canonical JSON of the other fields."""
        return {**_body(self), "hash": self.hash}

    def sound(self) -> bool:
        """Whether the hash matches the other fields."""
        try:
            return hmac.compare_digest(self.hash, _digest(self))
        except (ValueError, TypeError, OverflowError, RecursionError, Invalid):  # damaged beyond having a hash
            return False


def chain(new: NewEvent, *, seq: int, epoch: int, at: int, prev_hash: str) -> Event:
    """`new` as the next link of the chain."""
    event = Event(
        seq=seq,
        epoch=epoch,
        at=at,
        type=new.type,
        operation=new.operation,
        actor=new.actor,
        session=new.session,
        entry_id=new.entry_id,
        conflict_id=new.conflict_id,
        task_id=new.task_id,
        data=new.data,
        prev_hash=prev_hash,
        hash="",
    )
    force_setattr(event, "hash", _digest(event))
    return event


def genesis(tenant: str) -> str:
    """The hash before the first event of a tenant: it binds the chain to the tenant's name."""
    return sha256({"reverie": "log/1", "tenant": tenant})


def keyed_hash(key: bytes, text: str) -> str:
    """HMAC-SHA-256 of text under the tenant's log key: comparable inside the log, useless outside."""
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def answer_key(log_key: bytes, use: str, key: str) -> str:
    """The stored form of an idempotency key: its hash under the tenant's key, because callers put anything into one."""
    return f"{use}/{keyed_hash(log_key, key)}"


def _digest(event: Event) -> str:
    # Everything but `data` has ASCII keys, strings and integers: sorted orjson is canonical there (core/canonical.py).
    if is_plain(event.data):
        return hashlib.sha256(orjson.dumps(_body(event), option=orjson.OPT_SORT_KEYS)).hexdigest()
    return sha256(_body(event))


def _body(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "epoch": event.epoch,
        "ts": to_iso(event.at),
        "type": event.type,
        "operation": event.operation,
        "agent_id": event.actor,
        "session_id": event.session,
        "memory_unit_id": event.entry_id,
        "conflict_id": event.conflict_id,
        "task_id": event.task_id,
        "data": dict(event.data),
        "prev_hash": event.prev_hash,
    }
