"""What the engine asks of a distiller, whoever it is: text in, text out, outside any transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reverie.dream.distil import ExtractiveDistiller
from reverie.dream.mustkeep import MustKeep
from reverie.dream.plan import Work
from reverie.dream.source import Statement


@dataclass(frozen=True, slots=True)
class Request:
    """One piece of work. `complaints` name the gates a first answer failed."""

    work: Work
    output_tokens: int
    count: Callable[[str], int]
    must_keep: Sequence[MustKeep]
    complaints: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A distilled text. Statements trace its words; a distiller that cannot tell gives none."""

    text: str
    statements: Sequence[Statement] = ()
    spend: Mapping[str, Any] = field(default_factory=dict)


class Distiller(Protocol):
    """Turns sources into a shorter text of at most `output_tokens` tokens."""

    @property
    def name(self) -> str:
        """`extractive`, `llm`."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same request could be answered differently."""

    def distil(self, request: Request) -> Answer:
        """The text. May raise; then nothing was stored."""


class Extractive:
    """The model-free distiller, always there."""

    name = "extractive"

    def __init__(self) -> None:
        self.engine = ExtractiveDistiller()

    @property
    def fingerprint(self) -> str:
        return self.engine.fingerprint

    def distil(self, request: Request) -> Answer:
        done = self.engine.distil(request.work.prepared, output_tokens=request.output_tokens, count=request.count)
        return Answer(done.text, done.statements)
