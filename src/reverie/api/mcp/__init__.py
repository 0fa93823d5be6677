"""MCP: memory at /mcp and over stdio, as plain tools or as a knowledge graph; protocols serve their own tools alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.api.mcp.toolset import HostTool, Profile
    from reverie.http.door import Door


def door() -> Door:
    """The memory tools, ready to be mounted."""
    return tools_door("/mcp", memory_profile, {"/mcp/reference": reference_profile})


def tools_door(
    path: str, profile: Callable[[], Profile], others: Mapping[str, Callable[[], Profile]] | None = None
) -> Door:
    """A set of tools at an address, and others below it. They are loaded by the first request."""
    from reverie.api.mcp.http import described, route, status_of
    from reverie.http.door import Door

    served = {path: profile, **(others or {})}
    routes = [route(at, one) for at, one in served.items()]
    return Door(
        name="mcp", prefix=path, routes=routes, operations=[described(at) for at in served], status_of=status_of
    )


def require_sdk() -> None:
    """Raise MissingExtra when the MCP SDK is not installed: it is an extra, so that Reverie installs with any SDK."""
    from reverie.core.extras import require

    require("mcp", extra="mcp", purpose="MCP")


def memory_profile() -> Profile:
    """Plain memory with resources and prompts."""
    from reverie.api.mcp.memory import INSTRUCTIONS, TOOLS
    from reverie.api.mcp.toolset import Profile

    return Profile(TOOLS, INSTRUCTIONS, documents=True)


def reference_profile() -> Profile:
    """The nine tools of the reference memory server: entities, observations, relations."""
    from reverie.api.mcp.reference import INSTRUCTIONS, TOOLS
    from reverie.api.mcp.toolset import Profile

    return Profile(TOOLS, INSTRUCTIONS)


def memory_tools() -> Sequence[HostTool]:
    """Plain memory, for any agent."""
    from reverie.api.mcp.memory import TOOLS

    return TOOLS
