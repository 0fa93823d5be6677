"""A MemoryUnit is an Entry: kind is its type, state its status, links its relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from reverie.core.clock import to_iso
from reverie.core.entry import Draft, Entry, EntryState, Link, Source
from reverie.core.event import Event
from reverie.core.query import Filter
from reverie.store.contract import ReadTx, each_event

TYPES = (
    "finding",
    "decision",
    "observation",
    "intention",
    "assumption",
    "constraint",
    "question",
    "contradiction",
    "synthesis",
    "correction",
    "human_directive",
)
RELATIONS = (
    "supports",
    "contradicts",
    "depends_on",
    "supersedes",
    "caused_by",
    "elaborates",
    "answers",
    "blocks",
    "informs",
)
STATUSES = ("active", "draft", "superseded", "retracted", "contested", "pending_enrichment")
UNIT_STATES = frozenset(EntryState(status) for status in STATUSES)
"""The states in which an entry is a unit. In the others another interface has removed it."""
ANY_UNIT = Filter(states=UNIT_STATES, archived=None, gone=True, expired=None)
"""Every unit that still has text, hot or archived."""
HOT = Filter(states=UNIT_STATES, archived=False, gone=True, expired=None)
ARCHIVED = Filter(states=UNIT_STATES, archived=True, gone=True, expired=None)
PURGED = Filter(states=frozenset({EntryState.ERASED}), archived=None, gone=True, expired=None)

PURGES = ("memory.purged", "memory.expired")
_OWN_TAGS = ("compacted-from:", "archive:")
"""Prefixes of tags that the host sets; not shown."""


def type_of(entry: Entry) -> str:
    """The unit's type."""
    return type_of_kind(entry.kind)


def type_of_kind(kind: str) -> str:
    """The type of units of a kind. What another interface wrote is an observation."""
    return kind if kind in TYPES else "observation"


def status_of(entry: Entry) -> str:
    """The unit's status."""
    return entry.state.value if entry.state in UNIT_STATES else EntryState.RETRACTED.value


def unit(entry: Entry, links: Sequence[Link], *, content: str | None = None) -> dict[str, Any]:
    """The unit on the wire. `content` replaces the entry's own when it was shortened."""
    attributes = entry.attributes
    intent = attributes.get("intent")
    confidence = attributes.get("confidence")
    shown: dict[str, Any] = {
        "id": entry.id,
        "mode": "draft" if entry.state is EntryState.DRAFT else str(attributes.get("mode", "committed")),
        "type": type_of(entry),
        "content": entry.content if content is None else content,
        "intent": {
            "purpose": f"written through {entry.source.door or 'reverie'}",
            "task_id": None,
            "question": None,
            **(intent if isinstance(intent, dict) else {}),
        },
        "source": {
            "agent_id": entry.source.actor,
            "agent_role": entry.source.role or entry.source.door or "unknown",
            "session_id": entry.source.session,
            "timestamp": to_iso(entry.created_at),
        },
        "relations": [
            {"type": link.type, "target_id": link.to_id, "description": link.note}
            for link in links
            if link.type in RELATIONS
        ],
        "status": status_of(entry),
        "epoch": entry.epoch,
    }
    if isinstance(confidence, dict):
        shown["confidence"] = {name: value for name, value in confidence.items() if value is not None}
    if entry.subject is not None:
        shown["subject"] = entry.subject
    tags = [tag for tag in entry.tags if not tag.startswith(_OWN_TAGS)]
    if tags:
        shown["tags"] = tags
    if entry.archived:
        shown["archived"] = True
        shown["archived_epoch"] = attributes.get("archived_epoch")
    if "derived_from_types" in attributes:
        shown["derived_from_types"] = attributes["derived_from_types"]
    return shown


def unit_with_relations(tx: ReadTx, entry: Entry) -> dict[str, Any]:
    """The unit on the wire, with its relations."""
    return unit(entry, relations_of(tx, entry))


def relations_of(tx: ReadTx, entry: Entry) -> Sequence[Link]:
    """The unit's links. The attribute `relations` counts those it was recorded with, so 0 spares the query."""
    return () if entry.attributes.get("relations") == 0 else tx.links(entry.id)


def find_unit(tx: ReadTx, unit_id: str) -> Entry | None:
    """A unit that still has text, hot or archived, visible to the caller or not."""
    return tx.get(unit_id, where=ANY_UNIT)


def as_born(tx: ReadTx, entry: Entry) -> Entry:
    """A purged unit with its session, which its row has lost and the event of its birth has kept."""
    birth = tx.read_log(after=entry.born_seq - 1, limit=1)
    session = birth[0].session if birth and birth[0].entry_id == entry.id else None
    return structs.replace(entry, source=structs.replace(entry.source, session=session))


def tombstone(tx: ReadTx, entry: Entry) -> dict[str, Any]:
    """Return the tombstone of a purged unit: when, why and by whom it was purged, from the log."""
    left = entry.born_seq if entry.gone_seq is None else entry.gone_seq  # by its purge, unless it had left before
    for event in each_event(tx, after=left - 1, types=PURGES):
        if event.entry_id == entry.id:
            return tombstone_of(event)
    return {"unit_id": entry.id, "deleted_at": None, "reason": "forgotten", "purged_by": None}


def tombstone_of(event: Event) -> dict[str, Any]:
    """Return the tombstone that an event of `PURGES` holds, or the one that follows from it."""
    made = event.data.get("tombstone")
    if isinstance(made, dict):
        return dict(made)
    return {
        "unit_id": event.entry_id,
        "deleted_at": to_iso(event.at),
        "reason": "forget" if event.operation == "FORGET" else event.type,
        "purged_by": event.actor,
    }


def intent_of(entry: Entry) -> Mapping[str, Any]:
    """Return the intent with which it was recorded."""
    intent = entry.attributes.get("intent")
    return intent if isinstance(intent, dict) else {}


def task_of(entry: Entry) -> str | None:
    """The task it belongs to."""
    task = intent_of(entry).get("task_id")
    return task if isinstance(task, str) else None


def score_of(entry: Entry) -> float | None:
    """Return its author's confidence score."""
    confidence = entry.attributes.get("confidence")
    score = confidence.get("score") if isinstance(confidence, dict) else None
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None


class Wish(Struct, frozen=True):
    """A valid request to record a unit."""

    kind: str
    content: str
    mode: str
    intent: Mapping[str, Any]
    confidence: Mapping[str, Any] | None
    subject: str | None
    tags: tuple[str, ...]


def draft(
    *,
    kind: str,
    content: str,
    mode: str,
    intent: Mapping[str, Any],
    confidence: Mapping[str, Any] | None,
    author: str,
    role: str,
    session: str | None,
    state: EntryState,
    more: Mapping[str, Any] | None = None,
    subject: str | None = None,
    tags: tuple[str, ...] = (),
) -> Draft:
    """A unit as a draft of an entry, for `Entries.prepare`."""
    attributes: dict[str, Any] = {"mode": mode, "intent": dict(intent), **(more or {})}
    if confidence is not None:
        attributes["confidence"] = dict(confidence)
    return Draft(
        content=content,
        kind=kind,
        subject=subject,
        tags=tags,
        attributes=attributes,
        source=Source(actor=author, role=role, session=session),
        state=state,
    )
