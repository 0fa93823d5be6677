"""What each job does. One definition, whoever runs it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reverie.core.dream import DreamPlan
from reverie.core.errors import ReverieError
from reverie.core.ids import TimeIds
from reverie.core.job import PASSING, Job
from reverie.host import Host
from reverie.host.sweep import Sweeping, Swept


class JobFailed(ReverieError):
    """A job did not get through."""

    code = "internal_error"


class Done(Struct, frozen=True):
    """What a job did."""

    result: Mapping[str, Any]
    took: bool = True
    """False: another worker had it, or there was nothing left to do."""


class Definitions:
    """The jobs of one process. `run` does one of them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.holder = f"worker/{TimeIds().new()}"
        self.sweeping = Sweeping(host, holder=self.holder)
        self._jobs = {
            "dream": self._dream,
            "consolidate": self._consolidate,
            "reindex": self._reindex,
            "retain": self._retain,
            "scan": self._scan,
            "forget": self._forget,
        }

    def run(self, job: Job) -> Done:
        """Do a job. Raises ReverieError with a code; safe to repeat."""
        return self._jobs[job.name](job)

    def due(self, tenant: str) -> list[Job]:
        """What the clock and the store say a tenant needs now. Only looks."""
        found = [Job("", name, tenant) for name in self.sweeping.due(tenant)]
        return self.ticks(tenant) + found

    def ticks(self, tenant: str) -> list[Job]:
        """The ticks that should run now."""
        due = self._host.schedules.due_ticks(self._host.system_actor(tenant))
        return [
            Job("", schedule.kind, tenant, {"schedule": schedule.id, "tick": tick}, unique=f"{schedule.id}/{tick}")
            for schedule, tick in due
        ]

    def _tick(self, job: Job) -> Done:
        actor = self._host.system_actor(job.tenant)
        outcome = self._host.schedules.run_tick(actor, job.arguments["schedule"], job.arguments["tick"], self.holder)
        if outcome is None:
            return Done({}, took=False)
        code = outcome.code or ""
        if outcome.status == "failed" and (code in PASSING or not code.islower()):  # else it would fail again
            raise JobFailed(code=code if code in PASSING else "internal_error")
        return Done({"status": outcome.status, "dreams": len(outcome.dreams)})

    def _dream(self, job: Job) -> Done:
        if "schedule" in job.arguments:
            return self._tick(job)
        # the same dream at every attempt: one that got through is not repeated
        dream_id = hashlib.sha256(f"job\n{job.tenant}\n{job.id}".encode()).hexdigest()[:26].upper()
        plan = DreamPlan(ref=job.arguments["ref"], fit=True)
        report = self._host.dreaming.run(self._host.system_actor(job.tenant), plan, dream_id=dream_id)
        return Done({"dreams": int(report is not None)})

    def _consolidate(self, job: Job) -> Done:
        if "schedule" in job.arguments:
            return self._tick(job)
        done = self._host.consolidating.run(self._host.system_actor(job.tenant), job.arguments["ref"])
        return Done({"merged": len(done.merged)})

    def _retain(self, job: Job) -> Done:
        return _swept(self.sweeping.retain(job.tenant))

    def _reindex(self, job: Job) -> Done:
        return _swept(self.sweeping.reindex(job.tenant))

    def _scan(self, job: Job) -> Done:
        report = self._host.scanning.scan(self._host.system_actor(job.tenant))
        return Done({"entries": report.entries, "affected": report.affected})

    def _forget(self, job: Job) -> Done:
        return Done({"forgotten": self._host.forgetting.replay(self._host.system_actor(job.tenant))})


def _swept(done: Swept | None) -> Done:
    if done is None:
        return Done({}, took=False)
    return Done({name: getattr(done, name) for name in Swept.__struct_fields__})


def code_of(fault: Exception) -> str:
    """The code of a fault; its message may hold what nobody should see."""
    return fault.reason if isinstance(fault, ReverieError) else "internal_error"
