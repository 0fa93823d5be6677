"""Jobs as documents of the tenant: the queue of a store that has no job engine of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.core.errors import Busy, NotFound, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.job import MOST_ATTEMPTS, PASSING, Job, check_job, pause_ms
from reverie.core.query import each
from reverie.memory.policy import RuleBook, check_ref
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

JOB_SPACE = "job"
LEASE_MS = 60_000
_ACTOR = "host:reverie"


class Jobs:
    """The jobs of a tenant, for operators: list, retry, discard."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self.queue = parts.jobs or DocumentQueue(parts)

    def add(self, actor: Actor, name: str, arguments: Mapping[str, Any]) -> Job | None:
        """Add a job for the next free worker; None when the same one waits already."""
        actor.require(Right.ADMIN)
        if self._parts.read_only:
            raise ReadOnly()
        check_job(name, arguments)
        if "ref" in arguments:
            check_ref(arguments["ref"])
        names = {f"/{name}": value for name, value in arguments.items() if isinstance(value, str)}
        self._rules.check_names(actor.tenant, names)
        unique = "/".join(str(arguments[key]) for key in sorted(arguments))
        return self.queue.add(actor.tenant, name, arguments, unique=unique)

    def all(self, actor: Actor, *, status: str | None = None) -> list[Job]:
        """The tenant's pending, running and failed jobs, oldest first."""
        actor.require(Right.ADMIN)
        return list(self.queue.list(actor.tenant, status=status))

    def get(self, actor: Actor, job_id: str) -> Job:
        """One job."""
        found = next((job for job in self.all(actor) if job.id == job_id), None)
        if found is None:
            raise NotFound("There is no job with that id. `reverie jobs list` shows them.")
        return found

    def retry(self, actor: Actor, job_id: str) -> Job:
        """Let a dead or waiting job run at once."""
        actor.require(Right.ADMIN)
        return self.queue.retry(actor.tenant, job_id)

    def discard(self, actor: Actor, job_id: str) -> None:
        """Remove a job that does not run."""
        actor.require(Right.ADMIN)
        self.queue.discard(actor.tenant, job_id)


