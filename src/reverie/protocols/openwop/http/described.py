"""Descriptions of this door's answers for the OpenAPI document. The protocol's own schemas say more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from reverie.http.routes import DocumentedAnswer
from reverie.protocols.openwop.http.errors import STATUS

Object = dict[str, Any]
Time = Annotated[str, Meta(description="An instant, RFC 3339 in UTC.")]
Status = Literal["pending", "running", "paused", "completed", "failed", "cancelling", "cancelled"]
EVENT_STREAM = {"text/event-stream": {"type": "string"}}


class OpenwopError(Struct, kw_only=True):
    """The reason a request was refused."""

    error: Annotated[str, Meta(description="A stable snake_case code.")]
    message: str
    details: Object | UnsetType = UNSET


class CamelCase(Struct, kw_only=True, rename="camel"):
    """An answer. Members that a run or an agent does not have are left out."""


class RunStarted(CamelCase):
    run_id: str
    status: str
    events_url: str
    status_url: str


class Owner(CamelCase):
    tenant: str
    principal: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET


class RunFault(CamelCase):
    code: str
    message: str
    details: Object | UnsetType = UNSET


class Forked(CamelCase):
    run_id: str
    from_seq: int
    mode: Literal["replay", "branch"]


class Snapshotted(CamelCase):
    path: str
    version: int


class RunAgent(CamelCase):
    agent_id: str


class RunOut(CamelCase):
    run_id: str
    workflow_id: str
    status: Status
    owner: Owner
    started_at: Time
    variables: Annotated[Object, Meta(description="Outputs of the run's nodes; the workflow decides which.")]
    inputs: Object
    configurable: Object
    tags: list[str]
    metadata: Object
    workspace: Annotated[list[Snapshotted], Meta(description="The workspace files as they were when the run began.")]
    memory_snapshot_seq: Annotated[int, Meta(description="The position in the log at which the run reads memory.")]
    event_log_schema_version: int
    engine_version: int
    agent: RunAgent | UnsetType = UNSET
    completed_at: Time | UnsetType = UNSET
    error: RunFault | UnsetType = UNSET
    forked_from: Forked | UnsetType = UNSET


class RunEvent(CamelCase):
    event_id: str
    run_id: str
    type: str
    payload: Annotated[Any, Meta(description="By type of event; never the text of an entry.")]
    timestamp: Time
    sequence: Annotated[int, Meta(ge=0)]
    schema_version: int
    engine_version: str
    node_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET


class RunEvents(CamelCase):
    run_id: str
    events: list[RunEvent]
    last_event_seq: int
    is_complete: bool
    is_terminal: bool
    run_status: Status


class RunCancelled(CamelCase):
    run_id: str
    status: Status
    already_terminal: bool | UnsetType = UNSET


class RunPaused(CamelCase):
    run_id: str
    status: Literal["paused"]
    paused_at: Time


class RunResumed(CamelCase):
    run_id: str
    status: Literal["running"]
    resumed_at: Time


class BulkResult(CamelCase):
    run_id: str
    ok: bool
    status: Status | UnsetType = UNSET
    error: RunFault | UnsetType = UNSET


class RunsCancelled(CamelCase):
    results: Annotated[list[BulkResult], Meta(description="One for each id, in the order they were given.")]


class RunForked(CamelCase):
    run_id: str
    source_run_id: str
    from_seq: int
    mode: Literal["replay", "branch"]
    status: Status
    events_url: str
    status_url: str


class WorkspaceFile(CamelCase):
    path: str
    version: int
    updated_at: Time
    content_type: str | None
    etag: str
    content: str | UnsetType = UNSET


class WorkspaceFiles(CamelCase):
    files: Annotated[list[WorkspaceFile], Meta(description="Without their content.")]


class MemoryShape(CamelCase):
    scratchpad: bool | UnsetType = UNSET
    conversation: bool | UnsetType = UNSET
    long_term: bool | UnsetType = UNSET


class AgentOut(CamelCase):
    agent_id: str
    persona: str
    label: str
    model_class: str
    pack_name: str
    pack_version: str
    tool_allowlist: list[str]
    has_handoff_schemas: bool
    description: str | UnsetType = UNSET
    memory_shape: MemoryShape | UnsetType = UNSET
    confidence_threshold: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    degraded: Annotated[list[str], Meta(description="Required capabilities that this host lacks.")] | UnsetType = UNSET
    memory_degraded: bool | UnsetType = UNSET
    degraded_memory_dimensions: list[str] | UnsetType = UNSET


class AgentsOut(CamelCase):
    agents: list[AgentOut]
    total: int


class Position(CamelCase):
    x: float
    y: float


class NodeOut(CamelCase):
    id: str
    type_id: str
    name: str
    position: Position
    config: Object
    inputs: Object


class EdgeOut(CamelCase):
    id: str
    source_node_id: str
    target_node_id: str


class TriggerOut(CamelCase):
    id: str
    type: str


class VariableOut(CamelCase):
    name: str
    type: str
    required: bool
    default_value: Any | UnsetType = UNSET


class WorkflowOut(CamelCase):
    id: str
    name: str
    version: str
    nodes: list[NodeOut]
    edges: list[EdgeOut]
    triggers: list[TriggerOut]
    variables: list[VariableOut]
    metadata: Object
    settings: Object


class Limits(CamelCase):
    clarification_rounds: int
    schema_rounds: int
    envelopes_per_turn: int
    max_request_body_bytes: int


class Implementation(CamelCase):
    name: str
    version: str
    vendor: str


class Discovery(CamelCase):
    """Every capability family is an object at the root, and absent where the host does not have it."""

    protocol_version: str
    protocol_versions: list[str]
    preferred_version: str
    min_client_version: str
    engine_version: int
    event_log_schema_version: int
    supported_envelopes: list[str]
    schema_versions: dict[str, int]
    supported_transports: list[str]
    limits: Limits
    implementation: Implementation
    memory: Object
    agents: Object
    secrets: Object
    reverie: Object
    scheduling: Object | UnsetType = UNSET
    workspace: Object | UnsetType = UNSET
    replay: Object | UnsetType = UNSET
    runs: Object | UnsetType = UNSET
    idempotency: Object | UnsetType = UNSET
    fixtures: list[str] | UnsetType = UNSET
    capabilities: Annotated[Object, Meta(description="The families repeated, for older readers.")] | UnsetType = UNSET


def refusals(*more: int) -> dict[int, DocumentedAnswer]:
    """The refusals that every operation may answer, and some of its own."""
    codes: dict[int, list[str]] = {}
    for code, status in STATUS.items():
        codes.setdefault(status, []).append(code)
    always = {400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503, 507}
    return {
        status: DocumentedAnswer(", ".join(f"`{code}`" for code in codes.get(status, [])), OpenwopError)
        for status in sorted({*always, *more})
    }


def parameter(name: str, description: str, *, where: str = "query", **schema: Any) -> Mapping[str, Any]:
    """A parameter."""
    kind = schema or {"type": "string"}
    return {"in": where, "name": name, "required": False, "schema": kind, "description": description}


ONCE = parameter("Idempotency-Key", "Makes a retry safe: the same key does nothing twice.", where="header")
EVENTS = (
    parameter(
        "lastSequence", "Events after this sequence; `after` and `since` say the same.", type="integer", minimum=-1
    ),
    parameter("streamMode", "Filter on events: a list of modes.", type="string"),
    parameter("type", "Only events of these types.", type="array", items={"type": "string"}),
    parameter("nodeId", "Only events of this node."),
    parameter("bufferMs", "Streams: gather events for this long.", type="integer", minimum=0, maximum=5000),
    parameter("Last-Event-ID", "Resume a stream after this event.", where="header"),
)
