"""connect: write the configuration that gives an agent on this machine a memory, or remove it again."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from reverie.api.cli.command import Argument, Option
from reverie.api.cli.session import HERE, At
from reverie.api.cli.terminal import note, print_json, say


def connect(
    agent: Annotated[str, Argument(metavar="AGENT", help="claude-code, codex, cursor ...; leave out for a list.")] = "",
    write: Annotated[bool, Option("--write", help="Write the files. Without it they are only shown.")] = False,
    undo: Annotated[bool, Option("--undo", help="Remove what --write added.")] = False,
    no_hooks: Annotated[bool, Option("--no-hooks", help="Add the MCP tools only, no hooks.")] = False,
    at: At = HERE,
) -> None:
    """Connect an agent on this machine: MCP tools, and hooks. The hooks recall, snapshot and remember by themselves.

    Shows what it would write; --write writes it, --undo restores the files as they were. Other entries of a file are
    never touched. --data and --tenant become part of the commands that are written; without --data, the folder that
    REVERIE_DATA names here. With --url, or REVERIE_URL, the agent uses a running host over HTTP; its key stays in the
    environment as REVERIE_KEY and is never written.

    \b
    Examples:
      reverie connect claude-code
      reverie connect claude-code --write
      reverie connect codex --url https://memory.example.org --write
      reverie connect cursor --undo
    """
    from pathlib import Path

    from reverie.api.cli.agent_files import AGENTS, StartCommand, disconnect, plan_changes, write_changes
    from reverie.core.errors import Invalid

    if not agent:
        at.answer({"items": sorted(AGENTS)}, "\n".join(sorted(AGENTS)))
        note("These agents can be connected: reverie connect AGENT")
        return
    if at.database_url:
        raise Invalid(
            "A database URL may hold a password and is never written: set REVERIE_DATABASE_URL where the agent is "
            "started, or connect it to a running host with --url."
        )
    # an agent is started with another environment, and must use the memory that this shell uses
    url = at.host_url
    data = at.data or (None if url else os.environ.get("REVERIE_DATA"))
    places = {"--tenant": at.tenant, "--data": data and str(Path(data).absolute()), "--url": url}
    options = [part for option, value in places.items() if value for part in (option, value)]
    if url:
        from reverie.client.connection import check_url

        check_url(url)  # raises when it is not valid
    command = StartCommand(_program(), tuple(options))
    if undo:
        restored = disconnect(agent)
        at.answer({"restored": restored}, "\n".join(f"restored {path}" for path in restored))
        return
    plans = plan_changes(agent, command, hooks=not no_hooks)
    if at.json:
        print_json([{"path": str(plan.path), "changed": plan.changed, "text": plan.after} for plan in plans])
    else:
        for plan in plans:
            say(f"# {plan.path}{'' if plan.changed else ' (connected already)'}\n{plan.added}")
    if not write:
        note("Nothing was written. Run it again with --write.")
        return
    write_changes(agent, plans)
    if url:
        note("Set REVERIE_KEY to a key of that host where the agent is started.")
    note(f"Connected. Start {agent} again. To take it back: reverie connect {agent} --undo")


def _program() -> str:
    """The command that starts Reverie: its script by its full path, since agents start programs with another PATH."""
    from pathlib import Path
    from shutil import which

    script = Path(sys.argv[0])
    if script.name.startswith("reverie") and script.is_file():
        return str(script.absolute())
    return which("reverie") or "reverie"
