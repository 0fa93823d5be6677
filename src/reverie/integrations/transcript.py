"""JSON documents of other frameworks (messages, transcript lines) as entries: readable text, and the document itself.

They are pinned: a dream never takes a line out of a conversation that a program must read back whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reverie.core.canonical import canonical
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Filter
from reverie.redact import load_redactor

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.library import Ref

WHOLE = 40_000
"""Bytes of a document that is kept as it is. A larger one is kept in parts, one entry each."""
_MOST_TEXT = 20_000


def drafts(document: Any, text: str, **fields: Any) -> list[dict[str, Any]]:
    """The drafts of one document. `fields` belong to the first; the id of a further part is that of the first with its
    number.
    """
    shown = text.encode(errors="replace").decode().replace("\0", " ").strip()[:_MOST_TEXT] or "(no text)"
    first = {"content": shown, "pinned": True, **fields}
    own = dict(fields.get("attributes") or {})
    try:
        whole = len(canonical(document)) <= WHOLE
    except Invalid:  # NaN, an integer beyond 2^53, broken text: kept as text
        whole = False
    if whole:
        return [{**first, "attributes": {**own, "document": document}}]
    # Redacted before it is cut: the store, which sees the parts, would miss a secret that spans two.
    parts = list(_parts(json.dumps(load_redactor().value(document)[0])))
    made = [{**first, "attributes": {**own, "part": parts[0], "parts": len(parts)}}]
    for number, part in enumerate(parts[1:], start=1):
        draft = {"content": f"(part {number + 1} of {len(parts)})", "pinned": True, "kind": fields.get("kind", "note")}
        draft |= {"attributes": {"part": part, "number": number}, "tags": ["~part"]}
        if fields.get("id"):
            draft["id"] = part_id(fields["id"], number)
        made.append(draft)
    return made


def _parts(whole: str) -> Iterator[str]:
    """Cut a text into pieces, behind a quote or a space where there is one, so that no word spans two."""
    size = WHOLE // 4
    while len(whole) > size:
        end = max(whole.rfind('"', size // 2, size), whole.rfind(" ", size // 2, size)) + 1 or size
        yield whole[:end]
        whole = whole[end:]
    yield whole


def part_id(entry_id: str, number: int) -> str:
    """The id of a further part of a document."""
    return f"{entry_id}/{number}"


def documents(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Any]]:
    """The documents of entries in the order they were written, each with its first entry."""
    head: Entry | None = None
    parts: list[str] = []
    for entry in entries:
        attributes: Mapping[str, Any] = entry.attributes
        if "document" in attributes:
            yield entry, attributes["document"]
        elif "parts" in attributes:
            head, parts = entry, [attributes["part"]]
        elif "number" in attributes and head is not None:
            parts.append(attributes["part"])
        if head is not None and len(parts) == head.attributes["parts"]:
            yield head, joined(parts)
            head = None


def joined(parts: Iterable[str]) -> Any:
    """A document from its parts."""
    try:
        return json.loads("".join(parts))
    except ValueError:
        raise ReverieError(
            "A stored document cannot be read: a secret was taken out of it.", code="unreadable"
        ) from None


def oldest_first(ref: Ref, where: Filter = Filter()) -> list[Entry]:  # noqa: B008  (immutable)
    """Every entry that matches, in the order they were written."""
    return list(ref.entries(where))[::-1]
