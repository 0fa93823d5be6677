"""Agents: their manifests, the eight dimensions of memory, and the degraded ones with the reason."""

from __future__ import annotations

from typing import Any

import orjson

from reverie.api.console.page import Document, Look, Page, See
from reverie.core.errors import Invalid
from reverie.protocols.openwop.agents import Agents, inventory_entry
from reverie.protocols.openwop.capabilities import ASKED, CapabilityVerdict, dimensions, families, wired

_DIMENSIONS = {
    "read": ("Read", "Read", "Agents can read entries."),
    "write": ("Write", "Write", "Agents can store entries."),
    "search": ("Search", "Search", "Entries are found by words and by meaning."),
    "long-term-durability": ("Long-term durability", "Durable", "What is stored survives a restart."),
    "compaction": ("Compaction", "Compact", "Many entries can be distilled into few."),
    "attribution": ("Attribution", "Attribute", "Every entry names who wrote it."),
    "replay-snapshot": ("Replay snapshot", "Replay", "A run can be replayed on the memory as it was then."),
    "retention": ("Retention", "Retain", "Entries can expire, and a subject can be forgotten."),
}
"""Each dimension of OpenWOP: its title, a short one for a column, and its meaning."""


def host_capabilities(look: Look) -> dict[str, Any]:
    """Return the capabilities of this host."""
    settings = look.settings
    return families(wired(look.host.parts, scheduler=settings.scheduler, workspace=settings.openwop_workspace))


def degraded(look: Look) -> list[dict[str, Any]]:
    """The agents that get less than they ask for."""
    has, durability = host_capabilities(look), look.settings.openwop_durability
    results = [inventory_entry(agent, has, durability=durability) for agent in look.host.use(Agents).all(look.actor)]
    return [agent for agent in results if agent.get("degradedMemoryDimensions") or agent.get("degraded")]


def show(look: Look) -> Document:
    """Show every agent of the tenant, compared with the capabilities of this host."""
    settings, has = look.settings, host_capabilities(look)
    verdicts = [_verdict(one) for one in dimensions(has)]
    return {
        "dimensions": verdicts,
        "agents": [
            {
                **inventory_entry(agent, has, durability=settings.openwop_durability),
                "scope": agent.scope,
                "asks": sorted(
                    {name for flag, names in ASKED.items() if (agent.shape or {}).get(flag) is True for name in names}
                ),
            }
            for agent in look.host.use(Agents).all(look.actor)
        ],
    }


def _verdict(one: CapabilityVerdict) -> dict[str, Any]:
    title, short, meaning = _DIMENSIONS.get(one.name, (one.name, one.name, ""))
    return {"name": one.name, "title": title, "short": short, "holds": one.holds, "why": one.reason, "meaning": meaning}


def install(look: Look) -> See:
    """Install a manifest for this tenant."""
    try:
        manifest: Any = orjson.loads(look.form_field("manifest"))
    except ValueError:
        raise Invalid("The manifest is not JSON.", pointer="/manifest") from None
    made = look.host.use(Agents).install(look.actor, manifest)
    return See("/agents", f"Installed: {', '.join(agent.id for agent in made)}.")


def remove(look: Look) -> See:
    """Remove an agent of this tenant."""
    look.host.use(Agents).remove(look.actor, look.form_field("agent"))
    return See("/agents", "Removed.")


PAGE = Page("agents", "/agents", "agents.html", show, {"install": install, "remove": remove})
