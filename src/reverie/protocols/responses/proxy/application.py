"""The proxy: any client with a configurable base URL gains a bounded window; everything else passes through.

A request to `/v1/responses` belongs to a window when it names a scope: the header `x-reverie-scope`, else its
`prompt_cache_key`. Where the upstream is a Messages API, it is a request to `/v1/messages` with that header. All other
traffic goes to the upstream and back byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Protocol

from anyio import to_thread

from reverie.core.clock import SystemClock
from reverie.core.ports import Clock
from reverie.http.origin import OriginPolicy, preflight, readable_by
from reverie.protocols.responses.proxy.relay import (
    SCOPE,
    Caller,
    CallerLeft,
    Header,
    Receive,
    Scope,
    Send,
    Upstream,
    WindowRequest,
    answer,
    error_body,
    header,
    normal_path,
    pass_through,
    request_headers,
    start,
)
from reverie.protocols.responses.proxy.sockets import Socket
from reverie.protocols.responses.proxy.status import METRICS, PATH, Counts, show, show_metrics
from reverie.window.messages import Messages

MOST_BYTES = 64 * 2**20
"""Longer requests pass through unread."""
STATUS = b"x-reverie-window-status"
_RESPONSE = re.compile(rb"/responses/([A-Za-z0-9_-]{1,128})(/cancel)?")
_JSON_ROUTES = (b"/responses", b"/responses/compact", b"/messages", b"/messages/count_tokens")


class Windows(Protocol):
    """Port of the proxy to the windows."""

    async def turn(self, request: WindowRequest, caller: Caller, send: Send) -> int | None:
        """Answer one request through its window; the status that was sent, or None when there can be no window."""

    async def latest(self, request: WindowRequest) -> str | None:
        """The id of the newest response of the window, None before the first."""

    async def look(
        self, response_id: str, request: WindowRequest, scope: Scope, caller: Caller, send: Send
    ) -> int | None:
        """Fetch or cancel a response that a window waits for; None when none does."""

    def window_list(self) -> Sequence[Mapping[str, Any]]:
        """The windows, without their items."""


class Proxy:
    """An ASGI application."""

    def __init__(
        self,
        upstream: Upstream,
        windows: Windows | None,
        *,
        counts: Counts | None = None,
        clock: Clock | None = None,
        pages: OriginPolicy | None = None,
        messages: bool = False,
    ) -> None:
        self._route = b"/messages" if messages else b"/responses"
        self.upstream = upstream
        self.windows = windows
        self._pages = pages or OriginPolicy(own_port=True, own_pages=False)
        self.counts = counts or Counts((clock or SystemClock()).now())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection event."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            caller = Caller(receive)
            try:
                await self._check(scope, caller, send)
            except CallerLeft:
                self.counts.requests["caller_left"] += 1
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an upgrade on `/v1/responses`, under the same rules as a request."""
        refused = self._pages.refused(scope)
        path = normal_path(scope)
        if refused is None and path is not None and self.upstream.inside(path) == b"/responses":
            await Socket(self.upstream, self.windows, self.counts, scope=scope, receive=receive, send=send).run()
            return
        status, code, said = 404, "not_found", "There is no WebSocket here but at /v1/responses."
        if refused is not None:
            status, code, said = refused.status, refused.code, refused.message
        self.counts.requests[code] += 1
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": code})
            return

        async def sending(message: MutableMapping[str, Any]) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await answer(sending, status, error_body(said, code))

    async def _check(self, scope: Scope, caller: Caller, send: Send) -> None:
        """Refuse, by its head alone, a request that does not come from a program on this machine."""
        refused = self._pages.refused(scope)
        if refused is not None:
            self.counts.requests[refused.code] += 1
            await answer(send, refused.status, error_body(refused.message, refused.code))
            return
        page = self._pages.shared_with(scope)
        if page is not None:
            granted = preflight(scope, page)
            if granted is not None:
                await send(start(204, granted))
                await send({"type": "http.response.body", "body": b""})
                return
            send = _readable(send, page)
        path = normal_path(scope)
        if path is None:
            self.counts.requests["invalid_path"] += 1
            message = "The path must begin with a slash and have no segment that leads upwards, however it is encoded."
            await answer(send, 400, error_body(message, "invalid_path"))
            return
        if scope["method"] == "POST" and self.upstream.inside(path) in _JSON_ROUTES and not _is_json(scope["headers"]):
            self.counts.requests["unsupported_media_type"] += 1
            message = "Send JSON: Content-Type: application/json."
            await answer(send, 415, error_body(message, "unsupported_media_type"))
            return
        scope["raw_path"] = path
        await self._http(scope, path, caller, send)

    async def _http(self, scope: Scope, path: bytes, caller: Caller, send: Send) -> None:
        headers = list(scope["headers"])
        if path in (PATH, PATH + b".json", METRICS) and scope["method"] in ("GET", "HEAD"):
            if path == METRICS:
                await show_metrics(send, self.counts)
                return
            listed = await to_thread.run_sync(self.windows.window_list) if self.windows else ()
            document = self.counts.document(self.upstream.url, listed)
            await show(send, headers, document, as_json=path != PATH)
            return
        extra: list[Header] = []
        if scope["method"] == "POST" and self.windows is not None and self.upstream.inside(path) == self._route:
            request, message = await self._understood(scope, caller, headers)
            if request is not None:
                status = await self.windows.turn(request, caller, send)
                if status is not None:
                    self.counts.requests["client_managed_chain" if request.chained else "windowed"] += 1
                    self.counts.requests["upstream_fault"] += status in (0, 502)
                    return
                message = "window_unavailable"
            if message:
                self.counts.requests[message] += 1
                extra.append((STATUS, message.encode()))
        elif self.windows is not None and (waiting := self._waiting(scope, path)) is not None:
            request = WindowRequest(
                (header(headers, SCOPE) or b"").decode("utf-8", "replace"), {}, request_headers(headers), b""
            )
            status = await self.windows.look(waiting, request, scope, caller, send)
            if status is not None:
                self.counts.requests["windowed"] += 1
                return
        elif path.endswith(b"/responses/compact") and header(headers, SCOPE) is not None:
            self.counts.requests["client_compaction"] += 1  # the client's own; its next history shows the result
            extra.append((STATUS, b"client_compaction"))
        self.counts.requests["passed_through"] += not extra
        relayed = await pass_through(self.upstream, scope, caller, send, extra)
        self.counts.requests["upstream_fault"] += relayed in (0, 502)

    def _waiting(self, scope: Scope, path: bytes) -> str | None:
        """The id of the response that a request fetches or cancels."""
        found = _RESPONSE.fullmatch(self.upstream.inside(path) or b"")
        if found is None or scope["method"] != ("POST" if found[2] else "GET"):
            return None
        return found[1].decode("ascii")

    async def _understood(
        self, scope: Scope, caller: Caller, headers: Sequence[Header]
    ) -> tuple[WindowRequest | None, str | None]:
        """(the request, None) when it belongs to a window; else (None, the reason when it names one all the same)."""
        if header(headers, b"content-encoding") not in (None, b"identity"):
            return None, None
        raw = await caller.look(MOST_BYTES)
        if raw is None:
            return None, None
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            return None, None
        if not isinstance(body, dict):
            return None, None
        named = header(headers, SCOPE)
        scope_id: Any = named.decode("utf-8", "replace").strip() if named is not None else body.get("prompt_cache_key")
        given = body.get("input" if self._route == b"/responses" else "messages")
        if not isinstance(scope_id, str) or not scope_id or not isinstance(given, str | list):
            return None, None
        try:
            if self._compacts(given, body):
                return None, "client_compaction"
        except RecursionError:
            return None, "window_unavailable"
        left = (b"content-length", b"accept-encoding")
        sent = [(name, value) for name, value in request_headers(headers) if name.lower() not in left]
        return WindowRequest(scope_id, body, sent, scope["query_string"]), None

    def _compacts(self, given: Any, body: Mapping[str, Any]) -> bool:
        """Whether the caller compacts its conversation itself."""
        items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
        if self._route == b"/responses":
            return any(item.get("type") == "compaction_trigger" for item in items)
        api = Messages()
        return api.foreign(api.items(items), body) == "client_compaction"

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif event["type"] == "lifespan.shutdown":
                await self.upstream.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _is_json(headers: Sequence[Header]) -> bool:
    """Whether the body is declared as JSON. A page may send other kinds to any site without asking it first."""
    kind = (header(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _readable(send: Send, page: bytes) -> Send:
    """`send` with the headers that let a listed page read the answer."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *readable_by(page)]
        await send(message)

    return sending
