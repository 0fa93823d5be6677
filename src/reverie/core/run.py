"""A run: a piece of work with a beginning, an end, and a stream of events between them.

What a run did is in the log, in events whose data names it; the record here says how it stands. It keeps which
entries a run saw, never their text, so that forgetting reaches what runs show.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from reverie.core.errors import Conflict


class RunStatus(StrEnum):
    """Where a run is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
"""The states a run never leaves."""

END_EVENTS = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""The last event of a run is one of these; nothing follows it."""


class Interrupted(StrEnum):
    """What becomes of a run whose process died."""

    AGAIN = "again"
    """Its work is done again; everything it writes has an id made from the run's, so nothing is done twice."""
    FAIL = "fail"
    """It is failed with `run_interrupted`."""
    ELSEWHERE = "elsewhere"
    """Whoever started it starts it again: a schedule its tick."""


class Fault(Struct, frozen=True):
    """Why a run failed."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Fork(Struct, frozen=True):
    """Where a forked run comes from."""

    source: str
    from_seq: int
    mode: str
    recorded: str | None = None
    """Replay: the run whose recorded events this one shows."""


class Run(Struct, frozen=True):
    """How a run stands."""

    id: str
    workflow: str
    status: RunStatus
    actor: str
    rights: tuple[str, ...]
    authority: int
    snapshot: int
    """The log position at which the run sees memory."""
    started_at: int
    ref: str | None = None
    """The memory it works on."""
    seen: int = 0
    """How many entries that memory had at the snapshot."""
    files: tuple[tuple[str, int], ...] = ()
    """Workspace files at its start: (path, version)."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    configurable: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    fault: Fault | None = None
    completed_at: int | None = None
    interrupted: Interrupted = Interrupted.FAIL
    attempts: int = 1
    fork: Fork | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class RunOver(Conflict):
    """The run has ended: nothing is written in its name any more."""

    code = "run_over"
