"""Nearest neighbours inside one memory.

Vectors are stored as int8. For a search they become float32 a block at a time: products of int8 vectors are integers
below 2^24, so float32 sums of them are exact in any order, and every machine gives the same scores.

Below `CODED` vectors the search is exact. The first half of every vector is multiplied first. The other half can add at
most the product of the two lengths (Cauchy and Schwarz), so most vectors are ruled out before their other half is read.
From `CODED` vectors on, codes (see codes.py) select the vectors to compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reverie.core.lazy import np
from reverie.core.query import Vector
from reverie.index.codes import EncodedQuery, nearest
from reverie.index.parts import Part
from reverie.index.segment import Damaged, ScoredPassage, Segment, Vectors, picked, space, weights

if TYPE_CHECKING:
    import numpy.typing as npt

_Floats: TypeAlias = "npt.NDArray[np.float32]"
_Rows: TypeAlias = "npt.NDArray[Any]"

CODED = 50_000
"""Number of vectors from which codes are compared first."""
LOOKED_AT = 4096
"""Limit of the vectors that are compared exactly, or `_TIMES` the number asked for if that is more."""
_TIMES = 40
_STEPS = 8
"""The first step compares one in this many of them."""
BLOCK = 1024
"""Number of rows that are converted to float32 and multiplied at once.

A block of 128 dimensions is half a megabyte: it stays near the processor, so a search reads the int8 vectors from
memory and not four times as much float32. And it is too small for BLAS to hand to its thread pool, which on a busy
machine cost 90 to 500 ms.
"""
_SLACK = 4.0
"""Upper bound of the error of float32 in the bound, in units of a product."""
_FEW = 16_384
"""Number of vectors up to which all are read in full: finding those to skip would take longer."""
_TRIED = 4
"""Multiple of the number asked for: so many vectors, the best by their first half, are read in full to get a bound."""
_ROUGH = 8
"""One in this many codes is compared in full."""
_NEVER = -3e38
_UNIT = 127.0 * 127.0
"""The product of a vector with itself: all vectors have the length 127."""


class Meaning:
    """A search by meaning: the vector of a question, and those of a memory in the same space."""

    def __init__(self, parts: Sequence[Part], vector: Vector) -> None:
        key, self._query = _read(vector)
        self._groups = [(part, own) for part in parts if (own := part.segment.vectors.get(key)) is not None]
        self._whole: dict[int, _Floats] = {}
        """The products of all vectors of small groups, by the place of the group: computed once."""

    def best(self, limit: int, among: npt.NDArray[np.int64] | None = None) -> list[ScoredPassage]:
        """The best passages by cosine, of all or only at the positions `among`; best first, ties by position."""
        groups, query = self._groups, self._query
        found: list[tuple[Part, Vectors, _Rows, _Floats]] = []
        if among is not None:
            for part, own in groups:
                rows = _placed(part, own, among)
                found.append((part, own, rows, _verified_products(part, own, rows, query)))
        elif sum([len(own.rows) for _, own in groups]) >= CODED:
            found = _coded(groups, query, limit)
        else:
            least = float(_NEVER)
            for at in sorted(range(len(groups)), key=lambda at: -len(groups[at][1].rows)):
                part, own = groups[at]
                rows, scores = self._exact(at) if len(own.rows) <= _FEW else _contenders(part, own, query, limit, least)
                found.append((part, own, rows, scores))
                if len(rows) >= limit and len(found) < len(groups):
                    least = max(least, float(np.partition(scores, len(scores) - limit)[len(scores) - limit]))
        columns: list[tuple[npt.NDArray[Any], ...]] = []
        segments: list[Segment] = []
        for part, own, chosen, scores in found:
            if len(scores) > limit:
                kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit])
                chosen, scores = chosen[kept], scores[kept]
            columns.append((own.rows[chosen], scores, np.zeros(len(chosen))))
            segments.append(part.segment)
        return picked(segments, columns, limit, unit=_UNIT)

    def _exact(self, at: int) -> tuple[_Rows, _Floats]:
        """The vectors of a small group that are in use, and their products."""
        part, own = self._groups[at]
        part.segment.check(f"{own.key}.rows", f"{own.key}.data")
        scores = self._whole[at] = _products(own.data, self._query)
        rows = np.arange(len(scores))
        if not len(out := _out(part, own)):
            return rows, scores
        rows = np.delete(rows, out)
        return rows, scores[rows]

    def cosines(self, wanted: Sequence[int]) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of these positions, where they have vectors of this space."""
        positions = np.array(wanted, dtype=np.int64)
        found: dict[int, list[float]] = {}
        for at, (part, own) in enumerate(self._groups):
            chosen = _placed(part, own, positions)
            whole = self._whole.get(at)
            scores = whole[chosen] if whole is not None else _verified_products(part, own, chosen, self._query)
            where = part.segment.positions[own.rows[chosen]]
            for position, score in zip(where.tolist(), (scores.astype(np.float64) / _UNIT).tolist(), strict=True):
                found.setdefault(position, []).append(score)
        return found


def _verified_products(part: Part, own: Vectors, chosen: _Rows, query: _Floats) -> _Floats:
    """The products of some vectors, which are verified against their checksums when they come from a file."""
    data = own.data[chosen]
    if part.segment.guard is None or not len(chosen):
        return _products(data, query)
    part.segment.check(f"{own.key}.rows", f"{own.key}.sums")
    by = weights(len(query))
    products, sums = _multiplied(data, query.astype(by.dtype, copy=False), by)
    if not np.array_equal(sums.astype(np.int64) & 0xFFFFFFFF, own.sums[chosen]):
        raise Damaged(part.segment.name)
    return products.astype(np.float32, copy=False)


