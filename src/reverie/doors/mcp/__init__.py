"""MCP: plain memory tools at /mcp, the Akashik tools at /akashik/mcp, and both over stdio."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.serve.door import Door


def doors() -> list[Door]:
    """The two addresses, ready to be mounted."""
    from reverie.doors.mcp.http import AKASHIK_PATH, MEMORY_PATH, route, status_of
    from reverie.serve.door import Door

    return [
        Door(name="mcp", prefix=path, routes=[route(path, akashik=akashik)], status_of=status_of)
        for path, akashik in ((MEMORY_PATH, False), (AKASHIK_PATH, True))
    ]
