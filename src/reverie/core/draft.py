"""A draft from the plain values a person or a program wrote: the library's arguments, a line of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reverie.core.clock import from_iso
from reverie.core.entry import Draft, EntryState, Source
from reverie.core.errors import Invalid

When = datetime | str | int

_FIELDS = frozenset(
    ("content", "kind", "tags", "subject", "attributes", "id", "source", "created_at", "expires_at", "pinned")
)


def to_draft(fields: Mapping[str, Any]) -> Draft:
    """A draft from plain values; an unknown field or a wrong type is refused."""
    unknown = set(fields) - _FIELDS
    if unknown:
        raise Invalid(f"Unknown field: {sorted(unknown)[0][:64]}. Known: {', '.join(sorted(_FIELDS))}.")
    content = fields.get("content")
    if not isinstance(content, str):
        raise Invalid("content is text.", pointer="/content")
    tags = fields.get("tags") or ()
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise Invalid("tags is a list of texts.", pointer="/tags")
    for name in ("kind", "subject", "id"):
        if not isinstance(fields.get(name) or "", str):
            raise Invalid(f"{name} is text.", pointer=f"/{name}")
    attributes = fields.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        raise Invalid("attributes is an object.", pointer="/attributes")
    source = fields.get("source")
    if not isinstance(source, Source):
        try:
            source = Source(**(source or {}))
        except TypeError:
            raise Invalid(f"source has {', '.join(Source.__struct_fields__)}.", pointer="/source") from None
    return Draft(
        content=content,
        kind=fields.get("kind") or "note",
        tags=tuple(tags),
        subject=fields.get("subject"),
        attributes=dict(attributes),
        id=fields.get("id"),
        source=source,
        state=EntryState.ACTIVE,
        created_at=to_ms(fields.get("created_at"), "/created_at"),
        expires_at=to_ms(fields.get("expires_at"), "/expires_at"),
        pinned=bool(fields.get("pinned", False)),
    )


def to_ms(when: When | None, pointer: str) -> int | None:
    """Milliseconds of a datetime with a zone, an RFC 3339 text or milliseconds."""
    if when is None or (isinstance(when, int) and not isinstance(when, bool)):
        return when
    if isinstance(when, datetime):
        return from_iso(when.isoformat(), pointer=pointer)
    return from_iso(str(when), pointer=pointer)
