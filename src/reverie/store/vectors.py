"""Exact nearest neighbours inside one memory.

Vectors rest as int8 in the file, and as int8 in memory once they are searched, brought up to date from the log position
they were read at. For a search they become float32 a block at a time: products of int8 vectors are integers below
2^24, so float32 sums of them are exact in any order, and every machine gives the same scores.

The first half of every vector is multiplied first. What the other half can add is at most the product of the two
lengths (Cauchy and Schwarz), so most vectors are known not to be among the best before their other half is read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Rows = Iterable[tuple[int, int, bytes]]
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
"""The position of a row that is out of use; no entry has it."""


class _Matrix:
    """The vectors of one memory, growing at the end. Guarded by its lock."""

    def __init__(self, dimensions: int) -> None:
        self.lock = threading.Lock()
        self.dimensions = dimensions
        self.seq = 0
        self.size = 0
        self.row_of: dict[int, int] = {}
        self._half = (dimensions + 1) // 2
        self._positions = np.zeros(64, dtype=np.int64)
        self._heads = np.zeros((64, self._half), dtype=np.int8)
        self._tails = np.zeros((64, dimensions - self._half), dtype=np.int8)
        self._lengths = np.zeros(64, dtype=np.float32)
        """Of the tails."""

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self._positions, self._heads, self._tails, self._lengths))

    def update(self, rows: Rows) -> None:
        """Add vectors, or replace those of positions already here; later rows win."""
        found = {position: data for _, position, data in rows}
        for position in [position for position, data in found.items() if len(data) != self.dimensions]:
            del found[position]
            if (row := self.row_of.pop(position, None)) is not None:  # it has a vector of another length now
                self._positions[row] = _NOWHERE
        if not found:
            return
        places = []
        before = self.size
        for position in found:
            row = self.row_of.setdefault(position, self.size)
            self.size += row == self.size
            places.append(row)
        self._grow(before)
        vectors = np.frombuffer(b"".join(found.values()), dtype=np.int8).reshape(-1, self.dimensions)
        tails = vectors[:, self._half :]
        self._positions[places] = list(found)
        self._heads[places] = vectors[:, : self._half]
        self._tails[places] = tails
        self._lengths[places] = np.sqrt(np.einsum("ij,ij->i", tails, tails, dtype=np.float32))

    def _grow(self, used: int) -> None:
        room = len(self._positions)
        if self.size <= room:
            return
        while room < self.size:
            room *= 2
        for name in ("_positions", "_heads", "_tails", "_lengths"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            new[:used] = old[:used]
            setattr(self, name, new)

    def best(self, query: _Floats, limit: int) -> list[tuple[int, float]]:
        """The best (position, product), best first, ties by position."""
        rows, scores = self._contenders(query, limit)
        if limit < len(rows):
            # everything at least as good as the last place, so that ties are cut by position and not by chance
            last = np.partition(scores, len(rows) - limit)[len(rows) - limit]
            kept = np.flatnonzero(scores >= last)
            rows, scores = rows[kept], scores[kept]
        positions = self._positions[rows]
        order = np.lexsort((positions, -scores))[:limit]
        return list(zip(positions[order].tolist(), scores[order].tolist(), strict=True))

    def _contenders(self, query: _Floats, limit: int) -> tuple[npt.NDArray[np.intp], _Floats]:
        """Rows that hold all of the best, and their products."""
        head, tail = query[: self._half], query[self._half :]
        scores = _products(self._heads[: self.size], head)
        if (tried := limit * _TRIED) < self.size:
            likely = np.argpartition(scores, self.size - tried)[self.size - tried :]
            whole = scores[likely] + _products(self._tails[likely], tail)
            least = np.partition(whole, tried - limit)[tried - limit] - _SLACK  # the last of the best is no worse
            reach = self._lengths[: self.size] * np.sqrt(np.dot(tail, tail))
            reach += scores
            rows = np.flatnonzero(reach >= least)
            if len(rows) * 4 < self.size:
                return rows, scores[rows] + _products(self._tails[rows], tail)
        scores += _products(self._tails[: self.size], tail)
        return np.arange(self.size), scores

    def products(self, query: _Floats, positions: Sequence[int]) -> dict[int, float]:
        """The products of these positions, where they have a vector here."""
        known = [position for position in positions if position in self.row_of]
        rows = [self.row_of[position] for position in known]
        scores = _products(self._heads[rows], query[: self._half])
        scores += _products(self._tails[rows], query[self._half :])
        return dict(zip(known, scores.tolist(), strict=True))


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


class VectorCache:
    """Matrices of the memories searched last, up to a number of bytes."""

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[int, str, int], _Matrix] = OrderedDict()

    def nearest(
        self, tenant: int, ref: str, vector: bytes, *, limit: int, head: int, since: Callable[[int], Rows]
    ) -> list[tuple[int, float]]:
        """The best (position, dot product), best first. `since(seq)` reads vectors indexed after a position.

        May name entries that are no longer readable, or not yet in the caller's snapshot: the caller looks.
        """
        matrix = self._matrix(tenant, ref, len(vector))
        with matrix.lock:
            _bring_up(matrix, head, since)
            found = matrix.best(_floats(vector), limit)
        self._evict()
        return found

    def products(
        self,
        tenant: int,
        ref: str,
        vector: bytes,
        positions: Sequence[int],
        *,
        head: int,
        since: Callable[[int], Rows],
    ) -> Mapping[int, float]:
        """The dot products of these positions; the same caution."""
        matrix = self._matrix(tenant, ref, len(vector))
        with matrix.lock:
            _bring_up(matrix, head, since)
            found = matrix.products(_floats(vector), positions)
        self._evict()
        return found

    def _matrix(self, tenant: int, ref: str, dimensions: int) -> _Matrix:
        key = (tenant, ref, dimensions)
        with self._lock:
            matrix = self._held.get(key)
            if matrix is None:
                matrix = self._held[key] = _Matrix(dimensions)
            self._held.move_to_end(key)
        return matrix

    def forget(self, tenant: int, ref: str) -> None:
        """Drop what is held of a memory: after a purge, or when it holds too many rows that are gone."""
        with self._lock:
            for key in [key for key in self._held if key[:2] == (tenant, ref)]:
                del self._held[key]

    def _evict(self) -> None:
        with self._lock:
            held = sum(matrix.nbytes for matrix in self._held.values())
            while held > self._max_bytes and len(self._held) > 1:
                held -= self._held.popitem(last=False)[1].nbytes


def _bring_up(matrix: _Matrix, head: int, since: Callable[[int], Rows]) -> None:
    if matrix.seq < head:
        matrix.update(since(matrix.seq))
        matrix.seq = head


def _floats(vector: bytes) -> _Floats:
    return np.frombuffer(vector, dtype=np.int8).astype(np.float32)
