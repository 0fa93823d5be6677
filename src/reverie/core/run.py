"""A run: a piece of work with a beginning, an end, and a stream of events between them.

The actions of a run are in the log, as events whose data names the run; the record here holds its state. It names the
entries that a run saw by log position and never holds their text, so that forgetting reaches what runs show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from reverie.core.actor import Actor
from reverie.core.entry import Document
from reverie.core.errors import Conflict

T = TypeVar("T")


ENGINE_VERSION = 1
"""Goes up when the stored run document changes its shape. A run of a later version is refused, never read in part."""


class RunStatus(StrEnum):
    """The state of a run."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
"""The states a run never leaves."""

END_EVENTS = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""The last event of a run is one of these; nothing follows it."""


class Interrupted(StrEnum):
    """The treatment of a run whose process died."""

    AGAIN = "again"
    """The work is repeated. Ids of what it writes derive from the run's id, so nothing is written twice."""
    FAIL = "fail"
    """The run fails with `run_interrupted`."""
    ELSEWHERE = "elsewhere"
    """The part that started the run starts it again, as a schedule does for its tick."""


class Fault(Struct, frozen=True):
    """The reason a run failed."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Fork(Struct, frozen=True):
    """The origin of a forked run."""

    source: str
    from_seq: int
    mode: str
    recorded: str | None = None
    """Replay: the run whose recorded events this one shows."""


class Pause(Struct, frozen=True):
    """A pause that someone asked for. It takes effect between two steps of the run."""

    policy: str
    at: int
    noted: bool = False
    """Whether it has taken effect: the run's stream says so, and no process works on the run."""
    withdrawn: bool = False
    """Whether the run was resumed before the pause had taken effect."""

    @property
    def pending(self) -> bool:
        return not self.noted


class Run(Struct, frozen=True):
    """The state of a run."""

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
    """Number of entries in that memory at the snapshot."""
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
    resumes: int = 0
    """Number of attempts that began because a pause ended."""
    pause: Pause | None = None
    done: bool = False
    """Whether its work was done before it was paused: nothing is left but its end."""
    fork: Fork | None = None
    engine: int = ENGINE_VERSION
    """The version of the engine that wrote it; runs older than this field are of version 1."""

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def observed(self) -> RunStatus:
        """The status according to the run's events: until its pause has taken effect, a run is still running."""
        waits = self.status is RunStatus.PAUSED and self.pause is not None and self.pause.pending
        return RunStatus.RUNNING if waits else self.status


class RunOver(Conflict):
    """The run has ended and takes no more writes."""

    code = "run_over"


RUN_SPACE = "run"
"""The document space of run records."""

COMPACT = "reverie.memory.compact"
DISTILL = "reverie.memory.distill"
CONSOLIDATE = "reverie.memory.consolidate"
COMMITMENTS = "reverie.memory.commitments"
DISPATCH = "reverie.agent.dispatch"
"""Ids of the host's own workflows. The first three take the input `{"memoryRef": ...}`."""


class RunRecords(Protocol):
    """The part of a transaction that `mark` needs."""

    def load(self, space: str, key: str) -> Document | None:
        """The newest version of a document; None when absent or dropped."""


def mark(tx: RunRecords, actor: Actor) -> dict[str, Any]:
    """The part of an event's data that names the acting run; empty when no run acts.

    Raises RunOver when the run has ended meanwhile: an executor that was declared dead cannot write after the last
    event of its run.
    """
    if actor.run is None:
        return {}
    document = tx.load(RUN_SPACE, actor.run)
    if document is not None and document.body is not None and msgspec.json.decode(document.body, type=Run).ended:
        raise RunOver()
    return {"run": actor.run}


def stopping(tx: RunRecords, run_id: str | None) -> bool:
    """Whether a run was asked to stop."""
    document = tx.load(RUN_SPACE, run_id) if run_id is not None else None
    if document is None or document.body is None:
        return False
    return msgspec.json.decode(document.body, type=Run).status in (RunStatus.CANCELLING, RunStatus.CANCELLED)


class RunStarter(Protocol):
    """Does work as a run, for callers that know nothing else about runs: a schedule, a job."""

    def around(
        self,
        actor: Actor,
        workflow_id: str,
        body: Callable[[Actor], T],
        *,
        ref: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        interrupted: Interrupted = Interrupted.FAIL,
    ) -> tuple[Run, T]:
        """Call `body` as a run; its actor marks every event with the run. Raises RunOver when `run_id` has ended."""

    def get(self, actor: Actor, run_id: str) -> Run:
        """A run by its id. Raises NotFound."""

    def cancel(self, actor: Actor, run_id: str) -> Run:
        """Ask a run to stop. One that no process works on ends at once; one that has ended stays as it is."""
