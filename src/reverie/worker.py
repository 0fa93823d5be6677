"""The worker: destroys what expired or outlived the undo window, and makes vectors that are missing.

Any number of processes may run one over the same store: each tenant is swept under a lease.
"""

from __future__ import annotations

import logging
import threading

from msgspec import Struct

from reverie.core.errors import ReverieError
from reverie.core.ids import TimeIds
from reverie.host import Host
from reverie.ops.logs import Action, log, where
from reverie.ops.metrics import Metrics

LEASE = "sweep"
LEASE_MS = 10 * 60_000


class Sweep(Struct, frozen=True):
    """What one round over all tenants did."""

    tenants: int = 0
    expired: int = 0
    retired: int = 0
    indexed: int = 0
    failed: int = 0


class Worker:
    """A thread beside the server. A fault is logged by its code and tried again at the next round."""

    def __init__(self, host: Host, *, every_seconds: int, metrics: Metrics | None = None) -> None:
        self._host = host
        self._every = max(every_seconds, 1)
        self._metrics = metrics or Metrics()
        self._holder = f"worker/{TimeIds().new()}"
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._whole_at: dict[str, int] = {}  # tenant: the log position at which no vector was missing

    def start(self) -> None:
        """Begin: one round now, then one every `every_seconds`."""
        self._thread = threading.Thread(target=self._run, name="reverie-worker", daemon=True)
        self._thread.start()

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """End after the tenant at hand."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience_seconds)

    def round(self) -> Sweep:
        """Sweep every tenant once. Tenants that another process sweeps at the moment are left to it."""
        total = Sweep()
        try:
            tenants = self._host.tenants()
        except Exception as fault:
            self._failed(fault)
            return Sweep(failed=1)
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
            if done.indexed:
                log(Action.INDEXED, entries=done.indexed)
            self._stop.wait(self._every)

    def _tenant(self, tenant: str) -> Sweep:
        actor = self._host.system_actor(tenant)
        try:
            if not self._host.leases.take(actor, LEASE, self._holder, for_ms=LEASE_MS):
                return Sweep()
            try:
                expired = self._host.lifecycle.expire(actor)
                retired = self._host.lifecycle.retain(actor)
                indexed = self._fill(tenant)
            finally:
                self._host.leases.give_back(actor, LEASE, self._holder)
        except Exception as fault:
            self._failed(fault)
            return Sweep(failed=1)
        self._metrics.sweeps.labels("done").inc()
        self._metrics.swept.inc(expired + retired)
        return Sweep(1, expired, retired, indexed)

    def _fill(self, tenant: str) -> int:
        """Missing vectors. Counting them reads the whole index, so it is done only after the log has moved."""
        actor = self._host.system_actor(tenant)
        head = self._host.reading.snapshot(actor)
        if self._whole_at.get(tenant) == head:
            return 0
        indexed = self._host.reindexing.fill(actor)
        self._whole_at[tenant] = self._host.reading.snapshot(actor) if indexed else head
        return indexed

    def _failed(self, fault: Exception) -> None:
        code = fault.reason if isinstance(fault, ReverieError) else "internal_error"
        self._metrics.sweeps.labels("failed").inc()
        log(Action.WORKER_FAILED, level=logging.WARNING, code=code, fault=where(fault))


def _sum(one: Sweep, two: Sweep) -> Sweep:
    return Sweep(*(getattr(one, name) + getattr(two, name) for name in Sweep.__struct_fields__))
