"""The operations of the Field as tools. MCP has no push: agents poll ATTUNE with since_epoch."""

from __future__ import annotations

from functools import partial
from typing import Any

from reverie.core.actor import Actor
from reverie.core.errors import RateLimited
from reverie.core.ids import TimeIds
from reverie.host import Host
from reverie.mcp.toolset import Arguments, HostTool, ToolRefused
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION, stored_units
from reverie.protocols.akashik.errors import FieldError, translated
from reverie.protocols.akashik.field import Field
from reverie.protocols.akashik.schemas import PAYLOADS, SUMMARIES

_IDS = TimeIds()
_READS = ("ATTUNE", "DETECT", "REPLAY", "SUBSCRIBE")
_PROPERTIES: dict[str, dict[str, Any]] = {
    "agent_id": {"type": "string", "description": "Who you are: the id you registered."},
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
        raise ToolRefused(FieldError("INVALID_REQUEST", message, operation=operation).body())
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
        return host.use(Field).perform(actor, envelope, operation=operation)
    except FieldError as error:
        raise ToolRefused(error.body()) from None


def _entries(operation: str, given: Arguments) -> int:
    return stored_units(operation, given["payload"])


def _refusal(operation: str, error: RateLimited) -> dict[str, Any]:
    return translated(error, operation).body()


TOOLS = tuple(
    HostTool(
        f"akashik_{operation.lower()}",
        text,
        {"agent_id": _PROPERTIES["agent_id"], "payload": PAYLOADS[operation], **_PROPERTIES},
        partial(_perform, operation),
        required=("agent_id", "payload"),
        reads=operation in _READS,
        destroys=operation == "COMPACT",
        heavy=operation == "COMPACT",
        entries=partial(_entries, operation),
        refusal=partial(_refusal, operation),
    )
    for operation, text in SUMMARIES.items()
)
