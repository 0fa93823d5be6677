"""Group commit: concurrent callers are batched; the first in line leads.

Most of the cost of a write is per call: redacting and embedding 64 texts at once takes a third of the time of doing it
64 times, and storing them in one body saves another tenth. A caller that arrives while another is being served waits in
line. The one that finishes hands the lead to the first in line, which serves everyone waiting. A caller that arrives
alone is served at once, at the cost of one look-up.

Callers in an event loop join the same line: one thread leads for all of them and wakes their loop once per group. Where
a write waits only for the disk, the loop serves some of them itself, at the end of the turns in which they came. A
thread that works next to the loop would double the cost of each, because the two compete for the interpreter at every
step.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from reverie.core.errors import StoreError
from reverie.store.contract import WouldWait

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST_TOGETHER = 256
MOST_HERE = 32
"""Number of callers that an event loop serves in one turn, since it has other work to do."""
_A_CROWD = 4
_MOST_CROWDS = 1024
_WOKEN = 2
_PATIENCE_SECONDS = 0.002
_LOOK_AGAIN_SECONDS = 0.0003


Here = Callable[[int], bool]
"""Whether the event loop may serve now. The argument: threads that are about to end and do not count."""


class _Turn(Generic[Item, Answer]):
    """A thread in line. Woken with an answer, with an error, or to lead."""

    __slots__ = ("_bell", "answer", "error", "item", "leads")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.leads = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def wait(self) -> None:
        self._bell.acquire()

    def wake(self) -> None:
        self._bell.release()


class _Awaited(Generic[Item, Answer]):
    """A caller in line that waits in an event loop. A thread of `pool` leads in its place."""

    __slots__ = ("answer", "error", "future", "here", "item", "loop", "pool")

    def __init__(self, item: Item, pool: Executor, here: Here | None) -> None:
        import asyncio  # a program without it never loads it

        self.item = item
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.pool = pool
        self.here = here
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Answer] = self.loop.create_future()

    def may_be_served_here(self, leading: int = 0) -> bool:
        """Whether the loop itself may serve, not counting `leading` threads that are about to end."""
        return self.here is not None and self.here(leading)

    def settle(self) -> None:
        """In the loop: resume the caller, unless it has stopped waiting."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)  # type: ignore[arg-type]  # served without an error: there is an answer


Line = list[_Turn[Item, Answer] | _Awaited[Item, Answer]]


