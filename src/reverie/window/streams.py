"""Streams of the SDK, read by the window as they are passed on."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any, TypeVar

from reverie.window.calls import SdkCall, Tee
from reverie.window.items import compact
from reverie.window.steps import Steps
from reverie.window.streaming import Reading, holds_back, is_closing

T = TypeVar("T")


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("A blocking client waited for an event loop.")


async def await_value(value: Any) -> Any:
    """A value of an SDK that may have to be awaited."""
    return await value if inspect.isawaitable(value) else value


class _Stream:
    """A stream that the window reads while it is passed on.

    `answers`: the id of the response that is fetched, when the stream does not create one.
    """

    def __init__(self, window: Any, stream: Any, call: SdkCall, *, answers: str | None = None) -> None:
        self._window = window
        self._stream = stream
        self._call = call
        self._answers = answers
        self._pending = None if answers else window.engine.state.pending
        self._foreign = None if answers else window.engine.foreign
        self._given = window.engine.given
        self._events = self._iterate()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _store_answer(self, reading: Reading) -> Steps:
        engine = self._window.engine
        body, items = reading.response or "{}", list(reading.output) or None
        if self._answers is not None:
            return engine.resolved(self._answers, body, items)  # type: ignore[no-any-return]
        engine.state.pending, engine.foreign = self._pending, self._foreign
        return engine.keep(body, items)  # type: ignore[no-any-return]

    def _store_question(self, reading: Reading) -> Steps | None:
        """Keep the question of an answer that continues without a reader, as soon as its id is known."""
        if self._answers is not None or reading.opening is None or not getattr(self._pending, "background", False):
            return None
        engine = self._window.engine
        engine.state.pending = self._pending
        return engine.opened(reading.opening)  # type: ignore[no-any-return]

    def _again(self) -> Steps:
        engine = self._window.engine
        engine.state.pending, engine.given = self._pending, self._given
        return engine.reopen()  # type: ignore[no-any-return]

    def _resume(self, reading: Reading) -> Steps:
        engine = self._window.engine
        engine.state.pending, engine.given = self._pending, self._given
        return engine.resumed(reading.body(), stream=True)  # type: ignore[no-any-return]

    def _is_overflow(self, reading: Reading) -> bool:
        return self._answers is None and bool(self._window.engine.overflowed(reading.failure))

    def _failure(self, reading: Reading) -> Steps | None:
        """End the wait for a fetched answer that has failed."""
        if self._answers is None or reading.failure is None:
            return None
        return self._window.engine.resolved(self._answers, compact({"status": "failed"}))  # type: ignore[no-any-return]

    @staticmethod
    def events(stream: Any) -> AsyncIterator[Any]:
        """The events of the SDK's own stream."""
        raise NotImplementedError

    async def _run(self, steps: Steps) -> Any:
        return await self._window._run(steps, self._call)

    async def _iterate(self) -> AsyncGenerator[Any, None]:
        while True:
            tee, reading = Tee(self._stream), self._window.engine.state.dialect.reading()
            # Events without content are held back: until the first one with content, the request can be repeated
            # (after a compaction, or where the provider paused) and the caller sees one stream.
            held, again = [], None
            try:
                async for event in self.events(self._stream):
                    kind = reading.feed(tee.text(event))
                    if holds_back(kind):
                        begun = self._store_question(reading)
                        if begun is not None and await self._run(begun):
                            self._answers = str(event.response.id)
                        held.append(event)
                        continue
                    if reading.paused and is_closing(kind) and self._foreign is None:
                        again = await self._run(self._resume(reading))
                        break
                    if self._is_overflow(reading):
                        again = await self._run(self._again())
                        if again is not None and again.ok:
                            break
                        again = None
                    for early in held:
                        yield early
                    held = []
                    failed = self._failure(reading)
                    if failed is not None:
                        await self._run(failed)
                    # The turn is stored before the caller sees the last event, since a caller may stop reading there.
                    completed = is_closing(kind) and await self._run(self._store_answer(reading))
                    yield event
                    if completed:
                        await self._run(self._window.engine.after_turn())
            except Exception as fault:
                answer = self._window.wire.refused(fault)
                if answer is not None:
                    await self._run(self._window.engine.stream_failed(stalled=answer.stalled))
                raise
            finally:
                await await_value(self._stream.close())
            if again is None:
                for early in held:
                    yield early
                return
            if not again.ok:
                raise again.error or RuntimeError("The provider did not continue after a compaction.")
            self._pending = self._window.engine.state.pending
            self._stream = await await_value(again.value.parse())


class SyncStream(_Stream):
    """Iterate it like the SDK's own."""

    @staticmethod
    async def events(stream: Any) -> AsyncIterator[Any]:
        """The events of the SDK's own stream."""
        for event in stream:
            yield event

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return now(self._events.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> SyncStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection. A stream that ends early leaves the window as it was."""
        self._stream.close()


class AsyncStream(_Stream):
    """Iterate it like the SDK's own."""

    @staticmethod
    def events(stream: Any) -> AsyncIterator[Any]:
        """The events of the SDK's own stream."""
        return aiter(stream)

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


class RawStream:
    """A raw answer whose stream is read through the window."""

    def __init__(self, raw: Any, stream: Any, *, awaited: bool = False) -> None:
        self._raw = raw
        self._stream = stream
        self._awaited = awaited

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def parse(self, **_: Any) -> Any:
        """The stream, as the SDK would give it."""
        return self._later() if self._awaited else self._stream

    async def _later(self) -> Any:
        return self._stream
