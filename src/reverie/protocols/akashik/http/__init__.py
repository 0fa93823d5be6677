"""Akashik: a Field that teams of agents share, under /akashik."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door
    from reverie.mcp.toolset import HostTool, Profile
    from reverie.settings import Settings


def door(settings: Settings) -> Door:
    """The door, ready to be mounted."""
    from reverie.http.door import Door
    from reverie.protocols.akashik.http.described import operations
    from reverie.protocols.akashik.http.errors import body_of, code_of, status_of
    from reverie.protocols.akashik.http.routes import routes
    from reverie.protocols.akashik.http.wire import PREFIX
    from reverie.protocols.akashik.push import SSE_PATH

    return Door(
        name="akashik",
        prefix=PREFIX,
        routes=routes(settings),
        operations=operations(settings),
        status_of=status_of,
        code_of=code_of,
        body_of=body_of,
        public=frozenset({SSE_PATH}),  # opened by a one-time ticket; it looks at keys itself
    )


def mcp_door() -> Door:
    """The operations as MCP tools, ready to be mounted."""
    from reverie.mcp import tools_door

    return tools_door("/akashik/mcp", mcp_profile)


def mcp_profile() -> Profile:
    """The operations as tools; answers as structure and as text, as the protocol wants them."""
    from reverie.mcp.toolset import Profile

    return Profile(mcp_tools(), "Reverie is durable memory that a team of agents shares.", structured=True)


def mcp_tools() -> Sequence[HostTool]:
    """The operations of the Field as MCP tools."""
    from reverie.protocols.akashik.mcp import TOOLS

    return TOOLS
