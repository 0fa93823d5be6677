"""The answers of this protocol in the OpenAPI document. What Reverie adds is in the object `reverie`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Time = Annotated[str, Meta(description="An instant, RFC 3339 in UTC.")]
Redacted = Annotated[dict[str, int], Meta(description="Redactions, counted by kind.")]


class Shape(Struct, kw_only=True):
    schema_prefix: ClassVar[str] = "Anthropic"


class Page(Shape):
    next_page: Annotated[str | None, Meta(description="Pass it as `page` to read on.")]


class Store(Shape):
    id: str
    type: Literal["memory_store"]
    name: str
    description: str
    metadata: dict[str, str]
    created_at: Time
    updated_at: Time
    archived_at: Time | None


class Stores(Page):
    data: list[Store]


class StoreDeleted(Shape):
    id: str
    type: Literal["memory_store_deleted"]


class MemoryAdded(Shape):
    redacted: Redacted | UnsetType = UNSET
    read_only: bool | UnsetType = UNSET


class Memory(Shape, tag_field="type", tag="memory"):
    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: Annotated[str | None, Meta(description="null in the view `basic`.")]
    content_sha256: str
    content_size_bytes: int
    created_at: Time
    updated_at: Time
    reverie: MemoryAdded | UnsetType = UNSET


class Prefix(Shape, tag_field="type", tag="memory_prefix"):
    """A folder."""

    path: str


class Memories(Page):
    data: Annotated[list[Memory | Prefix], Meta(description="With `depth` folders are among them.")]


class MemoryDeleted(Shape):
    id: str
    type: Literal["memory_deleted"]


class Writer(Shape):
    type: Literal["api_actor", "session_actor", "service_account_actor", "user_actor"]
    api_key_id: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    service_account_id: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET


class VersionAdded(Shape):
    redacted: Redacted


class Version(Shape):
    id: str
    type: Literal["memory_version"]
    memory_id: str
    memory_store_id: str
    operation: Literal["created", "modified", "deleted"]
    created_at: Time
    created_by: Writer
    path: str | None
    content: str | None
    content_sha256: str | None
    content_size_bytes: int | None
    redacted_at: Time | None
    redacted_by: Writer | None
    reverie: VersionAdded | UnsetType = UNSET


class Versions(Page):
    data: list[Version]


class Hit(Shape):
    score: float
    memory: Memory


class Hits(Shape):
    data: list[Hit]


class ToolAnswer(Shape):
    content: str
    is_error: bool


class Origin(Shape):
    id: str
    kind: str
    state: str
    created_at: Annotated[int, Meta(description="Milliseconds since 1970.")]
    actor: str
    trust: int
    content: str | None
    sources: list[Origin]


class Why(Origin):
    made_from: Annotated[list[str], Meta(description="Transcripts and other texts that are not memories.")]


class Derived(Shape):
    data: Annotated[list[str], Meta(description="Ids of what was made from this memory.")]


class DreamInput(Shape):
    type: Literal["memory_store", "sessions"]
    memory_store_id: str | UnsetType = UNSET
    session_ids: list[str] | UnsetType = UNSET


class DreamOutput(Shape):
    type: Literal["memory_store"]
    memory_store_id: str


class ModelUsed(Shape):
    id: str
    speed: str


class Behavior(Shape):
    type: Literal["create_new", "update_existing"]
    memory_store_id: str | UnsetType = UNSET


class Usage(Shape):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int


class DreamFault(Shape):
    type: str
    message: str


class TokenCounts(Shape):
    input: int
    output: int
    before: int


class FileCounts(Shape):
    kept: int
    modified: int
    deleted: int
    created: int


class TranscriptDigest(Shape):
    id: str
    sha256: str


class Report(Shape):
    distiller: str
    fell_back: str | None
    instructions_applied: bool
    tokens: TokenCounts
    budget: int
    gates: dict[str, Any]
    statements: int
    duplicates: int
    outdated: int
    files: FileCounts
    left_for_later: int
    archive_sha256: str
    unchanged: bool | UnsetType = UNSET


class DreamAdded(Shape):
    """Reverie's details of a dream; most are known only when it has ended."""

    distiller: str | UnsetType = UNSET
    fell_back: str | UnsetType | None = UNSET
    instructions_applied: bool | UnsetType = UNSET
    tokens: TokenCounts | UnsetType = UNSET
    budget: int | UnsetType = UNSET
    gates: dict[str, Any] | UnsetType = UNSET
    statements: int | UnsetType = UNSET
    duplicates: int | UnsetType = UNSET
    outdated: int | UnsetType = UNSET
    files: FileCounts | UnsetType = UNSET
    left_for_later: int | UnsetType = UNSET
    archive_sha256: str | UnsetType = UNSET
    unchanged: bool | UnsetType = UNSET
    estimate: Annotated[Report, Meta(description="Of a dream that was only planned.")] | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    minimum_required: int | UnsetType = UNSET
    run: str | UnsetType = UNSET
    undo_until: Time | UnsetType | None = UNSET
    state: str | UnsetType = UNSET
    transcripts: list[TranscriptDigest] | UnsetType = UNSET


class Dream(Shape):
    id: str
    type: Literal["dream"]
    status: Literal["pending", "running", "completed", "failed", "canceled"]
    inputs: list[DreamInput]
    outputs: list[DreamOutput]
    model: ModelUsed
    instructions: str | None
    output_behavior: Behavior
    session_id: str | None
    created_at: Time
    ended_at: Time | None
    archived_at: Time | None
    usage: Usage
    error: DreamFault | None
    reverie: DreamAdded | UnsetType = UNSET


class Dreams(Page):
    data: list[Dream]


class FileDiff(Shape):
    path: str
    operation: str
    version_before: str | None
    version_after: str | None
    before: str | None
    after: str | None
    removed: list[str]
    added: list[str]
    made_from: list[str]


class Diff(Shape):
    id: str
    memory_store_id: str
    data: list[FileDiff]


class Fault(Shape):
    type: str
    message: str
    details: Annotated[dict[str, Any], Meta(description="`error_code` and what belongs to it.")] | UnsetType = UNSET
    conflicting_memory_id: str | UnsetType = UNSET
    conflicting_path: str | UnsetType = UNSET


class Refused(Shape):
    type: Literal["error"]
    error: Fault
    request_id: str | None


ANSWERS: Mapping[str, type[Struct]] = {
    "create_store": Store,
    "list_stores": Stores,
    "get_store": Store,
    "update_store": Store,
    "delete_store": StoreDeleted,
    "archive_store": Store,
    "create_memory": Memory,
    "list_memories": Memories,
    "get_memory": Memory,
    "update_memory": Memory,
    "delete_memory": MemoryDeleted,
    "list_versions": Versions,
    "get_version": Version,
    "redact_version": Version,
    "why": Why,
    "derived": Derived,
    "search": Hits,
    "tool": ToolAnswer,
    "create_dream": Dream,
    "list_dreams": Dreams,
    "get_dream": Dream,
    "cancel_dream": Dream,
    "archive_dream": Dream,
    "diff_dream": Diff,
    "undo_dream": Dream,
}
"""By the name of the handler."""
