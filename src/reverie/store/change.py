"""The effect of a change on an entry: the same decision on every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from reverie.core.entry import READABLE, Entry, EntryState
from reverie.core.errors import Conflict, NotFound


class Change(msgspec.Struct, frozen=True):
    """An entry before and after, and what follows for the rest of the store."""

    before: Entry
    after: Entry

    @property
    def moved(self) -> bool:
        """Whether it went to another place: its state, or in or out of the archive."""
        return (self.after.state, self.after.archived) != (self.before.state, self.before.archived)

    @property
    def leaves(self) -> bool:
        """Whether it leaves readable memory."""
        return self.before.gone_seq is None and self.after.gone_seq is not None

    @property
    def returns(self) -> bool:
        """Whether it is readable again."""
        return self.before.gone_seq is not None and self.after.gone_seq is None

    @property
    def absences(self) -> list[int]:
        """Since which positions it was not there for others, up to now: reads as of then must not begin to show it."""
        since = []
        if self.before.state is EntryState.DRAFT and self.after.state is not EntryState.DRAFT:
            since.append(self.before.born_seq)  # only its author could read it until now
        if self.returns:
            assert self.before.gone_seq is not None
            since.append(self.before.gone_seq)
        return since


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
    return Change(before, msgspec.structs.replace(after, gone_seq=gone))
