"""The worker of one process: does the work due by the clock, and the jobs in the store's queue.

Any number of processes may run one over the same store: each tenant is swept under a lease, each tick of a schedule
is taken by one process, and a queued job is leased to one.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

import msgspec
from msgspec import Struct

from reverie.core.job import Job
from reverie.core.pause import Pausing, unpaused
from reverie.jobs.ports import Observer, UseCases
from reverie.jobs.queue import LEASE_MS, DocumentQueue, lease_of
from reverie.jobs.tasks import TaskResult, Tasks, code_of

_QUEUE_SECONDS = 5
"""Interval of looks at the queue when no schedule is due."""


class Runner(Protocol):
    """Something that runs jobs in the background."""

    def start(self) -> None:
        """Begin."""

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """Take no more jobs, and wait for those that run."""


class Round(Struct, frozen=True):
    """The result of one round over all tenants."""

    tenants: int = 0
    """Tenants that had something to do."""
    expired: int = 0
    retired: int = 0
    indexed: int = 0
    failed: int = 0
    collected: int = 0


class Worker:
    """Two background threads: one sweeps, one runs schedules, so that neither waits for the other.

    Failed work is logged by its code and waits in the queue for its next attempt.
    """

    def __init__(
        self,
        host: UseCases,
        *,
        every_seconds: int,
        poll_seconds: int = 5,
        observer: Observer | None = None,
        pausing: Pausing = unpaused,
    ) -> None:
        self._host = host
        self._every = max(every_seconds, 1)
        self._poll = poll_seconds or _QUEUE_SECONDS
        self._by_the_clock = poll_seconds > 0
        self._observer = observer or Observer()
        self._jobs = Tasks(host, pausing)
        self._queue = DocumentQueue(host.parts)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._met = False
        """Whether every tenant was looked at once."""

    def start(self) -> None:
        """Begin: a sweep now, then one every `every_seconds`; schedules are looked at every `poll_seconds`."""
        for name, loop in (("reverie-worker", self._run), ("reverie-dreams", self._dream)):
            thread = threading.Thread(target=loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """Stop after the current job."""
        self._stop.set()
        until = time.monotonic() + patience_seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.1))

    def tick(self) -> int:
        """Run every tick that is due and that no other process took, and one queued job of each tenant that has any.

        Returns how many. Only tenants that are awake cost anything, but the first time all are looked at: another
        release may have written here. One job each: a tenant with ten thousand does not keep the others waiting.
        """
        tenants = self._tenants(awake=self._met)
        self._met = True
        ran = 0
        for tenant in tenants:
            if self._stop.is_set():
                break
            try:
                ticks, queued = self._jobs.look(tenant)
            except Exception as fault:
                self._fault("dream", fault)
                continue
            if self._by_the_clock:
                ran += sum((done := self._do(job)) is not None and done.took for job in ticks)
            ran += self._next(tenant) if queued else 0
        return ran

    def _next(self, tenant: str) -> int:
        """Run the tenant's next job in the queue; returns 1, or 0 when there is none."""
        try:
            job = self._queue.take(tenant, self._jobs.holder)
            if job is None:
                return 0
            actor = self._host.system_actor(tenant)
            with self._host.leases.beating(actor, lease_of(job.id), self._jobs.holder, for_ms=LEASE_MS):
                self._attempt(job)
        except Exception as fault:
            self._fault("queue", fault)
            return 0
        return 1

    def round(self) -> Round:
        """Sweep every tenant once. Tenants that another process sweeps at the moment are left to it."""
        total = Round()
        for tenant in self._tenants():
            if self._stop.is_set():
                break
            total = _sum(total, self._tenant(tenant))
        return total

    def _tenants(self, *, awake: bool = False) -> list[str]:
        try:
            return self._host.agenda.awake() if awake else self._host.tenants()
        except Exception as fault:
            self._fault("tenants", fault)
            return []

    def _tenant(self, tenant: str) -> Round:
        try:
            jobs = self._jobs.sweeps(tenant)
        except Exception as fault:
            self._fault("retain", fault)
            return Round(failed=1)
        total, took = Round(), False
        for job in jobs:
            done = self._do(job)
            if done is None:
                total = _sum(total, Round(failed=1))
            elif done.took:
                took = True
                found = {key: value for key, value in done.result.items() if key in Round.__struct_fields__}
                total = _sum(total, Round(**found))
        return _sum(total, Round(tenants=1)) if took else total

    def _do(self, job: Job) -> TaskResult | None:
        """Do the due work; when it fails it is queued, unless it is queued already."""
        try:
            done = self._jobs.run(job)
        except Exception as fault:
            self._fault(job.name, fault)
            try:
                self._queue.add(job.tenant, job.name, job.arguments, unique=job.unique, error=code_of(fault))
            except Exception as second:
                self._fault("queue", second)
            return None
        if done.took:
            self._observer.done(job, done.result)
        return done

    def _attempt(self, job: Job) -> None:
        try:
            self._observer.done(job, self._jobs.run(job).result)
        except Exception as fault:
            self._fault(job.name, fault)
            self._queue.failed(job, self._jobs.holder, code_of(fault))
        else:
            self._queue.done(job, self._jobs.holder)

    def _fault(self, name: str, fault: Exception) -> None:
        self._observer.failed(name, code_of(fault), fault)

    def _dream(self) -> None:
        self._host.dreams.load()  # here, so that the first dream does not stop other requests for it
        while not self._stop.is_set():
            ran = self.tick()
            if ran:
                self._observer.ticked(ran)
            else:
                self._stop.wait(self._poll)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._observer.swept(msgspec.structs.asdict(self.round()))
            self._stop.wait(self._every)


def _sum(one: Round, two: Round) -> Round:
    return Round(*(getattr(one, name) + getattr(two, name) for name in Round.__struct_fields__))
