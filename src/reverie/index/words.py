"""BM25 over the segments of one memory.

Scores depend only on the content of the memory, not on the order of insertion or the division into segments: a passage
is scored word by word in the order of the question, with the statistics of all segments.

Most passages that have some word of a question have only a common one. So words are added up in the order of the most
that each can contribute. Once the remaining words cannot lift a passage without any earlier word among the best, they
are looked up only for the passages that can still be among the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from reverie.core.lazy import np
from reverie.index.parts import Part
from reverie.index.postings import K1, B, Question
from reverie.index.segment import Ints, ScoredPassage, Segment, picked

if TYPE_CHECKING:
    import numpy.typing as npt

_SURE = 1 - 1e-9
"""Tolerance for sums of the same numbers in another order, which differ by less."""
_ROUNDED = 1e-4
"""Upper bound of the relative error of float32 sums."""
_BESIDES = 60
"""Number of passages without the word that are added to those of a memory when the rarity of a word is computed."""
_GROUP = 32
"""Passages in a group; the best sums of the groups give a lower bound for the best."""
_LOOKUP = 8
"""Looking up a word for one row takes as long as adding up this many postings."""

_Floats: TypeAlias = "npt.NDArray[np.float64]"


class _Term(NamedTuple):
    """A term that the memory has: its place in the list of all terms asked for, its weight, and its hash.

    `share` is its likeness to the word of the question: 1 for the same word, less for a similar one.
    """

    at: int
    weight: float
    word: int
    share: float


class _Word(NamedTuple):
    """A word of the question: its informativeness, its rarity, and its terms."""

    telling: float
    weight: float
    terms: Sequence[_Term]


def known(parts: Sequence[Part], words: Sequence[int]) -> list[bool]:
    """Return, for each of these words, whether some passage has it."""
    asked = np.array(words, dtype=np.int64)
    counts, _ = _counted(parts, asked)
    return [count > 0 for count in counts]


def best(
    parts: Sequence[Part], question: Question, limit: int, among: npt.NDArray[np.int64] | None = None
) -> list[ScoredPassage]:
    """The best passages, of all or only at the positions `among`; best first, ties by position.

    A score does not depend on the other candidates: the statistics are those of all passages of the memory.
    """
    live, total = sum([part.live for part in parts]), float(sum([part.total for part in parts]))
    if not total:
        return []
    asked = np.array([word for _, terms in question for word, _ in terms], dtype=np.int64)
    counts, places = _counted(parts, asked)
    words: list[_Word] = []
    whole, at = 0.0, 0
    for telling, terms in question:
        found = []
        for word, share in terms:
            if count := counts[at]:
                found.append(_Term(at, share * _rarity(count, live), word, share))
            at += 1
        weight = max((term.weight for term in found if term.share >= 1), default=_rarity(0, live))
        whole += telling * weight
        if found:
            words.append(_Word(telling, weight, found))
    if not words:
        return []
    norm = K1 * B * live / total
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    segments: list[Segment] = []
    kept = np.zeros(0)
    least = 0.0
    for part, (starts, ends) in sorted(zip(parts, places, strict=True), key=lambda one: -len(one[0].segment.positions)):
        search = _Search(part, starts, ends, words, asked, norm)
        rows = search.contenders(limit, least, among)
        if not len(rows):
            continue
        scores, covers = search.exact(rows)
        if among is not None:
            rows, scores, covers = rows[scores > 0], scores[scores > 0], covers[scores > 0]
        columns.append((rows, scores, covers / whole))
        segments.append(part.segment)
        kept = np.concatenate((kept, scores))
        if len(kept) >= limit:
            kept = np.partition(kept, len(kept) - limit)[len(kept) - limit :]
            least = float(kept[0])
    return picked(segments, columns, limit)


def _rarity(count: int, live: int) -> float:
    """Return the inverse document frequency (as in BM25) of a word that `count` of `live` passages have.

    A memory of a few passages says little about which words are rare: "customer" is not common just because the only
    note has it. So some passages without the word are added to the count.
    """
    return math.log(1 + (live + _BESIDES - count + 0.5) / (count + 0.5))


def _counted(
    parts: Sequence[Part], words: npt.NDArray[np.int64]
) -> tuple[list[int], list[tuple[list[int], list[int]]]]:
    """Count the passages that have each word, and return the ranges of its postings in each part."""
    counts = [0] * len(words)
    places = []
    for part in parts:
        starts, ends = part.segment.find(words)
        places.append((starts, ends))
        for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if end > start:
                counts[at] += end - start
                if len(part.dead):
                    counts[at] -= len(_common(part.segment.postings(start, end)[0], part.dead))
    return counts, places


def _common(rows: Ints, others: Ints) -> Ints:
    """The rows that are in both of two ascending lists."""
    few, many = (rows, others) if len(rows) < len(others) else (others, rows)
    at = np.minimum(np.searchsorted(many, few), max(len(many) - 1, 0))
    return few[many[at] == few] if len(many) else few[:0]


def _reached(sums: npt.NDArray[np.float32], limit: int) -> float:
    """A sum that at least `limit` passages reach: the best passages of that many groups do."""
    groups = len(sums) // _GROUP
    if groups < limit:
        return 0.0
    best = sums[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    return float(np.partition(best, groups - limit)[groups - limit])


class _Search:
    """One question in one part."""

    def __init__(
        self,
        part: Part,
        starts: list[int],
        ends: list[int],
        words: Sequence[_Word],
        asked: npt.NDArray[np.int64],
        norm: float,
    ) -> None:
        self.part = part
        self.starts, self.ends = starts, ends
        self.words = words
        self.asked = asked
        self.norm = norm
        segment = part.segment
        segment.check("lengths", "positions")
        self.ratio = K1 * B * len(segment.positions) / max(segment.total, 1) / norm
        """Length normalisation from when the segment was made, relative to the present one."""

    def contenders(self, limit: int, least: float, among: npt.NDArray[np.int64] | None) -> npt.NDArray[np.intp]:
        """Rows that include every row among the best with a score of at least `least`."""
        segment, dead = self.part.segment, self.part.dead
        bounds = self._bounds()
        if not bounds:
            return np.zeros(0, dtype=np.intp)
        bounds.sort(key=lambda one: -one[0])
        order = [word for _, word in bounds]
        rest = [0.0] * (len(order) + 1)
        for at in range(len(order) - 1, -1, -1):
            rest[at] = rest[at + 1] + bounds[at][0]
        sums = np.zeros(len(segment.positions), dtype=np.float32)
        inside: Ints | None = None
        if among is not None:
            inside = segment.rows_of(among)
            inside = np.sort(np.setdiff1d(inside, dead, assume_unique=True))
            if len(inside) * _LOOKUP < sum(map(self._size, order)):
                return inside.astype(np.intp)
        used = 0
        for word in order:
            if rest[used] < least * _SURE:
                break
            rows, values = self._weighed(word)
            np.add.at(sums, rows, values)
            used += 1
        if not used:
            return np.zeros(0, dtype=np.intp)
        if len(dead):
            sums[dead] = 0.0
        if inside is not None:
            chosen = np.zeros_like(sums)
            chosen[inside] = sums[inside]
            sums = chosen
        # an impact is off by at most the ratio of the average lengths, and by the rounding of float32
        lower, upper = min(1.0, self.ratio) * (1 - _ROUNDED), max(1.0, self.ratio) * (1 + _ROUNDED)
        floor = (max(least, _reached(sums, limit) * lower) * _SURE - rest[used]) / upper
        found = np.flatnonzero(sums >= np.float32(floor) if floor > 0 else sums > 0)
        # remaining words are added up where that takes less time than looking them up for every row
        while len(found) > limit and used < len(order) and self._size(order[used]) < _LOOKUP * len(found):
            rows, values = self._weighed(order[used])
            np.add.at(sums, rows, values)
            used += 1
            found = found[sums[found] >= np.float32((least * _SURE - rest[used]) / upper)]
        if len(found) > 2 * limit:
            last = float(np.partition(sums[found], len(found) - limit)[len(found) - limit]) * lower
            found = found[sums[found] >= np.float32((last * _SURE - rest[used]) / upper)]
        return found

    def _weighed(self, word: _Word) -> tuple[Ints, npt.NDArray[np.float32]]:
        """The rows that have a word, each once, and approximately what the word adds to each."""
        found = []
        for term in word.terms:
            start, end = self.starts[term.at], self.ends[term.at]
            if end > start:
                rows, impacts = self.part.segment.weighed(start, end)
                found.append((rows, impacts * np.float32(word.telling * term.weight * (K1 + 1))))
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([one[0] for one in found])
        values = np.concatenate([one[1] for one in found])
        order = np.argsort(rows, kind="stable")  # merges what is in order already
        rows, values = rows[order], values[order]
        first = np.ones(len(rows), dtype=bool)
        first[1:] = rows[1:] != rows[:-1]
        return rows[first], np.maximum.reduceat(values, np.flatnonzero(first))

    def _size(self, word: _Word) -> int:
        return sum(self.ends[term.at] - self.starts[term.at] for term in word.terms)

    def _bounds(self) -> list[tuple[float, _Word]]:
        """The words that this part has, each with the most that it can add to a score."""
        starts, ends = self.starts, self.ends
        found = []
        peaks: list[float] = []
        for word in self.words:
            here = [term for term in word.terms if ends[term.at] > starts[term.at]]
            if here:
                peaks = peaks or self.part.segment.most(self.asked)
                # peaks use the average length of that time; passages shorter than average count for more
                stretch = max(1.0, self.ratio) * (K1 + 1) * word.telling
                found.append((stretch * max([term.weight * peaks[term.at] for term in here]), word))
        return found

    def exact(self, rows: npt.NDArray[np.intp]) -> tuple[_Floats, _Floats]:
        """Score and cover of these rows, word by word in the order of the question."""
        scores, covers = np.zeros(len(rows)), np.zeros(len(rows))
        lengths = self.part.segment.lengths[rows].astype(np.float64)
        lengths *= self.norm
        lengths += K1 * (1 - B)
        for word in self.words:
            values: _Floats | None = None
            shares: _Floats | None = None
            for term in word.terms:
                start, end = self.starts[term.at], self.ends[term.at]
                if end == start:
                    continue
                having, times = self.part.segment.postings(start, end)
                at = np.minimum(having.searchsorted(rows), end - start - 1)
                often = times[at] * (having[at] == rows)
                own = often * (term.weight * (K1 + 1)) / (lengths + often)
                values = own if values is None else np.maximum(values, own)
                share = (often > 0) * term.share
                shares = share if shares is None else np.maximum(shares, share)
            if values is not None and shares is not None:
                scores += word.telling * values
                covers += shares * (word.telling * word.weight)
        return scores, covers
