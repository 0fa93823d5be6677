"""REGISTER and DEREGISTER: the agents of the Field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from reverie.core.actor import Right
from reverie.core.entry import CREDENTIAL_PREFIXES, EntryState
from reverie.core.query import Filter
from reverie.protocols.akashik import documents
from reverie.protocols.akashik.call import Operation, OperationCall
from reverie.protocols.akashik.envelope import MAX_NAME, OPERATIONS
from reverie.store.contract import ReadTx

AGENTS = "akashik.agent"
OWNERS = "akashik.owner"
RESERVED = ("akashik.", *CREDENTIAL_PREFIXES)
"""Reserved id prefixes: the Field's own, and those of credentials."""
DEFAULT_AUTHORITY = 4


class FieldAgent(Struct, frozen=True):
    """A registered caller, and the credential that may act for it."""

    id: str
    role: str
    status: str = "idle"
    interests: list[str] = []
    current_task_id: str | None = None
    authority_level: int = DEFAULT_AUTHORITY
    credential: str = ""
    since_seq: int = 0
    """Position since which this id belongs to this credential: earlier units are another agent's."""

    def document(self) -> dict[str, Any]:
        """The agent on the wire."""
        return {
            "id": self.id,
            "role": self.role,
            "status": self.status,
            "interests": list(self.interests),
            "current_task_id": self.current_task_id,
            "authority_level": self.authority_level,
        }


def load_agent(tx: ReadTx, agent_id: str) -> FieldAgent | None:
    """A registered agent."""
    found = documents.load(tx, AGENTS, agent_id)
    return msgspec.convert(found[0], FieldAgent) if found else None


def each_agent(tx: ReadTx) -> Iterator[FieldAgent]:
    """Every registered agent, by id."""
    for _, body, _ in documents.each(tx, AGENTS):
        yield msgspec.convert(body, FieldAgent)


def change_agent(call: OperationCall, agent_id: str, *, seq: int, **changes: Any) -> None:
    """Change a registered agent; nothing happens when it has left."""
    found = documents.load(call.tx, AGENTS, agent_id)
    if found is not None and any(found[0].get(name) != value for name, value in changes.items()):
        documents.save(call.tx, AGENTS, agent_id, {**found[0], **changes}, seq=seq, expected=found[1])


def _register(call: OperationCall) -> dict[str, Any]:
    payload = call.payload
    agent_id: Any = payload.get("id")
    role: Any = payload.get("role")
    for name, value in (("id", agent_id), ("role", role)):
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME:
            raise call.error("INVALID_REQUEST", f"{name} is a string of 1 to {MAX_NAME} characters.", **_rejected(call))
    interests = payload.get("interests")
    interests = [] if interests is None else interests
    if not isinstance(interests, list) or not all(isinstance(item, str) for item in interests):
        raise call.error("INVALID_REQUEST", "interests is a list of strings.", **_rejected(call))
    authority = _authority(call)
    _check_required(call)
    if agent_id.startswith(RESERVED) or load_agent(call.tx, agent_id) is not None:
        raise call.error("AGENT_ID_TAKEN", "An agent with this id is registered already.", **_rejected(call))
    seq = call.append("agent.joined", actor=agent_id, data={"authority_level": authority})
    owner = documents.load(call.tx, OWNERS, agent_id)
    since = seq
    if owner is not None and owner[0]["credential"] == call.actor.id:
        since = owner[0]["since_seq"]
    else:
        body = {"credential": call.actor.id, "since_seq": seq}
        documents.save(call.tx, OWNERS, agent_id, body, seq=seq, expected=owner[1] if owner else 0)
    agent = FieldAgent(
        id=agent_id,
        role=role,
        interests=list(interests),
        authority_level=authority,
        credential=call.actor.id,
        since_seq=since,
    )
    documents.save(call.tx, AGENTS, agent_id, msgspec.to_builtins(agent), seq=seq, expected=0)
    return {
        "status": "registered",
        "agent": {name: value for name, value in agent.document().items() if name != "interests"},
        "field_capabilities": capabilities(call.level, durable=call.services.parts.store.durable),
        "rejection_reason": None,
    }


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """The answer with the interests that the agent has now: a remembered answer holds no text."""
    now = load_agent(call.tx, result["agent"]["id"])
    return {**result, "agent": (now.document() if now else {"interests": []}) | result["agent"]}


