"""The wire shapes of dreams, lineage and schedules, by the rules of `wire.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from reverie.api.rest.wire import LARGEST, Inward, Label, Outward, QueryParameters, When

Age = Annotated[str, Meta(max_length=32, description="A duration: `7d`, `12h`, `P30D`.", examples=["7d"])]


class DreamIn(Inward):
    plan: Annotated[bool, Meta(description="true: estimate the dream, and change nothing.")] = False
    budget: Annotated[
        Annotated[int, Meta(ge=1, le=LARGEST)] | None,
        Meta(description="Tokens, input and output together; the policy is the default and the limit."),
    ] = None
    fit: Annotated[bool, Meta(description="Take the oldest part that fits; dream again for the rest.")] = False
    distiller: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(description="`extractive`, `llm`, or `none`; default: the policy's."),
    ] = None
    after: Annotated[
        Literal["cold", "archive", "purge"],
        Meta(description="Treatment of the sources: moved to cold storage, archived, or destroyed now."),
    ] = "cold"
    older_than: Annotated[Age | None, Meta(description="Take only entries older than this.")] = None
    kinds: list[Label] | None = None
    tags: Annotated[list[Label], Meta(description="Only entries with every one of these tags.")] = msgspec.field(
        default_factory=list
    )
    session: Label | None = None
    instructions: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)] | None,
        Meta(description="Instructions to a model; the model-free distiller ignores them."),
    ] = None


class DreamsQuery(QueryParameters):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


def _default(value: Any) -> Meta:
    """Document a default without applying it, so that a change can tell given fields from omitted ones."""
    return Meta(extra_json_schema={"default": value})


class AllDreamsQuery(DreamsQuery):
    ref: Annotated[Label | None, Meta(description="Only dreams of this memory.")] = None


class IndexQuery(QueryParameters):
    ref: Annotated[Label | None, Meta(description="Only dreams of this memory.")] = None


class ScheduleFields(Inward):
    """A field that is left out keeps its value, or has the documented default."""

    ref: (
        Annotated[
            Annotated[str, Meta(max_length=1500)] | None, Meta(description="One memory; null: all of the tenant's.")
        ]
        | UnsetType
    ) = UNSET
    zone: Annotated[str, Meta(max_length=64, description="An IANA zone; default: the policy's.")] | UnsetType = UNSET
    kind: Annotated[Literal["dream", "consolidate"], _default("dream")] | UnsetType = UNSET
    budget: Annotated[int, Meta(ge=1, le=LARGEST)] | UnsetType | None = UNSET
    fit: Annotated[bool, _default(True)] | UnsetType = UNSET
    older_than: Annotated[Age, _default("0s")] | UnsetType = UNSET
    least_entries: (
        Annotated[int, Meta(ge=0, le=LARGEST, description="Below this many entries, do nothing."), _default(2)]
        | UnsetType
    ) = UNSET
    least_tokens: (
        Annotated[int, Meta(ge=0, le=LARGEST, description="Below this many tokens, do nothing."), _default(0)]
        | UnsetType
    ) = UNSET
    jitter: (
        Annotated[Age, Meta(description="Delay each start by a random time up to this; at most a day."), _default("0s")]
        | UnsetType
    ) = UNSET
    missed: (
        Annotated[
            Literal["once", "skip"],
            Meta(description="Run one of the ticks missed without a worker, or none."),
            _default("once"),
        ]
        | UnsetType
    ) = UNSET
    paused: Annotated[bool, _default(False)] | UnsetType = UNSET

    @staticmethod
    def prepared(document: Any) -> Any:
        """Accept a workflow trigger as well: `{id, type: "schedule", enabled, config: {cron?, delayMs?, timezone}}`."""
        return plain_schedule(document) if isinstance(document, dict) else document


class ScheduleIn(ScheduleFields):
    id: (
        Annotated[
            Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None,
            Meta(description="Default: a new id."),
        ]
        | UnsetType
    ) = UNSET
    cron: (
        Annotated[
            str, Meta(max_length=256, description="Five fields. Give this or `delay_ms`.", examples=["0 3 * * *"])
        ]
        | UnsetType
    ) = UNSET
    delay_ms: (
        Annotated[Annotated[int, Meta(ge=0, le=LARGEST)] | None, Meta(description="Run once, this long from now.")]
        | UnsetType
    ) = UNSET


def plain_schedule(body: dict[str, Any]) -> dict[str, Any]:
    """A schedule in this API's own names, from those of a workflow trigger."""
    fields = {key: value for key, value in body.items() if key != "config"}
    config = body.get("config")
    if isinstance(config, dict):
        fields = {**config, **fields}
    elif config is not None:
        return body  # refused as an unknown field
    if fields.get("type") == "schedule":
        del fields["type"]
    if isinstance(fields.get("enabled"), bool):
        fields["paused"] = not fields.pop("enabled")
    workflow = fields.get("workflowId")
    kinds = {"reverie.memory.distill": "dream", "reverie.memory.consolidate": "consolidate"}
    if isinstance(workflow, str) and workflow in kinds:
        fields["kind"] = kinds[workflow]
        del fields["workflowId"]
    names = {"delayMs": "delay_ms", "timezone": "zone", "memoryRef": "ref", "tokenBudget": "budget"}
    return {names.get(key, key): value for key, value in fields.items()}


