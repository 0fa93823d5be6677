"""Worker threads: the one way from the event loop to blocking work, fair between tenants.

Work runs in lanes. A lane has a number of slots, and each tenant at most `each` of them; work that finds no slot
waits in the line of its tenant, and the lines are served in turn. So a tenant with a thousand requests waiting delays
another tenant's next one by at most one piece of work, and a few threads of one tenant, never a hundred, compete with
it for the interpreter. Work that finds a slot pays for one lock.

A request releases the interpreter lock at every database call and every change of thread, and waits to get it back from
a computing thread. So long work (an export, a scan, a large body, the puts of sixty callers) pauses between two steps
while other tenants have requests in the quick lanes (`core/pause.py`): they wait for the end of one slice, not at every
change of thread.
"""

from __future__ import annotations

import concurrent.futures
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from enum import StrEnum
from functools import cache, partial
from math import inf
from threading import Lock
from time import monotonic, sleep
from typing import Any, TypeVar

from reverie.core.pause import PAUSE, Pauses, pause

T = TypeVar("T")
_END: Any = object()


class Lane(StrEnum):
    """Kinds of work that do not wait for each other."""

    LOOK = "look"
    """One indexed row: keys, the head of a log."""
    READ = "read"
    WRITE = "write"
    """Mostly waiting for a commit that many share."""
    PARSE = "parse"
    """Large bodies."""
    HEAVY = "heavy"
    """Dreams, exports, imports, scans and proofs."""


SLOTS: Mapping[Lane, tuple[int, int]] = {
    Lane.LOOK: (16, 4),
    Lane.READ: (32, 4),
    Lane.WRITE: (64, 8),
    Lane.PARSE: (4, 1),
    Lane.HEAVY: (8, 2),
}
"""Lane: (slots, slots that one tenant may hold). A put at 64 connections costs the same with 8, 16, 32 or 96 slots."""
PAUSING = frozenset({Lane.PARSE, Lane.HEAVY})
"""Lanes whose work is long: it pauses for the requests of other tenants."""
SHARED: Mapping[Lane, int] = {Lane.READ: 1, Lane.WRITE: 4}
"""Slots that one tenant may hold while others ask, in lanes where that is fewer. Of several computing threads, one at
random gets the interpreter: with four searches under way, another tenant's request waits for it ten times in a row.
"""
SHARED_SECONDS = 1.0
"""A tenant counts as asking, for the slots of others, this long after an answer."""
PATIENCE_SECONDS = 0.02
"""Longest pause of long work for the requests of others. Then it proceeds: busy neighbours slow it down, and never stop
it.
"""
SLICE_SECONDS = 0.002
"""Time for which long work computes between two pauses."""
SPACING_SECONDS = 2 * SLICE_SECONDS
"""Time between two slices of long work, whichever thread they belong to, once patience is over. Without it, one of ten
computing threads would always have the interpreter.
"""
PAUSE_SECONDS = 0.003
"""For long work, a caller that sends one request after another is still asking this long after an answer."""
THREADS = sum(slots for slots, _ in SLOTS.values())


class _Job:
    """Work, and the caller that waits for it in an event loop."""

    __slots__ = ("_context", "_future", "_loop", "_work", "tenant")

    def __init__(self, tenant: str, work: Callable[[], Any], loop: AbstractEventLoop, future: Future[Any]) -> None:
        self.tenant = tenant
        self._work = work
        self._loop = loop
        self._future = future
        self._context: Context = copy_context()

    @property
    def unwanted(self) -> bool:
        """Whether the caller left before the work began."""
        return self._future.cancelled()

    def run(self) -> None:
        try:
            answer, error = self._context.run(self._work), None
        except BaseException as fault:
            answer, error = None, fault
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_settle, self._future, answer, error)


class _Task:
    """Work that a thread waits for, or that nothing waits for."""

    __slots__ = ("_context", "_work", "done", "tenant")

    def __init__(self, tenant: str, work: Callable[[], Any]) -> None:
        self.tenant = tenant
        self._work = work
        self._context: Context = copy_context()
        self.done: concurrent.futures.Future[Any] = concurrent.futures.Future()

    @property
    def unwanted(self) -> bool:
        return self.done.cancelled()

    def run(self) -> None:
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.done.set_result(self._context.run(self._work))
        except BaseException as fault:
            self.done.set_exception(fault)


