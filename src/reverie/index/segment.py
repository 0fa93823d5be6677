"""An immutable part of a memory's index: plain arrays, in process memory or mapped from a file.

Rows are passages, in the order of their entries' positions. The words of a segment are sorted by hash; the postings of
a word lie together, in the order of rows. The same class serves a file of a hundred thousand passages and the few that
came since: a search reads a list of segments of either kind.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from reverie.core.lazy import np
from reverie.index.codes import FEWEST, coded
from reverie.index.postings import K1, RECORD, RECORD_BYTES, B

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Ints: TypeAlias = "npt.NDArray[np.int32]"
Row = tuple[int, bytes | None, bytes | None, str | None]
"""(position, words as packed, vectors of its passages, their model)."""
Rows = Sequence[Row]
Ranges = Sequence[tuple[int, int]]
"""First and last byte of parts of a file."""
Guard = Callable[[str, int, int], None]
"""Called before the items `first` to `last` of a column are used. Raises Damaged."""
_UP = 1 + 1e-6
_SPAN_BITS = 13
"""Spans are verified 2^13 at a time, which is a block of a file."""


@lru_cache(maxsize=1024)
def space(model: str, length: int) -> str:
    """The key of vectors that can be compared: length, and embedder without the version of the text analysis."""
    embedder, _, analysis = model.rpartition("+")
    name = embedder if analysis.isdigit() and embedder else model
    return f"{length}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"


class ScoredPassage(NamedTuple):
    """A passage and its score. Position and number identify it."""

    position: int
    number: int
    score: float
    cover: float = 0.0
    span: tuple[int, int] | None = None
    """Start and end of the passage in the content; None: all of it."""


_scored = cast("Callable[[Iterable[Any]], ScoredPassage]", partial(tuple.__new__, ScoredPassage))
"""As `ScoredPassage._make`, without a call of Python code for each."""


class Damaged(Exception):
    """Raised when a file of the index does not hold what was written to it."""


class Seen:
    """The parts of a mapped file of which a search reads a little in many places: postings and vectors."""

    def __init__(self, mapped: mmap.mmap, postings: Ranges, vectors: Ranges) -> None:
        self._mapped = mapped
        self._postings = postings
        self._vectors = vectors

    def drop_vectors(self) -> None:
        """Unmap the pages of the vectors. They stay in the system's cache."""
        self._drop(self._vectors)

    def drop_postings(self) -> None:
        """Unmap the pages of the postings. They stay in the system's cache."""
        self._drop(self._postings)

    def _drop(self, ranges: Ranges) -> None:
        for first, last in ranges:
            first = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
            size = max(0, last - first) // mmap.PAGESIZE * mmap.PAGESIZE
            if size and hasattr(mmap, "MADV_DONTNEED"):
                with suppress(OSError, ValueError):
                    self._mapped.madvise(mmap.MADV_DONTNEED, first, size)


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of one space."""

    key: str
    rows: Ints
    """The row of each vector, ascending."""
    data: npt.NDArray[np.int8]
    tails: npt.NDArray[np.float32]
    """The lengths of the second halves."""
    codes: npt.NDArray[np.uint64]
    """Signs, 64 dimensions to a number: one line for each 64 dimensions. Empty in small segments."""
    centre: npt.NDArray[np.float32]
    """Mean and mean deviation of each dimension, when there are codes."""
    sums: npt.NDArray[np.uint32]
    """A checksum of each vector."""

    def columns(self) -> Iterator[tuple[str, Array]]:
        """Every column by name."""
        for name in ("rows", "data", "tails", "codes", "centre", "sums"):
            yield name, getattr(self, name)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Passages, their words and their vectors."""

    positions: npt.NDArray[np.int64]
    spans: Ints
    """Start and end in the content; (0, 0): all of it."""
    lengths: Ints
    """Number of words in each passage."""
    words: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    """Start of the postings of each word, then the end of the last."""
    peaks: npt.NDArray[np.float32]
    """The largest impact of the word in any passage here, as a share of its weight."""
    rows: Ints
    times: npt.NDArray[np.int16]
    impacts: npt.NDArray[np.float32]
    """Impact of the word in the passage, as a share of its weight, for passages of average length in this segment."""
    vectors: Mapping[str, Vectors]
    """The vectors by space."""
    total: int
    """Number of words in all passages."""
    guard: Guard | None = None
    name: str | None = None
    """The file it is mapped from."""
    seen: Seen | None = None
    whole: set[str] = field(default_factory=set)
    """Columns that were verified against their checksums."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def nbytes(self) -> int:
        """Bytes of the process's own memory."""
        return 0 if self.name else sum(column.nbytes for _, column in self.columns())

    def columns(self) -> Iterator[tuple[str, Array]]:
        """Every column by name."""
        for name in ("positions", "spans", "lengths", "words", "starts", "peaks", "rows", "times", "impacts"):
            yield name, getattr(self, name)
        for key, group in self.vectors.items():
            for name, column in group.columns():
                yield f"{key}.{name}", column

    def check(self, *names: str) -> None:
        """Verify whole columns against their checksums, once in a process. Raises Damaged."""
        if self.guard is not None:
            for name in names:
                if name not in self.whole:
                    self.guard(name, 0, -1)
                    self.whole.add(name)

    def find(self, words: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
        """Return the start and end of the postings of each word."""
        if not len(self.words):
            return [0] * len(words), [0] * len(words)
        self.check("words", "starts", "peaks")
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        ends = np.where(self.words[at] == words, self.starts[at + 1], self.starts[at])
        return self.starts[at].tolist(), ends.tolist()

    def most(self, words: npt.NDArray[np.int64]) -> list[float]:
        """The largest impact of each word, as a share of its weight; an arbitrary number for words it does not have."""
        found: list[float] = self.peaks[np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)].tolist()
        return found

    def postings(self, first: int, last: int) -> tuple[Ints, npt.NDArray[np.int16]]:
        """The rows that have a word, and how often each has it."""
        self._reads(first, last, "rows", "times")
        return self.rows[first:last], self.times[first:last]

    def weighed(self, first: int, last: int) -> tuple[Ints, npt.NDArray[np.float32]]:
        """The rows that have a word, and its impact in each."""
        self._reads(first, last, "rows", "impacts")
        return self.rows[first:last], self.impacts[first:last]

    def _reads(self, first: int, last: int, *names: str) -> None:
        """Before postings are used: compare them with their checksums."""
        if self.guard is not None:
            for name in names:
                self.guard(name, first, last)

    def rows_of(self, positions: npt.NDArray[np.int64]) -> Ints:
        """The rows of these positions, in the order of the positions; none for a position that is not here."""
        if not len(self.positions) or not len(positions):
            return np.zeros(0, dtype=np.int32)
        self.check("positions")
        first = np.searchsorted(self.positions, positions)
        last = np.searchsorted(self.positions, positions, side="right")
        counts = last - first
        if not counts.any():
            return np.zeros(0, dtype=np.int32)
        begins = np.repeat(first - (np.cumsum(counts) - counts), counts)
        return (begins + np.arange(len(begins))).astype(np.int32)

    def numbers_of(self, rows: Array) -> Array:
        """Return the passage number of each row within its entry."""
        self.check("positions")
        return rows - np.searchsorted(self.positions, self.positions[rows])

    def spans_of(self, rows: Array) -> list[tuple[int, int] | None]:
        """Start and end of each passage in its content; None: all of it."""
        if self.guard is not None:
            for block in set((rows >> _SPAN_BITS).tolist()):
                self.guard("spans", block << _SPAN_BITS, min((block + 1) << _SPAN_BITS, len(self)))
        return [(start, end) if end else None for start, end in self.spans[rows].tolist()]


