"""Drafts from plain values: the library's arguments, or a line of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from reverie.core.clock import LATEST, from_iso
from reverie.core.entry import Draft, EntryState, Source
from reverie.core.errors import Invalid

When = datetime | str | int

_FIELDS = frozenset(
    (
        "content",
        "kind",
        "tags",
        "subject",
        "attributes",
        "id",
        "source",
        "created_at",
        "expires_at",
        "pinned",
        "replaces",
    )
)
_NOBODY = Source()


def to_draft(fields: Mapping[str, Any]) -> Draft:
    """A draft from plain values. Raises Invalid for an unknown field or a wrong type."""
    if not _FIELDS.issuperset(fields):
        unknown = min(map(str, set(fields) - _FIELDS))
        raise Invalid(f"Unknown field: {unknown[:64]}. Known: {', '.join(sorted(_FIELDS))}.")
    given = fields.get
    content, kind, subject, entry_id = given("content"), given("kind"), given("subject"), given("id")
    replaces = given("replaces")
    if not isinstance(content, str):
        raise Invalid("content is text.", pointer="/content")
    for name, value in (("kind", kind), ("subject", subject), ("id", entry_id), ("replaces", replaces)):
        if value is not None and not isinstance(value, str):
            raise Invalid(f"{name} is text.", pointer=f"/{name}")
    tags = _texts(given("tags") or ())
    attributes = given("attributes") or {}
    if not isinstance(attributes, Mapping):
        raise Invalid("attributes is an object.", pointer="/attributes")
    pinned = given("pinned")
    if not isinstance(pinned, bool | None):
        raise Invalid("pinned is true or false.", pointer="/pinned")
    return Draft(
        content=content,
        kind=kind or "note",
        tags=tags,
        subject=subject,
        attributes=dict(attributes),
        id=entry_id,
        source=_source(given("source") or _NOBODY),
        state=EntryState.ACTIVE,
        created_at=to_ms(given("created_at"), "/created_at"),
        expires_at=to_ms(given("expires_at"), "/expires_at"),
        pinned=bool(pinned),
        replaces=replaces,
    )


def _source(given: Any) -> Source:
    if isinstance(given, Source):
        return given
    if not isinstance(given, Mapping) or not set(Source.__struct_fields__).issuperset(given):
        raise Invalid(f"source has {', '.join(Source.__struct_fields__)}.", pointer="/source")
    try:
        return msgspec.convert(dict(given), Source)
    except msgspec.ValidationError:
        raise Invalid("In source, trust is a whole number and everything else is text.", pointer="/source") from None


def _texts(tags: Any) -> tuple[str, ...]:
    if not isinstance(tags, str) and isinstance(tags, Iterable):
        texts = tuple(tags)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise Invalid("A tag must not be empty: give it a word, or leave it out.", pointer="/tags")
        if not texts or all(isinstance(text, str) for text in texts):
            return texts
    raise Invalid("tags is a list of texts.", pointer="/tags")


def to_ms(when: When | None, pointer: str) -> int | None:
    """Milliseconds of a datetime with a zone, an RFC 3339 text or milliseconds. Raises Invalid."""
    if when is None:
        return None
    if isinstance(when, int) and not isinstance(when, bool):
        if not 0 <= when <= LATEST:
            raise Invalid("The time is out of range.", pointer=pointer)
        return when
    if isinstance(when, datetime):
        return from_iso(when.isoformat(), pointer=pointer)
    return from_iso(str(when), pointer=pointer)
