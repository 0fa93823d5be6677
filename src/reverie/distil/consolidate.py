"""Reconciliation of standing memory without a model: duplicates, and entries that were overtaken.

Two entries are *duplicates* when one author said the same or nearly the same twice: the newest wording stays. An entry
*overtakes* another of the same author when it gives a newer value for the same thing (`updates`) and the older one says
nothing else. Routine status lines never overtake each other. Contradictions between different authors are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.sentences import split
from reverie.distil.source import Source
from reverie.distil.updates import Utterance, says_more, updates
from reverie.distil.value import LOW, model


@dataclass(frozen=True, slots=True)
class Merge:
    """Entries that give way to a newer one."""

    kept: str
    merged: tuple[str, ...]
    why: str
    """`duplicate` or `outdated`."""


def reconcile(sources: Sequence[Source], distiller: ExtractiveDistiller) -> list[Merge]:
    """Return the merges: each entry is kept, or merged into exactly one other. A second pass finds none."""
    prepared = distiller.prepare(sources)
    merges = [Merge(group.kept, group.merged, "duplicate") for group in prepared.collapsed]
    single = [source for source in prepared.sources if not source.pinned and len(split(source.content)) == 1]
    verdicts = model().judge([source.content for source in single])
    said = [
        Utterance(source.id, source.content, (source.speaker, source.subject, source.kind))
        for source, verdict in zip(single, verdicts, strict=True)
        if verdict.kind not in LOW
    ]
    text = {one.id: one.text for one in said}
    merges += [
        Merge(update.newer, (update.older,), "outdated")
        for update in updates(said)
        if not says_more(text[update.older], text[update.newer])
    ]
    return _settled(merges)


def _settled(merges: Sequence[Merge]) -> list[Merge]:
    """Follow chains to their end: an entry merged into an outdated one belongs to the entry that outdated it."""
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