class Turns:
    """The lines of one lane. Safe for many threads and loops."""

    def __init__(self, slots: int, each: int, limit: Callable[[str], int] | None = None) -> None:
        """`limit`: returns the slots that a tenant may hold at the moment, at least one; without it, `each`."""
        self._free = slots
        self._limit = limit or (lambda _: each)
        self._lock = Lock()
        self.running: dict[str, int] = {}
        self._lines: OrderedDict[str, deque[_Job | _Task]] = OrderedDict()
        """Waiting work by tenant; the tenant to be served next is first."""

    def enter(self, job: _Job | _Task) -> list[_Job | _Task]:
        """Put a job in line. Returns the jobs that get a slot now."""
        with self._lock:
            self._lines.setdefault(job.tenant, deque()).append(job)
            return self._due()

    def leave(self, tenant: str) -> list[_Job | _Task]:
        """Give back a slot of `tenant`. Returns the jobs that get a slot now."""
        with self._lock:
            self._free += 1
            self.running[tenant] -= 1
            if not self.running[tenant]:
                del self.running[tenant]
            return self._due()

    def _due(self) -> list[_Job | _Task]:
        """Give the free slots to jobs, one of each tenant in turn.

        While jobs wait, a slot stays free only when their tenants hold as many as they may. So every waiting tenant has
        work under way that will call this again, or no slot is free.
        """
        found: list[_Job | _Task] = []
        waiting = list(self._lines)
        for tenant in waiting:  # grows by the tenants that are served and wait on
            if not self._free:
                break
            if self.running.get(tenant, 0) < self._limit(tenant) and (job := self._first(tenant)) is not None:
                self._free -= 1
                self.running[tenant] = self.running.get(tenant, 0) + 1
                found.append(job)
                if tenant in self._lines:
                    waiting.append(tenant)
        return found

    def _first(self, tenant: str) -> _Job | _Task | None:
        line = self._lines.pop(tenant)
        found: _Job | _Task | None = None
        while line and found is None:
            job = line.popleft()
            found = None if job.unwanted else job
        if line:
            self._lines[tenant] = line  # behind the other tenants
        return found


class Precedence:
    """Lets long work pause while tenants other than its own send quick requests. Safe for many threads and loops."""

    def __init__(self, patience: float, pause: float, spacing: float = 0.0) -> None:
        """`spacing`: seconds between two slices of long work that proceeds although others ask."""
        self._patience = patience
        self._pause = pause
        self._spacing = spacing
        self._slice = 0.0
        """Time of the next slice."""
        self._lock = Lock()
        self._asking: dict[str, int] = {}
        """Requests of each tenant that wait or run in the quick lanes."""
        self._asked: OrderedDict[str, float] = OrderedDict()
        """Time of the latest answer to each tenant, the latest last."""

    def begin(self, tenant: str) -> None:
        """Count a request of `tenant` that waits or runs."""
        with self._lock:
            self._asking[tenant] = self._asking.get(tenant, 0) + 1

    def end(self, tenant: str) -> None:
        """Count a request of `tenant` as answered."""
        now = monotonic()
        with self._lock:
            left = self._asking.pop(tenant) - 1
            if left:
                self._asking[tenant] = left
            self._asked[tenant] = now
            self._asked.move_to_end(tenant)
            if len(self._asked) > 2:  # two are enough: at least one of them is not the tenant in question
                self._asked.popitem(last=False)

    def give_way(self, tenant: str) -> None:
        """Wait until no other tenant asks or asked a moment ago. After `patience`, wait only for the slices of other
        long work."""
        until = monotonic() + self._patience
        while self.others(tenant, self._pause):
            if monotonic() >= until:
                sleep(self._until_slice())
                return
            sleep(self._pause)

    def _until_slice(self) -> float:
        """Reserve the next slice. Returns the seconds until it begins."""
        with self._lock:
            now = monotonic()
            begins = max(now, self._slice)
            self._slice = begins + self._spacing
        return begins - now

    def others(self, tenant: str, within: float) -> bool:
        """Whether a tenant other than this one asks, or was answered less than `within` seconds ago."""
        latest = -inf
        with self._lock:
            for other in self._asking:
                if other != tenant:
                    return True
            for other, at in self._asked.items():
                if other != tenant and at > latest:
                    latest = at
        return monotonic() - latest < within