class GroupCommit(Generic[Key, Item, Answer]):
    """Serves items that share a key together. `serve` returns one answer for each item.

    If it raises for several items at once, each is served alone, so that no caller fails because of another's item.
    `at_once` does the same for event loops. It may serve only the first items, as many as are quick, and raises
    WouldWait instead of waiting.
    """

    def __init__(
        self,
        serve: Callable[[Key, list[Item]], list[Answer]],
        at_once: Callable[[Key, list[Item]], list[Answer]] | None = None,
    ) -> None:
        self._serve = serve
        self._at_once = at_once
        self._lock = threading.Lock()
        self._lines: dict[Key, Line[Item, Answer]] = {}
        """Waiting callers. A key is present exactly while a leader works on it."""
        self._crowds: dict[Key, int] = {}
        """Size of the latest group of a key, where it had several callers."""

    def ask(self, key: Key, item: Item) -> Answer:
        """The answer to `item`. Raises what serving it raised."""
        own: _Turn[Item, Answer] | None = None
        with self._lock:
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = []
            else:
                own = _Turn(item)
                line.append(own)
        if own is None:
            own = _Turn(item)
        else:
            own.wait()
            if not own.leads:
                return _outcome(own)
        try:
            self._lead(key, line, own)
        finally:
            self._pass_on(key, line)
        return _outcome(own)

    async def ask_soon(self, key: Key, item: Item, pool: Executor, *, here: Here | None = None) -> Answer:
        """`ask` without blocking the event loop. An item is served even if its caller stops waiting.

        `here`: whether the loop may serve the item itself, together with those that came in the same turns, if that
        waits only for the disk.
        """
        own: _Awaited[Item, Answer] = _Awaited(item, pool, here)
        with self._lock:
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = [own]
            else:
                line.append(own)
        if line is None:
            line = self._lines[key]
            if own.may_be_served_here():
                own.loop.call_soon(self._serve_turn, own.loop, key, line, 0)
            else:
                self._pass_on(key, line)
        return await own.future

    def _serve_turn(self, loop: asyncio.AbstractEventLoop, key: Key, line: Line[Item, Answer], came: int) -> None:
        """At the end of a turn of an event loop: serve the waiting callers here if that is quick, else in a thread.

        Callers that were answered together return one after the other. While each turn brings more of them, the loop
        waits for the next turn. `came`: the length of the line at the end of the previous turn.
        """
        if came < len(line) < MOST_HERE and (len(line) > 1 or key in self._crowds):
            loop.call_soon(self._serve_turn, loop, key, line, len(line))
            return
        with self._lock:
            # Callers of several keys share a commit only when they come from threads.
            group = _waiting_in(loop, line[:MOST_HERE]) if len(self._lines) == 1 else []
        served = 0
        try:
            served = self._serve_here(key, group)
        except BaseException:  # interrupted: it may be stored or not, so it is not stored again
            served = len(group)
            for turn in group:
                turn.error = _interrupted()
            raise
        finally:
            with self._lock:
                del line[:served]
            if served:
                self._note_crowd(key, served)
            for turn in group[:served]:
                turn.settle()
            if served and (following := _waiting_in(loop, line[:1])) and following[0].may_be_served_here():
                loop.call_soon(self._serve_turn, loop, key, line, 0)
            else:
                self._pass_on(key, line)

    def _serve_here(self, key: Key, group: Sequence[_Awaited[Item, Answer]]) -> int:
        """Serve the first of a group without waiting. Returns how many; 0 if it would wait or one of several fails."""
        if not group or self._at_once is None:
            return 0
        try:
            answers = self._at_once(key, [turn.item for turn in group])
        except WouldWait:
            return 0
        except Exception as fault:
            if len(group) > 1:
                return 0
            group[0].error = fault
            return 1
        for turn, answer in zip(group, answers, strict=False):
            turn.answer = answer
        return len(answers)

    def _note_crowd(self, key: Key, size: int) -> None:
        """Remember the size of a group of several callers."""
        if size == 1:
            self._crowds.pop(key, None)
            return
        if len(self._crowds) >= _MOST_CROWDS:
            self._crowds.clear()
        self._crowds[key] = size

    def _lead(self, key: Key, line: Line[Item, Answer], own: _Turn[Item, Answer] | _Awaited[Item, Answer]) -> None:
        self._await_crowd(line, self._crowds.get(key, 1))
        with self._lock:
            group = [own, *line[: MOST_TOGETHER - 1]]
            del line[: MOST_TOGETHER - 1]
        self._note_crowd(key, len(group))
        try:
            self._answer(key, group)
        except BaseException:  # the leader was interrupted: the others must not wait for ever
            for turn in group:
                turn.error = turn.error or _interrupted()
            raise
        finally:
            _wake(group)

    def _lead_for_loops(self, key: Key, line: Line[Item, Answer]) -> None:
        """Lead, in a thread of its own, until a waiting thread or the loop takes over, or the line is empty."""
        try:
            leads = True
            while leads:
                with self._lock:
                    own = line.pop(0)
                self._lead(key, line, own)
                leads = self._pass_on(key, line, leading=True)
        except BaseException:
            self._pass_on(key, line)
            raise

    def _await_crowd(self, line: Line[Item, Answer], expected: int) -> None:
        """Wait a moment for the callers of a large group, who return one by one.

        Without this, the first to return is served alone while all others wait for its commit.
        """
        if expected < _A_CROWD:
            return
        until = time.monotonic() + _PATIENCE_SECONDS
        while len(line) + 1 < expected and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _answer(self, key: Key, group: Sequence[_Turn[Item, Answer] | _Awaited[Item, Answer]]) -> None:
        try:
            answers = self._serve(key, [turn.item for turn in group])
        except Exception as fault:
            if len(group) == 1:
                group[0].error = fault
                return
            for turn in group:
                self._answer(key, [turn])
            return
        for turn, answer in zip(group, answers, strict=True):
            turn.answer = answer

    def _pass_on(self, key: Key, line: Line[Item, Answer], *, leading: bool = False) -> bool:
        """Pass the lead to the first in line. True when that caller waits in a loop and the calling thread leads on."""
        with self._lock:
            if not line:
                del self._lines[key]
                return False
            first = line[0]
            if isinstance(first, _Turn):
                del line[0]
        if isinstance(first, _Turn):
            first.leads = True
            first.wake()
            return False
        if leading:
            return not self._hand_back(key, line, first)
        try:
            first.pool.submit(self._lead_for_loops, key, line)
        except RuntimeError:  # the pool is closed: lead here
            self._lead_for_loops(key, line)
        return False

    def _hand_back(self, key: Key, line: Line[Item, Answer], first: _Awaited[Item, Answer]) -> bool:
        """Let the loop of the first in line serve again, if it may once this thread has ended."""
        if len(self._lines) > 1 or not first.may_be_served_here(leading=1):
            return False
        try:
            first.loop.call_soon_threadsafe(self._serve_turn, first.loop, key, line, 0)
        except RuntimeError:  # the loop is closed
            return False
        return True


def _waiting_in(loop: asyncio.AbstractEventLoop, line: Line[Item, Answer]) -> list[_Awaited[Item, Answer]]:
    """The callers at the head of a line that wait in this event loop and that it may serve."""
    found: list[_Awaited[Item, Answer]] = []
    for one in line:
        if not isinstance(one, _Awaited) or one.loop is not loop or one.here is None:
            break
        found.append(one)
    return found


def _interrupted() -> StoreError:
    return StoreError("The write was interrupted. Check whether it was stored.")


def _wake(group: Sequence[_Turn[Item, Answer] | _Awaited[Item, Answer]]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Awaited[Item, Answer]]] = {}
    for turn in group:
        if isinstance(turn, _Turn):
            turn.wake()
        else:
            loops.setdefault(turn.loop, []).append(turn)
    for loop, turns in loops.items():
        with suppress(RuntimeError):  # the loop is closed: nothing waits in it
            loop.call_soon_threadsafe(_settle, turns)


def _settle(turns: Sequence[_Awaited[Item, Answer]]) -> None:
    """Resume callers in an event loop, a few in each turn, so that other requests have turns in between."""
    for turn in turns[:_WOKEN]:
        turn.settle()
    if len(turns) > _WOKEN:
        turns[0].loop.call_soon(_settle, turns[_WOKEN:])


def _outcome(turn: _Turn[Item, Answer]) -> Answer:
    if turn.error is not None:
        raise turn.error
    return turn.answer  # type: ignore[return-value]  # served without an error: there is an answer
