"""The worker: dreams what is due, destroys what expired or outlived the undo window, makes vectors that are missing.

Any number of processes may run one over the same store: each tenant is swept under a lease, and each tick of a
schedule is taken by one process.
"""

from __future__ import annotations

import logging
import threading
import time

from msgspec import Struct

from reverie.core.errors import ReverieError
from reverie.core.ids import TimeIds
from reverie.host import Host
from reverie.host.sweep import Sweeping
from reverie.ops.logs import Action, log, where
from reverie.ops.metrics import Metrics


class Round(Struct, frozen=True):
    """What one round over all tenants did."""

    tenants: int = 0
    """Tenants that had something to do."""
    expired: int = 0
    retired: int = 0
    indexed: int = 0
    failed: int = 0
    collected: int = 0


class Worker:
    """Two threads beside the server: one sweeps, one dreams by the clock, so that neither waits for the other.

    A fault is logged by its code and tried again at the next round.
    """

    def __init__(
        self, host: Host, *, every_seconds: int, poll_seconds: int = 5, metrics: Metrics | None = None
    ) -> None:
        self._host = host
        self._every = max(every_seconds, 1)
        self._poll = max(poll_seconds, 1)
        self._metrics = metrics or Metrics()
        self._sweeping = Sweeping(host, holder=f"worker/{TimeIds().new()}")
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin: a sweep now, then one every `every_seconds`; schedules are looked at every `poll_seconds`."""
        for name, loop in (("reverie-worker", self._run), ("reverie-dreams", self._dream)):
            thread = threading.Thread(target=loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """End after the tenant at hand."""
        self._stop.set()
        until = time.monotonic() + patience_seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.1))

    def tick(self) -> int:
        """Run every schedule that is due and that no other process took; returns how many."""
        ran = 0
        try:
            tenants = self._host.tenants()
        except Exception as fault:
            self._failed(fault)
            return 0
        for tenant in tenants:
            if self._stop.is_set():
                break
            try:
                ran += self._host.schedules.tick(self._host.system_actor(tenant))
            except Exception as fault:
                self._failed(fault)
        return ran

    def _dream(self) -> None:
        while not self._stop.is_set():
            ran = self.tick()
            if ran:
                log(Action.DREAMT, schedules=ran)
            self._stop.wait(self._poll)

    def round(self) -> Round:
        """Sweep every tenant once. Tenants that another process sweeps at the moment are left to it."""
        total = Round()
        try:
            tenants = self._host.tenants()
        except Exception as fault:
            self._failed(fault)
            return Round(failed=1)
        for tenant in tenants:
            if self._stop.is_set():
                break
            total = _sum(total, self._tenant(tenant))
        return total

    def _run(self) -> None:
        while not self._stop.is_set():
            done = self.round()
            if done.expired or done.retired:
                log(Action.SWEPT, expired=done.expired, retired=done.retired, tenants=done.tenants)
            if done.collected:
                log(Action.COLLECTED, archives=done.collected)
            if done.indexed:
                log(Action.INDEXED, entries=done.indexed)
            self._stop.wait(self._every)

    def _tenant(self, tenant: str) -> Round:
        try:
            done = self._sweeping.sweep(tenant)
        except Exception as fault:
            self._failed(fault)
            return Round(failed=1)
        if done is None:
            return Round()
        self._metrics.sweeps.labels("done").inc()
        self._metrics.swept.inc(done.expired + done.retired)
        return Round(1, done.expired, done.retired, done.indexed, collected=done.collected)

    def _failed(self, fault: Exception) -> None:
        code = fault.reason if isinstance(fault, ReverieError) else "internal_error"
        self._metrics.sweeps.labels("failed").inc()
        log(Action.WORKER_FAILED, level=logging.WARNING, code=code, fault=where(fault))


def _sum(one: Round, two: Round) -> Round:
    return Round(*(getattr(one, name) + getattr(two, name) for name in Round.__struct_fields__))
