"""reverie agents ...: manifests of agents, for one tenant or for all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from reverie.api.cli.command import Argument, Group, Option
from reverie.api.cli.session import HERE, At, CommandSession
from reverie.api.cli.terminal import print_json, print_table, say

if TYPE_CHECKING:
    from reverie.protocols.openwop.agents import Agents

app = Group("Agents: install, list, show, remove their manifests.")

Id = Annotated[str, Argument(metavar="ID", help="The agent's id.")]
HostScope = Annotated[bool, Option("--host-scope", help="For every tenant instead of one.")]


@app.command("install")
def install(
    manifest: Annotated[Path, Argument(metavar="FILE", help="A manifest: JSON of one agent or of a pack.")],
    host_scope: HostScope = False,
    at: At = HERE,
) -> None:
    """Install agents from a manifest. Prompts in it are not kept.

    \b
    Example:
      reverie agents install support-bot.json
    """
    document = _read(manifest)
    with at.session(create=True, text=False) as opened:
        agents = _agents(opened)
        made = agents.install_for_all(document) if host_scope else agents.install(opened.actor, document)
        rows = [_document(opened, agent) for agent in made]
    if at.json:
        print_json({"items": rows})
        return
    for item in rows:
        say(f"installed {item['agentId']}{_lacks(item)}")


@app.command("list")
def list_agents(at: At = HERE) -> None:
    """List the agents a tenant sees: its own and the host's.

    \b
    Example:
      reverie agents list
    """
    with at.session(text=False) as opened:
        agents = _agents(opened).all(opened.actor)
        shown = [_document(opened, agent) for agent in agents]
    if at.json:
        print_json({"items": shown})
        return
    rows = [
        (item["agentId"], item["label"], item["modelClass"], agent.scope, ", ".join(_missing(item)))
        for agent, item in zip(agents, shown, strict=True)
    ]
    print_table(["id", "label", "model", "scope", "memory lacks"], rows, empty="No agents are installed.")


@app.command("show")
def show(agent_id: Id, at: At = HERE) -> None:
    """Show one agent, as in the inventory.

    \b
    Example:
      reverie agents show support-bot
    """
    with at.session(text=False) as opened:
        shown = _document(opened, _agents(opened).get(opened.actor, agent_id))
    if at.json:
        print_json(shown)
        return
    print_table(["field", "value"], [(name, _value(value)) for name, value in shown.items()])


@app.command("remove")
def remove(agent_id: Id, host_scope: HostScope = False, at: At = HERE) -> None:
    """Remove an agent.

    \b
    Example:
      reverie agents remove support-bot
    """
    with at.session(text=False) as opened:
        if host_scope:
            _agents(opened).remove_for_all(agent_id)
        else:
            _agents(opened).remove(opened.actor, agent_id)
    at.answer({"id": agent_id}, f"removed {agent_id}")


def _agents(opened: CommandSession) -> Agents:
    from reverie.protocols.openwop.agents import Agents

    return opened.host.use(Agents)


def _read(path: Path) -> Any:
    from reverie.core.errors import Invalid
    from reverie.protocols.openwop.agents import MAX_MANIFEST_BYTES

    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise Invalid(f"A manifest is at most {MAX_MANIFEST_BYTES} bytes.")
    import orjson

    try:
        return orjson.loads(path.read_bytes())
    except ValueError:
        raise Invalid(f"{path.name} is not JSON.") from None


def _document(opened: CommandSession, agent: Any) -> dict[str, Any]:
    from reverie.protocols.openwop.agents import inventory_entry
    from reverie.protocols.openwop.capabilities import families, wired

    has = families(wired(opened.host.parts, scheduler=opened.settings.scheduler))
    return inventory_entry(agent, has, durability=opened.settings.openwop_durability)


def _missing(item: dict[str, Any]) -> list[str]:
    return list(item.get("degradedMemoryDimensions", ()))


def _lacks(item: dict[str, Any]) -> str:
    missing = _missing(item)
    return f"; this host lacks what its memory asks for: {', '.join(missing)}" if missing else ""


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