def build(rows: Rows) -> Segment:
    """A segment of these entries. Vectors whose length does not fit the number of passages are left out."""
    rows = sorted(rows, key=lambda row: row[0])
    packed = [words or b"" for _, words, _, _ in rows]
    records = np.frombuffer(b"".join(packed), dtype=RECORD)
    owner = np.repeat(np.arange(len(rows)), [len(one) // RECORD_BYTES for one in packed])
    times = records["times"].astype(np.int16)
    words = records["word"].astype(np.int64)
    marks = times == 0
    marked = np.bincount(owner[marks], minlength=len(rows))
    counts = np.maximum(marked, 1)
    firsts = np.cumsum(counts) - counts
    size = int(counts.sum())
    row = firsts[owner]
    spans = np.zeros((size, 2), dtype=np.int32)
    if marks.any():
        row = row + np.maximum(np.cumsum(marks) - (np.cumsum(marked) - marked)[owner] - 1, 0)
        spans[row[marks], 0] = words[marks] >> 32
        spans[row[marks], 1] = words[marks] & 0xFFFFFFFF
        words, row, times = words[~marks], row[~marks], times[~marks]
    positions = np.repeat(np.array([position for position, _, _, _ in rows], dtype=np.int64), counts)
    given: dict[str, tuple[list[int], list[bytes]]] = {}
    for (_, _, vector, model), first, count in zip(rows, firsts.tolist(), counts.tolist(), strict=True):
        if vector and len(vector) % count == 0:
            places, data = given.setdefault(space(model or "", len(vector) // count), ([], []))
            places.extend(range(first, first + count))
            data.append(vector)
    vectors = {
        key: group(key, np.array(rows_of, np.int32), np.frombuffer(b"".join(data), np.int8).reshape(len(rows_of), -1))
        for key, (rows_of, data) in given.items()
    }
    return sealed(positions, spans, (words, row.astype(np.int32), times), vectors)


def sealed(
    positions: npt.NDArray[np.int64],
    spans: Ints,
    postings: tuple[npt.NDArray[np.int64], Ints, npt.NDArray[np.int16]],
    vectors: Mapping[str, Vectors],
) -> Segment:
    """A segment from its passages and its postings, which are in the order of rows but not of words."""
    words, rows, times = postings
    order = np.argsort(words, kind="stable")
    words, rows, times = words[order], rows[order], times[order]
    lengths = np.bincount(rows, weights=times, minlength=len(positions)).astype(np.int32)
    first = np.ones(len(words), dtype=bool)
    first[1:] = words[1:] != words[:-1]
    begins = np.flatnonzero(first)
    return _sealed((positions, spans, lengths), (words[begins], np.append(begins, len(words)), rows, times), vectors)


def _sealed(
    passages: tuple[npt.NDArray[np.int64], Ints, Ints],
    postings: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Ints, npt.NDArray[np.int16]],
    vectors: Mapping[str, Vectors],
) -> Segment:
    """A segment from (positions, spans, lengths) and (words, starts, rows, times), all in order."""
    positions, spans, lengths = passages
    words, starts, rows, times = postings
    total = int(lengths.sum(dtype=np.int64))
    impacts = np.zeros(0, dtype=np.float64)
    peaks = np.zeros(0, dtype=np.float32)
    if len(words):
        norm = (lengths * (K1 * B * len(positions) / total) + K1 * (1 - B))[rows]
        impacts = times / (times + norm)
        peaks = (np.maximum.reduceat(impacts, starts[:-1]) * _UP).astype(np.float32)
    return Segment(
        positions=positions,
        spans=spans,
        lengths=lengths,
        words=words,
        starts=starts,
        peaks=peaks,
        rows=rows,
        times=times,
        impacts=impacts.astype(np.float32),
        vectors=vectors,
        total=total,
    )


def group(key: str, rows: Ints, data: npt.NDArray[np.int8], centre: npt.NDArray[np.float32] | None = None) -> Vectors:
    """The vectors of one space, with the lengths, codes and checksums that a search uses."""
    tails = data[:, (data.shape[1] + 1) // 2 :]
    lengths = np.sqrt(np.einsum("ij,ij->i", tails, tails, dtype=np.float32))
    centre, codes = coded(data, centre)
    return Vectors(key, rows, data, lengths, codes, centre, sums_of(data))


def sums_of(data: npt.NDArray[np.int8]) -> npt.NDArray[np.uint32]:
    """A checksum of each vector."""
    by = weights(data.shape[1])
    sums = np.empty(len(data), dtype=np.uint32)
    for at in range(0, len(data), 1024):
        sums[at : at + 1024] = (data[at : at + 1024].astype(by.dtype) @ by).astype(np.int64) & 0xFFFFFFFF
    return sums


@lru_cache(maxsize=8)
def weights(length: int) -> Array:
    """The factors of a vector's numbers in its checksum."""
    # sums in float32 are exact while integers stay below 2^24, as they do up to 512 dimensions
    return np.arange(1, length + 1, dtype=np.float32 if length <= 512 else np.float64)


def without(segment: Segment, dead: Ints) -> Segment:
    """The segment without some rows: the result of `merged`, without sorting again."""
    segment.check(*(name for name, _ in segment.columns()))
    keep = np.ones(len(segment), dtype=bool)
    keep[dead] = False
    moved = (np.cumsum(keep) - 1).astype(np.int32)
    live = keep[segment.rows]
    before = np.zeros(len(live) + 1, dtype=np.int64)
    np.cumsum(live, out=before[1:])
    starts = before[segment.starts]
    there = starts[1:] > starts[:-1]
    vectors = {}
    for key, own in segment.vectors.items():
        chosen = keep[own.rows]
        data = own.data[chosen]
        if len(data) >= FEWEST:
            kept = (own.tails[chosen], own.codes[:, chosen], own.centre, own.sums[chosen])
            vectors[key] = Vectors(key, moved[own.rows[chosen]], data, *kept)
        elif len(data):
            vectors[key] = group(key, moved[own.rows[chosen]], data)
    lengths = segment.lengths[keep]
    rows, times = moved[segment.rows[live]], segment.times[live]
    return _sealed(
        (segment.positions[keep], segment.spans[keep], lengths),
        (segment.words[there], np.append(starts[:-1][there], starts[-1]), rows, times),
        vectors,
    )


def merged(parts: Sequence[tuple[Segment, Ints]]) -> Segment:
    """One segment made of several, each without the rows given with it."""
    if len(parts) == 1:
        return without(*parts[0])
    for segment, _ in parts:
        segment.check(*(name for name, _ in segment.columns()))
    kept = []
    for segment, dead in parts:
        keep = np.ones(len(segment), dtype=bool)
        keep[dead] = False
        kept.append(np.flatnonzero(keep))
    positions = np.concatenate([segment.positions[keep] for (segment, _), keep in zip(parts, kept, strict=True)])
    order = np.argsort(positions, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    spans = np.concatenate([segment.spans[keep] for (segment, _), keep in zip(parts, kept, strict=True)])
    postings, begin = [], 0
    vectors: dict[str, list[tuple[Ints, Vectors, Array]]] = {}
    for (segment, _), keep in zip(parts, kept, strict=True):
        moved = np.full(len(segment), -1, dtype=np.int32)
        moved[keep] = place[begin : begin + len(keep)]
        begin += len(keep)
        words = np.repeat(segment.words, np.diff(segment.starts))
        rows = moved[segment.rows]
        live = rows >= 0
        postings.append((words[live], rows[live], segment.times[live]))
        for key, own in segment.vectors.items():
            where = moved[own.rows]
            chosen = np.flatnonzero(where >= 0)
            vectors.setdefault(key, []).append((where[chosen], own, chosen))
    words, rows, times = (np.concatenate(columns) for columns in zip(*postings, strict=True))
    if (np.diff(order) < 0).any():  # the positions of the parts are interleaved
        by_row = np.argsort(rows, kind="stable")
        words, rows, times = words[by_row], rows[by_row], times[by_row]
    return sealed(
        positions[order],
        spans[order],
        (words, rows, times),
        {key: _joined(own) for key, own in vectors.items()},
    )


def _joined(parts: Sequence[tuple[Ints, Vectors, Array]]) -> Vectors:
    rows = np.concatenate([where for where, _, _ in parts])
    data = np.concatenate([own.data[chosen] for _, own, chosen in parts])
    order = np.argsort(rows, kind="stable")
    centre = next((own.centre for _, own, _ in parts if len(own.centre)), None)
    return group(parts[0][1].key, rows[order], data[order], centre)


def picked(
    segments: Sequence[Segment], columns: Sequence[tuple[Array, ...]], limit: int, *, unit: float = 1.0
) -> list[ScoredPassage]:
    """The best passages of several segments, from columns of (rows, scores in `unit`, covers) of each."""
    if not columns:
        return []
    if (most := sum(len(own[0]) for own in columns)) > limit:
        # all that are at least as good as the last place, so that ties are cut by position and not by chance
        last = np.partition(np.concatenate([own[1] for own in columns]), most - limit)[most - limit]
        kept = [np.flatnonzero(own[1] >= last) for own in columns]
        columns = [tuple(column[rows] for column in own) for own, rows in zip(columns, kept, strict=True)]
    at = [(one.positions[own[0]], one.numbers_of(own[0])) for one, own in zip(segments, columns, strict=True)]
    positions, numbers = at[0] if len(at) == 1 else map(np.concatenate, zip(*at, strict=True))
    rows, scores, covers = columns[0] if len(columns) == 1 else map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((numbers, positions, -scores))[:limit]
    if len(segments) == 1:
        spans = segments[0].spans_of(rows[order])
    else:
        ends = np.cumsum([len(own[0]) for own in columns])
        spans = [None] * len(order)
        owner = np.searchsorted(ends, order, side="right")
        for at in set(owner.tolist()):
            places = np.flatnonzero(owner == at)
            for place, span in zip(places.tolist(), segments[at].spans_of(rows[order[places]]), strict=True):
                spans[place] = span
    scores = scores.astype(np.float64) / unit
    chosen = [column[order].tolist() for column in (positions, numbers, scores, covers)]
    return list(map(_scored, zip(*chosen, spans, strict=True)))
