"""A window around the caller's own client: two thin drivers run the same rounds (`engine.py`), one blocks, one awaits.

What comes back, and what is raised, is the SDK's. Each SDK adds its methods and its wire.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from reverie.window.calls import Call, Tee, collected
from reverie.window.engine import Diagnostics, Engine
from reverie.window.items import Item
from reverie.window.policy import NegativeCache
from reverie.window.state import WindowState
from reverie.window.steps import Answer, Keep, Send, Steps
from reverie.window.storage import WindowStore
from reverie.window.streams import AsyncStream, RawStream, SyncStream
from reverie.window.turn import InputIs
from reverie.window.turn_lock import TurnLock

_SESSIONS: weakref.WeakKeyDictionary[Any, NegativeCache] = weakref.WeakKeyDictionary()
"""What each client's provider cannot do, for as long as the client lives: shared by every scope that uses it."""


def session_of(client: Any) -> NegativeCache:
    """The facts shared by every window of one client."""
    return _SESSIONS.setdefault(client, NegativeCache())


class _Window:
    """What both drivers share."""

    wire: ClassVar[Any]
    """Between steps and the SDK; every SDK has its own."""

    def __init__(
        self, client: Any, keeper: WindowStore, *, provider: str, kind: str | None, owned: Callable[[], None] | None
    ) -> None:
        base = self.wire.base_of(client, kind)
        self._client = self.wire.bound(client, base)
        self.keeper = keeper
        self._provider, self._base, self._account = provider, base, self.wire.account_of(client)
        self._clock = keeper.clock
        self._owned = owned
        """Closes the memory, when it was opened for this window."""
        self._closed = False
        self.engine: Engine

    def _begin(self) -> None:
        state = self.keeper.open(provider=self._provider, base=self._base, account=self._account)
        self.engine = Engine(self.keeper, state, clock=self._clock)

    @property
    def state(self) -> WindowState:
        """The window as this process last saw it."""
        return self.engine.state

    @property
    def scope(self) -> str:
        """The continuation scope, as it is stored."""
        return self.keeper.key

    @property
    def ref(self) -> str:
        """The memory that gets checkpoints and turns."""
        return self.keeper.ref

    @property
    def diagnostics(self) -> Diagnostics:
        """The last turn: `continuation`, `remote_compaction`, `cache`."""
        return self.engine.diagnostics

    def note_work(self, **fields: Any) -> None:
        """Tell what the work is: `objective`, `plan`, `next_action`, `constraints` ... Every checkpoint quotes it."""
        self.keeper.work.update(fields)

    def note_local(self, first: int, last: int) -> None:
        """Tell that the runtime rewrote items `first` to `last` itself: no pass touches them in the next round."""
        self.engine.local.append((first, last))

    def _offer(self) -> None:
        """Put the methods of the SDK on the window."""
        raise NotImplementedError

    def check_open(self) -> None:
        """Raises RuntimeError when the window is closed."""
        if self._closed:
            _refuse_closed()

    def _close(self) -> None:
        closing, self._closed = not self._closed, True
        if closing and self._owned is not None:
            self._owned()


def _refuse_closed() -> NoReturn:
    raise RuntimeError("This window is closed. Open it again.")


