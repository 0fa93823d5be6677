"""One turn at a time, whichever event loop or thread asks."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from weakref import WeakKeyDictionary

_PAUSE_SECONDS = 0.002


class TurnLock:
    """A lock to be awaited. Unlike that of asyncio it may be used from several event loops: a session is shared by
    threads that each run their own."""

    def __init__(self) -> None:
        self._held = threading.Lock()
        self._guard = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def __aenter__(self) -> None:
        own = self._lock()
        await own.acquire()
        try:
            while not self._held.acquire(blocking=False):  # another loop has it
                await asyncio.sleep(_PAUSE_SECONDS)
        except BaseException:
            own.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._held.release()
        self._lock().release()

    def _lock(self) -> asyncio.Lock:
        with self._guard:
            return self._loops.setdefault(asyncio.get_running_loop(), asyncio.Lock())
