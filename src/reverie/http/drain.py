"""Bodies that still arrive after their request was answered: read slowly and discarded.

A client that sends a large body reads its refusal only after the last byte, so the remainder is read and discarded.
Read at full speed, the bodies of one refused client would keep the event loop busy: five megabytes take about 4 ms. So
the connections take turns, one piece every few milliseconds, which slows down a refused client that keeps sending.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

PIECE_SECONDS = 0.002
"""Time between two pieces, over all connections: with pieces of 256 kB, 125 MB a second."""


class Drain:
    """The connections of one event loop that still receive such a body."""

    _of: ClassVar[WeakKeyDictionary[AbstractEventLoop, Drain]] = WeakKeyDictionary()

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._line: deque[Callable[[], None]] = deque()

    @classmethod
    def here(cls) -> Drain:
        """The connections of the running loop."""
        loop = get_running_loop()
        if (found := cls._of.get(loop)) is None:
            found = cls._of[loop] = Drain(loop)
        return found

    def wait(self, read: Callable[[], None]) -> None:
        """Call `read` when it is this connection's turn."""
        if not self._line:
            self._loop.call_later(PIECE_SECONDS, self._next)
        self._line.append(read)

    def _next(self) -> None:
        self._line.popleft()()
        if self._line:
            self._loop.call_later(PIECE_SECONDS, self._next)
