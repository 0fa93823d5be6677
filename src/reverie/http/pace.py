"""A limit of the requests of one tenant that begin in one turn of the event loop, while other tenants ask.

A commit answers sixty callers at once, and all of them return at once. Served in one turn of the loop, they would keep
everyone else waiting for sixty requests; served a few in each turn, only for a few.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import Counter, deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

EACH_TURN = 2


class Pace:
    """The turns of every event loop that serves requests."""

    def __init__(self, crowded: Callable[[str], bool], each: int = EACH_TURN) -> None:
        """`crowded`: whether tenants other than this one ask."""
        self._crowded = crowded
        self._each = each
        self._loops: WeakKeyDictionary[AbstractEventLoop, LoopTurn] = WeakKeyDictionary()

    def begin(self, tenant: str) -> Future[None] | None:
        """A future to await before a request of this tenant begins; None: it may begin now."""
        if not self._crowded(tenant):
            return None
        loop = get_running_loop()
        turn = self._loops.get(loop)
        if turn is None:
            turn = self._loops[loop] = LoopTurn(loop, self._each)
        return turn.enter(tenant)


class LoopTurn:
    """One turn of a loop, in which at most `each` pieces of work of one tenant begin."""

    def __init__(self, loop: AbstractEventLoop, each: int) -> None:
        self._loop = loop
        self._each = each
        self._begun: Counter[str] = Counter()
        self._waiting: dict[str, deque[Future[None]]] = {}

    def enter(self, tenant: str) -> Future[None] | None:
        """A future to await before a request begins; None: it may begin now."""
        if not self._begun and not self._waiting:
            self._loop.call_soon(self._next)
        if self._begun[tenant] < self._each and tenant not in self._waiting:
            self._begun[tenant] += 1
            return None
        wait: Future[None] = self._loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(wait)
        return wait

    def _next(self) -> None:
        """A turn has passed: let some of each tenant begin in the next."""
        self._begun.clear()
        for tenant, line in list(self._waiting.items()):
            while line and self._begun[tenant] < self._each:
                if not (wait := line.popleft()).done():
                    wait.set_result(None)
                    self._begun[tenant] += 1
            if not line:
                del self._waiting[tenant]
        if self._begun:
            self._loop.call_soon(self._next)
