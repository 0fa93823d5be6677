"""The effect of a change on an entry: the same decision on every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reverie.core.entry import READABLE, Entry, EntryState
from reverie.core.errors import Conflict, NotFound


class Change(msgspec.Struct, frozen=True):
    """An entry after a change, and what follows for the rest of the store."""

    after: Entry
    moved: bool
    """It went to another place: its state, or in or out of the archive."""
    leaves: bool
    """It leaves readable memory."""
    returns: bool
    """It is readable again."""
    absences: Sequence[int]
    """Since which positions it was not there for others, up to now: reads as of then must not begin to show it."""


def change(
    before: Entry,
    *,
    seq: int,
    expected: int | None,
    state: EntryState | None,
    archived: bool | None,
    pinned: bool | None,
    held: bool | None,
    attributes: Mapping[str, Any] | None,
    expires_at: int | None,
) -> Change:
    """Return the entry changed at log position `seq`; None leaves a field. Raises Conflict when `expected` is not its
    version.
    """
    if before.state is EntryState.ERASED:
        raise NotFound("The text of this entry was destroyed.")
    if expected is not None and expected != before.version:
        raise Conflict(details={"expected": expected, "current": before.version})
    after = msgspec.structs.replace(
        before,
        state=before.state if state is None else state,
        archived=before.archived if archived is None else archived,
        pinned=before.pinned if pinned is None else pinned,
        held=before.held if held is None else held,
        attributes=before.attributes if attributes is None else attributes,
        expires_at=before.expires_at if expires_at is None else expires_at,
        version=before.version + 1,
    )
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