class _Asking:
    """A request that long work gives way to."""

    __slots__ = ("_precedence", "_tenant")

    def __init__(self, precedence: Precedence, tenant: str) -> None:
        self._precedence = precedence
        self._tenant = tenant

    def __enter__(self) -> None:
        self._precedence.begin(self._tenant)

    def __exit__(self, *_: object) -> None:
        self._precedence.end(self._tenant)


class Threads:
    """The lanes of one application, over the threads of the process."""

    def __init__(self, slots: Mapping[Lane, tuple[int, int]] = SLOTS, *, patience: float = PATIENCE_SECONDS) -> None:
        self._precedence = Precedence(patience, PAUSE_SECONDS, SPACING_SECONDS)
        self._lanes = {lane: Turns(*sizes, self._limit(lane, sizes[1])) for lane, sizes in slots.items()}

    def _limit(self, lane: Lane, each: int) -> Callable[[str], int] | None:
        """Slots that a tenant may hold in a lane, where that depends on the others."""
        shared = SHARED.get(lane, each)
        if shared >= each:
            return None
        return lambda tenant: shared if self.crowded(tenant) else each

    async def run(self, lane: Lane, tenant: str, work: Callable[[], T]) -> T:
        """The result of `work`, from a thread. `work` sees the caller's context; once begun, it is always finished."""
        loop = get_running_loop()
        future: Future[T] = loop.create_future()
        if lane in PAUSING:
            self._start(lane, _Job(tenant, self.pausing(tenant, work), loop, future))
            return await future
        if lane is Lane.LOOK:  # quick, and often before the tenant is known
            self._start(lane, _Job(tenant, work, loop, future))
            return await future
        with self.asking(tenant):
            self._start(lane, _Job(tenant, work, loop, future))
            return await future

    def alone(self, tenant: str, leading: int = 0) -> bool:
        """Whether the event loop may do work of this tenant itself, without competing with a thread or keeping another
        tenant waiting. `leading`: busy threads that do not count.
        """
        if sum(sum(turns.running.values()) for turns in self._lanes.values() if turns.running) > leading:
            return False
        return not self.crowded(tenant)

    def crowded(self, tenant: str) -> bool:
        """Whether other tenants ask, or asked a moment ago."""
        return self._precedence.others(tenant, SHARED_SECONDS)

    def asking(self, tenant: str) -> _Asking:
        """Count a quick request of `tenant` while the block runs: long work of others pauses."""
        return _Asking(self._precedence, tenant)

    def executor(self, lane: Lane, tenant: str) -> Executor:
        """The lane as an executor, for work that nothing in an event loop waits for."""
        return _LaneExecutor(self, lane, tenant)

    def pausing(self, tenant: str, work: Callable[[], T]) -> Callable[[], T]:
        """Long work with its pauses. It runs in a context of its own."""

        def paused() -> T:
            PAUSE.set(Pauses(partial(self._precedence.give_way, tenant), SLICE_SECONDS))
            return work()

        return partial(copy_context().run, paused)

    def _start(self, lane: Lane, job: _Job | _Task) -> None:
        turns = self._lanes[lane]
        for due in turns.enter(job):
            try:
                _pool().submit(_serve, turns, due)
            except RuntimeError:  # the interpreter is shutting down
                turns.leave(due.tenant)
                raise

    async def each(self, tenant: str, items: Iterable[T]) -> AsyncIterator[T]:
        """The items of a blocking iterator, each made as a piece of long work of its own."""
        following = iter(items)

        def piece() -> T:
            pause()
            return next(following, _END)

        while (item := await self.run(Lane.HEAVY, tenant, piece)) is not _END:
            yield item


class _LaneExecutor(Executor):
    """Submits work to a lane, in the name of a tenant."""

    def __init__(self, threads: Threads, lane: Lane, tenant: str) -> None:
        self._threads = threads
        self._lane = lane
        self._tenant = tenant

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> concurrent.futures.Future[T]:
        task = _Task(self._tenant, self._threads.pausing(self._tenant, partial(work, *arguments, **named)))
        self._threads._start(self._lane, task)
        return task.done


def _serve(turns: Turns, job: _Job | _Task) -> None:
    due = [job]
    while due:
        due[0].run()
        due = turns.leave(due[0].tenant)
        for other in due[1:]:
            _pool().submit(_serve, turns, other)


def _settle(future: Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="reverie-request")
