"""mcp: memory tools for a program on this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from reverie.api.cli.command import Option
from reverie.api.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Tenant, session


def mcp(
    profile: Annotated[
        Literal["memory", "reference"],
        Option("--profile", help="memory: plain memory. reference: entities, observations and relations."),
    ] = "memory",
    akashik: Annotated[bool, Option("--akashik", help="The tools of the Field instead of plain memory.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve memory as MCP tools over standard input and output. This is the command for an agent's configuration.

    \b
    Examples:
      reverie mcp
      reverie mcp --profile reference
      reverie mcp --akashik --tenant team
    """
    import dataclasses
    import sys

    from reverie.api.cli.terminal import note
    from reverie.app import serve_tools
    from reverie.core.extras import require

    require("mcp", extra="mcp", purpose="reverie mcp")
    if sys.stdin.isatty():
        note("Waiting for an agent that speaks MCP on standard input. `reverie connect` sets one up; Ctrl-C ends this.")
    with session(tenant, data, database_url, create=True) as opened:
        serve_tools(
            opened.host,
            dataclasses.replace(opened.actor, id="local:mcp", door="mcp"),
            "akashik" if akashik else profile,
        )