class SyncDriver(_Window):
    """Runs the rounds of a window by blocking."""

    def __init__(
        self,
        client: Any,
        keeper: WindowStore,
        *,
        provider: str = "openai",
        kind: str | None = None,
        owned: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(client, keeper, provider=provider, kind=kind, owned=owned)
        self._lock = threading.RLock()
        self._begin()
        self._offer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the window, and the memory if it was opened for it. Closing twice is no fault."""
        with self._lock:
            self._close()

    def ask(self, given: Any, input_is: InputIs, params: dict[str, Any], call: Call, *, stream: bool) -> Any:
        """One turn; what the SDK's method returns."""
        with self._lock:
            answer: Answer = self.run(self.engine.turn(given, input_is, params, stream=stream), call)
            if answer.error is not None:
                raise answer.error
            raw = answer.value
            if not stream:
                return raw if call.raw else raw.parse()
            wrapped = SyncStream(self, raw.parse(), call)
            return RawStream(raw, wrapped) if call.raw else wrapped

    def compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        report: dict[str, Any] | None = self.run(self.engine.compact(), None)
        return report

    def items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        with self._lock:
            self.check_open()
            self.engine.restored()
            return [item.value for item in self.engine.state.items]

    def append(self, items: Any) -> None:
        """Grow the window by items that no response brought."""
        with self._lock:
            self.check_open()
            state = self.engine.restored()
            self.engine.state = self.keeper.append(state, [Item.of(item) for item in items])

    def pop(self) -> Any:
        """Take the newest item back, past a compaction if need be; None when there is none."""
        with self._lock:
            self.check_open()
            self.engine.restored()
            item = self.keeper.rewind(self.engine.state)
            return None if item is None else item.value

    def clear(self, reason: str = "cleared") -> None:
        """Start over. What was said stays in the memory."""
        with self._lock:
            self.check_open()
            self.engine.restored()
            self.keeper.clear(self.engine.state, reason)

    def run(self, steps: Steps, call: Call | None) -> Any:
        """Do what the engine asks for, one step after the other."""
        value: Any = None
        fault: BaseException | None = None
        with self._lock:
            self.check_open()
            while True:
                try:
                    step = steps.throw(fault) if fault is not None else steps.send(value)
                except StopIteration as end:
                    return end.value
                value = fault = None
                try:
                    value = step.call() if isinstance(step, Keep) else self._send(step, call)
                except BaseException as raised:
                    fault = raised

    def _send(self, step: Send, call: Call | None) -> Answer:
        try:
            if call is None or step.is_pass or step.method == "GET":
                return self._send_own(step, call)
            raw = self._client.post(**self.wire.request_of(step, call))
            text = "" if step.stream else raw.text
            return Answer(raw.http_response.status_code, text() if callable(text) else text, raw)
        except Exception as fault:
            answer: Answer | None = self.wire.refused(fault)
            if answer is None:
                raise
            return answer

    def _send_own(self, step: Send, call: Call | None) -> Answer:
        method, arguments = self.wire.call_of(self._client, step, (call.options.get("headers") or {}) if call else {})
        raw = method(**arguments)
        if not step.collect:
            text = raw.text
            return Answer(raw.http_response.status_code, text() if callable(text) else text)
        stream = raw.parse()
        tee, told = Tee(stream), self.engine.state.dialect.reading()
        for event in stream:
            told.feed(tee.text(event))
        return collected(told)


class AsyncDriver(_Window):
    """Runs the rounds of a window by awaiting."""

    def __init__(
        self,
        client: Any,
        keeper: WindowStore,
        *,
        provider: str = "openai",
        kind: str | None = None,
        owned: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(client, keeper, provider=provider, kind=kind, owned=owned)
        self._lock = TurnLock()
        self._offer()

    async def begin(self) -> Self:
        """Load the window."""
        await keep(self._begin)
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the window, and the memory if it was opened for it. Closing twice is no fault."""
        async with self._lock:
            await keep(self._close)

    async def ask(self, given: Any, input_is: InputIs, params: dict[str, Any], call: Call, *, stream: bool) -> Any:
        """One turn; what the SDK's method returns."""
        async with self._lock:
            answer: Answer = await self._run(self.engine.turn(given, input_is, params, stream=stream), call)
            if answer.error is not None:
                raise answer.error
            raw = answer.value
            if not stream:
                return raw if call.raw else await _settled(raw.parse())
            return await self.streamed(raw, call)

    async def streamed(self, raw: Any, call: Call, *, answers: str | None = None) -> Any:
        opened = raw.parse()
        later = inspect.isawaitable(opened)
        opened = await _settled(opened)
        wrapped = AsyncStream(self, opened, call, answers=answers)
        return RawStream(raw, wrapped, awaited=later) if call.raw else wrapped

    async def compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        report: dict[str, Any] | None = await self.run(self.engine.compact(), None)
        return report

    async def items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        async with self._lock:
            self.check_open()
            await keep(self.engine.restored)
            return [item.value for item in self.engine.state.items]

    async def append(self, items: Any) -> None:
        """Grow the window by items that no response brought."""
        given = [Item.of(item) for item in items]
        async with self._lock:
            self.check_open()
            state = await keep(self.engine.restored)
            self.engine.state = await keep(lambda: self.keeper.append(state, given))

    async def pop(self) -> Any:
        """Take the newest item back, past a compaction if need be; None when there is none."""
        async with self._lock:
            self.check_open()
            await keep(self.engine.restored)
            item = await keep(lambda: self.keeper.rewind(self.engine.state))
            return None if item is None else item.value

    async def clear(self, reason: str = "cleared") -> None:
        """Start over. What was said stays in the memory."""
        async with self._lock:
            self.check_open()
            await keep(self.engine.restored)
            await keep(lambda: self.keeper.clear(self.engine.state, reason))

    async def run(self, steps: Steps, call: Call | None) -> Any:
        """Do what the engine asks for, one step after the other."""
        async with self._lock:
            return await self._run(steps, call)

    async def _run(self, steps: Steps, call: Call | None) -> Any:
        value: Any = None
        fault: BaseException | None = None
        self.check_open()
        while True:
            try:
                step = steps.throw(fault) if fault is not None else steps.send(value)
            except StopIteration as end:
                return end.value
            value = fault = None
            try:
                value = await (keep(step.call) if isinstance(step, Keep) else self._send(step, call))
            except BaseException as raised:
                fault = raised

    async def _send(self, step: Send, call: Call | None) -> Answer:
        try:
            if call is None or step.is_pass or step.method == "GET":
                return await self._send_own(step, call)
            raw = await self._client.post(**self.wire.request_of(step, call))
            text = "" if step.stream else raw.text
            return Answer(raw.http_response.status_code, await text() if callable(text) else text, raw)
        except Exception as fault:
            answer: Answer | None = self.wire.refused(fault)
            if answer is None:
                raise
            return answer

    async def _send_own(self, step: Send, call: Call | None) -> Answer:
        method, arguments = self.wire.call_of(self._client, step, (call.options.get("headers") or {}) if call else {})
        raw = await method(**arguments)
        if not step.collect:
            text = raw.text
            return Answer(raw.http_response.status_code, await text() if callable(text) else text)
        stream = await _settled(raw.parse())
        tee, told = Tee(stream), self.engine.state.dialect.reading()
        async for event in stream:
            told.feed(tee.text(event))
        return collected(told)


async def _settled(value: Any) -> Any:
    """A value of an SDK that may have to be awaited."""
    return await value if inspect.isawaitable(value) else value


async def keep(call: Any) -> Any:
    """Run what touches the store in a thread, to its end: a cancelled caller never leaves it half known."""
    work = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
