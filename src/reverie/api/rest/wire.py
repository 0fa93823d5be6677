"""The shapes of the API. What comes in is read strictly: no unknown field, no text for a number.

What goes out is encoded straight from the core's values (`mapping.py`); the models here document it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)

from reverie.core.errors import TooLarge
from reverie.core.policy import TenantPolicy
from reverie.http.faults import in_slices
from reverie.http.paths import decoded
from reverie.memory.entries import MAX_BATCH

LARGEST = 2**53 - 1
_AN_ENTRY: dict[str, Any] = {
    "content": "The customer prefers e-mail to phone calls.",
    "tags": ["preference"],
    "subject": "customer-42",
    "source": {"actor": "support-bot", "session": "s-1"},
}

When = Annotated[
    str,
    Field(
        max_length=64,
        description="An RFC 3339 instant with a zone.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-11-15T08:05:09Z"],
    ),
]
Label = Annotated[str, Field(max_length=256)]
Labels = Annotated[list[Label], Field(fail_fast=True)]
Segment = Annotated[str, BeforeValidator(decoded)]


class Inward(BaseModel):
    """Something a caller sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(BaseModel):
    """Query parameters; an unknown one is refused, since a misspelt filter would show everything."""

    model_config = ConfigDict(extra="forbid")


class SourceIn(Inward):
    actor: Label = Field(default="", description="Who says so, when it is not the caller.")
    role: Label | None = None
    session: Label | None = None
    run: Label | None = None
    node: Label | None = None
    trust: int = Field(default=10, ge=0, le=10)


class EntryIn(Inward):
    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_AN_ENTRY]})

    content: str = Field(min_length=1, description="What to remember. Secrets in it are replaced before it is stored.")
    kind: str = Field(default="note", min_length=1, max_length=64)
    tags: Labels = Field(default_factory=list)
    subject: Label | None = Field(default=None, description="Whom it is about; forget goes by it.")
    attributes: dict[str, Any] = Field(default_factory=dict, description="Plain JSON that belongs to it.")
    id: Annotated[str, Field(min_length=1, max_length=1500)] | None = Field(
        default=None, description="Chosen by the caller."
    )
    source: SourceIn = Field(default_factory=SourceIn)
    created_at: When | None = None
    expires_at: When | None = None
    pinned: bool = False


def _batch(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Counted before the first entry is looked at."""
    if isinstance(value, list) and len(value) > MAX_BATCH:
        raise TooLarge(f"At most {MAX_BATCH} entries in one request.", pointer="/entries")
    return in_slices(value, check, "entries")


class EntriesIn(Inward):
    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"entries": [_AN_ENTRY]}]})

    entries: Annotated[list[EntryIn], WrapValidator(_batch)] = Field(
        min_length=1, description="Stored in one transaction: all of them, or none."
    )


def _one_or_many(value: Any) -> str:
    return "many" if isinstance(value, EntriesIn) or (isinstance(value, dict) and "entries" in value) else "one"


PutIn = Annotated[
    Annotated[EntryIn, Tag("one")] | Annotated[EntriesIn, Tag("many")],
    Discriminator(_one_or_many),
]


class ChangeIn(Inward):
    """Exactly one change: each is one event of its own."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"minProperties": 1, "maxProperties": 1, "examples": [{"pinned": True}]},
    )

    pinned: bool = Field(default=False, description="true: never dream it away.")
    archived: bool = Field(default=False, description="true: out of recall, and kept. false: readable again.")
    held: bool = Field(default=False, description="true: may not be erased until released. Needs the right admin.")
    state: Literal["retracted", "active"] = Field(default="active", description="Withdraw it, or take that back.")


class FilterIn(Inward):
    """Every part given must hold."""

    tags: Labels = Field(default_factory=list, description="Every one of these tags.")
    any_tags: Labels | None = Field(default=None, description="At least one of these tags.")
    kinds: Labels | None = None
    subject: Label | None = None
    actor: Label | None = None
    session: Label | None = None
    run: Label | None = None
    pinned: bool | None = None
    since: When | None = None
    until: When | None = None


class SearchIn(Inward):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"query": "how to reach the customer", "limit": 5}]},
    )

    query: str = Field(min_length=1, max_length=4096)
    limit: int = Field(default=10, ge=1, le=200)
    mode: Literal["hybrid", "words", "meaning"] = "hybrid"
    filter: FilterIn = Field(default_factory=FilterIn)
    explain: bool = Field(default=False, description="Say why each hit is where it is.")
    include: Literal["superseded"] | None = Field(
        default=None, description="Entries that consolidation replaced too, each behind its successor."
    )
    zone: str = Field(default="UTC", max_length=64, description="The time zone in which dates of the query are read.")


