"""What the OpenAPI document says of this door's answers. The protocol's own schemas say more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from reverie.http.routes import Answer
from reverie.protocols.openwop.http.errors import STATUS

Object = dict[str, Any]
EVENT_STREAM = {"text/event-stream": {"type": "string"}}


class OpenwopError(Struct, kw_only=True):
    """Why a request was refused."""

    error: Annotated[str, Meta(description="A stable snake_case code.")]
    message: str
    details: Object | UnsetType = UNSET


class Shown(Struct, kw_only=True, rename="camel"):
    """An answer. Members that a run or an agent does not have are left out."""


class RunStarted(Shown):
    run_id: str
    status: str
    events_url: str
    status_url: str


class RunShown(Shown):
    run_id: str
    workflow_id: str
    status: str
    owner: Object
    started_at: str
    variables: Object
    event_log_schema_version: int
    completed_at: str | UnsetType = UNSET
    error: Object | UnsetType = UNSET
    forked_from: Object | UnsetType = UNSET


class RunEvents(Shown):
    run_id: str
    events: list[Object]
    last_event_seq: int
    is_complete: bool
    is_terminal: bool
    run_status: str


class RunCancelled(Shown):
    run_id: str
    status: str
    already_terminal: bool | UnsetType = UNSET


class RunsCancelled(Shown):
    results: list[Object]


class RunForked(Shown):
    run_id: str
    source_run_id: str
    from_seq: int
    mode: str
    status: str
    events_url: str
    status_url: str


class WorkspaceFile(Shown):
    path: str
    version: int
    updated_at: str
    content_type: str | None
    etag: str
    content: str | UnsetType = UNSET


class WorkspaceFiles(Shown):
    files: list[WorkspaceFile]


class AgentShown(Shown):
    agent_id: str
    persona: str | None
    label: str | None
    model_class: str
    tool_allowlist: list[str]


class AgentsShown(Shown):
    agents: list[AgentShown]
    total: int


class WorkflowShown(Shown):
    id: str
    name: str
    version: str
    nodes: list[Object]
    edges: list[Object]


class Discovery(Shown):
    protocol_version: str
    supported_transports: list[str]
    limits: Object
    implementation: Object


def refusals(*more: int) -> dict[int, Answer]:
    """The refusals that every operation may answer, and some of its own."""
    codes: dict[int, list[str]] = {}
    for code, status in STATUS.items():
        codes.setdefault(status, []).append(code)
    always = {400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503, 507}
    return {
        status: Answer(", ".join(f"`{code}`" for code in codes.get(status, [])), OpenwopError)
        for status in sorted({*always, *more})
    }


def asked(name: str, description: str, *, where: str = "query", **schema: Any) -> Mapping[str, Any]:
    """A parameter."""
    kind = schema or {"type": "string"}
    return {"in": where, "name": name, "required": False, "schema": kind, "description": description}


ONCE = asked("Idempotency-Key", "Makes a retry safe: the same key does nothing twice.", where="header")
EVENTS = (
    asked("lastSequence", "Events after this sequence; `after` and `since` say the same.", type="integer", minimum=-1),
    asked("streamMode", "Which events: a list of modes.", type="string"),
    asked("type", "Only events of these types.", type="array", items={"type": "string"}),
    asked("nodeId", "Only events of this node."),
    asked("bufferMs", "Streams: gather events for this long.", type="integer", minimum=0, maximum=5000),
    asked("Last-Event-ID", "Resume a stream after this event.", where="header"),
)
