"""The agents of this host, and what of their memory it cannot give them."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from reverie.http.call import Call
from reverie.protocols.openwop.agents import Agent, inventory_entry
from reverie.protocols.openwop.conformance.agents import fixture_agents
from reverie.protocols.openwop.http.call import api, reply
from reverie.protocols.openwop.http.discovery import discovery
from reverie.protocols.openwop.http.wire import Segment

router = api()


@router.get("/agents")
def inventory(call: Call) -> Response:
    """The caller's agents and the host's, by id."""
    has, spelling = _document(call), call.settings.openwop_durability
    entries = [inventory_entry(agent, has, durability=spelling) for agent in _agents(call)]
    return reply({"agents": entries, "total": len(entries)})


@router.get("/agents/{agent_id}")
def one(call: Call, agent_id: Segment) -> Response:
    """One of them; another tenant's is as absent as one that never was."""
    has, spelling = _document(call), call.settings.openwop_durability
    return reply(inventory_entry(chosen(call, agent_id), has, durability=spelling))


def chosen(call: Call, agent_id: str) -> Agent:
    """One agent the caller sees. Raises NotFound."""
    found = next((agent for agent in _agents(call) if agent.id == agent_id), None)
    return found or call.host.agents.get(call.actor, agent_id)


def _document(call: Call) -> dict[str, Any]:
    """The discovery document: the one thing that decides what an agent lacks here."""
    return discovery(call.host, call.settings, version=call.app.version)


def _agents(call: Call) -> list[Agent]:
    """With test seams on, a tenant that sees no agent is shown those that exist for conformance suites."""
    found = call.host.agents.all(call.actor)
    return found or (list(fixture_agents(call.host.parts.redactor)) if call.settings.openwop_seams else [])
