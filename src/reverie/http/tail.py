"""Following the log. One look for each tenant serves all its streams, and finds which of their keys are still valid.

A commit of this process wakes the streams of its tenant at once, and commits in quick succession every PAUSE_SECONDS. A
commit or a revoked key of another process is noticed within POLL_SECONDS. Streams at the same position share one read,
encoded in its thread. The streams of a tenant read one page at a time, and a few wake in each turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from reverie.core.actor import Actor, Right
from reverie.core.errors import ReverieError
from reverie.core.event import Event
from reverie.host import Host
from reverie.http.pace import LoopTurn
from reverie.http.threads import Lane, Threads

POLL_SECONDS = 0.25
PAUSE_SECONDS = 0.05
HEARTBEAT_SECONDS = 10.0
_PAGE = 100
_MOST_PAGES = 32
_WOKEN = 4
"""Streams that are woken in one turn of the event loop, so that other requests run in between."""


Types = tuple[str, ...] | None
Encode = Callable[[Event], bytes]
_Place = tuple[int, Types, Encode | None]


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events of the log, read and encoded once for all streams at the same position."""

    events: list[Event]
    encoded: bytes
    """All of them as messages, where the streams encode them alike."""

    @property
    def full(self) -> bool:
        """Whether the page stays as it is while the log grows."""
        return len(self.events) >= _PAGE


class Watch:
    """The log of one tenant, watched while streams of the tenant are open."""

    def __init__(
        self,
        look: Callable[[list[str]], tuple[int, set[str]]],
        read: Callable[[int, Types, Encode | None], LogPage],
        tenant: str,
        threads: Threads,
    ) -> None:
        self.head = 0
        self._read = read
        self._pages: dict[_Place, asyncio.Future[LogPage]] = {}
        """Pages read, or being read, since the head last moved; full ones longer."""
        self._reading = asyncio.Semaphore(1)
        self.stopping = False
        self._look = look
        self._tenant = tenant
        self._threads = threads
        self._keys: Counter[str] = Counter()
        self._valid: set[str] = set()
        self._waiting: set[asyncio.Future[None]] = set()
        self._turn = LoopTurn(asyncio.get_running_loop(), _WOKEN)
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def over(self, key_id: str | None) -> bool:
        """Whether a stream of this key ends: the host stops, or the key is no longer valid."""
        return self.stopping or (key_id is not None and key_id not in self._valid)

    def ring(self) -> None:
        """Look at the log now."""
        self._rung.set()

    def stop(self) -> None:
        """End every stream."""
        self.stopping = True
        for bell in self._waiting:
            _ring(bell)

    async def wait(self, seconds: float) -> None:
        """Wait until the log has grown or a stream has to end, at most `seconds`."""
        if self.stopping:
            return
        loop = asyncio.get_running_loop()
        bell: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _ring, bell)
        self._waiting.add(bell)
        try:
            await bell
        finally:
            timer.cancel()
            self._waiting.discard(bell)

    async def proceed(self) -> None:
        """Wait for a turn of the loop in which few streams of the tenant proceed: one read may serve all of them."""
        if (turn := self._turn.enter(self._tenant)) is not None:
            await turn

    async def page(self, after: int, types: Types, encode: Encode | None) -> LogPage:
        """A page of the events after a position. An empty page: none up to the head at the time of the call."""
        place = (after, types, encode)
        found = self._pages.get(place)
        if found is None:
            found = self._pages[place] = asyncio.ensure_future(self._one(place))
            if len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        try:
            return await asyncio.shield(found)
        except ReverieError:
            self._pages.pop(place, None)
            raise

    async def _one(self, place: _Place) -> LogPage:
        async with self._reading:
            return await self._threads.run(Lane.READ, self._tenant, partial(self._read, *place))

    async def join(self, key_id: str | None) -> None:
        """Add a stream. The first look is made before it begins."""
        self._keys[key_id or ""] += 1
        await self.refresh()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def leave(self, key_id: str | None) -> bool:
        """Remove a stream. Returns whether it was the last."""
        self._keys[key_id or ""] -= 1
        if not self._keys[key_id or ""]:
            del self._keys[key_id or ""]
        if self._keys:
            return False
        if self._task is not None:
            self._task.cancel()
            self._task = None
        return True

    async def refresh(self) -> None:
        """Look at the head and the keys; wake the streams when there is something for them."""
        asked = [key for key in self._keys if key]
        head, valid = await self._threads.run(Lane.LOOK, self._tenant, partial(self._look, asked))
        grown = head > self.head
        lost = not self._valid.isdisjoint(set(asked) - valid)
        # a key that came while this look was under way stays as it was
        self._valid = valid | (self._valid - set(asked))
        self.head = max(head, self.head)
        if grown:
            self._pages = {place: page for place, page in self._pages.items() if _stays(page)}
        if grown or lost:
            await self._wake()

    async def _run(self) -> None:
        while not self.stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), POLL_SECONDS)
            self._rung.clear()
            with suppress(ReverieError):  # the store cannot be reached: the next look tries again
                await self.refresh()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _wake(self) -> None:
        for number, bell in enumerate(list(self._waiting), 1):
            _ring(bell)
            if not number % _WOKEN:
                await asyncio.sleep(0)


