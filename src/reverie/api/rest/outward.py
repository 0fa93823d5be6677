"""The shapes of answers, for the OpenAPI document. Answers are encoded from the core's values (`mapping.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from reverie.api.rest.wire import Outward, When


class Problem(Outward, forbid_unknown_fields=True):
    """The reason a request was refused."""

    schema_extra: ClassVar[Mapping[str, Any]] = {
        "examples": [
            {
                "error": "validation_error",
                "message": "/limit: Input should be less than or equal to 1000.",
                "details": {"pointer": "/limit"},
            }
        ]
    }

    error: Annotated[str, Meta(description="A stable snake_case code.")]
    message: str
    details: dict[str, Any] = field(default_factory=dict)


class SourceOut(Outward):
    actor: str
    role: str | None
    door: str
    session: str | None
    run: str | None
    node: str | None
    trust: int


class EntryOut(Outward):
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
    seq: Annotated[int, Meta(description="The log position at which it was written.")]


class ReceiptOut(Outward):
    """Result of a write, given only after the commit is durable."""

    id: str
    ref: str
    seq: int
    version: int
    created_at: When
    findings: Annotated[dict[str, int], Meta(description="Redactions, counted by kind.")]
    indexed: Annotated[Literal["ok", "words"], Meta(description="`words`: the vector is still to come.")]
    replayed: Annotated[bool, Meta(description="true: this answers a retry; nothing was written again.")]


class ReceiptsOut(Outward):
    receipts: list[ReceiptOut]


class PageOut(Outward):
    entries: list[EntryOut]
    cursor: Annotated[str | None, Meta(description="Cursor of the next page; null on the last page only.")]


class ErasedOut(Outward):
    id: str
    erased_bytes: int


class LinkOut(Outward):
    from_id: str
    to_id: str
    type: str
    note: str | None


class StateOut(Outward):
    id: str
    state: str
    version: int


class StatesOut(Outward):
    states: Annotated[list[StateOut], Meta(description="States of the entries that exist; other ids are left out.")]


class ChangedOut(Outward):
    changed: int
    left: Annotated[
        dict[str, int], Meta(description="Entries left as they were, by reason: changed since, held, not yours ...")
    ]


class IdsOut(Outward):
    ids: list[str]


class LinksOut(Outward):
    links: list[LinkOut]


class PassageOut(Outward):
    text: str
    start: Annotated[int, Meta(description="The first character of the passage in the content.")]
    end: int
    number: Annotated[int, Meta(description="Number of the passage in the entry, from 1.")]
    of: Annotated[int, Meta(description="Number of passages in the entry.")]


class HitOut(Outward):
    entry: EntryOut
    passage: PassageOut
    score: float
    signals: dict[str, float]
    confidence: Annotated[
        float, Meta(description="0 to 1: the measured share of right answers with this much evidence.")
    ]
    weak: Annotated[bool, Meta(description="More likely noise than an answer.")]
    older: Annotated[
        str | None, Meta(description="The id of a newer hit that says something else about the same matter.")
    ]
    superseded_by: Annotated[str | None, Meta(description="The id of the entry that replaced this one.")]
    cold: Annotated[bool, Meta(description="Whether it rests in cold storage, as a source of a dream.")]
    dream: Annotated[str | None, Meta(description="For a cold hit: the id of the readable dream made from it.")]
    sources: Annotated[list[str], Meta(description="For a line of a dream: the ids of the entries it was made from.")]


class SearchOut(Outward):
    hits: list[HitOut]
    mode: str
    degraded: Annotated[
        list[str], Meta(description="Reasons why this answer may be worse than usual; empty when nothing is wrong.")
    ]
    explanation: dict[str, Any] | None = None


class LeftOutOut(Outward):
    id: str
    reason: str


class ContextOut(Outward):
    text: Annotated[str, Meta(description="Ready to paste into a prompt, as quoted data.")]
    tokens: int
    budget: int
    included: list[str]
    shortened: list[str]
    left_out: list[LeftOutOut]
    degraded: list[str]


class ForgottenOut(Outward):
    forgotten: int
    derived: Annotated[int, Meta(description="Dreams made from them, destroyed too.")]
    redone: Annotated[int, Meta(description="Dreams made again from what remains.")]
    restored: Annotated[int, Meta(description="Entries readable again because their dream could not be made again.")]
    archives: int
    bytes: int
    refs: int
    held: int
    preview: bool
    readable: Annotated[int, Meta(description="Number of these that were readable until now.")]
    certificate: Annotated[int | None, Meta(description="The log position of the certificate.")]
    ways: Annotated[
        dict[str, int],
        Meta(description="Number reached by `subject`, `tag`, `mention`, and by `lineage` (made from others)."),
    ]
    mentioned: Annotated[
        int | None,
        Meta(description="When no label matches and mentions are not requested: entries that mention the words."),
    ]
    texts: Annotated[
        int,
        Meta(
            description="Files, tasks and other texts outside of entries that mention the words: forgotten with "
            "mentions, else counted with `mentioned`."
        ),
    ]
    outside: Annotated[
        list[str],
        Meta(
            description="Copies the database server keeps for a while, out of reach of any query: see docs/privacy.md."
        ),
    ]


class MeOut(Outward):
    tenant: str
    id: str
    rights: list[str]
    authority: int
    scopes: list[str]
    version: Annotated[str, Meta(description="Version of the host.")]


class SweptOut(Outward):
    destroyed: Annotated[int, Meta(description="Number of entries.")]


class RefOut(Outward):
    ref: str
    entries: int


class RefsOut(Outward):
    refs: list[RefOut]


class StatsOut(Outward):
    entries: int
    cold: int
    text_bytes: int
    refs: int
    events: int
    epoch: int
    head: str
    with_vector: int


class SecretsOut(Outward):
    secrets: Annotated[list[str], Meta(description="Ids; never a value.")]


class SecretOut(Outward):
    id: str
    seq: int


class ImportedOut(Outward):
    entries: int
    skipped: int
    links: int
    findings: dict[str, int]


class ScanOut(Outward):
    entries: int
    affected: int
    findings: dict[str, int]
    rules: str
    dry_run: bool
