"""Reconciling standing memory, without a model: which entries say the same, and which were overtaken.

Two entries *say the same* when they are exact or near duplicates of one author: the newest wording stays. An entry
*overtakes* another when both are one sentence of the same author about the same thing, word for word but for a
number, a state or a name of a day, and it is newer. Contradictions between different authors are left alone: they are
not ours to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.sentences import split
from reverie.distil.source import Source
from reverie.distil.tokens import tokenize

_FEWEST_WORDS = 4
"""Shorter sentences share their frame by chance."""
_BEFORE_THE_VALUE = 3
"""Words that say what the value is of."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Entries that give way to a newer one."""

    kept: str
    merged: tuple[str, ...]
    why: str
    """`duplicate` or `outdated`."""


def reconcile(sources: Sequence[Source], distiller: ExtractiveDistiller) -> list[Merge]:
    """Merges among `sources`: each entry is kept, or merged into exactly one other. A second pass finds nothing."""
    prepared = distiller.prepare(sources)
    merges = [Merge(group.kept, group.merged, "duplicate") for group in prepared.collapsed]
    groups: dict[tuple[object, ...], list[Source]] = {}
    for source in prepared.sources:
        key = _frame(source)
        if key is not None:
            groups.setdefault(key, []).append(source)
    for members in groups.values():
        if len(members) > 1:
            newest = max(members, key=lambda source: (source.created_at, source.id))
            older = tuple(source.id for source in members if source.id != newest.id)
            merges.append(Merge(newest.id, older, "outdated"))
    return _settled(merges)


def _frame(source: Source) -> tuple[object, ...] | None:
    """A sentence without what varies; None when there is no frame to compare."""
    if source.pinned or len(split(source.content)) != 1:
        return None
    tokens = [token for token in tokenize(source.content) if token.word]
    frame = tuple("#" if token.varies and not token.negates else token.stem for token in tokens)
    told = sum(word != "#" for word in frame)
    # Two values that differ, or one near the beginning, name different things: deploy number 3 is not deploy number 4.
    if frame.count("#") != 1 or told < _FEWEST_WORDS or frame.index("#") < _BEFORE_THE_VALUE:
        return None
    return (source.speaker, source.kind, source.tags, frame)


def _settled(merges: Sequence[Merge]) -> list[Merge]:
    """Follow chains to their end: what was merged into an outdated entry belongs to the one that overtook it."""
    into = {merged: merge.kept for merge in merges for merged in merge.merged}
    why = {merged: merge.why for merge in merges for merged in merge.merged}

    def end(entry_id: str) -> str:
        while entry_id in into:
            entry_id = into[entry_id]
        return entry_id

    groups: dict[tuple[str, str], list[str]] = {}
    for merged in sorted(into):
        groups.setdefault((end(merged), why[merged]), []).append(merged)
    return [Merge(kept, tuple(merged), reason) for (kept, reason), merged in sorted(groups.items())]
