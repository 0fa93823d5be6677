"""Writers of one tenant take turns, and those that wait in this process at the same time share one commit.

Between processes and machines, the lock on the tenant's head decides whose turn it is. In this process callers queue by
tenant. The first one runs the bodies of all that wait, in one transaction, and wakes them when it is durable. Tenants
never wait for each other.

When the connection breaks during a commit, the outcome is unknown. Then the head is locked again, which waits until the
server has finished the old transaction, and the log is searched for the event that the transaction would have appended.
If the event is there, the write is acknowledged; if not, the write runs again. (A write without an event may always run
again.) Nothing is lost and nothing is done twice.

Control-C may interrupt the main thread between any two instructions, even between a commit and its result. So the main
thread never does the work itself: another thread does, and finishes it even when no caller waits any more.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from reverie.core.entry import Scope
from reverie.core.errors import StoreError, StoreUnavailable
from reverie.core.ports import Clock
from reverie.index.cache import IndexCache
from reverie.store.postgres.batch import Batch, Row, new_tenant
from reverie.store.postgres.faults import AGAIN, lost, translate
from reverie.store.postgres.pool import Connection, give_back
from reverie.store.postgres.rows import SQL
from reverie.store.postgres.write import PostgresWriteTx

MOST_IN_A_BATCH = 128
ATTEMPTS = 5
STATEMENT_MS = 60_000
LOCK_MS = 10_000
IDLE_MS = 60_000
"""Longest pause of a body between two statements before the server releases its locks."""


class _Job:
    """A body, and the caller that waits for it."""

    __slots__ = ("body", "called", "error", "finished", "result", "scope")

    def __init__(self, scope: Scope, body: Callable[[Any], Any]) -> None:
        self.scope = scope
        self.body = body
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = False
        self.called = threading.Event()
        """Set when the job is finished, or when it is this caller's turn to lead."""

    def finish(self) -> None:
        self.finished = True
        self.called.set()

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class _Errand:
    """A write of the main thread, done by another thread. Its lock is a plain one, which Control-C cannot break."""

    __slots__ = ("body", "done", "error", "result", "scope")

    def __init__(self, scope: Scope, body: Callable[[Any], Any]) -> None:
        self.scope = scope
        self.body = body
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()


class _Lane:
    """The writers of one tenant in this process. One of them leads: it does the work of all that wait."""

    __slots__ = ("leader", "waiting")

    def __init__(self) -> None:
        self.leader: _Job | None = None
        self.waiting: deque[_Job] = deque()


class _Unsure(Exception):
    """The connection broke during a commit. Holds the event that is in the log if the commit happened."""

    def __init__(self, tenant: str, seq: int, own_hash: bytes) -> None:
        super().__init__()
        self.tenant, self.seq, self.hash = tenant, seq, own_hash


