"""The answers of the Field in the OpenAPI document: the bare payload of each operation, with the epoch it got.

They describe; the operations make them. Members that a unit does not have are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from reverie.protocols.akashik.conflicts import STATUSES as CONFLICT_STATUSES
from reverie.protocols.akashik.conflicts import TYPES as CONFLICT_TYPES
from reverie.protocols.akashik.http.errors import STATUS
from reverie.protocols.akashik.operations.merge import STRATEGIES
from reverie.protocols.akashik.operations.subscriptions import EVENTS
from reverie.protocols.akashik.units import RELATIONS, STATUSES, TYPES


def _one_of(values: Any) -> Meta:
    return Meta(extra_json_schema={"enum": list(values)})


Type = Annotated[str, _one_of(TYPES)]
Status = Annotated[str, _one_of(STATUSES)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Time = Annotated[str, Meta(description="An instant, ISO 8601 in UTC.")]


class Shape(Struct, kw_only=True):
    schema_prefix: ClassVar[str] = "Akashik"


class Done(Shape):
    epoch: Annotated[int, Meta(ge=0, description="The epoch this operation got.")]


class Agent(Shape):
    id: str
    role: str
    status: Annotated[str, _one_of(("idle", "working", "waiting", "offline", "failed"))]
    interests: list[str]
    current_task_id: str | None
    authority_level: Annotated[int, Meta(ge=0, le=10)]


class Capabilities(Shape):
    conformance_level: Annotated[int, Meta(ge=0, le=3)]
    supported_operations: list[str]
    protocol_version: str
    persistence: Annotated[bool, Meta(description="Whether units and log survive a restart of the process.")]
    conflict_strategies: list[Annotated[str, _one_of(STRATEGIES)]]
    extensions: list[str]


class Registered(Done):
    status: Literal["registered"]
    agent: Agent
    field_capabilities: Capabilities
    rejection_reason: None


class Cleanup(Shape):
    units_orphaned: Count
    tasks_reassigned: Count


class Deregistered(Done):
    status: Literal["ok", "not_found"]
    cleanup: Cleanup


class Recorded(Done):
    status: Literal["accepted"]
    memory_unit_id: str
    conflicts_detected: Annotated[list[str], Meta(description="Ids of the conflicts it opened.")]
    rejection_reason: None
    warnings: list[Literal["ENRICHMENT_FAILED"]] | UnsetType = UNSET
    conflict_detection: Literal["deferred"] | UnsetType = UNSET


class Intent(Shape):
    purpose: str
    task_id: str | None
    question: str | None


class Confidence(Shape):
    score: Share | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    evidence: list[str] | UnsetType = UNSET
    assumptions: list[str] | UnsetType = UNSET


class Origin(Shape):
    agent_id: str
    agent_role: str
    session_id: str | None
    timestamp: Time


class Relation(Shape):
    type: Annotated[str, _one_of(RELATIONS)]
    target_id: str
    description: str | None


class Unit(Shape):
    id: str
    mode: Literal["draft", "committed"]
    type: Type
    content: str
    intent: Intent
    source: Origin
    relations: list[Relation]
    status: Status
    epoch: int
    confidence: Confidence | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    archived: Literal[True] | UnsetType = UNSET
    archived_epoch: int | UnsetType | None = UNSET
    derived_from_types: list[Type] | UnsetType = UNSET


class UnitId(Shape):
    id: str


class Scored(Shape):
    memory_unit: Annotated[
        Unit | Any,
        Meta(
            description="With `ids_only` the id alone.",
            extra_json_schema={
                "anyOf": [
                    {"$ref": "#/components/schemas/AkashikUnit"},
                    {"$ref": "#/components/schemas/AkashikUnitId"},
                ]
            },
        ),
    ]
    relevance_score: Share
    relevance_reason: str
    format: Annotated[Literal["full", "summary"], Meta(description="`summary`: the content was shortened.")]


class Resolution(Shape):
    strategy: Annotated[str, _one_of(STRATEGIES)]
    winner_id: str | None
    rationale: str
    resolved_by: str
    epoch_resolved: int


class Conflict(Shape):
    id: str
    type: Annotated[str, _one_of(CONFLICT_TYPES)]
    status: Annotated[str, _one_of(CONFLICT_STATUSES)]
    unit_a: str
    unit_b: str
    description: str
    detected_by: Literal["explicit", "semantic", "logical", "temporal"]
    resolution: Resolution | UnsetType = UNSET


class Budget(Shape):
    units_returned: Count
    units_available: Annotated[int, Meta(ge=0, description="Units that the scope admits, before the cut.")]
    tokens_used: Count
    tokens_budget: int | None


class Attuned(Done):
    status: Literal["ok"]
    record: list[Scored]
    conflicts: list[Conflict]
    context_budget: Budget
    warnings: list[Literal["BUSY"]] | UnsetType = UNSET


class Coverage(Shape):
    units_scanned: Count
    new_conflicts_found: Count


class Detected(Done):
    status: Literal["ok"]
    conflicts: list[Conflict]
    scan_coverage: Coverage


class SideEffects(Shape):
    superseded_units: list[str]
    new_unit_id: str | None
    notified_agents: list[str]


class Merged(Done):
    status: Literal["resolved", "escalated", "pending_vote"]
    conflict: Conflict
    side_effects: SideEffects


class Tombstone(Shape):
    unit_id: str
    deleted_at: Time | None
    reason: str
    purged_by: str | None


class Step(Shape):
    seq: int
    epoch: int
    event_type: str
    agent_id: str | None
    description: str
    memory_unit_id: str | None
    task_id: str | None
    conflict_id: str | None
    tombstone: Tombstone | UnsetType = UNSET


class Replayed(Done):
    status: Literal["ok"]
    timeline: list[Step]
    summary: str
    agents_involved: list[str]
    total_events: Count


class Compacted(Done):
    status: Literal["ok"]
    units_affected: Count
    synthesis_units_created: Count
    storage_reclaimed_bytes: int | None


class Subscription(Shape):
    id: str
    events: list[Annotated[str, _one_of(EVENTS)]]
    min_relevance: Share
    debounce_ms: Count
    session_id: str | None


class Subscribed(Done):
    """`subscribe` and `unsubscribe` answer with the subscription, `list` with all of the caller's."""

    status: Literal["ok"]
    subscription: Subscription | UnsetType = UNSET
    subscriptions: list[Subscription] | UnsetType = UNSET
    websocket_url: Annotated[str, Meta(description="With a ticket that works once, for a minute.")] | UnsetType = UNSET
    sse_url: str | UnsetType = UNSET


