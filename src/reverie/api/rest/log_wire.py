"""Answers about the log."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from reverie.api.rest.wire import Outward, When


class EventOut(Outward):
    """One row of the log: ids, counts and keyed hashes, never text."""

    seq: int
    epoch: int
    ts: When
    type: str
    operation: str
    agent_id: str
    session_id: str | None
    memory_unit_id: str | None
    conflict_id: str | None
    task_id: str | None
    data: dict[str, Any]
    prev_hash: str
    hash: str


class EventsOut(Outward):
    events: list[EventOut]
    next: Annotated[int, Meta(description="Pass it as `after` to continue.")]


class VerdictOut(Outward):
    ok: bool
    events: int
    entries: int
    head: str
    broken_at: int | None
    reason: str | None
    backwards: Annotated[int, Meta(description="Events whose clock was behind that of an earlier one.")]
