"""Memory as MCP tools, at /mcp and over stdio: plain memory, or a knowledge graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door
    from reverie.mcp.toolset import Profile


def door() -> Door:
    """The memory tools, ready to be mounted."""
    from reverie.mcp import tools_door

    return tools_door("/mcp", memory_profile, {"/mcp/reference": reference_profile})


def memory_profile() -> Profile:
    """Plain memory with resources and prompts."""
    from reverie.api.mcp.documents import handlers
    from reverie.api.mcp.memory import INSTRUCTIONS, TOOLS
    from reverie.mcp.toolset import Profile

    return Profile(TOOLS, INSTRUCTIONS, documents=handlers)


def reference_profile() -> Profile:
    """The nine tools of the reference memory server: entities, observations, relations."""
    from reverie.api.mcp.reference import INSTRUCTIONS, TOOLS
    from reverie.mcp.toolset import Profile

    return Profile(TOOLS, INSTRUCTIONS)