def _authority(call: OperationCall) -> int:
    most, asked = call.actor.authority, call.payload.get("authority_level")
    if asked is None:
        return min(DEFAULT_AUTHORITY, most)
    if type(asked) is not int or not 0 <= asked <= 10:
        raise call.error("INVALID_REQUEST", "authority_level is a whole number from 0 to 10.", **_rejected(call))
    if asked > most:
        text = f"This credential's authority goes up to {most}."
        raise call.error("INSUFFICIENT_AUTHORITY", text, **_rejected(call))
    return asked


def _check_required(call: OperationCall) -> None:
    required = call.payload.get("required_operations")
    required = [] if required is None else required
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise call.error("INVALID_REQUEST", "required_operations is a list of operations.", **_rejected(call))
    supported = supported_operations(call.level)
    missing = list(dict.fromkeys(name for name in required if name not in supported))
    if missing:
        text = f"This Field does not support: {', '.join(missing)}"
        raise call.error("UNSUPPORTED_OPERATION", text, **_rejected(call))


def _rejected(call: OperationCall) -> dict[str, Any]:
    shown = capabilities(call.level, durable=call.services.parts.store.durable)
    return {"agent": None, "field_capabilities": shown}


def supported_operations(level: int) -> list[str]:
    """The operations of a level, in the protocol's order."""
    from reverie.protocols.akashik.operations.table import TABLE

    return [name for name in OPERATIONS if TABLE[name].level <= level]


def capabilities(level: int, *, durable: bool) -> Mapping[str, Any]:
    """Return the capabilities of this Field, computed from its operation table and its level."""
    from reverie.protocols.akashik.operations.table import STRATEGIES

    return {
        "conformance_level": level,
        "supported_operations": supported_operations(level),
        "protocol_version": "0.1.0",
        "persistence": durable,
        "conflict_strategies": [name for name, least in STRATEGIES.items() if least <= level],
        "extensions": [
            "retracts",
            "include_own",
            "include_archived",
            "subject_tags",
            *(["compact_dry_run"] if level >= 2 else []),
        ],
    }


def _deregister(call: OperationCall) -> dict[str, Any]:
    from reverie.protocols.akashik.operations.tasks import give_back_tasks

    agent_id = call.payload.get("agent_id")
    if not isinstance(agent_id, str) or not agent_id.strip() or len(agent_id) > MAX_NAME:
        raise call.error("INVALID_REQUEST", f"agent_id names the agent that leaves, in 1 to {MAX_NAME} characters.")
    found = documents.load(call.tx, AGENTS, agent_id)
    if found is None:
        return {"status": "not_found", "cleanup": {"units_orphaned": 0, "tasks_reassigned": 0}}
    if agent_id != call.speaker.id:
        call.require_in(None, 8, "DEREGISTER of another agent")
    seq = call.append("agent.left", data={"agent": agent_id})
    call.tx.drop(AGENTS, agent_id, seq=seq, expected=found[1])
    orphaned = call.tx.count(_units_of(agent_id))
    return {
        "status": "ok",
        "cleanup": {"units_orphaned": orphaned, "tasks_reassigned": give_back_tasks(call, agent_id)},
    }


def _units_of(agent_id: str) -> Filter:
    gone = {EntryState.ERASED, EntryState.DELETED, EntryState.DREAMT}
    return Filter(states=frozenset(EntryState) - gone, archived=None, gone=True, expired=None, actor=agent_id)


REGISTER = Operation("REGISTER", level=0, execute=_register, show=_show, right=Right.READ, in_session=False)
DEREGISTER = Operation(
    "DEREGISTER", level=1, execute=_deregister, right=Right.READ, in_session=False, event="field.read"
)
