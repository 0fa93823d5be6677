"""The addresses of the Field in the OpenAPI document: an envelope around each operation's payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reverie.http.routes import DocumentedAnswer, Operation
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.http.answers import ANSWERS, QUESTIONS, Faults, Refused
from reverie.protocols.akashik.http.errors import GONE, STATUS
from reverie.protocols.akashik.http.wire import ADDRESSES, PREFIX
from reverie.protocols.akashik.operations.subscriptions import ACTIONS, EVENTS
from reverie.protocols.akashik.push import SSE_PATH
from reverie.protocols.akashik.schemas import PAYLOADS, SUMMARIES
from reverie.settings import Settings

Schema = Mapping[str, Any]
TAGS = ("akashik",)
_QUESTIONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "/v1/field/status": ("akashik_status", "The Field in numbers", ()),
    "/v1/field/log": (
        "akashik_log",
        "The event log after a position",
        ("after_seq", "limit", "session_id", "agent_id"),
    ),
    "/v1/agents": ("akashik_agents", "Every registered agent", ()),
    "/v1/conflicts": ("akashik_conflicts", "Unresolved conflicts", ("agent_id", "session_id")),
    "/v1/units/{id}": ("akashik_unit", "One unit, hot or archived", ("agent_id",)),
}
_PUSH = "Subscribe to events, list your subscriptions, or end one. The answer has the addresses of the notifications."
_SUBSCRIPTION: Schema = {
    "type": "object",
    "required": ["action"],
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        "subscription": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "events": {"type": "array", "items": {"type": "string", "enum": list(EVENTS)}},
                "min_relevance": {"type": "number", "minimum": 0, "maximum": 1},
                "debounce_ms": {"type": "integer", "minimum": 0},
            },
        },
    },
}
"""Over HTTP there is push; the tools of MCP only list."""
_WHOLE = frozenset({"after_seq", "limit"})


def operations(settings: Settings) -> list[Operation]:
    """Everything the door answers but for WebSockets, which OpenAPI does not know."""
    found = [_message(path, operation) for path, operation in ADDRESSES.items()]
    for path, (name, summary, asked) in _QUESTIONS.items():
        parameters = [_parameter(one) for one in asked]
        answers = {200: DocumentedAnswer(body=QUESTIONS[path]), **_refusals(GONE)}
        found.append(Operation(name, summary, path=PREFIX + path, tags=TAGS, parameters=parameters, answers=answers))
    found.append(
        Operation(
            "akashik_stream",
            "Notifications of a subscription as server-sent events, at the address that SUBSCRIBE answers",
            path=SSE_PATH,
            tags=TAGS,
            parameters=[_parameter("ticket")],
            open=True,
            answers={200: DocumentedAnswer(media={"text/event-stream": {"type": "string"}}), **_refusals()},
        )
    )
    if settings.akashik_faults:
        body = {"type": "object", "properties": {"kind": {"type": "string"}, "on": {"type": "boolean"}}}
        answers = {200: DocumentedAnswer(body=Faults), **_refusals()}
        path = f"{PREFIX}/v1/test/faults"
        found.append(
            Operation(
                "akashik_fault",
                "Switch a fault, for tests",
                "POST",
                path,
                tags=TAGS,
                body=body,
                answers=answers,
            )
        )
    return found


def envelope(operation: str) -> dict[str, Any]:
    """The schema of a message: closed, eight members."""
    members: dict[str, Any] = {
        "protocol": {"const": PROTOCOL},
        "version": {"const": VERSION},
        "id": {"type": "string", "description": "Send the same one again to repeat a message without effect."},
        "operation": {"const": operation},
        "agent_id": {"type": "string", "description": "The id that was registered."},
        "session_id": {"type": ["string", "null"]},
        "epoch": {"type": "integer", "minimum": 0, "description": "The highest epoch seen; 0 when unsure."},
        "payload": _SUBSCRIPTION if operation == "SUBSCRIBE" else PAYLOADS[operation],
    }
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _message(path: str, operation: str) -> Operation:
    return Operation(
        f"akashik_{operation.lower()}",
        _PUSH if operation == "SUBSCRIBE" else SUMMARIES[operation],
        "POST",
        PREFIX + path,
        tags=TAGS,
        body=envelope(operation),
        answers={200: DocumentedAnswer(body=ANSWERS[operation]), **_refusals(GONE)},
    )


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0} if name in _WHOLE else {"type": "string"}
    return {"in": "query", "name": name, "required": False, "schema": schema}


def _refusals(*more: int) -> dict[int, DocumentedAnswer]:
    statuses: Iterable[int] = {*STATUS.values(), *more}
    codes = {status: [code for code, its in STATUS.items() if its == status] for status in statuses}
    return {
        status: DocumentedAnswer(", ".join(f"`{code}`" for code in codes[status]) or "The unit was purged.", Refused)
        for status in sorted(statuses)
    }
