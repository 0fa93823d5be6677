"""Input and output of a distiller: sources and statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal, NamedTuple

from reverie.core.subject import labelled
from reverie.distil.sentences import Form
from reverie.distil.tokens import Token

if TYPE_CHECKING:
    from reverie.distil.value import Value

How = Literal["quoted", "shortened", "merged", "rolled"]


Fate = tuple[str, str]
"""`kept`, `shortened`, `merged`, `rolled`, `outdated`, `chatter` or `retired`; and the class of the statement."""
Fates = Mapping[str, Sequence[Fate]]
"""The fates of the statements of each source, in order, by the id of the source."""
CARRIED = frozenset({"kept", "shortened", "merged", "rolled", "outdated"})
"""Fates with which a statement is in the text."""
FATES: Mapping[str, str] = {"quoted": "kept", "shortened": "shortened", "merged": "merged", "rolled": "rolled"}
"""The fate of a statement in the text, by the way it was made."""


class Phrase(NamedTuple):
    """A piece of a source with its dates anchored, in tokens."""

    original: str
    form: Form
    text: str
    tokens: list[Token]
    day: date
    """The day that it was said: that of the heading above it in the text of a dream, else that of its source."""
    head: str = ""
    """The headings of its list, with which it begins."""


class Reason(NamedTuple):
    """The reasons to keep a phrase: its declaration, if any, and whether it is judged to matter."""

    declared: str | None
    weighty: bool


@dataclass(slots=True)
class Memo:
    """Cached analysis of one source, so that a dream reads and judges it once."""

    phrases: Sequence[Phrase] | None = None
    values: Sequence[Value] | None = None
    reasons: Sequence[Reason] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One memory entry, already redacted, as a distiller sees it."""

    id: str
    content: str
    created_at: int  # milliseconds, UTC
    speaker: str | None = None
    kind: str = "note"
    pinned: bool = False
    tags: tuple[str, ...] = ()
    session: str | None = None
    trust: int = 0
    subject: str | None = None
    """The subject, if the sources of the dream have several."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def label(self, text: str) -> str | None:
        """Return the prefix of a line with this text: the speaker and the subject."""
        return labelled(self.speaker, self.subject, text) if self.subject else self.speaker


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a distillate and the sources it represents, newest first.

    `count`: how often it was made. `how`: `quoted` for the words of the source, `shortened` if some were left
    out or a date was anchored, `merged` for several wordings side by side, `rolled` for a roll-up.
    """

    text: str
    source_ids: tuple[str, ...]
    how: How
    count: int = 1


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Duplicate sources: the newest is kept, the others are counted."""

    kept: str
    merged: tuple[str, ...]

    @property
    def count(self) -> int:
        return 1 + len(self.merged)


@dataclass(frozen=True, slots=True)
class Distillate:
    """A text of at most the tokens asked for, every statement with its sources.

    `collapsed`: the duplicates found. `dropped`: ids of sources that no statement represents. `unkept`: ids of sources
    with a must-keep statement that did not fit; they stay as they are.
    """

    text: str
    tokens: int
    statements: tuple[Statement, ...]
    collapsed: tuple[Collapsed, ...]
    dropped: tuple[str, ...]
    unkept: tuple[str, ...] = ()
    fates: Fates = field(default_factory=dict)
