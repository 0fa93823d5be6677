"""Exact nearest neighbours inside one memory.

Vectors rest as int8 in the file, and as int8 in memory once they are searched, brought up to date from the log position
they were read at. For a search they become float32 a block at a time: products of int8 vectors are integers below
2^24, so float32 sums of them are exact in any order, and every machine gives the same scores.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Rows = Iterable[tuple[int, int, bytes]]

BLOCK = 1024
"""Rows made float32 and multiplied at once.

A block of 256 dimensions is a megabyte: it stays near the processor, so a search of 100,000 vectors reads 26 MB of int8
instead of 102 MB of float32 (6 ms of processor time instead of 16). And it is too small for BLAS to hand to its thread
pool, which on a busy machine cost 90 to 500 ms.
"""


class _Matrix:
    """The vectors of one memory, growing at the end. Guarded by its lock."""

    def __init__(self, dimensions: int) -> None:
        self.lock = threading.Lock()
        self.dimensions = dimensions
        self.seq = 0
        self.size = 0
        self.positions = np.zeros(64, dtype=np.int64)
        self.vectors = np.zeros((64, dimensions), dtype=np.int8)
        self.row_of: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        return int(self.vectors.nbytes + self.positions.nbytes)

    def update(self, rows: Rows) -> None:
        """Add vectors, or replace those of positions already here; later rows win."""
        found = {position: data for _, position, data in rows if len(data) == self.dimensions}
        if not found:
            return
        before = self.size
        places = [self.row_of.setdefault(position, len(self.row_of)) for position in found]
        self.size = len(self.row_of)
        self._grow(before)
        self.positions[places] = list(found)
        self.vectors[places] = np.frombuffer(b"".join(found.values()), dtype=np.int8).reshape(-1, self.dimensions)

    def _grow(self, used: int) -> None:
        room = len(self.positions)
        if self.size <= room:
            return
        while room < self.size:
            room *= 2
        positions = np.zeros(room, dtype=np.int64)
        positions[:used] = self.positions[:used]
        vectors = np.zeros((room, self.dimensions), dtype=np.int8)
        vectors[:used] = self.vectors[:used]
        self.positions, self.vectors = positions, vectors

    def best(self, query: npt.NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        scores = self._scores(query)
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

    def _scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        scores = np.empty(self.size, dtype=np.float32)
        block = np.empty((min(BLOCK, self.size), self.dimensions), dtype=np.float32)
        for start in range(0, self.size, BLOCK):
            end = min(start + BLOCK, self.size)
            part = block[: end - start]
            np.copyto(part, self.vectors[start:end])
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
