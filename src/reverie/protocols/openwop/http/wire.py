"""Shapes and instants as OpenWOP writes them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from reverie.core.clock import to_iso
from reverie.core.entry import Entry


class Closed(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A body whose fields are all named: an unknown one is refused."""


class Open(Struct, kw_only=True, rename="camel"):
    """A body that may carry more than we read."""


def memory_entry(entry: Entry) -> dict[str, Any]:
    """A MemoryEntry: closed to five fields."""
    document: dict[str, Any] = {
        "id": entry.id,
        "content": entry.content,
        "tags": list(entry.tags),
        "createdAt": to_iso(entry.created_at),
    }
    if entry.expires_at is not None:
        document["expiresAt"] = to_iso(entry.expires_at)
    return document
