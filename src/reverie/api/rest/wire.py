"""The requests of the API, read strictly: no unknown field, no text for a number. Answers are in `outward.py`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from reverie.core.errors import TooLarge
from reverie.core.policy import TenantPolicy
from reverie.memory.entries import MAX_BATCH

LARGEST = 2**53 - 1

When = Annotated[
    str,
    Meta(
        max_length=64,
        description="An RFC 3339 instant with a zone.",
        extra_json_schema={"format": "date-time"},
        examples=["2026-11-15T08:05:09Z"],
    ),
]

Label = Annotated[str, Meta(max_length=256)]

Since = Annotated[
    str,
    Meta(
        max_length=64,
        description="Created at or after: an RFC 3339 instant, a day, an age such as 3d, or words such as last week.",
        examples=["2026-11-15T08:05:09Z", "2026-11-01", "3d", "last week"],
    ),
]
Until = Annotated[
    str,
    Meta(
        max_length=64,
        description="Created before, written like since; a day or a longer period is included.",
        examples=["2026-11-15T08:05:09Z", "yesterday"],
    ),
]
Zone = Annotated[
    str,
    Meta(
        max_length=64,
        description="The time zone in which dates and words such as yesterday are read; left out: the policy's.",
        examples=["Europe/Lisbon"],
    ),
]


class Inward(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the shapes that a caller sends."""


class QueryParameters(Inward):
    """Query parameters; an unknown one is refused, since a misspelt filter would show everything."""


class Outward(Struct, kw_only=True):
    """Base of the shapes of answers."""


class SourceIn(Inward):
    actor: Annotated[Label, Meta(description="Author, when it is not the caller.")] = ""
    role: Label | None = None
    session: Label | None = None
    run: Label | None = None
    node: Label | None = None
    trust: Annotated[int, Meta(ge=0, le=10)] = 10


class EntryIn(Inward):
    content: Annotated[
        str, Meta(min_length=1, description="Text to remember. Secrets in it are replaced before it is stored.")
    ]
    kind: Annotated[str, Meta(min_length=1, max_length=64)] = "note"
    tags: list[Label] = []
    subject: Annotated[Label | None, Meta(description="Person or thing it is about; forget finds entries by it.")] = (
        None
    )
    attributes: Annotated[dict[str, Any], Meta(description="Plain JSON that belongs to it.")] = {}
    id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1500)] | None, Meta(description="Chosen by the caller.")
    ] = None
    source: SourceIn = msgspec.field(default_factory=SourceIn)
    created_at: When | None = None
    expires_at: When | None = None
    pinned: bool = False
    replaces: Annotated[
        Label | None,
        Meta(description="One of its tags: readable entries with this tag are deleted in the same transaction."),
    ] = None


class EntriesIn(Inward):
    entries: Annotated[
        list[EntryIn], Meta(min_length=1, description="Stored in one transaction: all of them, or none.")
    ]

    @staticmethod
    def prepared(document: Any) -> Any:
        """Refuse too many entries before any of them is converted."""
        entries = document.get("entries") if isinstance(document, dict) else None
        if isinstance(entries, list) and len(entries) > MAX_BATCH:
            raise TooLarge(f"At most {MAX_BATCH} entries in one request.", pointer="/entries")
        return document


