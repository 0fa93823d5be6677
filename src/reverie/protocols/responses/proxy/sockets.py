"""WebSocket connections to `/v1/responses`: each `response.create` is one turn of a window.

A turn goes to a WebSocket of the upstream where there is one, else upstream as a streamed request; its events come back
as frames, unchanged and in order. Frames that belong to no window, warm-ups, `response.steer` and types that are not
known here go to that WebSocket as they are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from reverie.protocols.responses.proxy.far import Far
from reverie.protocols.responses.proxy.relay import (
    SCOPE,
    Header,
    Receive,
    Scope,
    Send,
    Upstream,
    UpstreamFault,
    WindowRequest,
    header,
    pieces,
    request_headers,
    start,
)
from reverie.protocols.responses.proxy.sse import Events
from reverie.protocols.responses.proxy.status import Counts
from reverie.window.items import json_object

MOST_WAITING = 64
"""Frames that wait for their turn; more are not read before one was answered."""
_OWN = (b"content-length", b"content-type", b"accept", b"accept-encoding")
_FRAME_ONLY = ("type", "stream_id", "event_id")


class SocketWindows(Protocol):
    """Port of a connection to the windows."""

    async def turn(self, request: WindowRequest, caller: Any, send: Send) -> int | None:
        """Answer one request through its window; the status that was sent, or None when there can be no window."""

    async def latest(self, request: WindowRequest) -> str | None:
        """The id of the newest response of the window, None before the first."""


class Socket:
    """One connection of a caller."""

    def __init__(
        self,
        upstream: Upstream,
        windows: SocketWindows | None,
        counts: Counts,
        *,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._upstream = upstream
        self._windows = windows
        self._counts = counts
        self._query: bytes = scope["query_string"]
        self._receive, self._send = receive, send
        given: Sequence[Header] = list(scope["headers"])
        self._named = header(given, SCOPE)
        self._headers = [
            (name, value)
            for name, value in request_headers(given)
            if not name.lower().startswith(b"sec-websocket-") and name.lower() not in _OWN
        ]
        self._far = Far(upstream, self._headers, self._query, self._give)

    async def run(self) -> None:
        """Serve the connection to its end. Turns come one after another; a caller that leaves cancels its turn."""
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept"})
        frames: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        reader = asyncio.create_task(self._read(frames))
        try:
            while (frame := await frames.get()) is not None:
                turn = asyncio.create_task(self._frame(frame))
                await asyncio.wait({turn, reader}, return_when=asyncio.FIRST_COMPLETED)
                if not turn.done():
                    turn.cancel()
                    await asyncio.wait({turn})
                    self._counts.requests["caller_left"] += 1
                    return
                turn.result()
        finally:
            reader.cancel()
            await self._far.close()

    async def _read(self, frames: asyncio.Queue[str | None]) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                while not frames.empty():
                    frames.get_nowait()
                frames.put_nowait(None)
                return
            text = event.get("text")
            frame = text if text is not None else (event.get("bytes") or b"").decode("utf-8", "replace")
            if self._far.answering and _steers(frame) and await self._far.send(frame):
                self._counts.requests["passed_through"] += 1  # it is for the response that is being made
                continue
            await frames.put(frame)

    async def _frame(self, text: str) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            await self._refuse(None, 400, "invalid_json", "A frame is one JSON object.")
            return
        if event.get("type") == "response.create" and event.get("generate") is not False:
            request = self._request_of(event)
            if request is not None and await self._turn(request, event):
                return
        await self._pass_on(text, event)

    def _request_of(self, event: dict[str, Any]) -> WindowRequest | None:
        """The request of a frame that names a window."""
        scope_id: Any = event.get("prompt_cache_key")
        if self._named is not None:
            scope_id = self._named.decode("utf-8", "replace").strip()
        if self._windows is None or not isinstance(scope_id, str) or not scope_id:
            return None
        if not isinstance(event.get("input"), str | list):
            return None
        body = {name: value for name, value in event.items() if name not in _FRAME_ONLY} | {"stream": True}
        headers = [*self._headers, (b"Content-Type", b"application/json")]
        return WindowRequest(scope_id, body, headers, self._query, far=self._far)

    async def _turn(self, request: WindowRequest, event: dict[str, Any]) -> bool:
        """Answer a frame through its window. False when there can be no window."""
        assert self._windows is not None
        previous = request.body.get("previous_response_id")
        if previous is not None and previous == await self._windows.latest(request):
            body = {name: value for name, value in request.body.items() if name != "previous_response_id"}
            request = WindowRequest(
                request.scope_id, body, request.headers, request.query, input_is="items", far=self._far
            )
        frames = _Frames(self._send, event.get("stream_id"))
        status = await self._windows.turn(request, _Present(), frames)
        if status is None:
            return False
        self._counts.requests["windowed"] += 1
        if status == 0:
            await self._refuse(event, 502, "upstream_disconnected", "The upstream broke off.")
        return True

    async def _pass_on(self, text: str, event: dict[str, Any]) -> None:
        """A frame of no window: to a WebSocket of the upstream, else, where it creates a response, as a request."""
        self._counts.requests["passed_through"] += 1
        if await self._far.ensure_connection():
            if not await self._far.send(text):
                await self._refuse(event, 502, "upstream_disconnected", "The upstream closed the connection.")
            return
        if event.get("type") != "response.create" or event.get("generate") is False:
            await self._refuse(event, 400, "unsupported_event", "The upstream takes no WebSocket connections.")
            return
        body = {name: value for name, value in event.items() if name not in _FRAME_ONLY} | {"stream": True}
        data = json.dumps(body, separators=(",", ":")).encode()
        headers = [*self._headers, (b"Content-Type", b"application/json"), (b"Content-Length", str(len(data)).encode())]
        frames = _Frames(self._send, event.get("stream_id"))
        target = self._upstream.target(b"/v1/responses", self._query)
        try:
            async with self._upstream.ask(b"POST", target, headers, data) as response:
                await frames(start(int(response.status), list(response.headers)))
                async for piece in pieces(response):
                    await frames({"type": "http.response.body", "body": piece, "more_body": True})
            await frames({"type": "http.response.body", "body": b""})
        except UpstreamFault as fault:
            await self._refuse(event, 502, fault.kind, "The upstream could not be reached.")

    async def _give(self, message: str | bytes) -> None:
        """A frame of the upstream, as it is."""
        await self._send({"type": "websocket.send", "text" if isinstance(message, str) else "bytes": message})

    async def _refuse(self, event: dict[str, Any] | None, status: int, code: str, said: str) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": said, "param": None}
        frames = _Frames(self._send, (event or {}).get("stream_id"))
        await frames.emit({"type": "error", "status": status, "error": error})


def _steers(text: str) -> bool:
    return json_object(text).get("type") == "response.steer"


class _Frames:
    """Takes an answer as HTTP messages and gives its events as frames."""

    def __init__(self, send: Send, stream_id: Any) -> None:
        self._send = send
        self._stream_id = stream_id
        self._events = Events()
        self._status = 0
        self._streams = False
        self._rest = bytearray()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = int(message["status"])
            kind = header(message["headers"], b"content-type") or b""
            self._streams = self._status == 200 and b"event-stream" in kind
            return
        data: bytes = message.get("body", b"")
        if self._streams:
            for text in self._events.feed(data):
                await self._give(text)
            return
        self._rest += data
        if not message.get("more_body"):
            await self._finish_document()

    async def _give(self, text: str) -> None:
        if text.strip() == "[DONE]":
            return
        if self._stream_id is None:
            await self._send({"type": "websocket.send", "text": text})
            return
        event = json_object(text)
        if event:
            await self.emit(event)

    async def _finish_document(self) -> None:
        """An answer that is no stream: an error in the provider's shape, or a response."""
        body = json_object(bytes(self._rest))
        if self._status == 200:
            await self.emit({"type": "response.completed", "response": body})
            return
        error = body.get("error")
        if not isinstance(error, dict):
            error = {"type": "server_error", "code": None, "message": f"The upstream answered {self._status}."}
        await self.emit({"type": "error", "status": self._status, "error": error})

    async def emit(self, event: dict[str, Any]) -> None:
        """Send one event."""
        if self._stream_id is not None:
            event = {**event, "stream_id": self._stream_id}
        await self._send({"type": "websocket.send", "text": json.dumps(event, separators=(",", ":"))})


class _Present:
    """A caller whose connection is watched elsewhere."""

    @asynccontextmanager
    async def present(self) -> AsyncIterator[None]:
        """Run the body of this context; a caller that leaves cancels it."""
        yield
