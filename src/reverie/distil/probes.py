"""Probes: statements of the sources, searched for in a text by their words.

A line answers a probe when it has every number, identifier and negation of the statement and four of five of its
informative words: the rule of the must-keep gate, applied to every statement, whatever fate its distiller reports. A
statement that was rolled up is answered by a line with half of its informative words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reverie.distil.extractive import PreparedSources
from reverie.distil.lines import LineIndex
from reverie.distil.phrases import phrases_of
from reverie.distil.shorten import shorten, vocatives
from reverie.distil.source import Fate, Fates, Source
from reverie.distil.tokens import Token
from reverie.distil.value import CLASSES

PROBES = {
    "instructions and preferences": ("instruction", "preference"),
    "safety and identity": ("safety", "identity"),
    "decisions": ("decision",),
    "artifacts": ("artifact", "configuration"),
    "tasks and commitments": ("task", "commitment"),
    "facts": ("fact",),
}
"""Classes of statements by kind of probe. Status lines and chatter are not probed."""
_MOST = 200
_KINDS = {kind: name for name, kinds in PROBES.items() for kind in kinds}
assert set(_KINDS) <= set(CLASSES)


class Probed(NamedTuple):
    """The outcome of the probes of one text."""

    counts: dict[str, tuple[int, int]]
    """By kind: the number of probes that the text answers, and of all probes."""
    unanswered: list[tuple[str, int, str]]
    """The first statements that no line answers: id of the source, number in it, class."""


class ProbedLines:
    """The words of a text, line by line."""

    def __init__(self, text: str, names: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._lines = LineIndex(text)
        self._folded = " ".join(text.split())

    def quotes(self, text: str) -> bool:
        """Whether the text has these words one after another."""
        return " ".join(text.split()).strip(" .!") in self._folded

    def answer(self, tokens: Sequence[Token], *, rolled: bool = False) -> bool:
        """Whether one line answers a statement."""
        said = shorten(list(tokens), self._names, spoken=True) or tokens
        telling = {token.stem for token in said if token.telling}
        firm = {token.stem for token in said if token.word and (token.hard or token.negates)}
        if rolled:
            telling, firm = telling - firm, set()
        return self._lines.has(firm, telling, tenths=5 if rolled else 8)


def probe(sources: Sequence[Source], text: str, fates: Fates) -> Probed:
    """Probe a text for every informative statement of its sources that is not outdated."""
    lines = ProbedLines(text, vocatives({source.speaker for source in sources if source.speaker}))
    counts = {name: [0, 0] for name in PROBES}
    unanswered = []
    for source, said in zip(sources, phrases_of(sources), strict=True):
        for number, (phrase, (fate, kind)) in enumerate(zip(said, fates.get(source.id, ()), strict=False)):
            if kind not in _KINDS or fate == "outdated":
                continue
            held = lines.quotes(phrase.original) or lines.answer(phrase.tokens, rolled=fate == "rolled")
            counts[_KINDS[kind]][0] += held
            counts[_KINDS[kind]][1] += 1
            if not held:
                unanswered.append((source.id, number, kind))
    return Probed({name: (kept, of) for name, (kept, of) in counts.items() if of}, unanswered[:_MOST])


def fates_of(prepared: PreparedSources, text: str, stated: frozenset[str]) -> Fates:
    """Infer the fates of statements where the distiller reports none. `stated`: ids of sources with a statement in the
    text.
    """
    lines = ProbedLines(text, vocatives({source.speaker for source in prepared.sources if source.speaker}))
    kinds: dict[str, list[str]] = {}
    for _, (source_id, kind) in sorted(prepared.places.items()):
        kinds.setdefault(source_id, []).append(kind)
    found: dict[str, list[Fate]] = {}
    for source, said in zip(prepared.sources, phrases_of(prepared.sources), strict=True):
        own = found.setdefault(source.id, [])
        for phrase, kind in zip(said, kinds.get(source.id, ()), strict=False):
            if lines.quotes(phrase.original):
                fate = "kept"
            elif source.id in stated and lines.answer(phrase.tokens):
                fate = "shortened"
            else:
                fate = "chatter" if kind == "chatter" else "retired"
            own.append((fate, kind))
    for group in prepared.collapsed:
        for merged in group.merged:
            found[merged] = [
                ("merged" if fate in ("kept", "shortened") else fate, kind) for fate, kind in found.get(group.kept, ())
            ]
    return found
