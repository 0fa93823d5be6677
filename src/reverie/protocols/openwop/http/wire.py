"""Shapes and instants as OpenWOP writes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from reverie.core.clock import to_iso
from reverie.core.entry import Entry
from reverie.http.paths import decoded

Segment = Annotated[str, BeforeValidator(decoded)]
"""One segment of the raw path, decoded once: `%2F` inside it is no slash."""


class Closed(BaseModel):
    """A body whose fields are all named: an unknown one is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Open(BaseModel):
    """A body that may carry more than we read."""

    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=to_camel)


def memory_entry(entry: Entry) -> dict[str, Any]:
    """A MemoryEntry: closed to five fields."""
    shown: dict[str, Any] = {
        "id": entry.id,
        "content": entry.content,
        "tags": list(entry.tags),
        "createdAt": to_iso(entry.created_at),
    }
    if entry.expires_at is not None:
        shown["expiresAt"] = to_iso(entry.expires_at)
    return shown
