"""Streamable HTTP: every request stands alone, so any process may answer it. The key decides who is asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from reverie.core.errors import Forbidden, RateLimited, ReverieError, Unauthenticated
from reverie.doors.mcp.toolset import HostTool, make_server

MEMORY_PATH = "/mcp"
AKASHIK_PATH = "/akashik/mcp"
_STATUS: tuple[tuple[type[ReverieError], int], ...] = ((Unauthenticated, 401), (Forbidden, 403), (RateLimited, 429))


def status_of(error: ReverieError) -> int:
    """What the edge answers before MCP is spoken."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def route(path: str, tools: Callable[[], Sequence[HostTool]]) -> Route:
    """The address of a set of tools."""

    class Endpoint:
        """An ASGI application, so that the SDK writes its own answer."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            request.state.route = path
            state = request.app.state
            server = make_server(state.host, request.state.actor, tools(), version=request.app.version)
            manager = StreamableHTTPSessionManager(
                server, json_response=True, stateless=True, max_request_body_size=state.settings.max_request_bytes
            )
            async with manager.run():
                await manager.handle_request(scope, receive, send)

    return Route(path, Endpoint(), methods=["POST"])
