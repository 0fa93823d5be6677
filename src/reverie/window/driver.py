"""A window around the caller's own client: one driver of the rounds (`engine.py`), for blocking and awaiting clients.

The driver is written as coroutines. Around a blocking client nothing in them suspends, so `now` runs one to its end.
Results and errors are the SDK's. Each SDK adds its methods and its wire.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from reverie.core.errors import Busy
from reverie.core.retry import retry
from reverie.window.calls import SdkCall, Tee, stream_outcome
from reverie.window.engine import Diagnostics, Engine
from reverie.window.items import Item
from reverie.window.policy import NegativeCache
from reverie.window.state import WindowState
from reverie.window.steps import Keep, RequestOutcome, Send, Steps
from reverie.window.storage import WindowStore
from reverie.window.streams import AsyncStream, RawStream, SyncStream, await_value, now
from reverie.window.turn import InputIs
from reverie.window.turn_lock import TurnLock

_SESSIONS: weakref.WeakKeyDictionary[Any, NegativeCache] = weakref.WeakKeyDictionary()
"""Features that each client's provider lacks, for the life of the client: shared by all scopes that use it."""


def session_of(client: Any) -> NegativeCache:
    """The facts shared by every window of one client."""
    return _SESSIONS.setdefault(client, NegativeCache())


