"""Conversion between wire shapes and values of the core."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from reverie.api.rest.wire import ChangeIn, EntriesIn, EntryIn, FilterIn, ListQuery
from reverie.core.clock import from_iso, to_iso
from reverie.core.entry import Draft, Entry, Receipt, Source
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.query import Filter
from reverie.http.sse import message

_ETAG = re.compile(r'"(\d{1,15})"')


def to_drafts(body: EntryIn | EntriesIn) -> list[Draft]:
    """The drafts in a body."""
    if isinstance(body, EntryIn):
        return [_draft(body, "")]
    return [_draft(entry, f"/entries/{number}") for number, entry in enumerate(body.entries)]


def _draft(entry: EntryIn, pointer: str) -> Draft:
    source = entry.source
    return Draft(
        content=entry.content,
        kind=entry.kind,
        tags=tuple(entry.tags),
        subject=entry.subject,
        attributes=entry.attributes,
        id=entry.id,
        source=Source(
            actor=source.actor,
            role=source.role,
            session=source.session,
            run=source.run,
            node=source.node,
            trust=source.trust,
        ),
        created_at=None if entry.created_at is None else from_iso(entry.created_at, pointer=f"{pointer}/created_at"),
        expires_at=None if entry.expires_at is None else from_iso(entry.expires_at, pointer=f"{pointer}/expires_at"),
        pinned=entry.pinned,
        replaces=entry.replaces,
    )


def to_filter(wanted: FilterIn) -> Filter:
    """The filter of a search, without `since` and `until`."""
    return Filter(
        tags=tuple(wanted.tags),
        any_tags=None if wanted.any_tags is None else tuple(wanted.any_tags),
        kinds=None if wanted.kinds is None else tuple(wanted.kinds),
        subject=wanted.subject,
        actor=wanted.actor,
        session=wanted.session,
        run=wanted.run,
        pinned=wanted.pinned,
    )


def to_list_filter(asked: ListQuery) -> Filter:
    """The filter of a list, without `since` and `until`. Archived entries are among those that are not readable."""
    return Filter(
        tags=tuple(asked.tag),
        any_tags=tuple(asked.any_tag) or None,
        kinds=tuple(asked.kind) or None,
        subject=asked.subject,
        actor=asked.actor,
        session=asked.session,
        run=asked.run,
        pinned=asked.pinned,
        archived=asked.archived,
        gone=asked.archived,
    )


def question(ref: str, asked: ListQuery) -> bytes:
    """Return the query that a cursor belongs to: all parameters but the page size."""
    kept = {name: value for name, value in msgspec.structs.asdict(asked).items() if name not in ("limit", "cursor")}
    return orjson.dumps([ref, kept], option=orjson.OPT_SORT_KEYS)


def the_change(body: ChangeIn) -> tuple[str, bool | str | int]:
    """Name and value of the one change in a PATCH. Raises Invalid unless there is exactly one."""
    given: dict[str, Any] = msgspec.to_builtins(body)
    if len(given) != 1:
        raise Invalid("Send exactly one of pinned, archived, held, state and expires_at.", pointer="")
    if "expires_at" in given:
        return "expires_at", from_iso(given["expires_at"], pointer="/expires_at")
    return next(iter(given.items()))


def expected_version(if_match: str | None) -> int | None:
    """The version an If-Match header expects; None without one, or for `*`."""
    if if_match is None or if_match.strip() == "*":
        return None
    tag = _ETAG.fullmatch(if_match.strip())
    if tag is None:
        raise Invalid('If-Match is the ETag of the entry as it was read, for example "3".', pointer="/If-Match")
    return int(tag[1])


def unchanged(if_none_match: str | None, entry: Entry) -> bool:
    """Whether the caller already has this version."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return "*" in tags or etag(entry.version) in tags


def etag(version: int) -> str:
    """An entry's ETag: its version."""
    return f'"{version}"'


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """A receipt as JSON."""
    return {**msgspec.structs.asdict(receipt), "created_at": to_iso(receipt.created_at)}


def sse(event: Event) -> bytes:
    """An event as one message of a stream; its position is the id to resume after."""
    return message(event.type, orjson.dumps(event.document()), number=event.seq)
