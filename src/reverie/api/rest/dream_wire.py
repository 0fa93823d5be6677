"""The shapes of dreams, lineage and schedules. The same rules as in `wire.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reverie.api.rest.wire import LARGEST, Asked, Inward, Label, When

Age = Annotated[str, Field(max_length=32, description="A duration: `7d`, `12h`, `P30D`.", examples=["7d"])]


class DreamIn(Inward):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"budget": 8000}, {"plan": True, "fit": True}]}
    )

    plan: bool = Field(default=False, description="true: only say what would happen.")
    budget: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST,
        description="Tokens of input and output together; default and most: the policy's.",
    )
    fit: bool = Field(default=False, description="Take the oldest part that fits; dream again for the rest.")
    distiller: str = Field(default="extractive", max_length=64, description="`extractive`, `llm`, or `none`.")
    after: Literal["cold", "archive", "purge"] = Field(
        default="cold", description="What becomes of the sources: cold storage, kept out of recall, or destroyed now."
    )
    older_than: Age | None = Field(default=None, description="Leave younger entries alone.")
    kinds: list[Label] | None = None
    tags: list[Label] = Field(default_factory=list, description="Only entries with every one of these tags.")
    session: Label | None = None


class DreamsAsked(Asked):
    limit: int = Field(default=100, ge=1, le=1000)


class ScheduleFields(Inward):
    ref: Annotated[str, Field(max_length=1500)] | None = Field(
        default=None, description="One memory; null: each of the tenant's."
    )
    zone: str = Field(default="UTC", max_length=64, description="An IANA zone; left out: the policy's.")
    kind: Literal["dream", "consolidate"] = "dream"
    budget: int | None = Field(default=None, ge=1, le=LARGEST)
    fit: bool = True
    older_than: Age = "0s"
    least_entries: int = Field(default=2, ge=0, le=LARGEST, description="Below this many entries, do nothing.")
    least_tokens: int = Field(default=0, ge=0, le=LARGEST, description="Below this many tokens, do nothing.")
    jitter: Age = Field(default="0s", description="Spread the start over this long; at most a day.")
    missed: Literal["once", "skip"] = Field(default="once", description="After a time without any worker.")
    paused: bool = False


class ScheduleIn(ScheduleFields):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"cron": "0 3 * * *", "ref": "notes"}]}
    )

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Left out: made.")
    cron: str = Field(default="", max_length=256, description="Five fields; or `delay_ms`.", examples=["0 3 * * *"])
    delay_ms: int | None = Field(default=None, ge=0, le=LARGEST, description="Once, this long from now.")

    @model_validator(mode="before")
    @classmethod
    def from_trigger(cls, body: Any) -> Any:
        """A workflow trigger `{id, type: "schedule", enabled, config: {cron?, delayMs?, timezone}}` says the same."""
        return plain_schedule(body) if isinstance(body, dict) else body


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
    """What to change; the rest stays."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"paused": True}]})

    cron: str = Field(default="0 3 * * *", max_length=256, description="Five fields.")

    @model_validator(mode="before")
    @classmethod
    def from_trigger(cls, body: Any) -> Any:
        """The names of a workflow trigger say the same."""
        return plain_schedule(body) if isinstance(body, dict) else body


class EstimateOut(BaseModel):
    """What a dream would do."""

    ref: str
    position: int
    sources: int
    collapsed: int = Field(description="Of the sources, how many were said before.")
    input_tokens: int
    output_tokens: int = Field(description="The most the output may have.")
    budget: int
    minimum_required: int = Field(description="The smallest budget that is enough, exactly.")
    left_out: dict[str, int] = Field(description="Why entries stay out, counted.")
    left_for_later: int
    distiller: str
    feasible: bool


class SourceTraceOut(BaseModel):
    id: str
    version: int
    state: str
    archived: bool
    fate: str = Field(description="`kept`, `shortened`, `merged` or `retired`.")


class StatementTraceOut(BaseModel):
    line: int
    sources: list[str]
    how: str
    count: int


class DreamOut(BaseModel):
    """What a dream did: ids, counts and hashes. Its text is the entry `output_id`."""

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
    checksum: str | None = Field(description="SHA-256 of the archive.")
    budget: int
    input_tokens: int
    output_tokens: int
    tokens_used: int
    tokens_before: int
    bytes_before: int
    byte_size: int
    statements: list[StatementTraceOut]
    collapsed: list[list[str]]
    superseded: list[str]
    gates: dict[str, Any]
    spend: dict[str, Any]
    fell_back: str | None
    reused: bool
    changed_meanwhile: int
    left_for_later: int
    reclaimed_bytes: int
    given: int = Field(description="How many texts that are no entries were distilled.")
    state: str = Field(description="`done`, `undone`, `superseded` or `redone`.")


class DreamsOut(BaseModel):
    dreams: list[DreamOut]


class DiffOut(BaseModel):
    dream: str
    output: str | None
    kept: list[str]
    shortened: list[str]
    merged: list[str]
    retired: list[str]
    texts: dict[str, str] = Field(description="Original words by id, while they rest in cold storage.")


class VerifiedOut(BaseModel):
    ok: bool
    checksum: str | None
    recomputed: str | None
    reason: str


class WhyOut(BaseModel):
    id: str
    kind: str
    state: str
    created_at: When
    actor: str
    trust: int
    content: str | None = Field(description="null when its text was destroyed.")
    sources: list[WhyOut]


class DerivedOut(BaseModel):
    derived: list[str]


class ConsolidatedOut(BaseModel):
    ref: str
    input_count: int
    output_count: int
    merged: list[str]
    duplicates: int
    outdated: int
    seq: int | None = Field(description="null when nothing changed.")


class IndexedOut(BaseModel):
    memoryRef: str  # noqa: N815
    outputId: str  # noqa: N815
    archiveChecksum: str  # noqa: N815
    sourceCount: int  # noqa: N815
    byteSize: int  # noqa: N815
    tokenBudget: int  # noqa: N815
    tokensUsed: int  # noqa: N815
    tokens: int
    topics: list[str]


class IndexOut(BaseModel):
    """MEMORY-INDEX.json."""

    schema_: str = Field(alias="schema")
    archives: list[IndexedOut]


class OutcomeOut(BaseModel):
    tick: When
    at: When
    status: str = Field(description="`running`, `done`, `nothing` or `failed`.")
    code: str | None
    dreams: list[str]
    attempts: int


class ScheduleOut(BaseModel):
    id: str
    cron: str
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
    next_at: When | None
    why_not: str | None


class SchedulesOut(BaseModel):
    schedules: list[ScheduleOut]


class RemovedOut(BaseModel):
    id: str
