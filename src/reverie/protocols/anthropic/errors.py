"""Refusals of the protocol that the core has no class for."""

from __future__ import annotations

from reverie.core.errors import Conflict, Invalid


class PathConflict(Conflict):
    """A memory exists at this path, above it or below it."""

    code = "memory_path_conflict"

    def __init__(self, memory_id: str, path: str) -> None:
        super().__init__(details={"conflicting_memory_id": memory_id, "conflicting_path": path})


class PreconditionFailed(Conflict):
    """The stored content is not the one you expected. Read the memory again, then repeat the change."""

    code = "memory_precondition_failed"


class ContentTooLarge(Invalid):
    """The content is larger than a memory may be."""

    code = "content_too_large"


class StoreArchived(Invalid):
    """This memory store is archived: its memories cannot be created or changed."""

    code = "memory_store_archived"


class StoreInUse(Invalid):
    """A dream writes to this memory store. Cancel it, or wait until it has ended."""

    code = "memory_store_in_use"


class VersionIsHead(Invalid):
    """This is the current version of a memory. Write a new version or delete the memory first."""

    code = "version_is_head"


class MemoryLimit(Invalid):
    """This memory store holds as many memories as it may."""

    code = "memory_limit_exceeded"


class StoreLimit(Invalid):
    """The tenant has as many memory stores as it may."""

    code = "memory_store_limit_exceeded"


class SecretInContent(Invalid):
    """The content holds a secret, and the tenant's policy refuses such writes."""

    code = "secret_in_content"


class ReadOnlyMemory(Invalid):
    """This memory is an entry of another interface and is read-only here."""

    code = "memory_read_only"