def _ring(bell: asyncio.Future[None]) -> None:
    if not bell.done():
        bell.set_result(None)


def _stays(page: asyncio.Future[LogPage]) -> bool:
    return page.done() and not page.cancelled() and page.exception() is None and page.result().full


class Tail:
    """The watches of one application. `ring` and `stop` are called on the event loop."""

    def __init__(self, host: Host, threads: Threads) -> None:
        self._host = host
        self._threads = threads
        self._watches: dict[str, Watch] = {}
        self.stopping = False

    def ring(self, tenant: str) -> None:
        """Look at the log of a tenant now, after a request that may have changed it."""
        if (watch := self._watches.get(tenant)) is not None:
            watch.ring()

    def stop(self) -> None:
        """End every stream."""
        self.stopping = True
        for watch in self._watches.values():
            watch.stop()

    @asynccontextmanager
    async def watch(self, tenant: str, key_id: str | None) -> AsyncIterator[Watch]:
        """The tenant's log, for one stream of a key."""
        watch = self._watches.get(tenant)
        if watch is None:
            look, read = partial(self._look, tenant), partial(self._page, tenant)
            watch = self._watches[tenant] = Watch(look, read, tenant, self._threads)
        watch.stopping = self.stopping
        try:
            await watch.join(key_id)
            yield watch
        finally:
            if watch.leave(key_id) and self._watches.get(tenant) is watch:
                del self._watches[tenant]

    def _look(self, tenant: str, keys: list[str]) -> tuple[int, set[str]]:
        head = self._host.reader.snapshot(self._host.system_actor(tenant))
        return head, self._host.keys.valid(keys)

    def _page(self, tenant: str, after: int, types: Types, encode: Encode | None) -> LogPage:
        actor = self._host.system_actor(tenant)
        events = self._host.reader.events(actor, after=after, limit=_PAGE, types=types)
        return LogPage(events, b"".join(map(encode, events)) if encode else b"")

    async def follow(
        self, actor: Actor, *, after: int, types: Types, encode: Encode | None = None
    ) -> AsyncIterator[LogPage | None]:
        """Pages of events after a position, each event once and in order; None when a heartbeat is due.

        Ends at shutdown, and when the caller's key is no longer valid: nothing is read once that is known.
        """
        actor.require(Right.READ)
        loop = asyncio.get_running_loop()
        alive_at = loop.time()
        async with self.watch(actor.tenant, actor.key_id) as watch:
            while not watch.over(actor.key_id):
                head = watch.head
                while after < head and not watch.over(actor.key_id):
                    page = await watch.page(after, types, encode)
                    after = page.events[-1].seq if page.events else head
                    if page.events:
                        await watch.proceed()
                        yield page
                        alive_at = loop.time()
                if loop.time() - alive_at >= HEARTBEAT_SECONDS:
                    yield None
                    alive_at = loop.time()
                if after >= watch.head:
                    await watch.wait(max(0.0, alive_at + HEARTBEAT_SECONDS - loop.time()))
