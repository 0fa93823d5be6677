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

from reverie.index.topk import Found, Places, best_of, grown

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
        self._places = Places()
        self._half = (dimensions + 1) // 2
        self._dimensions = dimensions
        self._positions = np.zeros(64, dtype=np.int64)
        self._numbers = np.zeros(64, dtype=np.int32)
        self._heads = np.zeros((64, self._half), dtype=np.int8)
        self._tails = np.zeros((64, dimensions - self._half), dtype=np.int8)
        self._lengths = np.zeros(64, dtype=np.float32)
        """Of the tails."""

    @property
    def nbytes(self) -> int:
        held = (self._positions, self._numbers, self._heads, self._tails, self._lengths)
        return sum(part.nbytes for part in held) + self._places.nbytes

    def update(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the vectors of positions, in place of those they had. Those of several passages follow each other."""
        self.remove([position for position, _ in rows if position in self._places])
        first = self._size
        counts = [len(data) // self._dimensions for _, data in rows]
        firsts = np.cumsum([first, *counts])[:-1]
        self._size += sum(counts)
        for name in ("_positions", "_numbers", "_heads", "_tails", "_lengths"):
            setattr(self, name, grown(getattr(self, name), self._size))
        vectors = np.frombuffer(b"".join([data for _, data in rows]), dtype=np.int8).reshape(-1, self._dimensions)
        tails = vectors[:, self._half :]
        new = slice(first, self._size)
        self._positions[new] = np.repeat([position for position, _ in rows], counts)
        self._numbers[new] = np.arange(first, self._size) - np.repeat(firsts, counts)
        self._heads[new] = vectors[:, : self._half]
        self._tails[new] = tails
        self._lengths[new] = np.sqrt(np.einsum("ij,ij->i", tails, tails, dtype=np.float32))
        self._places.add([position for position, _ in rows], firsts.tolist(), counts)

    def remove(self, positions: Sequence[int]) -> None:
        """Forget the vectors of these positions."""
        rows = self._places.pop(positions)
        for part in (self._positions, self._numbers, self._heads, self._tails, self._lengths):
            part[rows] = _NOWHERE

    def best(self, vector: bytes, limit: int, among: Sequence[int] | None = None) -> list[Found]:
        """The best passages by product, of all or among some positions, best first, ties by position.

        Rows out of use may be among the best of all.
        """
        query = _floats(vector)
        if among is None:
            rows, scores = self._contenders(query, limit)
        else:
            rows = self._places.rows(among)
            scores = self._whole(query, rows)
        order = best_of(self._positions[rows], self._numbers[rows], scores, limit)
        columns = (self._positions[rows], self._numbers[rows], scores)
        return [Found(*row) for row in zip(*(column[order].tolist() for column in columns), strict=True)]

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

    def products(self, vector: bytes, positions: Sequence[int]) -> Mapping[int, Sequence[float]]:
        """The products of the passages of these positions, where they have vectors here."""
        rows = self._places.rows(positions)
        found: dict[int, list[float]] = {}
        scores = self._whole(_floats(vector), rows)
        for position, score in zip(self._positions[rows].tolist(), scores.tolist(), strict=True):
            found.setdefault(position, []).append(score)
        return found

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