class Task(Shape):
    id: str
    title: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    state: (
        Annotated[str, _one_of(("pending", "assigned", "in_progress", "blocked", "failed", "completed", "cancelled"))]
        | UnsetType
    ) = UNSET
    assignee: str | UnsetType | None = UNSET
    creator_id: str | UnsetType = UNSET
    session_id: str | UnsetType | None = UNSET
    depends_on: list[str] | UnsetType = UNSET
    priority: str | int | float | UnsetType | None = UNSET
    result_unit_id: str | UnsetType | None = UNSET
    reason: str | UnsetType | None = UNSET
    created_epoch: int | UnsetType = UNSET
    updated_epoch: int | UnsetType = UNSET


class Coordinated(Done):
    status: Literal["ok"]
    task: Task | UnsetType = UNSET
    tasks: list[Task] | UnsetType = UNSET


class Package(Shape):
    summary: str
    task: Annotated[Task, Meta(description="Its id alone when COORDINATE does not know it.")]
    units: list[Unit]
    unresolved_conflicts: list[Conflict]
    open_questions: list[str]
    token_count: Count
    generated_epoch: int


class Handoff(Shape):
    id: str
    task_id: str
    from_agent: str
    to_agent: str
    status: Literal["pending", "accepted", "rejected", "expired"]
    reason: str | None
    package: Package


class HandedOff(Done):
    status: Literal["initiated", "accepted", "ok"]
    handoff: Handoff | UnsetType = UNSET
    handoffs: list[Handoff] | UnsetType = UNSET


class RoleRule(Shape):
    role: str
    deny_types: list[Type]


class Policy(Shape):
    membership: Literal["invite", "open"]
    role_rules: list[RoleRule]
    min_authority: dict[str, int]
    vote_quorum: int
    cross_session: bool


class Session(Shape):
    id: str
    goal: str | None
    status: Literal["active", "paused", "ended"]
    creator_id: str | None
    members: list[str]
    policy: Policy
    created_epoch: int
    ended_epoch: int | None


class Sessions(Done):
    status: Literal["ok"]
    session: Session | UnsetType = UNSET
    sessions: list[Session] | UnsetType = UNSET


class Units(Shape):
    hot: Count
    archived: Count
    purged: Count


class Log(Shape):
    events: Count
    head_hash: str


class FieldStatus(Shape):
    status: Literal["ok"]
    protocol: str
    protocol_version: str
    conformance_level: int
    epoch: int
    units: Units
    agents: Count
    conflicts_open: Count
    log: Log


class Event(Shape):
    seq: int
    epoch: int
    ts: Time
    type: str
    operation: str | None
    agent_id: str | None
    session_id: str | None
    memory_unit_id: str | None
    conflict_id: str | None
    task_id: str | None
    data: Annotated[dict[str, Any], Meta(description="Ids, counts and hashes of this kind of event; never text.")]
    prev_hash: str
    hash: str


class Events(Shape):
    events: list[Event]
    head_seq: Count
    head_hash: str


class Agents(Shape):
    agents: list[Agent]


class Conflicts(Shape):
    conflicts: list[Conflict]


class Faults(Shape):
    status: Literal["ok"]
    kind: str
    on: bool


class Refused(Shape):
    """The protocol's error object. Refusals of REGISTER and RECORD say `rejected` too."""

    code: Annotated[str, _one_of(sorted(STATUS))]
    message: str
    operation: str | None
    recoverable: bool
    suggested_action: str
    status: Literal["rejected"] | UnsetType = UNSET
    rejection_reason: str | UnsetType = UNSET
    agent: UnsetType | None = UNSET
    field_capabilities: Capabilities | UnsetType = UNSET
    tombstone: Tombstone | UnsetType = UNSET


ANSWERS: Mapping[str, type[Struct]] = {
    "REGISTER": Registered,
    "DEREGISTER": Deregistered,
    "RECORD": Recorded,
    "ATTUNE": Attuned,
    "DETECT": Detected,
    "MERGE": Merged,
    "REPLAY": Replayed,
    "COMPACT": Compacted,
    "SUBSCRIBE": Subscribed,
    "HANDOFF": HandedOff,
    "COORDINATE": Coordinated,
    "SESSION": Sessions,
}
"""By operation."""
QUESTIONS: Mapping[str, type[Struct]] = {
    "/v1/field/status": FieldStatus,
    "/v1/field/log": Events,
    "/v1/agents": Agents,
    "/v1/conflicts": Conflicts,
    "/v1/units/{id}": Unit,
}
"""By address."""