class ScheduleChangeIn(ScheduleFields):
    """Fields to change; the others keep their values."""

    cron: Annotated[str, Meta(max_length=256, description="Five fields.")] | UnsetType = UNSET


class LeavingOut(Outward):
    id: str
    text: str
    reason: str


class EstimateOut(Outward):
    """Estimate of a dream."""

    ref: str
    position: int
    sources: int
    collapsed: Annotated[int, Meta(description="Number of duplicates among the sources.")]
    input_tokens: int
    output_tokens: Annotated[int, Meta(description="The limit of the output.")]
    budget: int
    minimum_required: Annotated[int, Meta(description="The smallest sufficient budget, exactly.")]
    left_out: Annotated[dict[str, int], Meta(description="Number of entries left out, by reason.")]
    left_for_later: int
    distiller: str
    feasible: bool
    fates: Annotated[dict[str, int], Meta(description="Number of sources by fate.")]
    leaving: Annotated[
        list[LeavingOut], Meta(description="Statements that would have no line of their own, with the reason.")
    ]
    hot_before: int
    hot_after: Annotated[int, Meta(description="Tokens of the memory after the dream.")]


class NothingOut(Outward):
    """There was nothing to do, and nothing was changed."""

    state: Literal["nothing"]
    reason: Annotated[
        str, Meta(description="`too_few`: fewer than two entries can be taken; `cannot_be_smaller`: all must be kept.")
    ]
    message: str


class SourceTraceOut(Outward):
    id: str
    version: int
    state: str
    archived: bool
    fate: Annotated[
        str, Meta(description="`kept`, `shortened`, `merged`, `rolled`, `outdated`, `chatter` or `retired`.")
    ]
    statements: Annotated[list[tuple[str, str]], Meta(description="Fate and class of every statement, in order.")]


class StatementTraceOut(Outward):
    line: int
    sources: list[str]
    how: str
    count: int


class MustKeepOut(Outward):
    kept: int
    quoted: int
    missing: int


class GateItemOut(Outward):
    source: str
    why: str
    required: bool
    state: str


class GatesOut(Outward):
    """Checks made before the dream was stored; empty where there was nothing to check."""

    passed: bool | UnsetType = UNSET
    must_keep: MustKeepOut | UnsetType = UNSET
    items: list[GateItemOut] | UnsetType = UNSET
    invented: int | UnsetType = UNSET
    negations_flipped: int | UnsetType = UNSET
    smaller: bool | UnsetType = UNSET
    within_budget: bool | UnsetType = UNSET


class ArchivedSourceOut(Outward):
    id: str
    sha256: str


class ArchiveOut(Outward):
    """The document whose RFC 8785 form has the checksum."""

    schema_: str = msgspec.field(name="schema")
    sources: list[ArchivedSourceOut]
    content: str
    tokenBudget: int | UnsetType = UNSET  # noqa: N815
    tokenizerName: str | UnsetType = UNSET  # noqa: N815


class AnswerOut(Outward):
    id: str
    line: Annotated[int | None, Meta(description="For a dream: the line of its text, from 0.")]
    cold: bool


class ReplayedOut(Outward):
    question: str
    outcome: Annotated[
        str,
        Meta(
            description="Fate of the first answer: `kept`, `cold`, `deep`, `updated` or `lost`; where there was none, "
            "`answered` or `unanswered`."
        ),
    ]
    before: list[AnswerOut]
    after: list[AnswerOut]
    place: Annotated[int | None, Meta(description="Place of that answer after the dream, from 1.")]


class ReplayOut(Outward):
    """Recorded searches, asked before a dream and again after it."""

    dream: str
    questions: list[ReplayedOut]
    skipped: Annotated[int, Meta(description="Questions left out because the time was used up.")]
    milliseconds: int


