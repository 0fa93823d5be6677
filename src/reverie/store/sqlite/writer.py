"""One thread writes. Callers that wait at the same time share one commit, and one wait for the disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import apsw

from reverie.core.entry import Scope
from reverie.core.errors import ReverieError, StoreUnavailable
from reverie.core.ports import Clock
from reverie.store.sqlite.faults import translate
from reverie.store.sqlite.vectors import VectorCache
from reverie.store.sqlite.write import Batch, SqliteWriteTx

MOST_IN_A_BATCH = 256


class _Job:
    """A body, and the caller that waits for it."""

    __slots__ = ("_done", "body", "error", "result", "scope")

    def __init__(self, scope: Scope | None, body: Callable[[Any], Any]) -> None:
        self.scope = scope
        self.body = body
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self) -> None:
        self._done.release()

    def wait(self) -> Any:
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self.result


class Writer:
    """Owns the writing connection. Every write of this process goes through it."""

    def __init__(self, db: apsw.Connection, clock: Clock, cache: VectorCache) -> None:
        self._db = db
        self._clock = clock
        self._cache = cache
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="reverie-writer", daemon=True)
        self._thread.start()

    def submit(self, scope: Scope | None, body: Callable[[Any], Any]) -> Any:
        """Run `body` in the next commit and return its result once that commit is durable.

        `scope` None: the body gets the bare connection, for what stands above tenants.
        """
        job = _Job(scope, body)
        with self._closing:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            self._queue.put(job)
        return job.wait()

    def close(self) -> None:
        """Finish what was accepted, then stop."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            job = self._queue.get()
            jobs: list[_Job] = []
            while True:
                if job is None:
                    stopping = True
                else:
                    jobs.append(job)
                if len(jobs) >= MOST_IN_A_BATCH or stopping:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            if jobs:
                self._commit(jobs)

    def _commit(self, jobs: list[_Job]) -> None:
        purged: set[tuple[int, str]] = set()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                batch = Batch(self._db, self._clock.now(), self._cache)
                for job in jobs:
                    self._run_body(batch, job)
                batch.flush()
                purged = batch.purged
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except BaseException as fault:
            error = fault if isinstance(fault, ReverieError) else translate(fault)
            for job in jobs:
                job.result, job.error = None, job.error or error
        if purged:
            self._after_purge(purged)
        for job in jobs:
            job.finish()

    def _run_body(self, batch: Batch, job: _Job) -> None:
        if job.scope is None:
            batch.flush()
            self._db.execute("SAVEPOINT control")
            try:
                job.result = job.body(self._db)
            except Exception as fault:
                self._db.execute("ROLLBACK TO control")
                job.error = _own(fault)
            self._db.execute("RELEASE control")
            return
        tx = SqliteWriteTx(batch, job.scope)
        try:
            job.result = job.body(tx)
        except Exception as fault:
            tx.undo()
            error = _own(fault)
            if isinstance(fault, apsw.Error) and not isinstance(fault, apsw.ConstraintError):
                raise error from fault  # the database itself failed: the whole batch is off
            job.error = error
        else:
            tx.done()

    def _after_purge(self, purged: set[tuple[int, str]]) -> None:
        """Destroyed text must not rest in the write-ahead log or in a matrix."""
        for tenant, ref in purged:
            self._cache.forget(tenant, ref)
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except apsw.Error:
            return  # a reader is in the way; the next checkpoint takes it


def _own(fault: Exception) -> BaseException:
    return translate(fault) if isinstance(fault, apsw.Error) else fault
