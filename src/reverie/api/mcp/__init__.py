"""MCP: plain memory tools at /mcp and over stdio; protocols serve tools of their own in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.api.mcp.toolset import HostTool
    from reverie.http.door import Door


def door() -> Door:
    """The memory tools, ready to be mounted."""
    return tools_door("/mcp", memory_tools)


def tools_door(path: str, tools: Callable[[], Sequence[HostTool]]) -> Door:
    """A set of tools at an address. The tools are loaded by the first request."""
    from reverie.api.mcp.http import route, status_of
    from reverie.http.door import Door

    return Door(name="mcp", prefix=path, routes=[route(path, tools)], status_of=status_of)


def memory_tools() -> Sequence[HostTool]:
    """Plain memory, for any agent."""
    from reverie.api.mcp.memory import TOOLS

    return TOOLS
