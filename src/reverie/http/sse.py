"""Streamed answers: server-sent events, and lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from itertools import chain
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from reverie.core.actor import Actor
from reverie.http.limits import key_of

MEDIA_TYPE = "text/event-stream"
RETRY = b"retry: 1000\n\n"
ALIVE = b": alive\n\n"
LINES = "application/x-ndjson"
_PIECE = 16_384
"""Bytes of one piece of a stream of lines: about as much as a few milliseconds make."""


def message(event: str, data: bytes, *, number: int | None = None) -> bytes:
    """One event. `number` is the id after which a client resumes."""
    head = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (head, event.encode(), data)


def accepts_stream(request: HTTPConnection) -> bool:
    """Whether the caller asks for a stream."""
    return MEDIA_TYPE in request.headers.get("accept", "")


class Stream(StreamingResponse):
    """A streamed answer that holds `slot` until it ends. An error before the first piece gets its own status."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        slot: AbstractContextManager[Any],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(self._all(), media_type=media_type, headers=headers)
        self._pieces = pieces
        self._slot = slot
        self._first = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            async with aclosing(self._pieces):
                self._first = await anext(self._pieces, b"")
                await super().__call__(scope, receive, send)

    async def _all(self) -> AsyncIterator[bytes]:
        yield self._first
        async for piece in self._pieces:
            yield piece


def event_stream(request: HTTPConnection, key_id: str, messages: AsyncGenerator[bytes, None]) -> Stream:
    """Server-sent events, counted among the open streams of the key from the first byte to the last."""
    return Stream(messages, slot=open_stream(request, key_id), media_type=MEDIA_TYPE)


@contextmanager
def open_stream(connection: HTTPConnection, key_id: str) -> Iterator[None]:
    """Count a stream or socket of a key while it is open. Raises RateLimited when the key has as many as it may."""
    state = connection.app.state
    with state.limits.streams.one(key_id), state.metrics.streams.track_inprogress():
        yield


def line_stream(
    state: Any, actor: Actor, lines: Iterator[bytes], *, headers: Mapping[str, str] | None = None
) -> Stream:
    """Lines of a blocking iterator, made as heavy work that lets the requests of other tenants go first.

    Call it in a thread: it makes the first line, so that a refusal is raised before the answer begins.
    """
    pieces = state.threads.each(actor.tenant, _pieces(chain([next(lines, b"")], lines)))
    return Stream(pieces, slot=state.limits.heavy.one(key_of(actor)), media_type=LINES, headers=headers)


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines gathered into pieces worth sending."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