class ContextIn(Inward):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"purpose": "answer the customer's question", "budget": 1000}]},
    )

    purpose: str = Field(min_length=1, max_length=4096)
    budget: int = Field(default=2000, ge=1, le=1_000_000, description="Tokens, counted with the host's tokenizer.")
    limit: int = Field(default=50, ge=1, le=200, description="How many entries to consider.")
    filter: FilterIn = Field(default_factory=FilterIn)


class ForgetIn(Inward):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"subject": "customer-42", "preview": True}]}
    )

    subject: str = Field(min_length=1, max_length=256)
    ref: str | None = Field(default=None, description="Only in this memory; everywhere when left out.")
    memoryRef: str | None = Field(default=None, description="The same under its OpenWOP name.")  # noqa: N815
    mentions: bool = Field(
        default=False, description="Also entries that mention the words of the subject without being labelled with it."
    )
    preview: bool = Field(default=False, description="Count, and change nothing.")


class SecretIn(Inward):
    id: str = Field(min_length=1, max_length=64, description="Shown in place of the value: `[REDACTED:<id>]`.")
    value: str = Field(min_length=8, max_length=65_536, description="Kept sealed; never shown again.")


def _policy_fields(*, asked: bool) -> dict[str, Any]:
    """The fields of TenantPolicy, so that this API never falls behind it."""
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(TenantPolicy):
        number = "int" in str(field.type)
        kind: Any = int if number else str
        if asked or "None" in str(field.type):
            kind = kind | None
        limits: dict[str, Any] = {"ge": 0, "le": LARGEST} if number else {"max_length": 256}
        fields[field.name] = (kind, Field(default=None, **limits) if asked else Field())
    return fields


if TYPE_CHECKING:

    class PolicyIn(Inward):
        """What to change; the rest stays."""

    class PolicyOut(BaseModel):
        """The whole policy."""

else:
    PolicyIn = create_model("PolicyIn", __base__=Inward, **_policy_fields(asked=True))
    PolicyOut = create_model("PolicyOut", **_policy_fields(asked=False))


class ScanIn(Inward):
    dry_run: bool = Field(default=False, description="Report, and change nothing.")


class ListAsked(Asked):
    limit: int = Field(default=100, ge=1, le=1000)
    cursor: str | None = Field(
        None, max_length=1024, description="From the page before, with the same other parameters."
    )
    tag: list[Label] = Field(default_factory=list, description="Every one of these tags.")
    any_tag: list[Label] = Field(default_factory=list, description="At least one of these tags.")
    kind: list[Label] = Field(default_factory=list)
    subject: Label | None = None
    actor: Label | None = None
    session: Label | None = None
    run: Label | None = None
    since: When | None = Field(default=None, description="Created at or after.")
    until: When | None = Field(default=None, description="Created before.")
    pinned: bool | None = None
    archived: bool = Field(default=False, description="true: archived entries instead of those in recall.")
    as_of: int | None = Field(
        default=None, ge=0, le=LARGEST, description="A log position: the memory as it was readable then."
    )
    order: Literal["newest", "oldest"] = "newest"


class GetAsked(Asked):
    as_of: int | None = Field(default=None, ge=0, le=LARGEST, description="A log position.")
    cold: bool = Field(
        default=False, description="true: also when archived, retracted or deleted, while its text exists."
    )


class DeleteAsked(Asked):
    erase: bool = Field(default=False, description="true: destroy its text now. Cannot be undone.")


class LinksAsked(Asked):
    incoming: bool = Field(default=False, description="true: the arrows to the entry instead of from it.")


class EventsAsked(Asked):
    after: int | None = Field(default=None, ge=0, le=LARGEST, description="A log position; events after it.")
    since: str | None = Field(default=None, max_length=64, description="The same as `after`, or an instant.")
    limit: int = Field(default=1000, ge=1, le=10_000)
    type: list[Label] = Field(default_factory=list, description="Only events of these types.")


class ExportAsked(Asked):
    ref: Label | None = Field(default=None, description="Only this memory.")
    events: bool = Field(default=True, description="With the log.")


class ImportAsked(Asked):
    ref: Label | None = Field(default=None, description="Store everything into this memory.")


