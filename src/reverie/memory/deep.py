"""Hot memory and cold storage searched together: the content of a dream is found by the words of its sources, too.

A source that answers better than anything hot is shown in its place, or by the line of the dream that says the same.
A prompt gets hot lines only: those made from the sources that answer, and their neighbours while there is room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reverie.core.entry import Entry, EntryState
from reverie.core.query import Filter
from reverie.memory.derivation import DreamLines
from reverie.memory.indexing import LINES
from reverie.search.passages import Passage, passages, said_at
from reverie.store.contract import ReadTx

if TYPE_CHECKING:
    from reverie.memory.hits import Hit

SURE = 0.7
"""The confidence from which the first hot hit is an answer, and cold storage is not asked."""
_AHEAD = 0.07
"""Lead in confidence with which a source comes before a hot hit."""
_SAME = 75
"""Per cent of a source's words from which a line counts as saying the same."""
_BESIDE = 2
"""Lines on each side of a hit that a prompt may get with it."""
_WORD = re.compile(r"\w+")
_SPEAKER = re.compile(r"([^:;.!?]{1,60}): ")


def cold_filter(where: Filter) -> Filter:
    """The same filter for the sources of dreams."""
    return replace(
        where,
        states=frozenset({EntryState.DREAMT}),
        gone=True,
        archived=False,
        without_kinds=(*where.without_kinds, *LINES),  # an earlier dream says nothing that its sources do not
    )


def wants_sources(hot: Sequence[Hit]) -> bool:
    """Whether to search the sources of dreams too: nothing hot is surely an answer, or only lines of dreams are.

    A statement that a dream retired may answer as well as a line that it kept.
    """
    return all(hit.weak or hit.confidence < SURE or hit.entry.kind in LINES for hit in hot)


def merge(
    tx: ReadTx, dreams: DreamLines, hot: Sequence[Hit], cold: Sequence[Hit], where: Filter, limit: int, *, all_: bool
) -> list[Hit]:
    """Hot and cold hits as one list: a cold hit comes before the first hot one clearly less sure; weak ones last.

    A line that stands for a source and is a hot hit itself keeps its place: it was compared with the other lines.
    `all_`: sources are shown even where they are weak or a line of the dream says the same.
    """
    lines = _Lines(tx, dreams, where)
    order = [hit for hit in hot if not hit.weak]
    shown = [hit for hit in cold if all_ or not order or not hit.weak]
    behind = [lines.with_dream(hit) if all_ else lines.standing_for(hit) for hit in shown]
    ranked = {(hit.entry.id, hit.passage.start) for hit in order}
    for found in behind:
        if not found.weak and (found.entry.id, found.passage.start) not in ranked:
            place = next((n for n, hit in enumerate(order) if hit.confidence + _AHEAD < found.confidence), len(order))
            order.insert(place, found)
    order += [hit for part in (hot, behind) for hit in part if hit.weak]
    taken: set[tuple[str, int]] = set()
    out: list[Hit] = []
    for hit in order:
        if (hit.entry.id, hit.passage.start) not in taken:
            taken.add((hit.entry.id, hit.passage.start))
            taken |= lines.within(hit) if hit.cold and not all_ else set()
            out.append(hit)
    return out[:limit]


def with_lines(tx: ReadTx, hot: Sequence[Hit], cold: Sequence[Hit], where: Filter) -> list[Hit]:
    """Hot hits, and the lines that were made from the sources that answer."""
    lines = _Lines(tx, DreamLines(tx), where)
    found = {(hit.entry.id, hit.passage.start): hit for hit in hot if not hit.weak}
    for hit in cold:
        if not hit.weak:
            for line in lines.of(hit):
                found.setdefault((line.entry.id, line.passage.start), line)
    return [*sorted(found.values(), key=lambda hit: -hit.score), *(hit for hit in hot if hit.weak)]


def beside(hits: Sequence[Hit], room: int, count: Callable[[str], int]) -> list[Hit]:
    """Lines next to hits of the same dream, day and speaker, the best hits' first, as many as `room` tokens hold."""
    taken = {(hit.entry.id, hit.passage.start) for hit in hits}
    order = sorted(hits, key=lambda hit: (-hit.score, hit.entry.position, hit.passage.start))
    dreams = {hit.entry.id: hit.entry for hit in order if hit.entry.kind in LINES}
    parts = {entry_id: passages(entry.content, lines=True) for entry_id, entry in dreams.items()}
    found: list[Hit] = []
    for distance in range(1, _BESIDE + 1):
        for hit in order:
            for part in _next_to(hit, parts.get(hit.entry.id, ()), distance):
                if (hit.entry.id, part.start) in taken:
                    continue
                cost = count(hit.entry.content[part.start : part.end]) + 2
                if cost > room:
                    return found
                room -= cost
                taken.add((hit.entry.id, part.start))
                found.append(replace(hit, passage=part, score=-1.0 - len(found), sources=(), older=None))
    return found


def _next_to(hit: Hit, parts: Sequence[Passage], distance: int) -> Iterator[Passage]:
    at = next((n for n, part in enumerate(parts) if part.start == hit.passage.start), None)
    for place in () if at is None else (at + distance, at - distance):
        if 0 <= place < len(parts) and _origin(hit.entry, parts[place]) == _origin(hit.entry, hit.passage):
            yield parts[place]


def _origin(entry: Entry, part: Passage) -> tuple[int, str]:
    """Return the time and the speaker of a line of a dream."""
    named = _SPEAKER.match(entry.content, part.start, part.end)
    return said_at(entry.content, part.start, entry.created_at), named[1] if named else ""


class _Lines:
    """The lines of readable dreams, by the source they were made from."""

    def __init__(self, tx: ReadTx, dreams: DreamLines, where: Filter) -> None:
        self._dreams = dreams
        self._passes = cache(lambda position: bool(tx.at([position], where)))

    def of(self, cold: Hit) -> list[Hit]:
        """The lines made from a source, each as a hit."""
        holder = self._dreams.holder(cold.entry.id)
        if holder is None or not self._passes(holder.position):
            return []
        parts = self._dreams.made_from(holder, cold.entry.id)
        return [replace(cold, entry=holder, passage=part, cold=False, dream=None) for part in parts]

    def standing_for(self, cold: Hit) -> Hit:
        """Return the line that represents a source; where there is none, the source, with the dream that holds it."""
        said = set(_WORD.findall(cold.text.lower()))
        for line in self.of(cold):
            if len(said & set(_WORD.findall(line.text.lower()))) * 100 >= _SAME * len(said):
                return line
        return self.with_dream(cold)

    def within(self, cold: Hit) -> set[tuple[str, int]]:
        """The lines that say nothing but a part of a source: behind it they are no hits of their own."""
        said = set(_WORD.findall(cold.entry.content.lower()))
        found = set()
        for line in self.of(cold):
            words = set(_WORD.findall(_SPEAKER.sub("", line.text, count=1).lower()))
            if len(words & said) * 100 >= _SAME * len(words):
                found.add((line.entry.id, line.passage.start))
        return found

    def with_dream(self, cold: Hit) -> Hit:
        """A source with the dream that holds it."""
        holder = self._dreams.holder(cold.entry.id)
        return replace(cold, cold=True, dream=holder.id if holder is not None else None)
