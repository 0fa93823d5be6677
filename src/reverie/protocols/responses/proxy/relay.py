"""Bytes from a caller to the upstream and back, unchanged: the transport of the proxy.

Method, query, headers and bodies go through as they came, both ways, piece by piece and without decoding; the path in
its normal form (`normal_path`). Only what belongs to one connection stays behind: hop-by-hop headers, `Host`, and our
own `x-reverie-scope`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import httpcore2
import orjson

from reverie.core.errors import Invalid
from reverie.window.turn import InputIs

Header = tuple[bytes, bytes]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CONNECT_SECONDS = 15.0
KEEP_SECONDS = 4.0
"""Lifetime of an idle connection: shorter than that of servers, so that no connection is used while it is being closed.
"""

_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
SCOPE = b"x-reverie-scope"


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """A request that belongs to a window."""

    scope_id: str
    body: dict[str, Any]
    headers: Sequence[Header]
    """As they go upstream, without those that describe the body."""
    query: bytes
    input_is: InputIs = "history"
    far: Any = None
    """The WebSocket to the upstream behind the caller's own (far.py)."""

    @property
    def chained(self) -> bool:
        """Whether the caller keeps the conversation at the provider."""
        return any(self.body.get(name) is not None for name in ("previous_response_id", "conversation", "thread"))

    @property
    def caller_input(self) -> Any:
        """The caller's input: the input of a response, or messages."""
        return self.body.get("input", self.body.get("messages"))


class UpstreamFault(Exception):
    """The upstream could not be reached, or broke off. `begun` says whether its answer had begun."""

    def __init__(self, kind: str, *, begun: bool = False) -> None:
        super().__init__(kind)
        self.kind = kind
        self.begun = begun


class Upstream:
    """Target of all requests. `http://host/v1` serves the paths that a caller requests under `/v1`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise Invalid("The upstream is an address such as https://api.openai.com/v1.", pointer="/upstream")
        if parts.username or parts.password:
            raise Invalid("Leave credentials out of the upstream: callers send their own.", pointer="/upstream")
        self.url = url.strip().rstrip("/")
        self._scheme = parts.scheme.encode()
        self._host = parts.hostname.encode("idna" if not parts.hostname.isascii() else "ascii")
        self._port = parts.port
        self._path = parts.path.rstrip("/").encode("ascii", "replace")
        self._named = parts.netloc.encode("idna" if not parts.netloc.isascii() else "ascii")
        self._pool: httpcore2.AsyncConnectionPool | None = None
        self.no_sockets_until = 0.0
        """Until when (monotonic) it is known to take no WebSocket."""

    @property
    def has_path(self) -> bool:
        """Whether the address names more than a host."""
        return bool(self._path)

    def target(self, path: bytes, query: bytes) -> bytes:
        """Return the request target at the upstream, byte for byte."""
        inside = path
        if self._path and (path == b"/v1" or path.startswith(b"/v1/")):
            inside = self._path + path[len(b"/v1") :]
        return inside + (b"?" + query if query else b"")

    def inside(self, path: bytes) -> bytes | None:
        """The part of a caller's path behind the base (`/responses`), whichever way the base was written."""
        for base in (b"/v1", self._path):
            if base and path.startswith(base + b"/"):
                return path[len(base) :]
        return None

    @asynccontextmanager
    async def ask(
        self,
        method: bytes,
        target: bytes,
        headers: Sequence[Header],
        body: bytes | AsyncIterator[bytes] | None,
        *,
        read_seconds: float | None = None,
    ) -> AsyncIterator[httpcore2.Response]:
        """Send a request; the answer's body is read by the caller. Every fault of the transport is UpstreamFault."""
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=ssl.create_default_context() if self._scheme == b"https" else None,
                max_connections=None,
                max_keepalive_connections=32,
                keepalive_expiry=KEEP_SECONDS,
            )
        url = httpcore2.URL(scheme=self._scheme, host=self._host, port=self._port, target=target)
        request = httpcore2.Request(
            method,
            url,
            headers=[(b"Host", self._named), *headers],
            content=body,
            extensions={"timeout": {"connect": CONNECT_SECONDS, "read": read_seconds, "pool": CONNECT_SECONDS}},
        )
        try:
            response = await self._pool.handle_async_request(request)
        except _FAULTS as fault:
            raise UpstreamFault(_kind(fault)) from None
        try:
            yield response
        finally:
            with suppress(*_FAULTS):
                await response.aclose()

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            with suppress(*_FAULTS):
                await self._pool.aclose()


_FAULTS = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError)


def _kind(fault: BaseException) -> str:
    if isinstance(fault, httpcore2.ConnectTimeout | httpcore2.ConnectError):
        return "upstream_unreachable"
    if isinstance(fault, httpcore2.TimeoutException):
        return "upstream_timeout"
    return "upstream_disconnected"


async def pieces(response: httpcore2.Response) -> AsyncIterator[bytes]:
    """The body as it arrives, undecoded."""
    try:
        async for piece in response.aiter_stream():
            yield piece
    except _FAULTS as fault:
        raise UpstreamFault(_kind(fault), begun=True) from None


def request_headers(headers: Sequence[Header]) -> list[Header]:
    """Request headers without those of the connection. `Expect` was met by us, on this connection."""
    return [(name, value) for name, value in _end_to_end(headers) if name.lower() not in (b"host", b"expect", SCOPE)]


def response_headers(headers: Sequence[Header]) -> list[Header]:
    """Response headers without those of the connection. Which pages may read an answer is for the proxy to say."""
    return [(name, value) for name, value in _end_to_end(headers) if not name.lower().startswith(b"access-control-")]