class Writer:
    """Every write of this process goes through it."""

    def __init__(
        self, pool: ConnectionPool[Connection], clock: Clock, destroyed: Callable[[], None], indexes: IndexCache
    ) -> None:
        self._pool = pool
        self._indexes = indexes
        self._destroyed = destroyed
        """Called after text was destroyed."""
        self._clock = clock
        self._lock = threading.Condition()
        self._lanes: dict[str, _Lane] = {}
        self._inside: set[int] = set()
        """Threads that run bodies."""
        self._closed = False
        self._errands: queue.SimpleQueue[_Errand | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._hand = threading.Thread(target=self._run_errands, name="reverie-writer", daemon=True)
        self._hand.start()

    def submit(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        """Run `body` in a transaction and return its result once that is durable."""
        if threading.get_ident() in self._inside:
            raise RuntimeError("a write inside a write would wait for itself for ever")
        if threading.current_thread() is threading.main_thread():
            errand = _Errand(scope, body)
            with self._closing:
                if self._closed:
                    raise StoreUnavailable("The store is closed.")
                self._errands.put(errand)
            errand.done.acquire()
            if errand.error is not None:
                raise errand.error
            return errand.result
        return self._submit(scope, body)

    def _run_errands(self) -> None:
        while (errand := self._errands.get()) is not None:
            try:
                errand.result = self._submit(errand.scope, errand.body)
            except BaseException as fault:
                errand.error = fault
            errand.done.release()

    def _submit(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        job = _Job(scope, body)
        with self._lock:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            lane = self._lanes.setdefault(scope.tenant, _Lane())
            lane.waiting.append(job)
            if lane.leader is None:
                lane.leader = job
        try:
            if lane.leader is not job:
                job.called.wait()
            if not job.finished:
                self._lead(lane)
        finally:
            with self._lock:
                if job in lane.waiting:
                    lane.waiting.remove(job)
                if lane.leader is job:
                    self._pass_on(lane, scope.tenant)
        return job.outcome()

    def _pass_on(self, lane: _Lane, tenant: str) -> None:
        if lane.waiting:
            lane.leader = lane.waiting[0]
            lane.leader.called.set()
        else:
            del self._lanes[tenant]
            self._lock.notify_all()

    def close(self) -> None:
        """Refuse new work, and finish all accepted work."""
        with self._closing, self._lock:
            self._closed = True
            self._errands.put(None)
        self._hand.join(60)
        with self._lock:
            self._lock.wait_for(lambda: not self._lanes, timeout=60)

    def _lead(self, lane: _Lane) -> None:
        with self._lock:
            jobs = [lane.waiting.popleft() for _ in range(min(len(lane.waiting), MOST_IN_A_BATCH))]
        me = threading.get_ident()
        self._inside.add(me)
        try:
            self._commit_all(jobs)
        except BaseException as fault:
            for job in jobs:
                job.result, job.error = None, fault
            raise
        finally:
            self._inside.discard(me)
            for job in jobs:
                job.finish()

    def _commit_all(self, jobs: list[_Job]) -> None:
        """Commit jobs together; when that fails, each alone, so that no caller fails because of another's body."""
        fault = self._commit(jobs)
        if fault is None:
            return
        shared = isinstance(translate(fault), StoreError)
        for job in jobs:
            alone = fault if len(jobs) == 1 or shared else self._commit([job])
            if alone is not None:
                job.result, job.error = None, translate(alone)

    def _commit(self, jobs: list[_Job]) -> BaseException | None:
        """Commit all jobs in one transaction, retried where that is safe. Returns the fault; then nothing remains."""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.5, 1.0) * 0.05 * 2**attempt)  # noqa: S311
            try:
                try:
                    self._transact(jobs)
                except _Unsure as doubt:
                    if not self._happened(doubt):
                        continue
            except BaseException as fault:
                if (isinstance(fault, AGAIN) or lost(fault)) and attempt + 1 < ATTEMPTS:
                    continue
                return fault
            return None
        return StoreUnavailable("The connection broke repeatedly. Nothing was stored. Try again in a moment.")

    def _transact(self, jobs: list[_Job]) -> None:
        tenant = jobs[0].scope.tenant
        connection = self._pool.getconn()
        try:
            batch = self._begin(connection, tenant, alone=len(jobs) == 1)
            for job in jobs:
                self._run_body(batch, job)
            if batch.kept:
                held = batch.held
                noted: dict[str, list[str]] = {}
                try:
                    for ref in batch.scrubbed:
                        noted[ref] = self._indexes.note((held.n, ref), held.log_key)
                    ended = batch.commit()
                    if ended != "COMMIT":  # the transaction had failed, and a body hid the fault
                        raise StoreError("The database undid the transaction.")
                except BaseException as fault:
                    unsure = lost(fault) or connection.broken  # then the notes stay and the files are made again
                    for name in chain.from_iterable(noted.values()):
                        (self._indexes.leave if unsure else self._indexes.unnote)(name)
                    if batch.destroyed:
                        self._destroyed()  # perhaps
                    if unsure:
                        if not batch.logged:  # leases and answers: doing them again is doing them once
                            raise
                        raise _Unsure(tenant, held.head.seq, bytes.fromhex(held.head.hash)) from fault
                    raise
                for ref, names in noted.items():
                    for name in names:
                        self._indexes.scrub(name, batch.scrubbed[ref], held.head.seq)
                if batch.destroyed:
                    self._destroyed()
        finally:
            give_back(self._pool, connection)

    def _begin(self, connection: Connection, tenant: str, *, alone: bool) -> Batch:
        row, made = lock_head(connection, tenant), False
        if row is None:
            with connection.pipeline():
                connection.execute(*new_tenant(tenant, self._clock.now()))
                found = connection.execute(SQL["lock_head"], {"name": tenant}, binary=True)
            row, made = found.fetchone(), True
            assert row is not None
        return Batch(connection, tenant, self._clock.now(), row, made=made, alone=alone, indexes=self._indexes)

    def _run_body(self, batch: Batch, job: _Job) -> None:
        """Run one body. Its exception goes only to its caller, unless the transaction itself is lost."""
        job.result = job.error = None
        part = PostgresWriteTx(batch, job.scope)
        status = batch.connection.info
        try:
            job.result = job.body(part)
            if status.transaction_status != TransactionStatus.INTRANS:
                raise StoreError("A statement failed, and the body hid it.")
            part.done()
        except BaseException as fault:
            if batch.connection.broken or isinstance(fault, AGAIN):
                raise
            if status.transaction_status != TransactionStatus.INTRANS and not part.saved and not batch.alone:
                raise  # whose rows failed is unknown, so the whole transaction fails
            part.undo()
            job.result, job.error = None, translate(fault)

    def _happened(self, doubt: _Unsure) -> bool:
        """Whether the transaction whose connection broke during the commit is in the log."""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            try:
                connection = self._pool.getconn()
                try:
                    row = lock_head(connection, doubt.tenant)  # waits until the server has finished that transaction
                    if row is None or row[2] < doubt.seq:
                        return False
                    found = connection.execute(SQL["event_hash"], (row[0], doubt.seq), binary=True).fetchall()
                    return found == [(doubt.hash,)]
                finally:
                    give_back(self._pool, connection)
            except Exception as fault:
                if not lost(fault) and not isinstance(fault, (*AGAIN, PoolTimeout)):
                    raise
        raise StoreUnavailable(
            "The connection broke during the commit. Check whether it was stored, or retry with an idempotency key."
        )


def limits(tenant: str, *, control: bool = False) -> dict[str, str]:
    """The bindings of `bind`."""
    return {
        "name": tenant,
        "statement": f"{STATEMENT_MS}",
        "lock": f"{LOCK_MS}",
        "idle": f"{IDLE_MS}",
        "control": "on" if control else "off",
    }


def lock_head(connection: Connection, tenant: str) -> Row | None:
    """Begin a transaction that writes, in one round trip. Waits for the tenant's other writers."""
    with connection.pipeline():
        connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED")
        connection.execute(SQL["bind"], limits(tenant))
        found = connection.execute(SQL["lock_head"], {"name": tenant}, binary=True)
    return found.fetchone()
