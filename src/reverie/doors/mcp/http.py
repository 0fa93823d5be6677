"""Streamable HTTP: every request stands alone, so any process may answer it. The key decides who is asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from reverie.core.actor import Actor
from reverie.core.errors import Forbidden, RateLimited, ReverieError, Unauthenticated

if TYPE_CHECKING:
    from reverie.doors.mcp.toolset import HostTool

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
            app = request.app
            manager = await to_thread.run_sync(_manager, app, request.state.actor, tools)
            async with manager.run():
                await manager.handle_request(scope, receive, send)

    return Route(path, Endpoint(), methods=["POST"])


def _manager(app: Any, actor: Actor, tools: Callable[[], Sequence[HostTool]]) -> Any:
    """What answers one request. The SDK takes a second to import: whoever asks first waits for it, not every start."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from reverie.doors.mcp.toolset import make_server

    server = make_server(app.state.host, actor, tools(), version=app.version)
    most = app.state.settings.max_request_bytes
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=most)
