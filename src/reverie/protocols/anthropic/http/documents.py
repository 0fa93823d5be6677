"""Objects of the protocol as JSON. Every field is always there; what Reverie adds is in the object `reverie`."""

from __future__ import annotations

from typing import Any

from reverie.core.clock import to_iso
from reverie.protocols.anthropic.listing import Memory
from reverie.protocols.anthropic.names import MEMORY, STORE, VERSION, actor_document
from reverie.protocols.anthropic.stores import StoreRecord
from reverie.protocols.anthropic.versions import Version


def time(ms: int | None) -> str | None:
    """An instant, or null."""
    return None if ms is None else to_iso(ms)


def store_document(record: StoreRecord) -> dict[str, Any]:
    """A memory store."""
    return {
        "id": STORE + record.id,
        "type": "memory_store",
        "name": record.name,
        "description": record.description,
        "metadata": dict(record.metadata),
        "created_at": time(record.created_at),
        "updated_at": time(record.updated_at),
        "archived_at": time(record.archived_at),
    }


def memory_document(memory: Memory | str, *, full: bool) -> dict[str, Any]:
    """A memory, or a folder by its path."""
    if isinstance(memory, str):
        return {"type": "memory_prefix", "path": memory}
    file = memory.file
    document: dict[str, Any] = {
        "id": MEMORY + file.id,
        "type": "memory",
        "memory_store_id": STORE + memory.store.id,
        "memory_version_id": VERSION + file.version,
        "path": file.path,
        "content": (memory.content or "") if full else None,
        "content_sha256": file.sha256,
        "content_size_bytes": file.size,
        "created_at": time(file.created_at),
        "updated_at": time(file.updated_at),
    }
    added: dict[str, Any] = {"redacted": dict(memory.findings)} if memory.findings else {}
    if memory.read_only:
        added["read_only"] = True
    return document | ({"reverie": added} if added else {})


def version_document(version: Version, *, full: bool) -> dict[str, Any]:
    """A version of a memory."""
    row = version.row
    document = {
        "id": VERSION + row.id,
        "type": "memory_version",
        "memory_id": MEMORY + row.file,
        "memory_store_id": STORE + version.store.id,
        "operation": row.operation,
        "created_at": time(row.created_at),
        "created_by": actor_document(row.actor, row.session),
        "path": row.path,
        "content": version.content if full and row.redacted_at is None else None,
        "content_sha256": row.sha256,
        "content_size_bytes": row.size,
        "redacted_at": time(row.redacted_at),
        "redacted_by": None if row.redacted_by is None else actor_document(row.redacted_by, None),
    }
    return document | ({"reverie": {"redacted": dict(row.findings)}} if row.findings else {})
