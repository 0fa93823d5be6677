"""The operations of the Field as tools. MCP has no push: agents poll ATTUNE with since_epoch."""

from __future__ import annotations

from functools import partial
from typing import Any

from reverie.api.mcp.toolset import Arguments, HostTool, Refused
from reverie.core.actor import Actor
from reverie.core.ids import TimeIds
from reverie.host import Host
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.errors import FieldError

_IDS = TimeIds()
_SAYS = {
    "REGISTER": "Join the Field. payload: {id, role, interests?, required_operations?, authority_level?}. The answer"
    " lists what this Field supports.",
    "DEREGISTER": "Leave the Field. payload: {agent_id}. What you recorded stays.",
    "RECORD": "Record a unit for the team. payload: {mode: draft|committed, type: finding|decision|observation|..., "
    "content, intent: {purpose, task_id?, question?}, confidence: {score 0..1, reasoning, evidence?, assumptions?},"
    " relations?: [{type, target_id}]}. Say why in intent.purpose.",
    "ATTUNE": "Get the units that matter to you now. payload: {scope: {role, max_units, max_tokens?, interests?,"
    " active_task_id?, since_epoch?, include_own?, include_archived?}, context_hint?, format?}. To follow the Field,"
    " ask again with since_epoch.",
    "DETECT": "Find contradictions. payload: {mode: check|scan|list, target_id?, filter?}.",
    "MERGE": "Resolve a conflict. payload: {conflict_id, strategy: last_write_wins|confidence_weighted|evidence_count|"
    "authority|synthesis|human_escalation|vote, resolution: {rationale, winner_id?, synthesis?}}.",
    "REPLAY": "How something came to be, from the log. payload: {target_type: task|memory_unit|decision|conflict|"
    "session, target_id, depth: summary|detailed|full_trace}.",
    "COMPACT": "Keep the Field small. payload: {strategy: archive|summarize|purge, filter?: {max_age_epochs?,"
    " session_id?, types?, status?}, reason?, dry_run?}. purge destroys text and needs authority 10.",
    "SUBSCRIBE": "List your subscriptions. payload: {action: list}. Over MCP there is no push; poll ATTUNE with"
    " since_epoch.",
    "HANDOFF": "Hand a task to another agent with its context. payload: {action: initiate|accept|reject|get|list,"
    " handoff_id?, task_id, to_agent, reason?, context?}.",
    "COORDINATE": "Tasks of the team. payload: {action: create|assign|claim|start|block|unblock|complete|fail|retry|"
    "release|cancel|get|list, task: {...}, reason?}.",
    "SESSION": "Sessions of the Field. payload: {action: create|join|leave|pause|resume|end|get|list|set_policy,"
    " session: {...}}.",
}
_READS = ("ATTUNE", "DETECT", "REPLAY", "SUBSCRIBE")
_PROPERTIES: dict[str, dict[str, Any]] = {
    "agent_id": {"type": "string", "description": "Who you are: the id you registered."},
    "payload": {"type": "object", "description": "What the operation takes."},
    "session_id": {"type": ["string", "null"], "description": "The session you work in; leave it out for none."},
    "epoch": {
        "type": ["integer", "null"],
        "description": "The highest epoch you have seen; 0 when unsure.",
        "minimum": 0,
    },
    "message_id": {"type": "string", "description": "Send the same one again to repeat a message without effect."},
}


def _perform(operation: str, host: Host, actor: Actor, given: Arguments) -> dict[str, Any]:
    payload = given.get("payload") or {}
    if operation == "SUBSCRIBE" and payload.get("action") != "list":
        message = "MCP has no push: poll ATTUNE with since_epoch. Only action list."
        raise Refused(FieldError("INVALID_REQUEST", message, operation=operation).body())
    epoch = given.get("epoch")
    envelope = {
        "protocol": PROTOCOL,
        "version": VERSION,
        "id": given.get("message_id") or _IDS.new(),
        "operation": operation,
        "agent_id": given["agent_id"],
        "session_id": given.get("session_id"),
        "epoch": 0 if epoch is None else epoch,
        "payload": payload,
    }
    try:
        return host.field.perform(actor, envelope, operation=operation)
    except FieldError as error:
        raise Refused(error.body()) from None


TOOLS = tuple(
    HostTool(
        f"akashik_{operation.lower()}",
        text,
        _PROPERTIES,
        partial(_perform, operation),
        required=("agent_id", "payload"),
        reads=operation in _READS,
        destroys=operation == "COMPACT",
        heavy=operation == "COMPACT",
    )
    for operation, text in _SAYS.items()
)
