"""Exact nearest neighbours inside one memory.

Vectors rest as int8 in the file. A memory that is searched is kept as a float32 matrix and brought up to date from
the log position it was read at. Products of int8 vectors are integers below 2^24, so float32 sums of them are exact
in any order: every machine gives the same scores.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Rows = Iterable[tuple[int, int, bytes]]


class _Matrix:
    """The vectors of one memory, growing at the end. Guarded by its lock."""

    def __init__(self, dimensions: int) -> None:
        self.lock = threading.Lock()
        self.dimensions = dimensions
        self.seq = 0
        self.size = 0
        self.positions = np.zeros(64, dtype=np.int64)
        self.vectors = np.zeros((64, dimensions), dtype=np.float32)
        self.row_of: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        return int(self.vectors.nbytes + self.positions.nbytes)

    def update(self, rows: Rows) -> None:
        for _, position, data in rows:
            if len(data) != self.dimensions:
                continue
            at = self.row_of.get(position)
            if at is None:
                at = self.size
                if at == len(self.positions):
                    self._grow()
                self.row_of[position] = at
                self.positions[at] = position
                self.size += 1
            self.vectors[at] = np.frombuffer(data, dtype=np.int8)

    def _grow(self) -> None:
        wanted = len(self.positions) * 2
        positions = np.zeros(wanted, dtype=np.int64)
        positions[: self.size] = self.positions[: self.size]
        vectors = np.zeros((wanted, self.dimensions), dtype=np.float32)
        vectors[: self.size] = self.vectors[: self.size]
        self.positions, self.vectors = positions, vectors

    def best(self, query: npt.NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        scores = self.vectors[: self.size] @ query
        count = min(limit, self.size)
        if count < self.size:
            # everything at least as good as the last place, so that ties are cut by position and not by chance
            threshold = np.partition(scores, self.size - count)[self.size - count]
            rows = np.flatnonzero(scores >= threshold)
        else:
            rows = np.arange(self.size)
        order = np.lexsort((self.positions[rows], -scores[rows]))[:count]
        rows = rows[order]
        return list(zip(self.positions[rows].tolist(), scores[rows].tolist(), strict=True))


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
        key = (tenant, ref, len(vector))
        with self._lock:
            matrix = self._held.get(key)
            if matrix is None:
                matrix = self._held[key] = _Matrix(len(vector))
            self._held.move_to_end(key)
        with matrix.lock:
            if matrix.seq < head:
                matrix.update(since(matrix.seq))
                matrix.seq = head
            query = np.frombuffer(vector, dtype=np.int8).astype(np.float32)
            found = matrix.best(query, limit)
        self._evict()
        return found

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