class DreamOut(Outward):
    """Report of a dream: ids, counts and hashes. Its text is the entry `output_id`."""

    id: str
    ref: str
    position: int
    seq: int
    created_at: When
    distiller: str
    fingerprint: str
    after: str
    trigger: str
    sources: list[SourceTraceOut]
    output_id: str | None
    checksum: Annotated[str | None, Meta(description="SHA-256 of the archive.")]
    budget: int
    input_tokens: int
    output_tokens: int
    tokens_used: int
    tokens_before: int
    bytes_before: int
    byte_size: int
    statements: list[StatementTraceOut]
    collapsed: list[list[str]]
    about: Annotated[
        dict[str, list[str]], Meta(description="Keyed hashes of the subjects of each source, for a later forget.")
    ]
    superseded: list[str]
    gates: GatesOut
    spend: Annotated[dict[str, Any], Meta(description="Cost of the model; empty without one.")]
    fell_back: str | None
    instructions_applied: Annotated[
        bool | None, Meta(description="Whether a model read the instructions; null: there were none.")
    ]
    reused: bool
    changed_meanwhile: int
    left_for_later: int
    output_limit: Annotated[int, Meta(description="The most tokens the output was allowed.")]
    stayed: Annotated[
        list[str],
        Meta(
            description="Entries left as they were: the text would repeat them, or had no room for what must be kept."
        ),
    ]
    hot_before: int
    hot_after: Annotated[int, Meta(description="Tokens of the whole memory after the dream.")]
    hot_target: Annotated[int, Meta(description="Tokens the policy aims for; 0 where there is no target.")]
    above_target: Annotated[
        str | None, Meta(description="Why hot memory is above the target: `later`, `must_keep` or `share`.")
    ]
    cold_tokens: Annotated[int, Meta(description="Tokens of the entries that went to cold storage.")]
    probes: Annotated[
        dict[str, tuple[int, int]],
        Meta(description="By kind of statement: the number that a line of the text answers, and the total."),
    ]
    unanswered: Annotated[
        list[tuple[str, int, str]],
        Meta(description="The first statements that no line answers: entry, number, class. Their sources are cold."),
    ]
    reclaimed_bytes: int
    given: Annotated[int, Meta(description="Number of distilled texts that are not entries.")]
    outputs: Annotated[list[str], Meta(description="For a dream that changed several entries: all of them.")]
    state: Annotated[str, Meta(description="`done`, `undone`, `superseded` or `redone`.")]
    replay: Annotated[
        ReplayOut | None,
        Meta(description="Recorded searches before and after; only in the report of one dream, while they are kept."),
    ]


class DreamsOut(Outward):
    dreams: list[DreamOut]


class StatementDiffOut(Outward):
    text: str
    fate: str
    why: str
    cut: Annotated[list[str], Meta(description="The words that were left out.")]


class DiffOut(Outward):
    dream: str
    output: str | None
    kept: list[str]
    shortened: list[str]
    merged: list[str]
    rolled: list[str]
    outdated: list[str]
    chatter: list[str]
    retired: list[str]
    statements: Annotated[dict[str, list[StatementDiffOut]], Meta(description="Fate of every statement of an entry.")]
    texts: Annotated[dict[str, str], Meta(description="Original words by id, while they rest in cold storage.")]


class VerifiedOut(Outward):
    ok: bool
    checksum: str | None
    recomputed: str | None
    reason: str


class WhyOut(Outward):
    id: str
    kind: str
    state: str
    created_at: When
    actor: str
    trust: int
    content: Annotated[str | None, Meta(description="null when the text was destroyed.")]
    sources: list[WhyOut]


class DerivedOut(Outward):
    derived: list[str]


class ConsolidatedOut(Outward):
    ref: str
    input_count: int
    output_count: int
    merged: list[str]
    duplicates: int
    outdated: int
    seq: Annotated[int | None, Meta(description="null when nothing changed.")]


class IndexedOut(Outward):
    memoryRef: str  # noqa: N815
    outputId: str  # noqa: N815
    archiveChecksum: str  # noqa: N815
    sourceCount: int  # noqa: N815
    byteSize: int  # noqa: N815
    tokenBudget: int  # noqa: N815
    tokensUsed: int  # noqa: N815
    createdAt: When  # noqa: N815
    tokens: int
    from_: When | None = msgspec.field(name="from")
    to: When | None
    topics: list[str]


class IndexOut(Outward):
    """MEMORY-INDEX.json."""

    schema_: str = msgspec.field(name="schema")
    archives: list[IndexedOut]


class OutcomeOut(Outward):
    tick: When
    at: When
    status: Annotated[str, Meta(description="`running`, `done`, `nothing` or `failed`.")]
    code: str | None
    dreams: list[str]
    attempts: int


class ScheduleOut(Outward):
    id: str
    cron: str
    delay_ms: Annotated[int | None, Meta(description="For a single tick: its delay from the creation.")]
    zone: str
    ref: str | None
    kind: str
    budget: int | None
    fit: bool
    older_than_ms: int
    least_entries: int
    least_tokens: int
    jitter_ms: int
    missed: str
    paused: bool
    created_at: When
    last_tick: When | None
    last: OutcomeOut | None
    quiet_seq: Annotated[int, Meta(description="The log position up to which nothing was left to do.")]
    next_at: When | None
    why_not: str | None


class SchedulesOut(Outward):
    schedules: list[ScheduleOut]


class RemovedOut(Outward):
    id: str
