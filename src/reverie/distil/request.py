"""The port of a distiller: text in, text out, outside any transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.must_keep import MustKeep
from reverie.distil.plan import Work
from reverie.distil.source import Fates, Statement
from reverie.distil.spend import Spend, Tally


def _as_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a distiller. `complaints` name the gates that an earlier answer failed.

    A distiller that sends text elsewhere must pass it through `clean` first (a secret may have been registered after
    the text was stored) and account for its calls on `spend`.
    """

    work: Work
    output_tokens: int
    count: Callable[[str], int]
    must_keep: Sequence[MustKeep]
    complaints: Sequence[str] = ()
    avoid: frozenset[str] = frozenset()
    """Statements that a gate refused."""
    clean: Callable[[str], str] = _as_is
    spend: Spend = field(default_factory=Tally)
    instructions: str = ""
    """Instructions of the caller of the dream; a distiller without a model ignores them."""


@dataclass(frozen=True, slots=True)
class DistilledText:
    """A distilled text. Statements trace its words to sources; a distiller that cannot trace them gives none."""

    text: str
    statements: Sequence[Statement] = ()
    unkept: Sequence[str] = ()
    """Sources with a must-keep statement that is not in the text."""
    fates: Fates = field(default_factory=dict)
    """Fate of every statement, if the distiller knows it."""


class Distiller(Protocol):
    """Turns sources into a shorter text of at most `output_tokens` tokens."""

    @property
    def name(self) -> str:
        """`extractive`, `llm`."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same request could be answered differently."""

    def distil(self, request: Request) -> DistilledText:
        """Return the text. May raise: nothing is stored by then."""


class Extractive:
    """The model-free distiller, which every host has."""

    name = "extractive"

    def __init__(self) -> None:
        self.engine = ExtractiveDistiller()

    @property
    def fingerprint(self) -> str:
        return self.engine.fingerprint

    def distil(self, request: Request) -> DistilledText:
        done = self.engine.distil(
            request.work.prepared, output_tokens=request.output_tokens, count=request.count, avoid=request.avoid
        )
        return DistilledText(done.text, done.statements, done.unkept, done.fates)


class SuppliedText:
    """Distiller that returns a supplied text, whatever the sources: its caller wrote the summary."""

    name = "told"

    def __init__(self, text: str, *, work: str) -> None:
        self._text = text
        self.fingerprint = f"told/{work}"  # unique for each piece of work, so that no answer is reused

    def distil(self, request: Request) -> DistilledText:  # noqa: ARG002
        return DistilledText(self._text)
