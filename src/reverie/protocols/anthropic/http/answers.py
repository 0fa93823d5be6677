"""The outermost layer of the protocol: either key header in, the protocol's errors and request ids out."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.protocols.anthropic.http import PREFIX, ROOTS
from reverie.protocols.anthropic.http.errors import error_shape

HEADERS = "anthropic_headers"
"""Request attribute for headers that a handler adds to its answer, on success and on failure."""
WORKSPACE = "anthropic-workspace-id"
_PREFIXES = (PREFIX, *ROOTS)
_BELOW = tuple(f"{prefix}/" for prefix in _PREFIXES)


class AnthropicAnswers:
    """Rewrites the host's answers under the protocol's paths; everything else passes untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not covers(scope["path"]):
            return self.app(scope, receive, send)
        own: dict[str, str] = {}
        state = {**scope.get("state", {}), HEADERS: own}
        scope = {**scope, "state": state, "headers": with_bearer(scope["headers"])}
        answer = _Answer(send, own, scope)
        return self.app(scope, receive, answer)


class _Answer:
    """One answer on its way out. An error is held back until it is whole."""

    def __init__(self, send: Send, own: dict[str, str], scope: Scope) -> None:
        self._send = send
        self._own = own
        self._scope = scope
        self._start: Message | None = None
        self._body = b""
        self._request_id = ""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            sent = list(message.get("headers", ()))
            name = next((value for key, value in sent if key.lower() == b"x-request-id"), b"").decode()
            self._request_id = f"req_{name}"
            self._own["request-id"] = self._request_id
            actor = self._scope["state"].get("actor")
            if actor is not None and WORKSPACE not in self._own:  # no handler was reached
                self._own[WORKSPACE] = workspace_of(self._scope["app"].state.host, actor)
            if message["status"] >= 400:
                self._start = message
                return
            message["headers"] = [*sent, *_encode(self._own)]
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            await self._finish(self._start)
            return
        await self._send(message)

    async def _finish(self, start: Message) -> None:
        try:
            problem: Any = orjson.loads(self._body)
        except ValueError:
            problem = {}
        document, headers = error_shape(start["status"], problem if isinstance(problem, dict) else {}, self._request_id)
        body = orjson.dumps(document)
        replaced = {b"content-length", b"content-type", *(name.encode() for name in headers)}
        kept = [(name, value) for name, value in start["headers"] if name.lower() not in replaced]
        own = {"content-type": "application/json", "content-length": str(len(body)), **headers, **self._own}
        start["headers"] = [*kept, *_encode(own)]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def workspace_of(host: Host, actor: Actor) -> str:
    """The workspace id of a tenant."""
    return host.rules.current(actor.tenant).policy.workspace_id or f"wrkspc_{actor.tenant}"


def covers(path: str) -> bool:
    """Whether a path belongs to the protocol."""
    return path.startswith(_BELOW) or path in _PREFIXES


def with_bearer(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with a key that was sent as `X-Api-Key` as a bearer token. Two different keys are none."""
    keys = {value for name, value in headers if name == b"x-api-key"}
    if not keys:
        return headers
    bearers = [value for name, value in headers if name == b"authorization"]
    keys |= {value.partition(b" ")[2].strip() for value in bearers}
    rest = [(name, value) for name, value in headers if name not in (b"x-api-key", b"authorization")]
    return [*rest, (b"authorization", b"Bearer " + keys.pop())] if len(keys) == 1 else rest


def _encode(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
