"""MCP: sets of tools over HTTP and stdio. `api.mcp` and the protocols supply the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door
    from reverie.mcp.toolset import Profile


def tools_door(
    path: str, profile: Callable[[], Profile], others: Mapping[str, Callable[[], Profile]] | None = None
) -> Door:
    """A door with a set of tools at `path`, and others below it. The first request loads them."""
    from reverie.http.door import Door
    from reverie.mcp.http import described, route, status_of

    served = {path: profile, **(others or {})}
    routes = [route(at, one) for at, one in served.items()]
    return Door(
        name="mcp", prefix=path, routes=routes, operations=[described(at) for at in served], status_of=status_of
    )


def require_sdk() -> None:
    """Raise MissingExtra when the MCP SDK is not installed: it is an extra, so that Reverie installs with any SDK."""
    from reverie.core.extras import require

    require("mcp", extra="mcp", purpose="MCP")
