"""Conversions between rows and core types, the same for every store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from reverie.core.entry import Document, Entry, EntryState, Source
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.query import Filter, Key
from reverie.core.subject import named_subjects

_STATES = {state.value: state for state in EntryState}
FIRST = -(2**62)
LAST = 2**62
FEW_TYPES = 8
"""Number of event types up to which each is looked up in the index; for more, the log is walked."""
LAST_CHARACTER = "\U0010ffff"
"""Appended to a prefix, it sorts after every text that begins with the prefix."""
_RANGE = 2**40
_AS_OF_STATES = frozenset(state for state in EntryState if state not in (EntryState.DRAFT, EntryState.ERASED))


@lru_cache(maxsize=1024)
def positions_of(tenant: int) -> tuple[int, int]:
    """The range of a tenant's positions: above the first number, up to the second."""
    return (tenant - 1) * _RANGE, tenant * _RANGE


def to_entry(row: Sequence[Any]) -> Entry:
    """An entry from the fragment `columns`."""
    return Entry(
        position=row[0],
        ref=row[1],
        id=row[2],
        kind=row[3],
        content=row[4],
        tags=() if row[5] == "[]" else tuple(orjson.loads(row[5])),
        subject=row[6],
        attributes={} if row[7] == "{}" else orjson.loads(row[7]),
        source=Source(row[8], row[9], row[10], row[11], row[12], row[13], row[14]),
        state=_STATES[row[15]],
        created_at=row[16],
        expires_at=row[17],
        pinned=bool(row[18]),
        archived=bool(row[19]),
        held=bool(row[20]),
        version=row[21],
        born_seq=row[22],
        epoch=row[23],
        gone_seq=row[24],
    )


def after_refs(prefix: str) -> str:
    """A text that sorts after every ref that begins with a prefix; `{` is above all characters of a ref."""
    return f"{prefix}{{"


def after_ids(prefix: str) -> str:
    """A text that sorts after every id that begins with a prefix; ids may have any characters."""
    return prefix + LAST_CHARACTER


def to_row(entry: Entry, tenant: int) -> tuple[Any, ...]:
    """The bindings of `add_entry`."""
    source = entry.source
    return (
        entry.position,
        tenant,
        entry.ref,
        entry.id,
        entry.kind,
        entry.content,
        encode(list(entry.tags)) if entry.tags else "[]",
        entry.subject,
        encode(entry.attributes) if entry.attributes else "{}",
        source.actor,
        source.role,
        source.door,
        source.session,
        source.run,
        source.node,
        source.trust,
        entry.state.value,
        entry.created_at,
        entry.expires_at,
        entry.pinned,
        entry.archived,
        entry.held,
        entry.version,
        entry.born_seq,
        entry.epoch,
    )


def to_event(row: Sequence[Any]) -> Event:
    """An event from `read_log`. A row that someone damaged becomes an event without a hash, which is never sound."""
    try:
        data = orjson.loads(row[10])
        prev_hash, own_hash = row[11].hex(), row[12].hex()
        if not isinstance(data, dict):
            raise TypeError
    except (ValueError, TypeError, AttributeError):
        data, prev_hash, own_hash = {}, "", ""
    return Event(
        seq=row[0],
        epoch=row[1],
        at=row[2],
        type=row[3],
        operation=row[4],
        actor=row[5],
        session=row[6],
        entry_id=row[7],
        conflict_id=row[8],
        task_id=row[9],
        data=data,
        prev_hash=prev_hash,
        hash=own_hash,
    )


def to_document(row: Sequence[Any]) -> Document:
    """A document from `load` or `documents`."""
    return Document(row[0], row[1], row[2], row[3], orjson.loads(row[4]), row[5], row[6])


def to_key(row: Sequence[Any]) -> Key:
    """An API key."""
    return Key(
        id=row[0],
        tenant=row[1],
        digest=row[2],
        name=row[3],
        rights=tuple(orjson.loads(row[4])),
        authority=row[5],
        scopes=tuple(orjson.loads(row[6])),
        created_at=row[7],
        expires_at=row[8],
        revoked_at=row[9],
    )


def key_row(key: Key) -> tuple[Any, ...]:
    """The bindings of `add_key`."""
    return (
        key.id,
        key.tenant,
        key.digest,
        key.name,
        encode(list(key.rights)),
        key.authority,
        encode(list(key.scopes)),
        key.created_at,
        key.expires_at,
        key.revoked_at,
    )


def event_row(event: Event) -> tuple[Any, ...]:
    """The columns of an event after its position."""
    return (
        event.epoch,
        event.at,
        event.type,
        event.operation,
        event.actor,
        event.session,
        event.entry_id,
        event.conflict_id,
        event.task_id,
        orjson.dumps(dict(event.data), option=orjson.OPT_SORT_KEYS).decode(),
        bytes.fromhex(event.prev_hash),
        bytes.fromhex(event.hash),
    )


def encode(value: Any) -> str:
    """Compact JSON text."""
    return orjson.dumps(value).decode()


def about(entry: Entry, same: Callable[[str], bool], *, erased: bool) -> bool:
    """Whether an entry is about the subject asked for. `same` compares names: index keys are only part of a hash."""
    if entry.state is EntryState.ERASED:
        return erased  # there is no name left to compare
    return any(map(same, named_subjects(entry.subject, entry.tags)))


def as_of_filter(where: Filter) -> Filter:
    """The filter of a read in the past. States and flags are those of today, so only born and gone decide."""
    return msgspec.structs.replace(where, states=_AS_OF_STATES, archived=None)


def without_tags(where: Filter) -> tuple[list[str] | None, int, Filter]:
    """(tags, the number of them that an entry must have, the rest of the filter). Without a filter on tags: None."""
    if where.tags:
        every = list(dict.fromkeys(where.tags))
        return every, len(every), msgspec.structs.replace(where, tags=())
    some = None if where.any_tags is None else list(where.any_tags)
    return some, 1, msgspec.structs.replace(where, any_tags=None)


def open_cursor(cursor: str | None) -> tuple[int | None, int | None]:
    """(created_at, position inside the tenant) of a cursor. Raises Invalid when no store gave it out."""
    if cursor is None:
        return None, None
    try:
        at, n = orjson.loads(cursor)
        if type(at) is int and type(n) is int and abs(at) < LAST and 0 < n < LAST:
            return at, n
    except (ValueError, TypeError):
        pass
    raise Invalid("This memory did not issue the cursor. Start again without it.", pointer="/cursor")