class _Driver:
    """Runs the rounds of a window."""

    wire: ClassVar[Any]
    """Between steps and the SDK; every SDK has its own."""
    _lock: AbstractAsyncContextManager[Any]
    _stream: ClassVar[type[SyncStream] | type[AsyncStream]]

    def __init__(
        self,
        client: Any,
        keeper: WindowStore,
        *,
        provider: str = "openai",
        kind: str | None = None,
        owned: Callable[[], None] | None = None,
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
        self._start()

    def _start(self) -> None:
        """Set up the lock, and put the methods of the SDK on the window."""
        raise NotImplementedError

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
        """Describe the work: `objective`, `plan`, `next_action`, `constraints` ... Every checkpoint quotes it."""
        self.keeper.work.update(fields)

    def note_local(self, first: int, last: int) -> None:
        """Record that the runtime rewrote items `first` to `last` itself: no pass touches them in the next round."""
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

    async def _keep(self, call: Callable[[], Any]) -> Any:
        """The result of a call that touches the store."""
        raise NotImplementedError

    async def _end(self) -> None:
        """Close the window, and the memory if it was opened for it. Closing twice is no fault."""
        async with self._lock:
            await self._keep(self._close)

    async def _ask(self, given: Any, input_is: InputIs, params: dict[str, Any], call: SdkCall, *, stream: bool) -> Any:
        """Run one turn and return the result of the SDK's method."""
        async with self._lock:
            answer: RequestOutcome = await self._rounds(self.engine.turn(given, input_is, params, stream=stream), call)
            if answer.error is not None:
                raise answer.error
            raw = answer.value
            if not stream:
                return raw if call.raw else await await_value(raw.parse())
            return await self._wrap_stream(raw, call)

    async def _wrap_stream(self, raw: Any, call: SdkCall, *, answers: str | None = None) -> Any:
        opened = raw.parse()
        later = inspect.isawaitable(opened)
        wrapped = self._stream(self, await await_value(opened), call, answers=answers)
        return RawStream(raw, wrapped, awaited=later) if call.raw else wrapped

    last_call: SdkCall | None = None
    """The caller's last call, whose headers `compact` sends along; None where no headers are needed."""

    async def _compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        report: dict[str, Any] | None = await self._run(self.engine.compact(), self.last_call)
        return report

    async def _items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        async with self._lock:
            self.check_open()
            await self._keep(self.engine.restored)
            return [item.value for item in self.engine.state.items]

    async def _append(self, items: Any) -> None:
        """Append items that no response brought."""
        given = [Item.of(item) for item in items]
        async with self._lock:
            self.check_open()
            state = await self._keep(self.engine.restored)
            self.engine.state = await self._keep(lambda: self.keeper.append(state, given))

    async def _pop(self) -> Any:
        """Remove and return the newest item, past a compaction if need be; None when there is none."""
        async with self._lock:
            self.check_open()
            item = await self._keep(lambda: retry(lambda _: self.keeper.rewind(self.engine.restored()), busy=_busy))
            return None if item is None else item.value

    async def _clear(self, reason: str = "cleared") -> None:
        """Start over. Earlier turns stay in the memory."""
        async with self._lock:
            self.check_open()
            await self._keep(self.engine.restored)
            await self._keep(lambda: self.keeper.clear(self.engine.state, reason))

    async def _run(self, steps: Steps, call: SdkCall | None) -> Any:
        """Carry out the steps of the engine, in order."""
        async with self._lock:
            return await self._rounds(steps, call)

    async def _rounds(self, steps: Steps, call: SdkCall | None) -> Any:
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
                value = await (self._keep(step.call) if isinstance(step, Keep) else self._send(step, call))
            except BaseException as raised:
                fault = raised

    async def _send(self, step: Send, call: SdkCall | None) -> RequestOutcome:
        try:
            return await self._post(step, call)
        except UnicodeEncodeError:
            given = self.engine.given[0] if self.engine.given is not None and not step.is_pass else None
            try:
                own, body = _encodable(given) != given, _encodable(step.body)
            except (TypeError, ValueError):
                own, body = True, step.body
            if own:  # the caller's text, which its SDK would not send either
                raise
            return await self._post(replace(step, body=body), call)

    async def _post(self, step: Send, call: SdkCall | None) -> RequestOutcome:
        try:
            if call is None or step.is_pass or step.method == "GET":
                return await self._send_own(step, call)
            raw = await await_value(self._client.post(**self.wire.request_of(step, call)))
            return RequestOutcome(raw.http_response.status_code, "" if step.stream else await text_of(raw), raw)
        except Exception as fault:
            answer: RequestOutcome | None = self.wire.refused(fault)
            if answer is None:
                raise
            return answer

    async def _send_own(self, step: Send, call: SdkCall | None) -> RequestOutcome:
        method, arguments = self.wire.call_of(self._client, step, (call.options.get("headers") or {}) if call else {})
        raw = await await_value(method(**arguments))
        if not step.collect:
            return RequestOutcome(raw.http_response.status_code, await text_of(raw))
        stream = await await_value(raw.parse())
        tee, reading = Tee(stream), self.engine.state.dialect.reading()
        async for event in self._stream.events(stream):
            reading.feed(tee.text(event))
        return stream_outcome(reading)


def _busy() -> Busy:
    return Busy("Other processes change this conversation faster than it can be read. Try again.")


def _refuse_closed() -> NoReturn:
    raise RuntimeError("This window is closed. Open it again.")


def _encodable(value: Any) -> Any:
    """A JSON value in which every half of a surrogate pair is replaced: the SDK cannot send one that it received."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


async def text_of(raw: Any) -> str:
    """The text of a raw answer: a value, a method, or a coroutine, as the SDK has it."""
    text = raw.text
    found: str = await await_value(text()) if callable(text) else text
    return found


class _ThreadLock:
    """A lock of threads for code that is written with `async with` and never suspends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class SyncDriver(_Driver):
    """Runs the rounds of a window by blocking."""

    _stream = SyncStream

    def _start(self) -> None:
        self._lock = _ThreadLock()
        self._begin()
        self._offer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def _keep(self, call: Callable[[], Any]) -> Any:
        return call()

    def close(self) -> None:
        """Close the window, and the memory if it was opened for it. Closing twice is no fault."""
        now(self._end())

    def ask(self, given: Any, input_is: InputIs, params: dict[str, Any], call: SdkCall, *, stream: bool) -> Any:
        """Run one turn and return the result of the SDK's method."""
        return now(self._ask(given, input_is, params, call, stream=stream))

    def compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        return now(self._compact())

    def items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        return now(self._items())

    def append(self, items: Any) -> None:
        """Append items that no response brought."""
        now(self._append(items))

    def pop(self) -> Any:
        """Remove and return the newest item, past a compaction if need be; None when there is none."""
        return now(self._pop())

    def clear(self, reason: str = "cleared") -> None:
        """Start over. Earlier turns stay in the memory."""
        now(self._clear(reason))

    def run(self, steps: Steps, call: SdkCall | None) -> Any:
        """Carry out the steps of the engine, in order."""
        return now(self._run(steps, call))


class AsyncDriver(_Driver):
    """Runs the rounds of a window by awaiting."""

    _stream = AsyncStream

    def _start(self) -> None:
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

    async def _keep(self, call: Callable[[], Any]) -> Any:
        return await keep(call)

    aclose = _Driver._end
    ask = _Driver._ask
    compact = _Driver._compact
    items = _Driver._items
    append = _Driver._append
    pop = _Driver._pop
    clear = _Driver._clear
    run = _Driver._run


async def keep(call: Any) -> Any:
    """Run a call that touches the store in a thread, to its end even when the caller is cancelled."""
    work = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
