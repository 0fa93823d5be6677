"""The agenda of a tenant: the work due now, and the time of the next look.

Workers look at the tenants that are awake, not at all of them. Saving a schedule, beginning a run, keeping a commitment
or queuing a job wakes the tenant in the same transaction. A look finds the due work and sets the time of the next look,
also in one transaction. So no work is missed in between, and a tenant with nothing to do costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.entry import Scope
from reverie.jobs.queue import upcoming_job
from reverie.jobs.timetable import Schedule, live_schedules, ticks_around
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

FAR_MS = 30 * 86_400_000
"""Longest time between two looks at a tenant with schedules: a cron expression names its next instant only when that is
within a year."""


class TenantDue(Struct, frozen=True):
    """The findings of a look at a tenant."""

    ticks: tuple[tuple[Schedule, int], ...] = ()
    """Ticks that should run now."""
    recover: bool = False
    """There are runs that have not ended, and may have been abandoned."""
    commitments: bool = False
    """There are commitments that would fire."""
    memory_dreams: bool = False
    """There are dreams of memory stores that have not ended."""
    jobs: bool = False
    """There are jobs in the store's own queue that are due, or run."""
    next_at: int | None = None
    """Time of the next look: now, while there is anything to do."""
    idle: bool = True
    """Whether nothing is due now."""


Recovery = Callable[[ReadTx], int | None]
"""Callback that returns the time of the next check for waiting or abandoned runs, or dreams of memory stores; None when
there are none.
"""

Upcoming = Callable[[ReadTx], tuple[bool, int | None]]
"""(whether a commitment would fire now, when to look again)."""


class Agenda:
    """Looks at tenants for the workers."""

    def __init__(self, parts: Services, recovery: Recovery, commitments: Upcoming, dreams: Recovery) -> None:
        self._parts = parts
        self._dreams = dreams
        self._recovery = recovery
        self._commitments = commitments

    def awake(self) -> list[str]:
        """The tenants to look at now."""
        return [] if self._parts.read_only else self._parts.store.control(lambda tx: tx.awake())

    def look(self, actor: Actor) -> TenantDue:
        """Find the work a tenant needs now, without claiming it. With nothing to do the tenant sleeps until there may
        be.
        """
        if self._parts.read_only:
            return TenantDue()
        found = self._parts.store.read(Scope(actor.tenant), self._find)
        if found.idle:  # only this needs the tenant's writers to wait
            found = self._parts.store.write(Scope(actor.tenant), self._settle)
        return found

    def _settle(self, tx: WriteTx) -> TenantDue:
        found = self._find(tx)
        tx.wake(found.next_at, exactly=found.idle)
        return found

    def _find(self, tx: ReadTx) -> TenantDue:
        ticks: list[tuple[Schedule, int]] = []
        instants: list[int] = []
        for schedule in live_schedules(tx):
            tick, after = ticks_around(schedule, tx.now)
            if tick is not None:
                ticks.append((schedule, tick))
                instants.append(tx.now)
            elif after is not None:
                instants.append(min(after, tx.now + FAR_MS))
            elif not schedule.paused and schedule.cron:
                instants.append(tx.now + FAR_MS)
        firing, fires_at = self._commitments(tx)
        recover_at, job_at, dream_at = self._recovery(tx), upcoming_job(tx), self._dreams(tx)
        instants += [at for at in (recover_at, fires_at, job_at, dream_at) if at is not None]
        next_at = min(instants, default=None)
        return TenantDue(
            ticks=tuple(ticks),
            recover=recover_at is not None and recover_at <= tx.now,
            commitments=firing,
            memory_dreams=dream_at is not None and dream_at <= tx.now,
            jobs=job_at is not None and job_at <= tx.now,
            next_at=next_at,
            idle=next_at is None or next_at > tx.now,
        )
