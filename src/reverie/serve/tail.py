"""Following the log: what is committed here wakes a stream at once, what other processes commit within a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from anyio import to_thread

from reverie.core.actor import Actor
from reverie.core.event import Event
from reverie.host import Host

POLL_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0
_PAGE = 500


class Tail:
    """Where streams wait. `ring` and `stop` are called on the event loop."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self.stopping = False

    def ring(self) -> None:
        """Something was committed: let every stream look."""
        for waiting in self._waiting:
            waiting.set()

    def stop(self) -> None:
        """End every stream."""
        self.stopping = True
        self.ring()

    async def wait(self, seconds: float) -> None:
        """Until the next ring, at most `seconds`."""
        if self.stopping:
            return
        bell = asyncio.Event()
        self._waiting.add(bell)
        try:
            await asyncio.wait_for(bell.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(bell)

    async def follow(
        self,
        host: Host,
        actor: Actor,
        *,
        after: int,
        types: tuple[str, ...] | None,
        still_allowed: Callable[[], Awaitable[bool]],
    ) -> AsyncIterator[list[Event] | None]:
        """Pages of events after a position, each event once and in order; None when a sign of life is due.

        Ends at shutdown, and when the caller's key no longer opens the door.
        """
        loop = asyncio.get_running_loop()
        alive_at = checked_at = loop.time()
        while not self.stopping:
            head = await to_thread.run_sync(host.reading.snapshot, actor)
            while after < head and not self.stopping:
                read = partial(host.reading.events, actor, after=after, limit=_PAGE, types=types)
                events = await to_thread.run_sync(read)
                after = events[-1].seq if events else head
                if events:
                    yield events
                    alive_at = loop.time()
            if loop.time() - checked_at >= HEARTBEAT_SECONDS:  # a busy stream is asked as often as a quiet one
                if not await still_allowed():
                    return
                checked_at = loop.time()
            if loop.time() - alive_at >= HEARTBEAT_SECONDS:
                yield None
                alive_at = loop.time()
            await self.wait(POLL_SECONDS)
