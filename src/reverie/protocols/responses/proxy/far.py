"""The WebSocket to the upstream for one caller's connection, if the upstream supports it.

A turn of a window is one `response.create` on it, its events the answer. Everything else that arrives goes to the
caller as it is. A connection that was lost, or has reached its age limit, is opened again and the request repeated, as
long as no event of the answer has arrived: the request holds the whole window, so that nothing the old connection
remembered is needed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from reverie.protocols.responses.proxy.relay import CONNECT_SECONDS, Header, Upstream, UpstreamFault
from reverie.protocols.responses.proxy.reply import UpstreamReply
from reverie.window.items import json_object

MOST_BYTES = 64 * 2**20
ABSENT_SECONDS = 600.0
"""Time for which an upstream that refused the handshake is not tried again."""
_ABSENT = frozenset({400, 404, 405, 410, 426, 501})
_LIMIT = "websocket_connection_limit_reached"
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled", "error"})
_HTTP_ONLY = ("stream", "background")
_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
_JSON = [(b"content-type", b"application/json")]


class Far:
    """A connection to the upstream, opened when it is first needed and again when it was lost."""

    def __init__(
        self,
        upstream: Upstream,
        headers: Sequence[Header],
        query: bytes,
        give: Callable[[str | bytes], Awaitable[None]],
    ) -> None:
        self._upstream = upstream
        self._headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        scheme, _, rest = upstream.url.partition("://")
        target = upstream.target(b"/v1/responses", query).decode("ascii", "replace")
        self._address = f"{'wss' if scheme == 'https' else 'ws'}://{rest.partition('/')[0]}{target}"
        self._give = give
        self._connection: ClientConnection | None = None
        self._pump: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[str | None] | None = None
        """Queue for the events of the current turn; None ends them."""

    @property
    def answering(self) -> bool:
        """Whether a turn is being answered over this connection."""
        return self._events is not None

    async def ensure_connection(self) -> bool:
        """Whether there is a connection; it is opened where the upstream has WebSockets."""
        if self._connection is not None and self._pump is not None and not self._pump.done():
            return True
        if self._upstream.no_sockets_until > time.monotonic():
            return False
        try:
            made = await connect(
                self._address,
                additional_headers=self._headers,
                max_size=MOST_BYTES,
                open_timeout=CONNECT_SECONDS,
                proxy=None,
            )
        except InvalidStatus as refused:
            if refused.response.status_code in _ABSENT:
                self._upstream.no_sockets_until = time.monotonic() + ABSENT_SECONDS
            return False
        except (WebSocketException, OSError, TimeoutError, EOFError):
            return False
        self._connection = made
        self._pump = asyncio.create_task(self._bring(made))
        return True

    async def send(self, text: str) -> bool:
        """Pass a frame on; False when the connection was lost."""
        try:
            assert self._connection is not None
            await self._connection.send(text)
        except WebSocketException:
            return False
        return True

    async def turn(self, body: Mapping[str, Any]) -> UpstreamReply | None:
        """Ask for a response; None when the upstream takes no WebSocket."""
        frame = {"type": "response.create"} | {name: one for name, one in body.items() if name not in _HTTP_ONLY}
        text = json.dumps(frame, separators=(",", ":"))
        for last in (False, True):
            if self._events is not None:  # the turn before was left in the middle: its events would be taken for ours
                await self.close()
            if not await self.ensure_connection():
                return None
            self._events = asyncio.Queue()
            first = await self._events.get() if await self.send(text) else None
            if first is None or (_code(first) == _LIMIT and not last):
                await self.close()
                continue
            return self._reply(first)
        raise UpstreamFault("upstream_disconnected")

    def _reply(self, first: str) -> UpstreamReply:
        event = json_object(first)
        if event.get("type") == "error":
            self._events = None
            body = json.dumps({"error": event.get("error")}, separators=(",", ":")).encode()
            status = event.get("status", event.get("status_code"))
            return UpstreamReply(status if isinstance(status, int) else 400, list(_JSON), body)
        return UpstreamReply(200, list(_STREAM), stream=self._stream(first))

    async def _stream(self, first: str) -> AsyncIterator[bytes]:
        """The events of a turn as a server-sent stream, to the closing one."""
        events, text = self._events, first
        assert events is not None
        while True:
            kind = _kind(text)
            ends = kind in _LAST
            if ends and self._events is events:
                self._events = None
            yield f"event: {kind}\ndata: {text}\n\n".encode("utf-8", "surrogateescape")
            if ends:
                return
            event = await events.get()
            if event is None:
                raise UpstreamFault("upstream_disconnected", begun=True)
            text = event

    async def _bring(self, connection: ClientConnection) -> None:
        with suppress(WebSocketException):
            async for message in connection:
                if isinstance(message, str) and self._events is not None and _belongs(message):
                    self._events.put_nowait(message)
                else:
                    await self._give(message)
        if self._events is not None:
            self._events.put_nowait(None)

    async def close(self) -> None:
        """End the connection."""
        self._events = None
        if self._pump is not None:
            self._pump.cancel()
        if self._connection is not None:
            with suppress(WebSocketException, OSError):
                await self._connection.close()
        self._connection = self._pump = None


def _belongs(text: str) -> bool:
    """Whether a frame is of our turn: those of the caller's own frames carry the caller's `stream_id`."""
    event = json_object(text)
    return bool(event) and event.get("stream_id") is None


def _kind(text: str) -> str:
    return str(json_object(text).get("type"))


def _code(text: str) -> Any:
    error = json_object(text).get("error")
    return error.get("code") if isinstance(error, dict) else None