def _end_to_end(headers: Sequence[Header]) -> list[Header]:
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    left = _HOP | (named - {b"content-length", b"content-type"})
    return [(name, value) for name, value in headers if name.lower() not in left]


def header(headers: Sequence[Header], wanted: bytes) -> bytes | None:
    """The first value of a header."""
    return next((value for name, value in headers if name.lower() == wanted), None)


async def pass_through(upstream: Upstream, scope: Scope, caller: Caller, send: Send, extra: Sequence[Header]) -> int:
    """Relay one exchange; returns the status that was sent, 0 for none. `extra` headers join the answer's own.

    The caller leaving ends the upstream's work; the upstream breaking off breaks the answer off.
    """
    given: list[Header] = list(scope["headers"])
    headers = request_headers(given)
    body: AsyncIterator[bytes] | None = None
    if header(given, b"content-length") is not None or header(given, b"transfer-encoding") is not None:
        body = caller.upload()
        if header(given, b"content-length") is None:
            headers.append((b"Transfer-Encoding", b"chunked"))
    else:
        caller.read.set()
    target = upstream.target(scope["raw_path"], scope["query_string"])
    status = 0
    async with caller.present():
        try:
            async with upstream.ask(scope["method"].encode(), target, headers, body) as response:
                status = int(response.status)
                await send(start(status, [*response_headers(response.headers), *extra]))
                async for piece in pieces(response):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except UpstreamFault as fault:
            if not fault.begun:  # else the answer stays unfinished: the caller sees the break that we saw
                status = await refuse(send, upstream, fault.kind, extra)
    return status


class CallerLeft(Exception):
    """The caller closed its connection."""


class Caller:
    """The other end of a request: its body, and whether it is still there."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._held: list[bytes] = []
        self.read = asyncio.Event()
        """Set when the whole request has been read: after that the only event is that the caller leaves."""

    async def upload(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, after the part already read."""
        held, self._held = self._held, []
        for piece in held:
            yield piece
        while not self.read.is_set():
            piece = await self._next()
            if piece:
                yield piece

    async def look(self, most: int) -> bytes | None:
        """The whole body, which `upload` still yields; None when it is longer than `most`."""
        size = sum(map(len, self._held))
        while not self.read.is_set():
            piece = await self._next()
            self._held.append(piece)
            size += len(piece)
            if size > most:
                return None
        return b"".join(self._held)

    async def _next(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise CallerLeft
        if not event.get("more_body"):
            self.read.set()
        return bytes(event.get("body") or b"")

    @asynccontextmanager
    async def present(self) -> AsyncIterator[None]:
        """Run the body of this context for as long as the caller is there; end it quietly when it leaves."""
        task = asyncio.current_task()
        gone = False

        async def watch() -> None:
            nonlocal gone
            await self.read.wait()
            while (await self._receive())["type"] != "http.disconnect":
                pass
            gone = True
            if task is not None:
                task.cancel()

        watcher = asyncio.create_task(watch())
        try:
            yield
        except CallerLeft:
            pass
        except asyncio.CancelledError:
            if not gone:
                raise
            if task is not None:
                task.uncancel()
        finally:
            watcher.cancel()


def start(status: int, headers: Sequence[Header]) -> dict[str, Any]:
    """The opening of an answer."""
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def normal_path(scope: Scope) -> bytes | None:
    """The path as it goes upstream: one slash between segments, nothing encoded that need not be.

    None when it is no path, holds control characters, or leads upwards however often a server on the way decodes it:
    a gateway would resolve that to a place outside the base.
    """
    path = bytes(scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    if not path.startswith(b"/"):
        return None
    read = path
    for _ in range(_DECODINGS):
        if _CONTROL.search(read) or any(segment.partition(b";")[0] in _UPWARDS for segment in _SLASH.split(read)):
            return None
        decoded = unquote_to_bytes(read)
        if decoded == read:
            return _ENCODED.sub(_plain, re.sub(rb"//+", b"/", path))
        read = decoded
    return None


_DECODINGS = 5
_UPWARDS = (b".", b"..")
_SLASH = re.compile(rb"[/\\]")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]")


def _plain(encoded: re.Match[bytes]) -> bytes:
    byte = bytes.fromhex(encoded[1].decode())
    return byte if _UNRESERVED.fullmatch(byte) else encoded[0]


NEXT_STEP = {
    "upstream_unreachable": "Check that it runs and that --upstream names it, then send the request again.",
    "upstream_timeout": "It took too long. Send the request again.",
    "upstream_disconnected": "It closed the connection before it answered. Send the request again.",
}


async def refuse(send: Send, upstream: Upstream, kind: str, extra: Sequence[Header] = ()) -> int:
    """Answer 502 in the error shape of this API, with the next step."""
    message = f"Reverie proxy: {upstream.url} did not answer ({kind}). {NEXT_STEP[kind]}"
    return await answer(send, 502, error_body(message, kind), extra)


def error_body(message: str, code: str) -> dict[str, Any]:
    """An error as this API words it."""
    return {"error": {"message": message, "type": "reverie_proxy_error", "param": None, "code": code}}


async def answer(send: Send, status: int, document: Mapping[str, Any], extra: Sequence[Header] = ()) -> int:
    """A JSON answer of our own."""
    data = orjson.dumps(document)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode()), *extra]
    await send(start(status, headers))
    await send({"type": "http.response.body", "body": data})
    return status
