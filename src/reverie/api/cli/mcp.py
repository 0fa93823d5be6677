"""mcp: memory tools for a program on this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from reverie.api.cli.command import Option
from reverie.api.cli.session import AnyTenant, At, Data, DatabaseUrl, Url


def mcp(
    profile: Annotated[
        Literal["memory", "reference"],
        Option("--profile", help="memory: plain memory. reference: entities, observations and relations."),
    ] = "memory",
    akashik: Annotated[bool, Option("--akashik", help="The tools of the Field instead of plain memory.")] = False,
    tenant: AnyTenant = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    url: Url = None,
) -> None:
    """Serve memory as MCP tools over standard input and output. This is the command for an agent's configuration.

    With --url, or REVERIE_URL, the tools use the memory of a running host, for agents that take no address and no key.

    \b
    Examples:
      reverie mcp
      reverie mcp --profile reference
      reverie mcp --akashik --tenant team
      reverie mcp --url https://memory.example.org
    """
    import dataclasses
    import sys

    from reverie.api.cli.terminal import note
    from reverie.app import serve_tools
    from reverie.core.errors import Invalid
    from reverie.core.extras import require

    require("mcp", extra="mcp", purpose="reverie mcp")
    at = At(tenant, data, database_url, url)
    if akashik and (address := at.host_url) is not None:
        raise Invalid(
            f"The Field of a running host is at {address.rstrip('/')}/akashik/mcp: give the agent that and a key.",
            code="not_remote",
        )
    if sys.stdin.isatty():
        note("Waiting for an agent that speaks MCP on standard input. `reverie connect` sets one up; Ctrl-C ends this.")
    with at.session(create=True) as opened:
        serve_tools(
            opened.host,
            dataclasses.replace(opened.actor, id="local:mcp", door="mcp"),
            "akashik" if akashik else profile,
        )
