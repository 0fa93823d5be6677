"""The effect of a change on an entry: the same decision on every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from reverie.core.entry import READABLE, Entry, EntryState
from reverie.core.errors import Conflict, NotFound


class Change(msgspec.Struct, frozen=True):
    """An entry after a change, and the consequences for the rest of the store."""

    after: Entry
    moved: bool
    """Whether its state changed, or it was archived or restored."""
    leaves: bool
    """Whether it leaves readable memory."""
    returns: bool
    """Whether it becomes readable again."""
    absences: Sequence[int]
    """Positions from which, up to now, others could not read it. Reads as of those must not begin to show it."""


class Changes(TypedDict, total=False):
    """The fields of an entry that change. None leaves a field as it is."""

    state: EntryState | None
    archived: bool | None
    pinned: bool | None
    held: bool | None
    attributes: Mapping[str, Any] | None
    expires_at: int | None


def change(before: Entry, changes: Changes, *, seq: int, expected: int | None) -> Change:
    """Return the entry changed at log position `seq`. Raises Conflict when `expected` is not its version."""
    if before.state is EntryState.ERASED:
        raise NotFound("The text of this entry was destroyed.")
    if expected is not None and expected != before.version:
        raise Conflict(details={"expected": expected, "current": before.version})
    fields: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    after = msgspec.structs.replace(before, version=before.version + 1, **fields)
    readable = not after.archived and (after.state in READABLE or after.state is EntryState.DRAFT)
    gone = None if readable else seq if before.gone_seq is None else before.gone_seq
    absences = []
    if before.state is EntryState.DRAFT and after.state is not EntryState.DRAFT:
        absences.append(before.born_seq)  # only its author could read it until now
    since = before.gone_seq if gone is None else None
    if since is not None:
        absences.append(since)
    return Change(
        msgspec.structs.replace(after, gone_seq=gone),
        moved=(after.state, after.archived) != (before.state, before.archived),
        leaves=before.gone_seq is None and gone is not None,
        returns=since is not None,
        absences=absences,
    )
