"""The agent inventory, with what this host lacks for each agent."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from reverie.http.call import Call
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Segment
from reverie.protocols.openwop.agents import Agents, inventory_entry
from reverie.protocols.openwop.http import described
from reverie.protocols.openwop.http.call import api
from reverie.protocols.openwop.http.discovery import discovery

router = api()


@router.get(
    "/agents",
    id="list_agents",
    summary="The agents of this host, with the memory dimensions that it lacks for them",
    answers={200: DocumentedAnswer(body=described.AgentsOut), **described.refusals()},
)
def inventory(call: Call) -> Response:
    """The caller's agents and the host's, sorted by id."""
    has, spelling = _document(call), call.settings.openwop_durability
    entries = [inventory_entry(agent, has, durability=spelling) for agent in call.host.use(Agents).all(call.actor)]
    return Reply({"agents": entries, "total": len(entries)})


@router.get(
    "/agents/{agent_id}",
    id="get_agent",
    summary="One agent",
    answers={200: DocumentedAnswer(body=described.AgentOut), **described.refusals()},
)
def one(call: Call, agent_id: Segment) -> Response:
    """One agent. Raises NotFound, also for another tenant's."""
    has, spelling = _document(call), call.settings.openwop_durability
    return Reply(inventory_entry(call.host.use(Agents).get(call.actor, agent_id), has, durability=spelling))


def _document(call: Call) -> dict[str, Any]:
    """The discovery document, which alone decides what an agent lacks here."""
    return discovery(call.host, call.settings, version=call.app.version)
