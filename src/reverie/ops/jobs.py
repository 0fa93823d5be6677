"""Logs and metrics of jobs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from reverie.core.job import Job
from reverie.jobs.ports import Observer
from reverie.ops.logs import Action, log, where
from reverie.ops.metrics import Metrics

_SWEEPS = ("retain", "reindex")


class JobObserver(Observer):
    """Logs and counts the outcome of jobs."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def done(self, job: Job, result: Mapping[str, Any]) -> None:
        """Count a job that succeeded. One with an id, from a queue, is logged too; `swept` logs the sweeps."""
        self._metrics.job(job.name, "done")
        if job.name in _SWEEPS:
            self._metrics.sweeps.labels("done").inc()
            self._metrics.swept.inc(result.get("expired", 0) + result.get("retired", 0))
        if job.id:
            log(Action.JOB, job=job.name, id=job.id, attempt=job.attempts + 1)

    def failed(self, name: str, code: str, fault: BaseException) -> None:
        """Count a job that failed, and log the line that raised the fault."""
        self._metrics.job(name, "failed")
        if name in (*_SWEEPS, "tenants"):
            self._metrics.sweeps.labels("failed").inc()
        log(Action.WORKER_FAILED, level=logging.WARNING, job=name, code=code, fault=where(fault))

    def ticked(self, schedules: int) -> None:
        """Log the schedules that ran."""
        log(Action.DREAMT, schedules=schedules)

    def swept(self, counts: Mapping[str, int]) -> None:
        """Log the counts of a round of sweeps, unless nothing was done."""
        expired, retired = counts["expired"], counts["retired"]
        if expired or retired:
            log(Action.SWEPT, expired=expired, retired=retired, tenants=counts["tenants"])
        if counts["collected"]:
            log(Action.COLLECTED, archives=counts["collected"])
        if counts["indexed"]:
            log(Action.INDEXED, entries=counts["indexed"])
