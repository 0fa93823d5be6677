"""The rest of a body whose request has been answered already: read slowly, a piece at a time.

A caller that sends a large body reads its refusal only after it has sent all of it, so the rest is read and thrown
away. Read as fast as it comes, the bodies of one refused caller would keep the event loop busy: five megabytes take it
some 4 ms. So one piece is read every few milliseconds, by one connection after the other, and a caller that goes on
although it is refused slows down.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

PIECE_SECONDS = 0.002
"""Time from one piece to the next, whichever connection it is of: at 256 kB a piece 125 MB a second."""


class Drain:
    """The connections of one event loop that have such a rest."""

    _of: ClassVar[WeakKeyDictionary[AbstractEventLoop, Drain]] = WeakKeyDictionary()

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._line: deque[Callable[[], None]] = deque()

    @classmethod
    def here(cls) -> Drain:
        """The one of the running loop."""
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
