"""Rows by position, growing arrays and the best of many scores: shared by words and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Found(NamedTuple):
    """A passage and how well it matches."""

    position: int
    number: int
    score: float
    cover: float = 0.0


def best_of(
    positions: npt.NDArray[np.int64], numbers: npt.NDArray[np.int32], scores: npt.NDArray[Any], limit: int
) -> npt.NDArray[np.intp]:
    """The indexes of the best, best first, ties by position and number."""
    kept = np.arange(len(scores))
    if limit < len(scores):
        # everything at least as good as the last place, so that ties are cut by position and not by chance
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= last)
    order = np.lexsort((numbers[kept], positions[kept], -scores[kept]))[:limit]
    return kept[order]


class Places:
    """Which rows the passages of a position are in. The rows of one position follow each other."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._many: dict[int, int] = {}
        """How many rows, of positions that have more than one."""

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, position: int) -> bool:
        return position in self._first

    @property
    def nbytes(self) -> int:
        return 100 * (len(self._first) + len(self._many))

    def add(self, positions: Sequence[int], firsts: Sequence[int], counts: Sequence[int]) -> None:
        """Note where the passages of positions are."""
        self._first.update(zip(positions, firsts, strict=True))
        self._many.update((at, count) for at, count in zip(positions, counts, strict=True) if count > 1)

    def pop(self, positions: Sequence[int]) -> list[int]:
        """Drop positions; returns the rows they had."""
        rows: list[int] = []
        for position in positions:
            first = self._first.pop(position, None)
            if first is not None:
                rows.extend(range(first, first + self._many.pop(position, 1)))
        return rows

    def count(self, position: int) -> int:
        """How many passages a position has."""
        return self._many.get(position, 1) if position in self._first else 0

    def rows(self, positions: Sequence[int]) -> npt.NDArray[np.intp]:
        """The rows of those positions that have some."""
        if not self._many:
            first = self._first
            return np.array([row for at in positions if (row := first.get(at)) is not None], dtype=np.intp)
        rows: list[int] = []
        for position in positions:
            first_row = self._first.get(position)
            if first_row is not None:
                rows.extend(range(first_row, first_row + self._many.get(position, 1)))
        return np.array(rows, dtype=np.intp)


def grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The array with room for `size` rows; doubled, so that growing row by row costs no more than copying twice."""
    room = len(array)
    if size <= room:
        return array
    while room < size:
        room *= 2
    new = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    new[: len(array)] = array
    return new
