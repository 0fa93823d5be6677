"""Input and output of a distiller: sources and statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from reverie.core.subject import labelled
from reverie.distil.sentences import Form
from reverie.distil.tokens import Token

if TYPE_CHECKING:
    from reverie.distil.value import Value

How = Literal["quoted", "shortened", "merged", "rolled"]


Fate = tuple[str, str]
"""A statement: `kept`, `shortened`, `merged`, `rolled`, `outdated`, `chatter` or `retired`; and its class."""
Fates = Mapping[str, Sequence[Fate]]
"""Of every statement of a source, in order, by the source's id."""
CARRIED = frozenset({"kept", "shortened", "merged", "rolled", "outdated"})
"""Fates with which a statement is in the text."""


class Phrase(NamedTuple):
    """A piece of a source with its dates anchored, in tokens."""

    original: str
    form: Form
    text: str
    tokens: list[Token]


class Reason(NamedTuple):
    """Whether a phrase must be kept: by declaration, with its kind, and by judgement."""

    declared: str | None
    weighty: bool


@dataclass(slots=True)
class Memo:
    """Findings of a dream about one source, so that it is read and judged once."""

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
    """Subject, where the sources have several."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def label(self, text: str) -> str | None:
        """The beginning of a line with this text: who says it, and whom it is about."""
        return labelled(self.speaker, self.subject, text) if self.subject else self.speaker


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a distillate and the sources it represents, newest first.

    `count` says how often it was made; `how` whether its words are the source's (`quoted`), some were
    left out or a date was anchored (`shortened`), or several wordings stand side by side (`merged`).
    """

    text: str
    source_ids: tuple[str, ...]
    how: How
    count: int = 1


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Sources that say the same: the newest is kept, the others count."""

    kept: str
    merged: tuple[str, ...]

    @property
    def count(self) -> int:
        return 1 + len(self.merged)


@dataclass(frozen=True, slots=True)
class Distillate:
    """A text of at most the tokens asked for, every statement with its sources.

    `collapsed` lists the duplicates found, `dropped` the ids that no statement represents, `unkept` those with a
    must-keep statement that did not fit: they stay as they are.
    """

    text: str
    tokens: int
    statements: tuple[Statement, ...]
    collapsed: tuple[Collapsed, ...]
    dropped: tuple[str, ...]
    unkept: tuple[str, ...] = ()
    fates: Fates = field(default_factory=dict)