class ChangeIn(Inward):
    """Exactly one change: each is one event of its own."""

    schema_extra: ClassVar[Mapping[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    pinned: Annotated[bool, Meta(description="true: keep it out of dreams.")] | UnsetType = UNSET
    archived: Annotated[bool, Meta(description="true: out of recall, and kept. false: readable again.")] | UnsetType = (
        UNSET
    )
    held: (
        Annotated[bool, Meta(description="true: may not be erased until released. Needs the right admin.")] | UnsetType
    ) = UNSET
    state: (
        Annotated[Literal["retracted", "active"], Meta(description="retracted: withdraw it. active: restore it.")]
        | UnsetType
    ) = UNSET
    expires_at: Annotated[When, Meta(description="The new expiry, in the future.")] | UnsetType = UNSET


class StatesIn(Inward):
    ids: Annotated[list[Label], Meta(min_length=1, max_length=1000)]


class SeenIn(Inward):
    id: Label
    version: Annotated[int, Meta(ge=0, le=LARGEST, description="The version the caller saw.")]


class ChangesIn(Inward):
    """One change of many entries, in one transaction."""

    change: Literal["pin", "archive", "retract", "restore"]
    entries: Annotated[list[SeenIn], Meta(min_length=1, max_length=1000)]


class FilterIn(Inward):
    """Conditions, all of which must hold."""

    tags: Annotated[list[Label], Meta(description="Every one of these tags.")] = []
    any_tags: Annotated[list[Label] | None, Meta(description="At least one of these tags.")] = None
    kinds: list[Label] | None = None
    subject: Label | None = None
    actor: Label | None = None
    session: Label | None = None
    run: Label | None = None
    pinned: bool | None = None
    since: Since | None = None
    until: Until | None = None


class SearchIn(Inward):
    query: Annotated[str, Meta(min_length=1, max_length=4096)]
    limit: Annotated[int, Meta(ge=1, le=200)] = 10
    mode: Literal["hybrid", "words", "meaning"] = "hybrid"
    filter: FilterIn = msgspec.field(default_factory=FilterIn)
    explain: Annotated[bool, Meta(description="Explain the rank of each hit.")] = False
    include: Annotated[
        Literal["superseded"] | None,
        Meta(description="Also entries that consolidation replaced, each after its successor."),
    ] = None
    zone: Zone | None = None
    deep: Annotated[
        Literal["auto", "never", "always"],
        Meta(description="Whether to search the sources of dreams; auto: when nothing hot answers well."),
    ] = "auto"


class ContextIn(Inward):
    purpose: Annotated[str, Meta(min_length=1, max_length=4096)]
    budget: Annotated[int, Meta(ge=1, le=1_000_000, description="Tokens, counted with the host's tokenizer.")] = 2000
    limit: Annotated[int, Meta(ge=1, le=200, description="Number of entries to consider.")] = 50
    filter: FilterIn = msgspec.field(default_factory=FilterIn)
    zone: Zone | None = None


class ForgetIn(Inward):
    subject: Annotated[str, Meta(min_length=1, max_length=256)]
    ref: Annotated[str | None, Meta(description="Only in this memory; everywhere when left out.")] = None
    memoryRef: Annotated[str | None, Meta(description="OpenWOP's name for `ref`.")] = None  # noqa: N815
    mentions: Annotated[
        bool, Meta(description="Also entries that mention the words of the subject without being labelled with it.")
    ] = False
    preview: Annotated[bool, Meta(description="Count, and change nothing.")] = False


class SecretIn(Inward):
    id: Annotated[str, Meta(min_length=1, max_length=64, description="Shown in place of the value: `[REDACTED:<id>]`.")]
    value: Annotated[str, Meta(min_length=8, max_length=65_536, description="Stored encrypted; never shown again.")]


def _policy_fields(*, asked: bool) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """The fields of TenantPolicy, so that this API never falls behind it."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in dataclasses.fields(TenantPolicy):
        number = "int" in str(field.type)
        kind: Any = int if number else str
        if asked:
            limits = Meta(ge=0, le=LARGEST) if number else Meta(max_length=256)
            fields.append((field.name, Annotated[kind, limits] | None | UnsetType, UNSET))
        else:
            fields.append((field.name, kind | None if "None" in str(field.type) else kind))
    return fields


if TYPE_CHECKING:

    class PolicyIn(Inward):
        """Fields to change; the others keep their values."""

    class PolicyOut(Outward):
        """The whole policy."""

else:
    PolicyIn = msgspec.defstruct("PolicyIn", _policy_fields(asked=True), bases=(Inward,), kw_only=True)
    PolicyOut = msgspec.defstruct("PolicyOut", _policy_fields(asked=False), bases=(Outward,), kw_only=True)


class ScanIn(Inward):
    dry_run: Annotated[bool, Meta(description="Report, and change nothing.")] = False


class ListQuery(QueryParameters):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[
        Annotated[str, Meta(max_length=1024)] | None,
        Meta(description="From the page before; all other parameters must be the same."),
    ] = None
    tag: Annotated[list[Label], Meta(description="Every one of these tags.")] = []
    any_tag: Annotated[list[Label], Meta(description="At least one of these tags.")] = []
    kind: list[Label] = []
    subject: Label | None = None
    actor: Label | None = None
    session: Label | None = None
    run: Label | None = None
    since: Since | None = None
    until: Until | None = None
    zone: Zone | None = None
    pinned: bool | None = None
    archived: Annotated[bool, Meta(description="true: archived entries instead of those in recall.")] = False
    as_of: Annotated[
        Annotated[int, Meta(ge=0, le=LARGEST)] | None,
        Meta(description="A log position: the memory as it was readable then."),
    ] = None
    order: Literal["newest", "oldest"] = "newest"


class GetQuery(QueryParameters):
    as_of: Annotated[Annotated[int, Meta(ge=0, le=LARGEST)] | None, Meta(description="A log position.")] = None
    cold: Annotated[
        bool, Meta(description="true: also when archived, retracted or deleted, while its text exists.")
    ] = False


class DeleteQuery(QueryParameters):
    erase: Annotated[bool, Meta(description="true: destroy its text now. Cannot be undone.")] = False


class RefsQuery(QueryParameters):
    prefix: Annotated[str, Meta(max_length=256, description="Only memories whose names begin with it.")] = ""


class IdsQuery(QueryParameters):
    prefix: Annotated[str, Meta(min_length=4, max_length=256, description="Prefix of the ids.")]
    limit: Annotated[int, Meta(ge=1, le=1000)] = 10


class LinksQuery(QueryParameters):
    incoming: Annotated[bool, Meta(description="true: the links to the entry instead of from it.")] = False


class EventsQuery(QueryParameters):
    after: Annotated[
        Annotated[int, Meta(ge=0, le=LARGEST)] | None, Meta(description="Only events after this log position.")
    ] = None
    since: Annotated[
        Annotated[str, Meta(max_length=64)] | None, Meta(description="The same as `after`, or an instant.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    type: Annotated[list[Label], Meta(description="Only events of these types.")] = []


class ExportQuery(QueryParameters):
    ref: Annotated[Label | None, Meta(description="Only this memory.")] = None
    events: Annotated[bool, Meta(description="Include the log.")] = True


class ImportQuery(QueryParameters):
    ref: Annotated[Label | None, Meta(description="Store everything into this memory.")] = None
