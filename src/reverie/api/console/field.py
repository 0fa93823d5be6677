"""Field: the memory a team of agents shares. Conflicts side by side, decided once; agents and tasks."""

from __future__ import annotations

from typing import Any

from reverie.api.console.page import Document, Look, Page, See
from reverie.core.actor import Right
from reverie.core.errors import Invalid, NotFound, ReverieError
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.field import Field

_SHOWN = 50


def show(look: Look) -> Document:
    """The Field in numbers, its open conflicts with both sides, its agents and tasks."""
    field, actor = look.host.use(Field), look.actor
    conflicts = field.conflicts(actor)["conflicts"]
    return {
        "status": field.status(actor),
        "agents": field.agents(actor)["agents"][:_SHOWN],
        "tasks": field.tasks(actor)["tasks"][:_SHOWN],
        "conflicts": [
            {**one, "sides": [_side(look, one[name]) for name in ("unit_a", "unit_b")]} for one in conflicts[:_SHOWN]
        ],
        "conflict_count": len(conflicts),
        "ref": field.services.ref,
    }


def _side(look: Look, unit_id: str) -> dict[str, Any]:
    try:
        return {"id": unit_id, "unit": look.host.use(Field).unit(look.actor, unit_id)}
    except ReverieError:
        return {"id": unit_id, "unit": None}


def decide(look: Look) -> See:
    """Resolve a conflict: the chosen side wins, by the authority of the caller."""
    conflict, winner, why = look.form_field("conflict"), look.form_field("winner"), look.form_field("why")
    look.actor.require(Right.WRITE)
    if not conflict or not winner:
        raise Invalid("Choose the side that is right.", pointer="/winner")
    if conflict not in {one["id"] for one in look.host.use(Field).conflicts(look.actor)["conflicts"]}:
        raise NotFound("There is no such open conflict. Someone may have resolved it already.")
    agent = f"console-{look.actor.key_id}"
    known = {one["id"] for one in look.host.use(Field).agents(look.actor)["agents"]}
    if agent not in known:
        person = {
            "id": agent,
            "role": "person at the console",
            "interests": [],
            "authority_level": look.actor.authority,
        }
        _perform(look, "REGISTER", agent, person)
    resolution = {"rationale": why or "Decided at the console.", "winner_id": winner}
    _perform(look, "MERGE", agent, {"conflict_id": conflict, "strategy": "authority", "resolution": resolution})
    return See("/field", "Decided: the other side is superseded.")


def _perform(look: Look, operation: str, agent: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Send one message as the person at the console."""
    message = {
        "protocol": PROTOCOL,
        "version": VERSION,
        "id": look.host.parts.ids.new(),
        "operation": operation,
        "agent_id": agent,
        "session_id": None,
        "epoch": look.host.use(Field).status(look.actor)["epoch"],
        "payload": payload,
    }
    return look.host.use(Field).perform(look.actor, message, operation=operation)


PAGE = Page("field", "/field", "field.html", show, {"decide": decide})
