"""The agents of this host, and what of their memory it cannot give them."""

from __future__ import annotations

from fastapi import Response

from reverie.http.call import Call
from reverie.protocols.openwop.agents import inventory_entry
from reverie.protocols.openwop.http.call import api, reply
from reverie.protocols.openwop.http.discovery import advertised
from reverie.protocols.openwop.http.wire import Segment

router = api()


@router.get("/agents")
def inventory(call: Call) -> Response:
    """The caller's agents and the host's, by id."""
    has, spelling = advertised(call.host, call.settings), call.settings.openwop_durability
    entries = [inventory_entry(agent, has, durability=spelling) for agent in call.host.agents.all(call.actor)]
    return reply({"agents": entries, "total": len(entries)})


@router.get("/agents/{agent_id}")
def one(call: Call, agent_id: Segment) -> Response:
    """One of them; another tenant's is as absent as one that never was."""
    has, spelling = advertised(call.host, call.settings), call.settings.openwop_durability
    return reply(inventory_entry(call.host.agents.get(call.actor, agent_id), has, durability=spelling))
