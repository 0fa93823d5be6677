"""MCP over stdio, for one program on this machine. Only the protocol writes to standard output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.mcp.toolset import HostTool, Profile, make_server


async def _in_thread(_: HostTool, work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


def serve(host: Host, actor: Actor, profile: Profile, *, version: str) -> None:
    """Serve until the client closes its end."""

    async def go() -> None:
        server = make_server(host, actor, profile, version=version, run=_in_thread)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(go)
