"""One thread writes at a time. Callers that wait at the same time share one commit, and one wait for the disk.

A caller that finds no other caller writing or waiting writes in its own thread, which avoids two switches of thread.
(Of some 600 us a put, that saved 20 to 320 in three of four runs on a busy machine, and cost 50 in one.) All other
callers wait for the writer's thread, which commits for them together.

When more callers wait than one commit takes, tenants take turns: a thousand writes of one tenant delay another tenant's
next write by one commit. A large batch is one body with a commit of its own, and small writes go first: a tenant that
stores batches delays another's next write by one batch. The rows of a batch are made before its commit (`ahead.py`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain, islice, zip_longest
from typing import Any, Protocol

import apsw

from reverie.core.entry import Scope
from reverie.core.errors import StoreBusy, StoreFull, StoreUnavailable
from reverie.core.ports import Clock
from reverie.index.cache import IndexCache
from reverie.store.contract import WouldWait
from reverie.store.sqlite.anchor import Anchor
from reverie.store.sqlite.batch import Batch
from reverie.store.sqlite.faults import translate
from reverie.store.sqlite.read import QUERIES
from reverie.store.sqlite.reserve import Reserve, is_full
from reverie.store.sqlite.wipe import RawFile
from reverie.store.sqlite.write import SqliteWriteTx

MOST_IN_A_BATCH = 256
HEAVY = MOST_IN_A_BATCH
"""A body that stores more entries than this is heavy, and is committed alone. A group of puts is not heavy."""
MOST_PASSES = 3
"""Number of commits of light bodies that go before a heavy one."""
BUSY_MS = 10_000
SCRUB_AGAIN_SECONDS = 0.25
LOG_PAGES = 1000
"""Pages from which the write-ahead log is copied into the database (a checkpoint)."""
SLOW_SECONDS = 0.02
"""After a commit that took longer, an event loop does not make the next one: the disk or the processors are busy."""
WIPE_PAGES = 4096
"""Pages wiped at a time while writers wait, which takes some 10 ms."""


class _Job:
    """A body, and the caller that waits for it."""

    __slots__ = ("_done", "body", "error", "frees", "heavy", "result", "scope")

    def __init__(self, scope: Scope | None, body: Callable[[Any], Any]) -> None:
        self.scope = scope
        self.body = body
        self.heavy = getattr(body, "weight", 1) > HEAVY
        self.result: Any = None
        self.error: BaseException | None = None
        self.frees: bool | None = None
        """Whether the body erased and may use the reserve; None until it has run to its end."""
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self) -> None:
        self._done.release()

    def wait(self) -> Any:
        self._done.acquire()
        return self.outcome()

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


def in_turn(jobs: list[_Job], most: int) -> tuple[list[_Job], list[_Job]]:
    """Up to `most` jobs, one of each tenant in turn, and those left over. The jobs of one tenant keep their order."""
    if len(jobs) <= most:
        return jobs, []
    lines: dict[str | None, list[int]] = {}
    for number, job in enumerate(jobs):
        lines.setdefault(job.scope.tenant if job.scope else None, []).append(number)
    turns = (number for turn in zip_longest(*lines.values()) for number in turn if number is not None)
    chosen = set(islice(turns, most))
    return [job for number, job in enumerate(jobs) if number in chosen], [
        job for number, job in enumerate(jobs) if number not in chosen
    ]


class _Bell:
    """Wakes the writer's thread; many calls may wake it only once.

    Not an Event: that is written in Python, and Control-C inside it left its lock taken and every writer waiting for
    ever. A lock of the interpreter is taken and released in one instruction.
    """

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        with suppress(RuntimeError):  # it rings already
            self._silent.release()

    def wait(self, seconds: float | None = None) -> None:
        self._silent.acquire(timeout=-1 if seconds is None else seconds)


class Writer:
    """Owns the writing connection. Every write of this process goes through it."""

    def __init__(
        self,
        db: apsw.Connection,
        clock: Clock,
        file: RawFile | None,
        reserve: Reserve | None = None,
        anchor: Anchor | None = None,
        indexes: IndexCache | None = None,
    ) -> None:
        self._db = db
        self._file = file
        self._reserve = reserve
        self._anchor = anchor
        self._indexes = indexes or IndexCache()
        self._clock = clock
        self._turn = threading.Lock()
        """Held by the thread that uses the connection."""
        self._inside: int | None = None
        """The id of that thread."""
        self._queue: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._left: list[_Job] = []
        """Jobs that the last commit had no room for, in order of arrival."""
        self._passed = 0
        """Number of commits that went before the waiting heavy jobs."""
        self._bell = _Bell()
        self._crowded = False
        """Whether the last commit had several jobs: then it pays to wait for the next one together."""
        self._closing = threading.Lock()
        self._closed = False
        self.models: Mapping[str, int] = {}
        """Numbers of embedding models in committed rows. They never change."""
        self._took = 0.0
        """Duration of the last commit in seconds."""
        self._log_pages = 0
        db.set_wal_hook(self._logged)
        self._scrub_owed = False
        self._wipe_next = 0
        """The page at which the wiping continues."""
        self._thread = threading.Thread(target=self._run, name="reverie-writer", daemon=True)
        self._thread.start()

    def submit(self, scope: Scope | None, body: Callable[[Any], Any]) -> Any:
        """Run `body` in the next commit and return its result once that commit is durable.

        `scope` None: the body gets a ControlPart with the bare connection, for work above tenants.
        """
        # An interrupted write may leave `_inside` set, but never the lock taken: only both together mean a write.
        if threading.get_ident() == self._inside and self._turn.locked():
            raise RuntimeError("a write inside a write would wait for itself for ever")
        job = _Job(scope, body)
        if not getattr(body, "waits", True):
            return self._at_once(job)
        if self._unused():
            # `with`, because a signal cannot come between it and the release: with a plain acquire, Control-C in the
            # wrong microsecond stopped every writer for ever. A thread that loses the race waits for its turn.
            with self._turn:
                if self._closed:
                    raise StoreUnavailable("The store is closed.")
                self._work([job])
                self._clear_up()
            if self._scrub_owed:
                self._bell.ring()
            return job.outcome()
        with self._closing:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            self._queue.put(job)
        self._bell.ring()
        return job.wait()

    def _at_once(self, job: _Job) -> Any:
        """Commit a job whose caller is an event loop, waiting only for the disk. Raises WouldWait."""
        if not self.free:
            raise WouldWait
        with self._turn:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            self._db.set_busy_timeout(0)
            try:
                self._work([job])
            finally:
                self._db.set_busy_timeout(BUSY_MS)
        if isinstance(job.error, StoreBusy):  # another process writes
            raise WouldWait
        return job.outcome()

    @property
    def free(self) -> bool:
        """Whether a commit would wait only for the disk, and the last one was quick."""
        return self._unused() and not self._scrub_owed and self._log_pages < LOG_PAGES and self._took <= SLOW_SECONDS

    def _unused(self) -> bool:
        return not self._crowded and not self._left and self._queue.empty() and not self._turn.locked()

    def close(self) -> None:
        """Finish all accepted work, then stop."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._bell.ring()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._bell.wait(SCRUB_AGAIN_SECONDS if self._scrub_owed else None)
            with self._turn:
                closed = self._closed  # read before the queue: what was accepted until then is in the queue
                jobs = self._take()
                if jobs:
                    self._work(jobs)
                    self._clear_up()
                elif self._scrub_owed:
                    self._scrub()
            self._crowded = len(jobs) > 1
            for job in jobs:
                job.finish()
            if self._left or len(jobs) == MOST_IN_A_BATCH:
                self._bell.ring()  # there is more, or may be
            elif closed:
                return

    def _take(self) -> list[_Job]:
        """The jobs of the next commit. No job waits for more than one heavy body of another caller."""
        jobs = self._left
        with suppress(queue.Empty):
            while True:
                jobs.append(self._queue.get_nowait())
        heavy = [job for job in jobs if job.heavy]
        if heavy and (len(heavy) == len(jobs) or self._passed >= MOST_PASSES):
            self._passed = 0
            (chosen,), _ = in_turn(heavy, 1)
            self._left = [job for job in jobs if job is not chosen]
            return [chosen]
        self._passed += bool(heavy)
        light, left = in_turn([job for job in jobs if not job.heavy], MOST_IN_A_BATCH)
        self._left = heavy + left
        return light

    def _work(self, jobs: list[_Job]) -> None:
        self._inside, started = threading.get_ident(), time.perf_counter()
        try:
            self._commit_all(jobs)
        finally:
            self._inside, self._took = None, time.perf_counter() - started

    def _clear_up(self) -> None:
        """After a commit, copy a long log into the database and wipe destroyed text."""
        if self._log_pages >= LOG_PAGES:
            self._log_pages = 0
            with suppress(apsw.Error):  # a reader is in the way, or the disk is full: the next commit tries again
                self._db.wal_checkpoint()
        if self._scrub_owed:
            self._scrub()

    def _logged(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _commit_all(self, jobs: list[_Job]) -> None:
        """Commit jobs. When the disk is full, jobs that erase get the reserve, and the others fail with StoreFull."""
        if self._reserve is None:
            self._commit_together(jobs)
            return
        if self._reserve.ready():
            self._commit_together(jobs)
        else:
            for job in jobs:
                job.error = StoreFull()
        starved = [job for job in jobs if job.error is not None and is_full(job.error) and job.frees is not False]
        if not starved:
            return
        self._reserve.release()
        self._fold_log()
        for job in starved:
            fault = self._commit([job], erasing=True)
            if fault is not None:
                job.result, job.error = None, translate(fault)
        self._fold_log()
        self._reserve.make()

    def _fold_log(self) -> None:
        """Empty the write-ahead log, which frees its space, unless a reader prevents it."""
        self._db.set_busy_timeout(0)
        try:
            self._empty_log()
        except apsw.Error:
            pass  # no room even for that
        finally:
            self._db.set_busy_timeout(BUSY_MS)

    def _commit_together(self, jobs: list[_Job]) -> None:
        """Commit jobs together; when that fails, each alone, so that no caller fails because of another's body."""
        fault = self._commit(jobs)
        if fault is None:
            return
        for job in jobs:
            if len(jobs) > 1 and not isinstance(fault, apsw.BusyError):
                alone = self._commit([job])
            else:
                alone = fault
            if alone is not None:
                job.result, job.error = None, translate(alone)

    def _commit(self, jobs: list[_Job], *, erasing: bool = False) -> BaseException | None:
        """Commit all jobs in one transaction. Returns the fault if it failed; then nothing of it remains.

        `erasing`: a job that does not erase fails, because the disk is full.
        """
        noted: dict[tuple[int, str], list[str]] = {}
        try:
            if self._db.in_transaction:  # a rollback that failed
                self._db.execute("ROLLBACK")
            self._db.execute("BEGIN IMMEDIATE")
            batch = Batch(self._db, self._clock.now(), self.models, self._indexes)
            for job in jobs:
                self._run_body(batch, job, erasing=erasing)
            batch.flush()
            if batch.scrub:  # before the commit, because an interrupt may come right after it
                self._scrub_owed, self._wipe_next = True, 0
            # Each log is compared with its note before it grows: in a database put back from an old copy the note is
            # frozen, so that the loss stays visible.
            if self._anchor is not None:
                for held in batch.tenants.values():
                    self._anchor.meet(held.n, held.opened.seq, held.opened.hash)
            # Index files that hold destroyed words are noted on disk first, so that after a kill between commit and
            # scrub the next start finds them.
            for memory, (held, _) in batch.scrubbed.items():
                noted[memory] = self._indexes.note(memory, held.log_key)
            self._db.execute("COMMIT")
        except BaseException as fault:
            for name in chain.from_iterable(noted.values()):
                self._indexes.unnote(name)
            try:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            except apsw.Error:
                pass  # tried again before the next transaction
            return fault
        for memory, names in noted.items():
            held, positions = batch.scrubbed[memory]
            for name in names:
                self._indexes.scrub(name, positions, held.head.seq)
        self.models = batch.models
        # Only a durable position is noted: one that is ahead of the database would look like lost events.
        if self._anchor is not None:
            for held in batch.tenants.values():
                if held.head.seq != held.opened.seq:
                    self._anchor.note(held.n, held.head.seq, held.head.hash)
        return None

    def _run_body(self, batch: Batch, job: _Job, *, erasing: bool) -> None:
        """Run one body. Its exception goes only to its caller, unless the transaction itself is lost."""
        job.result = job.error = job.frees = None
        part: _Part = ControlPart(batch) if job.scope is None else SqliteWriteTx(batch, job.scope)
        try:
            job.result = job.body(part)
            job.frees = part.frees
            if erasing and not part.frees:
                raise StoreFull()
            part.done()
        except BaseException as fault:
            if batch.lost or (isinstance(fault, apsw.Error) and not isinstance(fault, apsw.ConstraintError)):
                raise
            part.undo()
            job.result, job.error = None, translate(fault)
        if batch.lost:  # the body swallowed the fault
            raise batch.lost

    def _scrub(self) -> None:
        """Remove destroyed text from the file: empty the write-ahead log, then wipe the free space of pages.

        A reader may block this, and a large file takes a while. No caller waits for either: the work continues after
        the next commit or in the next idle moment.
        """
        try:
            self._db.set_busy_timeout(0)
            while self._scrub_owed and self._empty_log() and self._wipe_some() and self._queue.empty():
                pass
        except (apsw.Error, OSError):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        finally:
            self._db.set_busy_timeout(BUSY_MS)

    def _empty_log(self) -> bool:
        busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0, 0, 0)
        return not busy

    def _wipe_some(self) -> bool:
        """Wipe the next pages. False when nothing is left to do, or nothing can be done now."""
        if self._file is None:
            self._scrub_owed = False
            return False
        self._db.execute("BEGIN IMMEDIATE")
        if self._file.log_size():  # another process wrote in between
            self._db.execute("ROLLBACK")
            return False
        page_size: Any = self._db.execute("PRAGMA page_size").get
        following = self._file.wipe(self._wipe_next, WIPE_PAGES, page_size)
        self._db.release_memory()  # cached pages would bring the old gaps back when they are written
        if following is None:
            # a commit, so that other processes drop their cached pages too
            self._db.execute(QUERIES["set_setting"], ("wiped_at", str(self._clock.now()).encode()))
            self._db.execute("COMMIT")
            self._scrub_owed, self._wipe_next = False, 0
            self._empty_log()
            return False
        self._db.execute("ROLLBACK")
        self._wipe_next = following
        return True


class _Part(Protocol):
    """One job's share of a batch, and the argument of its body."""

    @property
    def frees(self) -> bool:
        """Whether the body erased, so that it is committed even when the disk is full."""

    def done(self) -> None:
        """Keep the work of the body, which has ended."""

    def undo(self) -> None:
        """Undo the work of the body."""


class ControlPart:
    """A body above tenants, on the bare connection behind a savepoint."""

    def __init__(self, batch: Batch) -> None:
        batch.flush()
        self.db = batch.db
        self.frees = False
        batch.db.execute("SAVEPOINT body")

    def done(self) -> None:
        self.db.execute("RELEASE body")

    def undo(self) -> None:
        self.db.execute("ROLLBACK TO body")
        self.db.execute("RELEASE body")
