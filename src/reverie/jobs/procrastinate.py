"""Jobs on PostgreSQL, carried by procrastinate: any number of workers on any number of machines.

The engine is only transport. What may happen once is decided in the store: a tick by compare-and-set, a sweep by a
lease, a dream by its id. So a job that is delivered twice, or whose worker was declared dead too early, does no harm.

Fairness: a job gets a number, one above the tenant's newest that waits, but not below the newest that runs; lower
numbers go first. A tenant with ten thousand jobs waits behind one with a single job, and neither starves. The number of
jobs of one tenant that run at once is limited: its jobs are spread over that many locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import procrastinate
import psycopg
from procrastinate import JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as Carried
from procrastinate.manager import JobManager
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from reverie.core.errors import Busy, NotFound, StoreUnavailable
from reverie.core.job import JOBS, MOST_ATTEMPTS, PASSING, Job, pause_ms
from reverie.core.pause import Pausing, unpaused
from reverie.jobs.engine_schema import SCHEMA, install
from reverie.jobs.ports import Observer, UseCases
from reverie.jobs.queue import DocumentQueue
from reverie.jobs.tasks import JobFailed, Tasks, code_of
from reverie.store.sql import session_name

QUEUE = "reverie"
HEARTBEAT_SECONDS = 5.0
STALLED_SECONDS = 30.0
"""A worker that gave no sign of life for so long is dead: its jobs are taken over."""
RECORD_SECONDS = 120.0
"""Time for which a worker tries to record the end of a job. Without a database for that long it is declared dead
itself.
"""
SLICE_SECONDS = 1.0
"""Longest time spent on a round of sweeps before looking again for work that is due by the clock."""
_LOOKING = 0x52564532
"""Key of the advisory lock under which one process at a time looks for due work."""
_SHOWN = {"todo": "waiting", "doing": "running", "failed": "dead", "aborted": "dead"}


def engine_url(url: str) -> str:
    """The URL with the engine's schema as search path."""
    given = conninfo_to_dict(url).get("options") or ""
    name = session_name("reverie.store.postgres").replace("/", "-jobs/")
    return make_conninfo(url, options=f"{given} -c search_path={SCHEMA}".strip(), application_name=name)


