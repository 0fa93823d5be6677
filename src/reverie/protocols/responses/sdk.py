"""`create` around the caller's own client. What comes back, and what is raised, is the SDK's.

Two thin drivers run the same rounds (`window/engine.py`): one blocks, one awaits.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.protocols.responses import wire
from reverie.protocols.responses.agents_sdk import WindowSession
from reverie.window.engine import Diagnostics, Engine
from reverie.window.items import Item
from reverie.window.policy import NegativeCache, WindowPolicy
from reverie.window.state import WindowState
from reverie.window.steps import Answer, Keep, Send, Steps
from reverie.window.storage import WindowStore
from reverie.window.streaming import Streaming, holds_back, is_closing
from reverie.window.turn import InputIs

_SESSIONS: weakref.WeakKeyDictionary[Any, NegativeCache] = weakref.WeakKeyDictionary()
"""What each client's provider cannot do, for as long as the client lives: shared by every scope that uses it."""


def session_of(client: Any) -> NegativeCache:
    """The facts shared by every window of one client."""
    return _SESSIONS.setdefault(client, NegativeCache())


class _Window:
    """What both drivers share."""

    def __init__(self, client: Any, keeper: WindowStore, *, provider: str, kind: str | None) -> None:
        base = wire.base_of(client, kind)
        self._client = wire.bound(client, base)
        self.keeper = keeper
        self._provider, self._base, self._account = provider, base, wire.account_of(client)
        self._clock = keeper.clock
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

    def _pass_through(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the caller manages the chain itself."""
        given = arguments.get("previous_response_id") or arguments.get("conversation")
        return given is not None and type(given).__name__ not in ("Omit", "NotGiven")

    def _chained_by_client(self) -> None:
        found = {"status": "fallback_full_request", "fallback_reason": "client_managed_chain"}
        found["request_lowering_mode"] = "full_request"
        self.engine.diagnostics = Diagnostics(incremental_continuation=found, continuation=found)


class SyncWindow(_Window):
    """A window around an `openai.OpenAI` client. Safe to share between threads; turns of one scope take turns."""

    def __init__(self, client: Any, keeper: WindowStore, *, provider: str = "openai", kind: str | None = None) -> None:
        super().__init__(client, keeper, provider=provider, kind=kind)
        self._lock = threading.RLock()
        self._begin()

    def create(self, *, input: Any = None, input_is: InputIs = "items", **arguments: Any) -> Any:  # noqa: A002
        """`client.responses.create` inside the window. `input` is what is new, or with `input_is="history"` all."""
        if self._pass_through(arguments):
            self._chained_by_client()
            return self._client.responses.create(input=input, **arguments)
        body, options = wire.split(arguments)
        stream = bool(body.pop("stream", False))
        with self._lock:
            answer: Answer = self._run(self.engine.turn(input, input_is, body, stream=stream), options)
            if answer.error is not None:
                raise answer.error
            return SyncStream(self, answer.value, options) if stream else answer.value

    def compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        with self._lock:
            report: dict[str, Any] | None = self._run(self.engine.compact(), {})
            return report

    def items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        with self._lock:
            self.engine.restored()
            return [item.value for item in self.engine.state.items]

    def append(self, items: Any) -> None:
        """Grow the window by items that no response brought."""
        with self._lock:
            state = self.engine.restored()
            self.engine.state = self.keeper.append(state, [Item.of(item) for item in items])

    def pop(self) -> Any:
        """Take the newest item back, past a compaction if need be; None when there is none."""
        with self._lock:
            self.engine.restored()
            item = self.keeper.rewind(self.engine.state)
            return None if item is None else item.value

    def clear(self, reason: str = "cleared") -> None:
        """Begin anew. What was said stays in the memory."""
        with self._lock:
            self.engine.restored()
            self.keeper.clear(self.engine.state, reason)

    def _run(self, steps: Steps, options: Mapping[str, Any]) -> Any:
        value: Any = None
        fault: BaseException | None = None
        while True:
            try:
                step = steps.throw(fault) if fault is not None else steps.send(value)
            except StopIteration as end:
                return end.value
            value = fault = None
            try:
                value = step.call() if isinstance(step, Keep) else self._send(step, options)
            except BaseException as raised:
                fault = raised

    def _send(self, step: Send, options: Mapping[str, Any]) -> Answer:
        method, arguments = wire.call_of(self._client, step, options)
        text = ""
        try:
            raw = method(**arguments)
            if step.stream:
                return Answer(raw.http_response.status_code, value=raw.parse())
            if step.collect:
                stream = raw.parse()
                tee, told = wire.Tee(stream), Streaming()
                for event in stream:
                    told.feed(tee.text(event))
                return wire.collected(told)
            text = raw.text
            return Answer(raw.http_response.status_code, text, None if step.is_pass else raw.parse())
        except Exception as fault:
            answer = wire.refused(fault)
            if answer is None:
                raise
            return answer


class AsyncWindow(_Window):
    """A window around an `openai.AsyncOpenAI` client. Turns of one scope take turns."""

    def __init__(self, client: Any, keeper: WindowStore, *, provider: str = "openai", kind: str | None = None) -> None:
        super().__init__(client, keeper, provider=provider, kind=kind)
        self._lock = asyncio.Lock()
        self._session: WindowSession | None = None

    async def begin(self) -> AsyncWindow:
        """Load the window."""
        await keep(self._begin)
        return self

    async def create(self, *, input: Any = None, input_is: InputIs = "items", **arguments: Any) -> Any:  # noqa: A002
        """`client.responses.create` inside the window. `input` is what is new, or with `input_is="history"` all."""
        if self._pass_through(arguments):
            self._chained_by_client()
            return await self._client.responses.create(input=input, **arguments)
        body, options = wire.split(arguments)
        stream = bool(body.pop("stream", False))
        async with self._lock:
            answer: Answer = await self._run(self.engine.turn(input, input_is, body, stream=stream), options)
            if answer.error is not None:
                raise answer.error
            return AsyncStream(self, answer.value, options) if stream else answer.value

    async def compact(self) -> dict[str, Any] | None:
        """Compact now if that is possible; returns the diagnostics of the pass."""
        async with self._lock:
            report: dict[str, Any] | None = await self._run(self.engine.compact(), {})
            return report

    async def compact_if_due(self, more: Sequence[Item] = ()) -> dict[str, Any] | None:
        """Compact if a request with `more` items would call for it; returns the diagnostics of the pass."""
        async with self._lock:
            report: dict[str, Any] | None = await self._run(self.engine.compact_if_due(more), {})
            return report

    def session(self, *, model: str | None = None) -> WindowSession:
        """The window as a session of the OpenAI Agents SDK, always the same one. `model` names who compacts."""
        if self._session is None:
            self._session = WindowSession(self, model=model)
        self._session.model = model or self._session.model
        return self._session

    @property
    def input_filter(self) -> Callable[[Any], Awaitable[Any]]:
        """For `RunConfig(call_model_input_filter=...)`: keeps the input of every model call of a run bounded."""
        return self.session().input_filter

    async def items(self) -> list[Any]:
        """The items of the window, as they would be replayed."""
        async with self._lock:
            await keep(self.engine.restored)
            return [item.value for item in self.engine.state.items]

    async def append(self, items: Any) -> None:
        """Grow the window by items that no response brought."""
        given = [Item.of(item) for item in items]
        async with self._lock:
            state = await keep(self.engine.restored)
            self.engine.state = await keep(lambda: self.keeper.append(state, given))

    async def pop(self) -> Any:
        """Take the newest item back, past a compaction if need be; None when there is none."""
        async with self._lock:
            await keep(self.engine.restored)
            item = await keep(lambda: self.keeper.rewind(self.engine.state))
            return None if item is None else item.value

    async def clear(self, reason: str = "cleared") -> None:
        """Begin anew. What was said stays in the memory."""
        async with self._lock:
            await keep(self.engine.restored)
            await keep(lambda: self.keeper.clear(self.engine.state, reason))

    async def _run(self, steps: Steps, options: Mapping[str, Any]) -> Any:
        value: Any = None
        fault: BaseException | None = None
        while True:
            try:
                step = steps.throw(fault) if fault is not None else steps.send(value)
            except StopIteration as end:
                return end.value
            value = fault = None
            try:
                value = await (keep(step.call) if isinstance(step, Keep) else self._send(step, options))
            except BaseException as raised:
                fault = raised

    async def _send(self, step: Send, options: Mapping[str, Any]) -> Answer:
        method, arguments = wire.call_of(self._client, step, options)
        try:
            raw = await method(**arguments)
            if step.stream:
                return Answer(raw.http_response.status_code, value=raw.parse())
            if step.collect:
                stream = raw.parse()
                tee, told = wire.Tee(stream), Streaming()
                async for event in stream:
                    told.feed(tee.text(event))
                return wire.collected(told)
            return Answer(raw.http_response.status_code, raw.text, None if step.is_pass else raw.parse())
        except Exception as fault:
            answer = wire.refused(fault)
            if answer is None:
                raise
            return answer


async def keep(call: Any) -> Any:
    """Run what touches the store in a thread, to its end: a cancelled caller never leaves it half known."""
    work = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


class _Stream:
    """A stream that is passed on while the window listens."""

    def __init__(self, window: Any, stream: Any, options: Mapping[str, Any]) -> None:
        self._window = window
        self._stream = stream
        self._options = options
        self._pending = window.engine.state.pending
        self._given = window.engine.given
        self._reopened = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _kept(self, told: Streaming) -> Steps:
        engine = self._window.engine
        engine.state.pending = self._pending
        return engine.keep(told.response or "{}", told.output or None)  # type: ignore[no-any-return]

    def _again(self) -> Steps:
        engine = self._window.engine
        engine.state.pending, engine.given = self._pending, self._given
        self._reopened = True
        return engine.reopen()  # type: ignore[no-any-return]

    def _is_overflow(self, told: Streaming) -> bool:
        return not self._reopened and self._window.engine.overflowed(told.failure)


class SyncStream(_Stream):
    """Iterate it like the SDK's own."""

    def __init__(self, window: SyncWindow, stream: Any, options: Mapping[str, Any]) -> None:
        super().__init__(window, stream, options)
        self._events = self._iterate()

    def __iter__(self) -> Iterator[Any]:
        return self._events

    def __next__(self) -> Any:
        return next(self._events)

    def __enter__(self) -> SyncStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection. A stream that ends early leaves the window as it was."""
        self._stream.close()

    def _run(self, steps: Steps) -> Any:
        with self._window._lock:
            return self._window._run(steps, self._options)

    def _iterate(self) -> Iterator[Any]:
        while True:
            tee, told, held, again = wire.Tee(self._stream), Streaming(), [], None
            try:
                for event in self._stream:
                    kind = told.feed(tee.text(event))
                    if holds_back(kind):
                        held.append(event)
                        continue
                    if held is not None and self._is_overflow(told):
                        again = self._run(self._again())
                        if again is not None and again.ok:
                            break
                        again = None
                    yield from held
                    held = []
                    if is_closing(kind):
                        completed = self._run(self._kept(told))
                        yield event
                        if completed:
                            self._run(self._window.engine.after_turn())
                    else:
                        yield event
            except Exception as fault:
                answer = wire.refused(fault)
                if answer is not None:
                    self._run(self._window.engine.stream_failed(stalled=answer.stalled))
                raise
            finally:
                self._stream.close()
            if again is None:
                yield from held
                return
            self._stream = again.value


class AsyncStream(_Stream):
    """Iterate it like the SDK's own."""

    def __init__(self, window: AsyncWindow, stream: Any, options: Mapping[str, Any]) -> None:
        super().__init__(window, stream, options)
        self._events = self._iterate()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events

    async def __anext__(self) -> Any:
        return await self._events.__anext__()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection. A stream that ends early leaves the window as it was."""
        await self._stream.close()

    async def _run(self, steps: Steps) -> Any:
        async with self._window._lock:
            return await self._window._run(steps, self._options)

    async def _iterate(self) -> AsyncIterator[Any]:
        while True:
            tee, told, held, again = wire.Tee(self._stream), Streaming(), [], None
            try:
                async for event in self._stream:
                    kind = told.feed(tee.text(event))
                    if holds_back(kind):
                        held.append(event)
                        continue
                    if self._is_overflow(told):
                        again = await self._run(self._again())
                        if again is not None and again.ok:
                            break
                        again = None
                    for early in held:
                        yield early
                    held = []
                    if is_closing(kind):
                        completed = await self._run(self._kept(told))
                        yield event
                        if completed:
                            await self._run(self._window.engine.after_turn())
                    else:
                        yield event
            except Exception as fault:
                answer = wire.refused(fault)
                if answer is not None:
                    await self._run(self._window.engine.stream_failed(stalled=answer.stalled))
                raise
            finally:
                await self._stream.close()
            if again is None:
                for early in held:
                    yield early
                return
            self._stream = again.value


def window_keeper(
    host: Host,
    actor: Actor,
    client: Any,
    scope: str,
    *,
    policy: WindowPolicy | None = None,
    ref: str | None = None,
    subject: str | None = None,
) -> WindowStore:
    """The keeper of a scope's window for a client."""
    return host.windows.keeper(actor, scope, policy=policy, negative=session_of(client), ref=ref, subject=subject)
