"""Worker threads: the one way from the event loop to blocking work, fair between tenants.

Work runs in lanes. A lane has a number of slots, and each tenant at most `each` of them; work that finds no slot
waits in the line of its tenant, and the lines are served in turn. So a tenant with a thousand requests waiting delays
another tenant's next one by at most one piece of work, and a few threads of one tenant, never a hundred, compete with
it for the interpreter. Work that finds a slot pays for one lock.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from enum import StrEnum
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

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
    Lane.WRITE: (64, 16),
    Lane.PARSE: (4, 1),
    Lane.HEAVY: (8, 2),
}
"""Lane: (slots, slots that one tenant may hold). A put at 64 connections costs the same with 8, 16, 32 or 96 slots."""
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
        """The caller left before the work began."""
        return self._future.cancelled()

    def run(self) -> None:
        try:
            answer, error = self._context.run(self._work), None
        except BaseException as fault:
            answer, error = None, fault
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_settle, self._future, answer, error)


class Turns:
    """The lines of one lane. Safe for many threads and loops."""

    def __init__(self, slots: int, each: int) -> None:
        self._free = slots
        self._each = each
        self._lock = Lock()
        self._running: dict[str, int] = {}
        self._lines: OrderedDict[str, deque[_Job]] = OrderedDict()
        """Waiting work by tenant; the tenant to be served next is first."""

    def enter(self, job: _Job) -> bool:
        """Whether the job has a slot; else it waits in line."""
        with self._lock:
            # A free slot while others wait means that those tenants hold all the slots they may.
            if self._free and self._running.get(job.tenant, 0) < self._each:
                self._occupy(job.tenant)
                return True
            self._lines.setdefault(job.tenant, deque()).append(job)
            return False

    def leave(self, tenant: str) -> _Job | None:
        """Give a slot of `tenant` back. The job that has it now, if one waits."""
        with self._lock:
            self._free += 1
            self._running[tenant] -= 1
            if not self._running[tenant]:
                del self._running[tenant]
            if not self._lines:
                return None
            for name in list(self._lines):  # at most slots / each of them are passed over
                if self._running.get(name, 0) < self._each and (job := self._first(name)) is not None:
                    self._occupy(name)
                    return job
            return None

    def _occupy(self, tenant: str) -> None:
        self._free -= 1
        self._running[tenant] = self._running.get(tenant, 0) + 1

    def _first(self, tenant: str) -> _Job | None:
        line = self._lines.pop(tenant)
        found: _Job | None = None
        while line and found is None:
            job = line.popleft()
            found = None if job.unwanted else job
        if line:
            self._lines[tenant] = line  # behind the other tenants
        return found


class Threads:
    """The lanes of one application, over the threads of the process."""

    def __init__(self, slots: Mapping[Lane, tuple[int, int]] = SLOTS) -> None:
        self._lanes = {lane: Turns(*sizes) for lane, sizes in slots.items()}

    async def run(self, lane: Lane, tenant: str, work: Callable[[], T]) -> T:
        """The result of `work`, from a thread. It sees the caller's context; once begun it is finished in any case."""
        loop = get_running_loop()
        future: Future[T] = loop.create_future()
        job, turns = _Job(tenant, work, loop, future), self._lanes[lane]
        if turns.enter(job):
            try:
                _pool().submit(_serve, turns, job)
            except RuntimeError:  # the interpreter is shutting down
                turns.leave(tenant)
                raise
        return await future

    async def each(self, lane: Lane, tenant: str, items: Iterable[T]) -> AsyncIterator[T]:
        """The items of a blocking iterator. Every item is a turn of its own."""
        following = partial(next, iter(items), _END)
        while (item := await self.run(lane, tenant, following)) is not _END:
            yield item


def _serve(turns: Turns, job: _Job | None) -> None:
    while job is not None:
        job.run()
        job = turns.leave(job.tenant)


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
