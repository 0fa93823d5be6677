"""Pauses of a run, inside a transaction: requested, in effect between two steps, ended.

A run that a process is working on is paused in two transactions. The first records the request; in the second the
process puts it into effect, when its step has ended or was dropped. From then on the snapshot says paused, no process
holds the run, and recovery skips it, also after a restart.
"""

from __future__ import annotations

from typing import Any

import msgspec

from reverie.core.actor import Actor
from reverie.core.clock import to_iso
from reverie.core.errors import Conflict, Forbidden
from reverie.core.event import Event, NewEvent
from reverie.core.run import Interrupted, Pause, Run, RunStatus
from reverie.protocols.openwop.run_records import OPEN_SPACE, lease_of, save_run
from reverie.protocols.openwop.workspace import WORKFLOW as WORKSPACE_WORKFLOW
from reverie.store.contract import ReadTx, WriteTx

_EVENTS = frozenset({"run.paused", "run.resumed"})
_PAGE = 1000


class Pauses:
    """Pauses and resumes runs. `holder` names this process in the leases of runs."""

    def __init__(self, holder: str, lease_ms: int) -> None:
        self._holder = holder
        self._lease_ms = lease_ms

    def ask(self, tx: WriteTx, actor: Actor, run: Run, policy: str, *, known: bool) -> Run:
        """Ask a run to pause; one that no process works on is paused at once. Raises Conflict, Forbidden."""
        if run.status is not RunStatus.RUNNING:
            raise _conflict(run, "This run is not running.")
        if run.workflow == WORKSPACE_WORKFLOW:
            raise Forbidden("This run is the host's own and does not pause.", code="run_forbidden")
        if not known or run.interrupted is not Interrupted.AGAIN:
            message = "This run belongs to a schedule or a dream and does not pause. Cancel it, or pause the schedule."
            raise _conflict(run, message)
        next_run = msgspec.structs.replace(run, status=RunStatus.PAUSED, pause=Pause(policy, tx.now))
        if tx.claim(lease_of(run.id), "pause", until=tx.now + 1):
            tx.release(lease_of(run.id), "pause")
            return self.take_effect(tx, actor, next_run)
        seq = tx.append(NewEvent("run.pausing", "RUN", actor.id, data={"pausing": run.id, "policy": policy}))
        save_run(tx, next_run, seq=seq)
        return next_run

    def take_effect(self, tx: WriteTx, actor: Actor, run: Run, *, done: bool = False) -> Run:
        """Put a requested pause into effect between two steps. One that was withdrawn is noted with its end, and the
        run continues.

        `done`: the step was the last one.
        """
        pause = run.pause
        assert pause is not None
        data: dict[str, Any] = {"run": run.id, "policy": pause.policy}
        seq = tx.append(NewEvent("run.paused", "RUN", actor.id, data=data))
        if pause.withdrawn:
            seq = tx.append(NewEvent("run.resumed", "RUN", actor.id, data={"run": run.id}))
            resumed = msgspec.structs.replace(run, pause=None)
            save_run(tx, resumed, seq=seq)
            return resumed
        noted = msgspec.structs.replace(pause, noted=True)
        paused = msgspec.structs.replace(run, pause=noted, done=done)
        save_run(tx, paused, seq=seq)
        tx.drop(OPEN_SPACE, run.id, seq=seq)
        tx.release(lease_of(run.id), self._holder)
        return paused

    def end(self, tx: WriteTx, actor: Actor, run: Run) -> Run:
        """Resume a run. If the result still has a pause, its process had not stopped yet and continues; else this
        process holds the run now.
        """
        pause = run.pause
        if run.status is not RunStatus.PAUSED or pause is None:
            raise _conflict(run, "This run is not paused.")
        if pause.pending:
            withdrawn = msgspec.structs.replace(pause, withdrawn=True)
            resumed = msgspec.structs.replace(run, status=RunStatus.RUNNING, pause=withdrawn)
            data: dict[str, Any] = {"resuming": run.id}
            save_run(tx, resumed, seq=tx.append(NewEvent("run.resuming", "RUN", actor.id, data=data)))
            return resumed
        resumed = msgspec.structs.replace(
            run,
            status=RunStatus.RUNNING,
            pause=None,
            attempts=run.attempts + 1,
            resumes=run.resumes + 1,
        )
        seq = tx.append(NewEvent("run.resumed", "RUN", actor.id, data={"run": run.id}))
        save_run(tx, resumed, seq=seq)
        tx.save(OPEN_SPACE, run.id, b"", seq=seq)
        tx.claim(lease_of(run.id), self._holder, until=tx.now + self._lease_ms)
        tx.wake(tx.now + self._lease_ms)
        return resumed


def in_replay(tx: ReadTx, run_id: str) -> list[Event]:
    """The recorded events of a run as a replay shows them: without its pauses."""
    results: list[Event] = []
    while page := tx.read_run(run_id, skip=len(results), limit=_PAGE):
        results += page
    return [event for event in results if event.type not in _EVENTS]


def _conflict(run: Run, said: str) -> Conflict:
    details: dict[str, Any] = {"runStatus": run.status.value}
    if run.status is RunStatus.PAUSED and run.pause is not None:
        details["pausedAt"] = to_iso(run.pause.at)
    code = "run_terminal" if run.ended else "run_state_conflict"
    return Conflict(f"{said} It is {run.status.value}.", code=code, details=details)
