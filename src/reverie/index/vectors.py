"""Exact nearest neighbours inside one memory.

Vectors rest as int8 in the store, and as int8 in memory once they are searched. For a search they become float32 a
block at a time: products of int8 vectors are integers below 2^24, so float32 sums of them are exact in any order, and
every machine gives the same scores.

The first half of every vector is multiplied first. What the other half can add is at most the product of the two
lengths (Cauchy and Schwarz), so most vectors are known not to be among the best before their other half is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from reverie.index.topk import Rows, best_of, grown, rows_of

_Floats = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.int8]

BLOCK = 1024
"""Rows made float32 and multiplied at once.

A block of 128 dimensions is half a megabyte: it stays near the processor, so a search reads the int8 vectors from
memory and not four times as much float32. And it is too small for BLAS to hand to its thread pool, which on a busy
machine cost 90 to 500 ms.
"""
_SLACK = 4.0
"""More than float32 can be wrong about the bound, in units of a product."""
_TRIED = 4
"""So many times the vectors asked for, the best by their first half, tell how good one has to be."""
_NOWHERE = 0
"""What a row out of use holds; no entry has this position."""


class Vectors:
    """The vectors of one length of one memory, growing at the end."""

    def __init__(self, dimensions: int) -> None:
        self._size = 0
        self._row_of: dict[int, int] = {}
        self._half = (dimensions + 1) // 2
        self._dimensions = dimensions
        self._positions = np.zeros(64, dtype=np.int64)
        self._heads = np.zeros((64, self._half), dtype=np.int8)
        self._tails = np.zeros((64, dimensions - self._half), dtype=np.int8)
        self._lengths = np.zeros(64, dtype=np.float32)
        """Of the tails."""

    @property
    def nbytes(self) -> int:
        held = (self._positions, self._heads, self._tails, self._lengths)
        return sum(part.nbytes for part in held) + 100 * len(self._row_of)

    def update(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the vectors of positions, in place of those they had."""
        places = []
        for position, _ in rows:
            row = self._row_of.setdefault(position, self._size)
            self._size += row == self._size
            places.append(row)
        for name in ("_positions", "_heads", "_tails", "_lengths"):
            setattr(self, name, grown(getattr(self, name), self._size))
        vectors = np.frombuffer(b"".join([data for _, data in rows]), dtype=np.int8).reshape(-1, self._dimensions)
        tails = vectors[:, self._half :]
        self._positions[places] = [position for position, _ in rows]
        self._heads[places] = vectors[:, : self._half]
        self._tails[places] = tails
        self._lengths[places] = np.sqrt(np.einsum("ij,ij->i", tails, tails, dtype=np.float32))

    def remove(self, positions: Sequence[int]) -> None:
        """Forget the vectors of these positions."""
        rows = [row for position in positions if (row := self._row_of.pop(position, None)) is not None]
        for part in (self._positions, self._heads, self._tails, self._lengths):
            part[rows] = _NOWHERE

    def best(self, vector: bytes, limit: int, among: Sequence[int] | None = None) -> Rows:
        """The best (position, product), of all or among some positions, best first, ties by position.

        Rows out of use may be among the best of all.
        """
        query = _floats(vector)
        if among is None:
            rows, scores = self._contenders(query, limit)
        else:
            rows = rows_of(among, self._row_of)
            scores = self._whole(query, rows)
        return best_of(self._positions[rows], scores, limit)

    def _contenders(self, query: _Floats, limit: int) -> tuple[npt.NDArray[np.intp], _Floats]:
        """Rows that hold all of the best, and their products."""
        head, tail = query[: self._half], query[self._half :]
        scores = _products(self._heads[: self._size], head)
        if (tried := limit * _TRIED) < self._size:
            likely = np.argpartition(scores, self._size - tried)[self._size - tried :]
            whole = scores[likely] + _products(self._tails[likely], tail)
            least = np.partition(whole, tried - limit)[tried - limit] - _SLACK  # the last of the best is no worse
            reach = self._lengths[: self._size] * np.sqrt(np.dot(tail, tail))
            reach += scores
            rows = np.flatnonzero(reach >= least)
            if len(rows) * 4 < self._size:
                return rows, scores[rows] + _products(self._tails[rows], tail)
        scores += _products(self._tails[: self._size], tail)
        return np.arange(self._size), scores

    def products(self, vector: bytes, positions: Sequence[int]) -> Mapping[int, float]:
        """The products of these positions, where they have a vector here."""
        query = _floats(vector)
        rows = rows_of(positions, self._row_of)
        return dict(zip(self._positions[rows].tolist(), self._whole(query, rows).tolist(), strict=True))

    def _whole(self, query: _Floats, rows: npt.NDArray[np.intp]) -> _Floats:
        scores = _products(self._heads[rows], query[: self._half])
        scores += _products(self._tails[rows], query[self._half :])
        return scores


def _products(vectors: _Numbers, query: _Floats) -> _Floats:
    size = len(vectors)
    scores = np.empty(size, dtype=np.float32)
    block = np.empty((min(BLOCK, size), len(query)), dtype=np.float32)
    for start in range(0, size, BLOCK):
        end = min(start + BLOCK, size)
        part = block[: end - start]
        np.copyto(part, vectors[start:end])
        np.dot(part, query, out=scores[start:end])
    return scores


def _floats(vector: bytes) -> _Floats:
    return np.frombuffer(vector, dtype=np.int8).astype(np.float32)
