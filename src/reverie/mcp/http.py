"""Streamable HTTP without sessions: any process may answer any request. The key identifies the caller.

There is no stream to keep open: a request is answered with one JSON document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from reverie.core.actor import Actor
from reverie.core.errors import Forbidden, MissingExtra, RateLimited, ReverieError, TooLarge, Unauthenticated
from reverie.http.call import SMALL_BODY
from reverie.http.limits import Limits, key_of
from reverie.http.parsing import more_values
from reverie.http.routes import DocumentedAnswer, Operation
from reverie.http.threads import Lane, Threads
from reverie.mcp import require_sdk

if TYPE_CHECKING:
    from reverie.mcp.toolset import Profile

_STATUS: tuple[tuple[type[ReverieError], int], ...] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (TooLarge, 413),
    (RateLimited, 429),
    (MissingExtra, 501),
)


def status_of(error: ReverieError) -> int:
    """Return the HTTP status of an error raised before MCP is spoken."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def route(path: str, profile: Callable[[], Profile]) -> Route:
    """The route of a set of tools."""

    class Endpoint:
        """An ASGI application, so that the SDK writes its own answer."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            request.state.route = path
            await _answer(request, send, profile)

    return Route(path, Endpoint(), methods=["POST"])


def described(path: str) -> Operation:
    """The route of a set of tools, for the OpenAPI document. MCP itself lists the tools: `tools/list`."""
    message = {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["integer", "string"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
        "required": ["jsonrpc", "method"],
    }
    fault = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        "required": ["code", "message"],
    }
    refused = {
        "type": "object",
        "properties": {"error": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
        "required": ["error", "message"],
    }
    name = {"type": ["integer", "string", "null"]}
    done = {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}, "id": name, "result": {"type": "object"}, "error": fault},
        "required": ["jsonrpc", "id"],
    }
    return Operation(
        path.strip("/").replace("/", "_"),
        "MCP over streamable HTTP, one JSON answer to each message",
        "POST",
        path,
        description="Send `Accept: application/json, text/event-stream`.",
        tags=("mcp",),
        body=message,
        answers={
            200: DocumentedAnswer(body=done),
            202: DocumentedAnswer("A notification was taken."),
            **{status: DocumentedAnswer(body=refused) for status in (401, 403, 413, 429, 500, 501, 503)},
            **{status: DocumentedAnswer("The SDK refuses the message.") for status in (400, 406, 415)},
        },
    )


async def _answer(request: Request, send: Send, profile: Callable[[], Profile]) -> None:
    state, actor = request.app.state, request.state.actor
    threads: Threads = state.threads
    body = await request.body()
    if len(body) <= SMALL_BODY:
        manager = await threads.run(Lane.LOOK, actor.tenant, lambda: _manager(request, profile, _fair(state, actor)))
        async with manager.run():
            await manager.handle_request(request.scope, _again(body, request.receive), send)
        return
    # The SDK parses where it runs: a large body gets a thread with an event loop of its own.
    sent: list[Message] = []

    async def collect(message: Message) -> None:
        sent.append(message)

    async def alone() -> None:
        manager = _manager(request, profile, _fair(state, actor))
        async with manager.run():
            await manager.handle_request(request.scope, _again(body, _silence), collect)

    def work() -> None:
        most = state.settings.max_request_values
        if len(body) > most and more_values(body, most):
            raise TooLarge(f"A body has at most {most} values. Send less at a time.", details={"max_values": most})
        asyncio.run(alone())

    await threads.run(Lane.PARSE, actor.tenant, work)
    for message in sent:
        await send(message)


def _again(body: bytes, afterwards: Receive) -> Receive:
    """Return a receive function that replays the body, then passes on later messages."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await afterwards()

    return receive


async def _silence() -> Message:
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


def _fair(state: Any, actor: Actor) -> Any:
    """A runner that runs tools in the lanes of the application."""
    threads: Threads = state.threads
    limits: Limits = state.limits

    async def run(tool: Any, work: Callable[[], Any]) -> Any:
        heavy = limits.heavy.one(key_of(actor)) if tool.heavy else nullcontext()
        lane = Lane.HEAVY if tool.heavy else Lane.READ if tool.reads else Lane.WRITE
        with heavy:
            return await threads.run(lane, actor.tenant, work)

    return run


def _manager(request: Request, profile: Callable[[], Profile], run: Any) -> Any:
    """The handler of one request. Importing the SDK takes a second: the first request waits for it, not every start."""
    require_sdk()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from reverie.mcp.toolset import make_server

    app = request.app
    actor: Actor = request.state.actor
    charge = partial(app.state.limits.entries.take, key_of(actor))
    server = make_server(app.state.host, actor, profile(), version=app.version, run=run, charge=charge)
    most = app.state.settings.max_request_bytes
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=most)