class EngineQueue:
    """The queue of jobs in the engine's tables. Opens a connection when it is first used."""

    def __init__(self, url: str, *, per_tenant: int = 2) -> None:
        self._url = engine_url(url)
        self._per_tenant = max(per_tenant, 1)
        self._ready = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def connection(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """A connection for one transaction."""
        try:
            with psycopg.connect(self._url, row_factory=psycopg.rows.dict_row, connect_timeout=5) as connection:
                with self._lock:
                    if not self._ready:
                        install(connection)
                        self._ready = True
                yield connection
        except psycopg.OperationalError as fault:
            raise StoreUnavailable("The database cannot be reached. Try again in a moment.") from fault

    def add(self, tenant: str, name: str, arguments: Mapping[str, Any], *, unique: str = "") -> Job | None:
        """Add a job; None when the same one waits already."""
        with self.connection() as connection:
            return self._added(connection, tenant, name, arguments, unique)

    def add_all(self, jobs: list[Job]) -> int:
        """Add many, each in a transaction of its own; returns how many were new."""
        added = 0
        if jobs:
            with self.connection() as connection:
                for job in jobs:
                    added += self._added(connection, job.tenant, job.name, job.arguments, job.unique) is not None
                    connection.commit()
        return added

    def _added(
        self, connection: psycopg.Connection[Any], tenant: str, name: str, arguments: Mapping[str, Any], unique: str
    ) -> Job | None:
        found = connection.execute(
            "SELECT id FROM job_add(%s, %s, %s, %s, %s) AS id",
            (
                name,
                tenant,
                psycopg.types.json.Jsonb({"tenant": tenant, "arguments": dict(arguments)}),
                f"{tenant}/{secrets.randbelow(self._per_tenant)}",
                f"{tenant}/{name}/{unique}",
            ),
        ).fetchone()
        if found is None or found["id"] is None:
            return None
        return Job(str(found["id"]), name, tenant, dict(arguments), created_at=_now(), due_at=_now(), unique=unique)

    def list(self, tenant: str, *, status: str | None = None) -> list[Job]:
        """The jobs of a tenant, oldest first."""
        with self.connection() as connection:
            rows = connection.execute("SELECT * FROM job_list(%s)", (tenant,)).fetchall()
        found = [_job(row) for row in rows]
        return [job for job in found if status is None or job.status == status]

    def retry(self, tenant: str, job_id: str) -> Job:
        """Let a dead or waiting job run at once."""
        job = self._idle(tenant, job_id, "SELECT job_retry(%s) AS done")
        done = msgspec.structs.replace(job, status="waiting", attempts=0)  # a worker was faster, and it is gone
        return next((one for one in self.list(tenant) if one.id == job_id), done)

    def discard(self, tenant: str, job_id: str) -> None:
        """Remove a job that does not run."""
        self._idle(tenant, job_id, "SELECT job_discard(%s) AS done")

    def _idle(self, tenant: str, job_id: str, sql: str) -> Job:
        with self.connection() as connection:
            rows = connection.execute("SELECT * FROM job_list(%s)", (tenant,)).fetchall() if job_id.isdigit() else []
            job = next((_job(row) for row in rows if str(row["id"]) == job_id), None)
            if job is None:
                raise NotFound("There is no job with that id. `reverie jobs list` shows them.")
            if not _first(connection, sql, (int(job_id),)):
                raise Busy("This job runs right now.")
        return job

    def counts(self) -> dict[str, int]:
        """Count the pending, running and failed jobs over all tenants."""
        with self.connection() as connection:
            rows = connection.execute("SELECT status::text, count(*) FROM procrastinate_jobs GROUP BY 1").fetchall()
        found = dict.fromkeys(_SHOWN.values(), 0)
        for row in rows:
            if row["status"] in _SHOWN:
                found[_SHOWN[row["status"]]] += row["count"]
        return found


class EngineWorker:
    """Runs jobs from the engine, and queues due work. Restarts when the database is available again."""

    def __init__(
        self,
        host: UseCases,
        queue: EngineQueue,
        url: str,
        *,
        concurrency: int = 4,
        every_seconds: int = 60,
        poll_seconds: int = 5,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
        observer: Observer | None = None,
        pausing: Pausing = unpaused,
    ) -> None:
        self._host = host
        self._queue = queue
        self._url = engine_url(url)
        self._concurrency = max(concurrency, 1)
        self._sweep_every = max(every_seconds, 1)
        self._poll = poll_seconds or 5
        self._by_the_clock = poll_seconds > 0
        self._heartbeat = heartbeat_seconds
        self._stalled = stalled_seconds
        self._observer = observer or Observer()
        self._jobs = Tasks(host, pausing)
        self._left: deque[str] = deque()
        """Tenants that the current round has not reached."""
        self._rounds = 0
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread = threading.Thread(target=self._forever, name="reverie-engine", daemon=True)
        self._thread.start()

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """Take no more jobs, and wait for those that run."""
        self._over.set()
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # it ended in this instant
                loop.call_soon_threadsafe(task.cancel)
        if self._thread is not None:
            self._thread.join(patience_seconds)

    def _forever(self) -> None:
        """Run, and run again after a fault: the engine gives up when it loses the database, this does not."""
        while not self._over.is_set():
            try:
                with self._queue.connection():
                    pass  # the schema is there from here on
                asyncio.run(self._run())
            except Exception as fault:
                self._fault("engine", fault)
            self._over.wait(1.0)

    async def _run(self) -> None:
        app = self._app()
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(self._concurrency + 4))
        async with app.open_async():
            self._task = asyncio.create_task(
                app.run_worker_async(
                    queues=[QUEUE],
                    concurrency=self._concurrency,
                    fetch_job_polling_interval=1.0,
                    delete_jobs="successful",
                    install_signal_handlers=False,
                    update_heartbeat_interval=self._heartbeat,
                    stalled_worker_timeout=self._stalled,
                    shutdown_graceful_timeout=25.0,
                )
            )
            looking = asyncio.create_task(self._look_after())
            try:
                if self._over.is_set():
                    self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task
            finally:
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking

    async def _look_after(self) -> None:
        """Find due work and dead workers. One process at a time does it; the others wait in turn."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception as fault:
                self._fault("look", fault)
            await asyncio.sleep(self._poll)

    def look(self) -> int:
        """Queue the due work, unless another process is doing so; returns the number of new jobs."""
        with self._queue.connection() as connection:
            if not _first(connection, "SELECT pg_try_advisory_xact_lock(%s)", (_LOOKING,)):
                return 0
            _first(connection, "SELECT job_recover(%s, %s)", (self._stalled, MOST_ATTEMPTS))
            added = 0
            for some in _chunks(self._host.agenda.awake()):
                added += self._queue.add_all([job for tenant in some for job in self._ticks(tenant)])
            return added + self._round(connection)

    def _ticks(self, tenant: str) -> list[Job]:
        """Return the work that an awake tenant needs now."""
        if self._over.is_set():
            return []
        try:
            ticks, queued = self._jobs.look(tenant)
            if queued:
                self._adopt(tenant)
        except StoreUnavailable:
            raise
        except Exception as fault:  # one tenant must not stop the others
            self._fault("look", fault)
            return []
        return ticks if self._by_the_clock else []

    def _round(self, connection: psycopg.Connection[Any]) -> int:
        """Continue a round of sweeps over all tenants; returns the number of new jobs.

        A slice at a time, so that what is due by the clock never waits for it, and a round is made by one process for
        all. The first round of a process looks for ticks too: another release may have written here.
        """
        if not self._left:
            due = _first(connection, "SELECT job_round(%s)", (self._sweep_every,))
            if self._rounds and not due:
                return 0
            self._rounds += 1
            self._left.extend(self._host.tenants())
        jobs: list[Job] = []
        until = time.monotonic() + SLICE_SECONDS
        try:
            while self._left and time.monotonic() < until and not self._over.is_set():
                tenant = self._left.popleft()
                if self._rounds == 1:
                    jobs += self._ticks(tenant)
                jobs += self._jobs.sweeps(tenant)
        finally:
            added = self._queue.add_all(jobs)
        return added

    def _adopt(self, tenant: str) -> None:
        """Jobs that waited in the store itself, of a memory that was moved here: into the engine."""
        left = DocumentQueue(self._host.parts)
        while (job := left.take(tenant, self._jobs.holder)) is not None:
            self._queue.add(tenant, job.name, job.arguments, unique=job.unique)
            left.done(job, self._jobs.holder)

    def _app(self) -> procrastinate.App:
        connector = PsycopgConnector(
            conninfo=self._url,
            min_size=1,
            max_size=3,
            timeout=10.0,
            kwargs={"connect_timeout": 5},
        )
        app = procrastinate.App(connector=connector)
        app.job_manager = _Manager(connector)
        for name in JOBS:
            app.task(name=name, queue=QUEUE, pass_context=True, retry=_Patience())(self._runner(name))
        return app

    def _runner(self, name: str) -> Callable[..., None]:
        def run(context: JobContext, *, tenant: str, arguments: dict[str, Any]) -> None:
            job = Job(str(context.job.id), name, tenant, arguments, attempts=context.job.attempts)
            try:
                done = self._jobs.run(job)
            except Exception as fault:
                self._fault(name, fault)
                code = code_of(fault)
                with contextlib.suppress(Exception):  # the job itself is counted by the engine all the same
                    self._note(job, code)
                raise JobFailed(code=code) from None  # its message may hold memory text
            if done.took:
                self._observer.done(job, done.result)

        return run

    def _note(self, job: Job, code: str) -> None:
        with self._queue.connection() as connection:
            connection.execute("SELECT job_fault(%s, %s)", (int(job.id), code))

    def _fault(self, name: str, fault: BaseException) -> None:
        lost = isinstance(fault, ConnectorException | psycopg.Error)
        self._observer.failed(name, "store_unavailable" if lost else code_of(fault), fault)


class _Manager(JobManager):
    """Records the end of a job, again after a lost connection.

    The engine would try once. A worker that lost only that one connection gives signs of life all the same, so the job
    would count as running, and its lock would hold back the tenant's other jobs, until the worker ends.
    """

    async def finish_job(self, *args: Any, **given: Any) -> None:
        """The final status of a job."""
        await _recorded(lambda: super(_Manager, self).finish_job(*args, **given))

    async def retry_job(self, *args: Any, **given: Any) -> None:
        """Record a retry of a job."""
        await _recorded(lambda: super(_Manager, self).retry_job(*args, **given))


async def _recorded(record: Callable[[], Awaitable[None]]) -> None:
    until = time.monotonic() + RECORD_SECONDS
    pause = 0.05
    while True:
        try:
            return await record()
        except ConnectorException as fault:
            if isinstance(fault.__cause__, psycopg.errors.RaiseException):
                return None  # the job does not run any more: an earlier attempt got through, or it was taken over
            if not isinstance(fault.__cause__, psycopg.OperationalError) or time.monotonic() > until:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, 1.0)


class _Patience(procrastinate.BaseRetryStrategy):
    """Retry with growing delays while the fault may pass; after the last attempt the job is dead."""

    def get_retry_decision(self, *, exception: BaseException, job: Carried) -> RetryDecision | None:
        attempts = job.attempts + 1
        code = exception.reason if isinstance(exception, JobFailed) else "internal_error"
        if attempts >= MOST_ATTEMPTS or (code not in PASSING and code != "internal_error"):
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(milliseconds=pause_ms(attempts)))


def _job(row: Mapping[str, Any]) -> Job:
    due = row["scheduled_at"] or row["created_at"]
    return Job(
        id=str(row["id"]),
        name=row["task_name"],
        tenant=row["args"]["tenant"],
        arguments=row["args"]["arguments"],
        status=_SHOWN[row["status"]],
        attempts=row["attempts"],
        error=row["code"],
        created_at=int(row["created_at"].timestamp() * 1000),
        due_at=int(due.timestamp() * 1000),
    )


def _chunks(names: list[str]) -> Iterator[list[str]]:
    return (names[at : at + 200] for at in range(0, len(names), 200))


def _first(connection: psycopg.Connection[Any], sql: str, bound: tuple[Any, ...]) -> Any:
    row = connection.execute(sql, bound).fetchone()
    return next(iter(row.values())) if row else None


def _now() -> int:
    return int(time.time() * 1000)
