"""The body of each job, for any runner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.errors import ReverieError
from reverie.core.ids import TimeIds
from reverie.core.job import PASSING, Job
from reverie.core.pause import Pausing, unpaused
from reverie.core.ports import ForgetLine
from reverie.core.run import COMMITMENTS, CONSOLIDATE, DISTILL, Interrupted, RunOver, RunStatus
from reverie.jobs.ports import UseCases
from reverie.jobs.sweep import Sweeper, Swept
from reverie.store.leases import holder

T = TypeVar("T")


class JobFailed(ReverieError):
    """A job failed."""

    code = "internal_error"


class TaskResult(Struct, frozen=True):
    """The result of a job."""

    result: Mapping[str, Any]
    took: bool = True
    """False: another worker took it, or there was nothing left to do."""


class Tasks:
    """The jobs of one process. `run` does one of them."""

    def __init__(self, host: UseCases, pausing: Pausing = unpaused) -> None:
        """`pausing`: lets requests of other tenants to the same process go first, between two steps of a job."""
        self._host = host
        self._pausing = pausing
        self.holder = holder(f"worker/{TimeIds().new()}")
        self.sweeping = Sweeper(host, holder=self.holder)
        self._jobs = {
            "dream": self._dream,
            "consolidate": self._consolidate,
            "reindex": self._reindex,
            "retain": self._retain,
            "scan": self._scan,
            "recover": self._recover,
            "forget": self._forget,
            "commitments": self._commitments,
            "memory_dreams": self._memory_dreams,
        }

    def run(self, job: Job) -> TaskResult:
        """Do a job. Raises ReverieError with a code; safe to repeat."""
        return self._pausing(job.tenant, partial(self._jobs[job.name], job))()

    def sweeps(self, tenant: str) -> list[Job]:
        """Return the sweeps a tenant needs now, and its interrupted forgets. Read-only."""
        lines = self._host.forget.cut_off(self._host.system_actor(tenant))
        again = [
            # the whole line: the worker that gets it may be on a machine with another ledger
            Job("", "forget", tenant, msgspec.to_builtins(line), unique=_mark(line))
            for line in lines
        ]
        return [Job("", name, tenant) for name in self.sweeping.due(tenant)] + again

    def ticks(self, tenant: str) -> list[Job]:
        """Return the jobs of `look`: ticks, runs that have not ended, commitments, dreams of memory stores."""
        return self.look(tenant)[0]

    def look(self, tenant: str) -> tuple[list[Job], bool]:
        """(what a tenant needs now, whether jobs wait in the store's own queue). It then sleeps if it needs nothing."""
        found = self._host.agenda.look(self._host.system_actor(tenant))
        jobs = [
            Job("", schedule.kind, tenant, {"schedule": schedule.id, "tick": tick}, unique=f"{schedule.id}/{tick}")
            for schedule, tick in found.ticks
        ]
        needed = {
            "recover": found.recover,
            "commitments": found.commitments,
            "memory_dreams": found.memory_dreams,
        }
        return jobs + [Job("", name, tenant) for name in needed if needed[name]], found.jobs

    def _tick(self, job: Job) -> TaskResult:
        actor = self._host.system_actor(job.tenant)
        outcome = self._host.schedules.run_tick(actor, job.arguments["schedule"], job.arguments["tick"], self.holder)
        if outcome is None:
            return TaskResult({}, took=False)
        code = outcome.code or ""
        if outcome.status == "failed" and (code in PASSING or not code.islower()):  # else it would fail again
            raise JobFailed(code=code if code in PASSING else "internal_error")
        return TaskResult({"status": outcome.status, "dreams": len(outcome.dreams)})

    def _dream(self, job: Job) -> TaskResult:
        if "schedule" in job.arguments:
            return self._tick(job)
        # the same dream at every attempt: one that got through is not repeated
        dream_id = hashlib.sha256(f"job\n{job.tenant}\n{job.id}".encode()).hexdigest()[:26].upper()
        plan = DreamPlan(ref=job.arguments["ref"], fit=True)

        def dream(actor: Actor) -> bool:
            return self._host.dreams.run(actor, plan, dream_id=dream_id) is not None

        return TaskResult({"dreams": int(bool(self._as_run(job, DISTILL, dream_id, dream)))})

    def _as_run(self, job: Job, workflow: str, run_id: str, body: Callable[[Actor], T]) -> T | None:
        """Do a pass as a run of its own; None when an earlier attempt succeeded."""
        ref, actor = job.arguments["ref"], self._host.system_actor(job.tenant)

        def go(named: str | None) -> T:
            _, made = self._host.runs.around(
                actor,
                workflow,
                body,
                ref=ref,
                inputs={"memoryRef": ref},
                run_id=named,
                interrupted=Interrupted.ELSEWHERE,
            )
            return made

        try:
            return go(run_id)
        except RunOver:
            done = self._host.runs.get(actor, run_id).status is RunStatus.COMPLETED
        return None if done else go(None)

    def _consolidate(self, job: Job) -> TaskResult:
        if "schedule" in job.arguments:
            return self._tick(job)
        run_id = hashlib.sha256(f"job\n{job.tenant}\n{job.id}".encode()).hexdigest()[:26].upper()
        ref = job.arguments["ref"]
        done = self._as_run(job, CONSOLIDATE, run_id, lambda actor: self._host.consolidator.run(actor, ref))
        return TaskResult({"merged": len(done.merged) if done else 0})

    def _commitments(self, job: Job) -> TaskResult:
        actor = self._host.system_actor(job.tenant)
        _, fired = self._host.runs.around(actor, COMMITMENTS, self._host.commitments.fire_due)
        return TaskResult({"fired": fired}, took=fired > 0)

    def _memory_dreams(self, job: Job) -> TaskResult:
        done = self._host.memory_dreams.work(self._host.system_actor(job.tenant), holder=self.holder)
        return TaskResult({"dreams": done}, took=done > 0)

    def _retain(self, job: Job) -> TaskResult:
        return _swept(self.sweeping.retain(job.tenant))

    def _reindex(self, job: Job) -> TaskResult:
        return _swept(self.sweeping.reindex(job.tenant))

    def _scan(self, job: Job) -> TaskResult:
        report = self._host.rescan.scan(self._host.system_actor(job.tenant))
        return TaskResult({"entries": report.entries, "affected": report.affected})

    def _recover(self, job: Job) -> TaskResult:
        recovered = self._host.runs.recover(self._host.system_actor(job.tenant))
        return TaskResult({"runs": recovered}, took=recovered > 0)

    def _forget(self, job: Job) -> TaskResult:
        forget, actor = self._host.forget, self._host.system_actor(job.tenant)
        if not job.arguments:
            return TaskResult({"forgotten": forget.replay(actor)})
        line = msgspec.convert({**job.arguments, "tenant": job.tenant}, ForgetLine)
        return TaskResult({"forgotten": forget.again(actor, [line])})


def _mark(line: ForgetLine) -> str:
    """A name for the job of a line: forgets of one instant may be of several memories."""
    return "/".join((line.subject, str(line.at), line.mention or "", line.ref or ""))


def _swept(done: Swept | None) -> TaskResult:
    if done is None:
        return TaskResult({}, took=False)
    return TaskResult({name: getattr(done, name) for name in Swept.__struct_fields__})


def code_of(fault: BaseException) -> str:
    """The code of a fault; its message may hold memory text."""
    return fault.reason if isinstance(fault, ReverieError) else "internal_error"