def _placed(part: Part, own: Vectors, positions: npt.NDArray[np.int64]) -> _Rows:
    """Return the rows of the vectors that belong to these positions."""
    rows = part.segment.rows_of(positions)
    if len(part.dead):
        rows = rows[~np.isin(rows, part.dead)]
    if not len(own.rows):
        return np.zeros(0, dtype=np.intp)
    part.segment.check(f"{own.key}.rows")
    at = np.minimum(np.searchsorted(own.rows, rows), len(own.rows) - 1)
    chosen: _Rows = at[own.rows[at] == rows]
    return chosen


def _out(part: Part, own: Vectors) -> _Rows:
    """Return the rows of the vectors that are out of use."""
    if not len(part.dead):
        return np.zeros(0, dtype=np.intp)
    at = np.minimum(np.searchsorted(own.rows, part.dead), len(own.rows) - 1)
    out: _Rows = at[own.rows[at] == part.dead]
    return out


def _contenders(part: Part, own: Vectors, query: _Floats, limit: int, least: float) -> tuple[_Rows, _Floats]:
    """Vectors that include all of the best, and their products."""
    size, half = len(own.rows), (len(query) + 1) // 2
    for name in ("rows", "data", "tails"):
        part.segment.check(f"{own.key}.{name}")
    out = _out(part, own)
    head, tail = query[:half], query[half:]
    scores = _products(own.data[:, :half], head)
    scores[out] = _NEVER
    if (tried := limit * _TRIED) < size:
        likely = np.argpartition(scores, size - tried)[size - tried :]
        whole = scores[likely] + _products(own.data[likely, half:], tail)
        least = max(least, float(np.partition(whole, tried - limit)[tried - limit]))  # a lower bound for the best
        reach = own.tails * np.sqrt(np.dot(tail, tail))
        reach += scores
        rows = np.flatnonzero(reach >= least - _SLACK)
        if len(rows) * 4 < size:
            return rows, scores[rows] + _products(own.data[rows, half:], tail)
    scores += _products(own.data[:, half:], tail)
    rows = np.flatnonzero(scores > _NEVER / 2)
    return rows, scores[rows]


def _coded(
    groups: Sequence[tuple[Part, Vectors]], query: _Floats, limit: int
) -> list[tuple[Part, Vectors, _Rows, _Floats]]:
    """The vectors of the nearest codes, and the best of the segments without codes.

    They are compared in steps, each doubling the number, until a step adds at most one vector to the best. Near
    neighbours are mostly among the first; all steps are needed only where all vectors are about equally near.
    """
    found, measured = [], []
    for part, own in groups:
        if not len(own.codes):
            rows, scores = _contenders(part, own, query, limit, float(_NEVER))
            found.append((part, own, rows, scores))
            continue
        part.segment.check(*(f"{own.key}.{name}" for name in ("rows", "codes", "centre", "sums")))
        asked = EncodedQuery(query, own.centre)
        rows = nearest(asked.rough(own.codes), max(len(own.rows) // _ROUGH, limit))
        measured.append((part, own, rows, asked.fine(own.codes, rows)))
    if not measured:
        return found
    fine = np.concatenate([about for _, _, _, about in measured])
    most = min(max(LOOKED_AT, limit * _TIMES), len(fine))
    fine = np.sort(np.partition(fine, len(fine) - most)[len(fine) - most :])
    likely = [(part, own, rows[kept := about >= fine[0]], about[kept]) for part, own, rows, about in measured]
    best, above = np.full(limit, _NEVER, dtype=np.float32), np.float32(np.inf)
    for step in _doubled(-(-most // _STEPS), most):
        least, entered = fine[-step], 0
        for part, own, rows, about in likely:
            near = rows[(about >= least) & (about < above)]
            if len(part.dead):
                near = np.setdiff1d(near, _out(part, own), assume_unique=True)
            scores = _verified_products(part, own, near, query)
            found.append((part, own, near, scores))
            entered += int(np.count_nonzero(scores > best[0]))
            best = np.sort(np.append(best, scores))[-limit:]
        if entered <= 1:
            break
        above = least
    return found


def _doubled(first: int, last: int) -> Iterator[int]:
    """The numbers from `first`, each twice the one before, and then `last`."""
    while first < last:
        yield first
        first *= 2
    yield last


def _products(vectors: npt.NDArray[np.int8], query: _Floats) -> _Floats:
    return _multiplied(vectors, query)[0]


def _multiplied(vectors: npt.NDArray[np.int8], *queries: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """The product of every vector with each question, one at a time: BLAS would hand a matrix to its thread pool."""
    size, kind = len(vectors), queries[-1].dtype
    scores = [np.empty(size, dtype=kind) for _ in queries]
    block = np.empty((min(BLOCK, size), len(queries[0])), dtype=kind)
    for start in range(0, size, BLOCK):
        end = min(start + BLOCK, size)
        part = block[: end - start]
        np.copyto(part, vectors[start:end])
        for query, own in zip(queries, scores, strict=True):
            np.dot(part, query, out=own[start:end])
    return scores


def _read(vector: Vector) -> tuple[str, _Floats]:
    """The space of a question's vector, and the vector as numbers."""
    model, data = vector
    return space(model, len(data)), np.frombuffer(data, dtype=np.int8).astype(np.float32)