class DocumentQueue:
    """A queue in the store itself. A job that is taken is leased: one whose worker died is taken over."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts

    def add(
        self, tenant: str, name: str, arguments: Mapping[str, Any], *, unique: str = "", error: str | None = None
    ) -> Job | None:
        """Add a job; None when the same one waits or runs already.

        `error`: the code of a first attempt that failed; the job then waits before the next.
        """
        new_id = self._parts.ids.new()

        def body(tx: WriteTx) -> Job | None:
            if any(job.name == name and job.unique == unique and job.status != "dead" for job in _each(tx)):
                return None
            made = Job(new_id, name, tenant, dict(arguments), created_at=tx.now, due_at=tx.now, unique=unique)
            return _save(tx, _after_fault(made, error, tx.now) if error else made, "queued")

        return self._parts.store.write(Scope(tenant), body)

    def list(self, tenant: str, *, status: str | None = None) -> list[Job]:
        found = self._parts.store.read(Scope(tenant), lambda tx: list(_each(tx)))
        return [job for job in found if status is None or job.status == status]

    def retry(self, tenant: str, job_id: str) -> Job:
        def body(tx: WriteTx) -> Job:
            job = _idle(tx, job_id)
            return _save(tx, msgspec.structs.replace(job, status="waiting", attempts=0, due_at=tx.now), "retried")

        return self._parts.store.write(Scope(tenant), body)

    def discard(self, tenant: str, job_id: str) -> None:
        def body(tx: WriteTx) -> None:
            _drop(tx, _idle(tx, job_id), "discarded")

        self._parts.store.write(Scope(tenant), body)

    def take(self, tenant: str, holder: str) -> Job | None:
        """The oldest job that is due, or whose worker died; no other worker gets it while the lease is renewed."""

        def due(tx: ReadTx) -> Iterator[Job]:
            return (job for job in _each(tx) if job.status == "running" or _due(job, tx.now))

        def body(tx: WriteTx) -> Job | None:
            for job in due(tx):
                if tx.claim(lease_of(job.id), holder, until=tx.now + LEASE_MS):
                    if job.status == "running" and job.attempts >= MOST_ATTEMPTS:
                        _save(tx, msgspec.structs.replace(job, status="dead", error="worker_lost"), "dead")
                        continue
                    taken = msgspec.structs.replace(job, status="running", attempts=job.attempts + 1)
                    return _save(tx, taken, "started")
            return None

        if self._parts.store.read(Scope(tenant), lambda tx: next(due(tx), None)) is None:
            return None
        return self._parts.store.write(Scope(tenant), body)

    def done(self, job: Job, holder: str) -> None:
        """Remove a job that was done."""

        def body(tx: WriteTx) -> None:
            if tx.claim(lease_of(job.id), holder, until=tx.now) and _load(tx, job.id) is not None:
                _drop(tx, job, "done")
            tx.release(lease_of(job.id), holder)

        self._parts.store.write(Scope(job.tenant), body)

    def failed(self, job: Job, holder: str, code: str) -> None:
        """Record a failure: the job waits for its next attempt, or is dead."""

        def body(tx: WriteTx) -> None:
            if tx.claim(lease_of(job.id), holder, until=tx.now) and _load(tx, job.id) is not None:
                after = _after_fault(job, code, tx.now)
                _save(tx, after, "dead" if after.status == "dead" else "failed")
            tx.release(lease_of(job.id), holder)

        self._parts.store.write(Scope(job.tenant), body)


def lease_of(job_id: str) -> str:
    """The lease of a job that runs."""
    return f"job/{job_id}"


def _after_fault(job: Job, code: str, now: int) -> Job:
    attempts = max(job.attempts, 1)
    dead = attempts >= MOST_ATTEMPTS or (code not in PASSING and code != "internal_error")
    return msgspec.structs.replace(
        job,
        status="dead" if dead else "waiting",
        attempts=attempts,
        error=code,
        due_at=now + pause_ms(attempts),
    )


def _due(job: Job, now: int) -> bool:
    return job.status == "waiting" and job.due_at <= now


def _idle(tx: WriteTx, job_id: str) -> Job:
    job = _load(tx, job_id)
    if job is None:
        raise NotFound("There is no job with that id. `reverie jobs list` shows them.")
    if job.status == "running" and not tx.claim(lease_of(job_id), "operator", until=tx.now):
        raise Busy("This job runs right now.")
    return job


def _save(tx: WriteTx, job: Job, what: str) -> Job:
    data = {"job": job.id, "name": job.name, "what": what, "attempt": job.attempts, "code": job.error}
    seq = tx.append(NewEvent("job.changed", "JOB", _ACTOR, data=data))
    tx.save(JOB_SPACE, job.id, msgspec.json.encode(job), seq=seq)
    if job.status != "dead":
        tx.wake(job.due_at if job.status == "waiting" else tx.now + LEASE_MS)
    return job


def _drop(tx: WriteTx, job: Job, what: str) -> None:
    data = {"job": job.id, "name": job.name, "what": what, "attempt": job.attempts}
    tx.drop(JOB_SPACE, job.id, seq=tx.append(NewEvent("job.changed", "JOB", _ACTOR, data=data)))


def _load(tx: ReadTx, job_id: str) -> Job | None:
    document = tx.load(JOB_SPACE, job_id) if job_id else None
    return msgspec.json.decode(document.body, type=Job) if document and document.body else None


def upcoming_job(tx: ReadTx) -> int | None:
    """Return the time of the next look at the tenant's queue: now, when a job is due or running."""
    at = None
    for job in _each(tx):
        if job.status == "running" or _due(job, tx.now):
            return tx.now
        if job.status == "waiting":
            at = job.due_at if at is None else min(at, job.due_at)
    return at


def _each(tx: ReadTx) -> Iterator[Job]:
    """The tenant's jobs, oldest first; no more of them are read than are asked for."""
    found = each(lambda cursor: tx.documents(JOB_SPACE, limit=500 if cursor else 20, cursor=cursor))
    return (msgspec.json.decode(document.body, type=Job) for document in found if document.body)