class Problem(BaseModel):
    """Why not."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "error": "validation_error",
                    "message": "/limit: Input should be less than or equal to 1000.",
                    "details": {"pointer": "/limit"},
                }
            ]
        },
    )

    error: str = Field(description="A stable snake_case code.")
    message: str
    details: dict[str, Any] = Field(default_factory=dict)


class SourceOut(BaseModel):
    actor: str
    role: str | None
    door: str
    session: str | None
    run: str | None
    node: str | None
    trust: int


class EntryOut(BaseModel):
    ref: str
    id: str
    kind: str
    content: str
    tags: list[str]
    subject: str | None
    attributes: dict[str, Any]
    source: SourceOut
    state: str
    archived: bool
    pinned: bool
    held: bool
    created_at: When
    expires_at: When | None
    version: int
    seq: int = Field(description="The log position at which it was written.")


class ReceiptOut(BaseModel):
    """What the write really did; given only after the commit is durable."""

    id: str
    ref: str
    seq: int
    version: int
    created_at: When
    findings: dict[str, int] = Field(description="What was redacted, counted by kind.")
    indexed: Literal["ok", "words"] = Field(description="`words`: the vector is still to come.")
    replayed: bool = Field(description="true: this answers a retry; nothing was written again.")


class ReceiptsOut(BaseModel):
    receipts: list[ReceiptOut]


class PageOut(BaseModel):
    entries: list[EntryOut]
    cursor: str | None = Field(description="Leads to the next page; null at the end, and only there.")


class ErasedOut(BaseModel):
    id: str
    erased_bytes: int


class LinkOut(BaseModel):
    from_id: str
    to_id: str
    type: str
    note: str | None


class LinksOut(BaseModel):
    links: list[LinkOut]


class PassageOut(BaseModel):
    text: str
    start: int = Field(description="The first character of the passage in the content.")
    end: int
    number: int = Field(description="Which passage of the entry, from 1.")
    of: int = Field(description="How many passages the entry has.")


class HitOut(BaseModel):
    entry: EntryOut
    passage: PassageOut
    score: float
    signals: dict[str, float]
    confidence: float = Field(description="0 to 1: the measured share of right answers with this much evidence.")
    weak: bool = Field(description="More likely noise than an answer.")
    older: str | None = Field(description="The id of a newer hit that says something else about the same matter.")
    superseded_by: str | None = Field(description="The id of the entry that replaced this one.")


class SearchOut(BaseModel):
    hits: list[HitOut]
    mode: str
    degraded: list[str] = Field(description="Why this answer may be worse than usual; empty when nothing is wrong.")
    explanation: dict[str, Any] | None = None


class LeftOutOut(BaseModel):
    id: str
    reason: str


class ContextOut(BaseModel):
    text: str = Field(description="Ready to paste into a prompt, as quoted data.")
    tokens: int
    budget: int
    included: list[str]
    shortened: list[str]
    left_out: list[LeftOutOut]
    degraded: list[str]


class ForgottenOut(BaseModel):
    forgotten: int
    derived: int = Field(description="Dreams made from them, destroyed too.")
    redone: int = Field(description="Dreams made again from what remains.")
    restored: int = Field(description="Entries readable again because their dream could not be made again.")
    archives: int
    bytes: int
    refs: int
    held: int
    preview: bool
    readable: int = Field(description="How many of all these could be read until now.")
    certificate: int | None = Field(description="The log position of the certificate.")
    ways: dict[str, int] = Field(
        description="How many were reached by `subject`, by `tag`, by `mention`, and by `lineage` (made from others)."
    )
    mentioned: int | None = Field(
        description="When no label matches and mentions are not asked for: entries that mention the words."
    )
    outside: list[str] = Field(
        description="Copies the database server keeps for a while, out of reach of every query: see docs/privacy.md."
    )


class RefOut(BaseModel):
    ref: str
    entries: int


class RefsOut(BaseModel):
    refs: list[RefOut]


class EventsOut(BaseModel):
    events: list[dict[str, Any]]
    next: int = Field(description="Pass it as `after` to read on.")


class StatsOut(BaseModel):
    entries: int
    cold: int
    text_bytes: int
    refs: int
    events: int
    epoch: int
    head: str
    with_vector: int


class SecretsOut(BaseModel):
    secrets: list[str] = Field(description="Ids; never a value.")


class SecretOut(BaseModel):
    id: str
    seq: int


class VerdictOut(BaseModel):
    ok: bool
    events: int
    entries: int
    head: str
    broken_at: int | None
    reason: str | None


class ImportedOut(BaseModel):
    entries: int
    skipped: int
    links: int
    findings: dict[str, int]


class ScanOut(BaseModel):
    entries: int
    affected: int
    findings: dict[str, int]
    rules: str
    dry_run: bool
