"""Jobs: work that is done later, by whichever worker is free.

A job is a name, a tenant and a few plain arguments: ids, names and numbers, never text. Its worker may die at any
instruction, so it may run more than once. Every job is safe to repeat: leases and compare-and-set in the store decide
what takes effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from reverie.core.errors import Invalid

JOBS: Mapping[str, str] = {
    "dream": "dream for the tick of a schedule, or dream a memory once",
    "consolidate": "reconcile the memory of a schedule's tick, or a memory once",
    "reindex": "compute missing vectors",
    "retain": "destroy what expired or outlived its retention",
    "scan": "check all stored text against the current redaction rules",
    "recover": "resume runs whose process died, or end them",
    "forget": "repeat the forgets of the ledger: after a restore, or when a forget was interrupted",
    "memory_dreams": "run the dreams of memory stores that wait, or were abandoned",
    "commitments": "fire the commitments that came due, or whose condition became true",
}
"""Every job with its meaning. The names are the same on every store."""

STATUSES = ("waiting", "running", "dead")
MOST_ATTEMPTS = 5
"""Attempts after which a job is dead: it stays visible, and runs again only on request."""
PASSING = frozenset({"busy", "store_busy", "store_unavailable", "store_error", "storage_full", "model_failed"})
"""Transient faults. A job that failed for another known reason would fail again; it is dead at once."""
_ARGUMENTS = {"schedule": str, "tick": int, "ref": str}


class Job(Struct, frozen=True):
    """Work to be done for one tenant."""

    id: str
    name: str
    tenant: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    status: str = "waiting"
    attempts: int = 0
    error: str | None = None
    """The code of the last fault."""
    created_at: int = 0
    due_at: int = 0
    """The earliest start. After each fault the delay is longer."""
    unique: str = ""
    """While a job waits, another one of the same name and `unique` is not added."""


class JobQueue(Protocol):
    """Queue of pending jobs. Work that is due by the clock is not in it: workers find that themselves."""

    def add(self, tenant: str, name: str, arguments: Mapping[str, Any], *, unique: str = "") -> Job | None:
        """Add a job. None when the same job waits already."""

    def list(self, tenant: str, *, status: str | None = None) -> Sequence[Job]:
        """The jobs of a tenant, oldest first."""

    def retry(self, tenant: str, job_id: str) -> Job:
        """Let a dead or waiting job run at once, with its attempts counted from zero. Raises NotFound."""

    def discard(self, tenant: str, job_id: str) -> None:
        """Remove a job that does not run. Raises NotFound, and Busy when it runs."""


def check_job(name: str, arguments: Mapping[str, Any]) -> None:
    """Check a job. Arguments are ids, names and numbers, so that no text can be among them. Raises Invalid."""
    if name not in JOBS:
        raise Invalid(f"A job is one of {', '.join(JOBS)}.", pointer="/name")
    allowed = _ARGUMENTS if name in ("dream", "consolidate") else {}
    for key, value in arguments.items():
        wanted = allowed.get(key)
        if wanted is None or not isinstance(value, wanted) or isinstance(value, bool):
            raise Invalid(f"The job {name} takes {', '.join(allowed) or 'no arguments'}.", pointer=f"/{key[:64]}")
    if allowed and "ref" not in arguments and not {"schedule", "tick"} <= set(arguments):
        raise Invalid(f"The job {name} needs a ref, or a schedule and its tick.", pointer="/arguments")


def pause_ms(attempts: int) -> int:
    """Return the delay before the next attempt of a job, after `attempts` failures."""
    pause: int = 5_000 << max(attempts - 1, 0)
    return min(pause, 600_000)
