"""The dreams of a memory: reports and what can be done with one, and the plan of the next."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from reverie.core.clock import parse_duration
from reverie.core.dream import After, DreamPlan, DreamReport, Selector
from reverie.core.errors import Invalid
from reverie.dreams.lineage import Diff, Verified

if TYPE_CHECKING:
    from reverie.library.memory import Memory


Age = timedelta | str | int


class Dreams:
    """The dreams of a memory: `memory.dreams`.

    >>> [report.ref for report in memory.dreams.list()]
    ['days']
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._host = memory.host
        self._actor = memory.actor

    def __repr__(self) -> str:
        return f"<Dreams of {self._memory!r}>"

    def __call__(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Deprecated: `memory.dreams.list(ref)`."""
        warn_renamed("memory.dreams()", "memory.dreams.list()")
        return self.list(ref, limit=limit)

    def list(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Reports of dreams, newest first.

        >>> memory.dreams.list("days")[0].id == dream.id
        True
        """
        return self._host.lineage.reports(self._actor, ref=ref, limit=limit)

    def get(self, dream_id: str) -> DreamReport:
        """The report of one dream. Raises NotFound.

        >>> memory.dreams.get(dream.id).state
        'done'
        """
        return self._host.lineage.report(self._actor, dream_id)

    def undo(self, dream_id: str) -> DreamReport:
        """Put the sources of a dream back exactly, while they exist. All of it, or nothing.

        >>> memory.dreams.undo(dream.id).state
        'undone'
        """
        return self._host.lineage.undo(self._actor, dream_id)

    def diff(self, dream_id: str) -> Diff:
        """List the entries by fate: kept, shortened, merged, retired.

        >>> len(memory.dreams.diff(dream.id).texts)
        12
        """
        return self._host.lineage.diff(self._actor, dream_id)

    def verify(self, dream_id: str) -> Verified:
        """Dream again from the same sources and compare bytes. Changes nothing.

        >>> memory.dreams.verify(dream.id).ok
        True
        """
        return self._host.lineage.verify(self._actor, dream_id)


def dream_plan(
    ref: str,
    budget: int | None,
    fit: bool,
    distiller: str | None,
    after: str,
    older_than: Age | None,
    kinds: Iterable[str] | None,
    tags: Iterable[str],
    session: str | None,
    instructions: str | None = None,
) -> DreamPlan:
    if after not in list(After):
        raise Invalid(f"after is one of {', '.join(After)}.", pointer="/after")
    if isinstance(kinds, str) or isinstance(tags, str):
        raise Invalid("kinds and tags are lists of texts.")
    if instructions is not None and not 1 <= len(instructions) <= 4096:
        raise Invalid("instructions have 1 to 4,096 characters.", pointer="/instructions")
    return DreamPlan(
        ref=ref,
        selector=Selector(
            kinds=None if kinds is None else tuple(kinds),
            tags=tuple(tags),
            session=session,
            older_than_ms=age_ms(older_than, "/older_than"),
        ),
        budget=budget,
        distiller=distiller,
        after=After(after),
        fit=fit,
        instructions=instructions,
    )


def age_ms(age: Age | None, pointer: str) -> int:
    """Milliseconds of a timedelta, a text such as `7d` or `P7D`, or milliseconds; 0 of None."""
    if age is None:
        return 0
    if isinstance(age, timedelta):
        age = int(age.total_seconds() * 1000)
    if isinstance(age, str):
        return parse_duration(age, pointer=pointer)
    if isinstance(age, bool) or not isinstance(age, int) or age < 0:
        raise Invalid("An age is a timedelta, a text such as 7d, or milliseconds.", pointer=pointer)
    return age


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name is deprecated."""
    warnings.warn(f"{old} is deprecated: use {new}.", DeprecationWarning, stacklevel=3)
