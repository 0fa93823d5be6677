"""What words and vectors share: rows by position, growing arrays, and the best of many scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = list[tuple[int, float]]
"""(position, score), best first."""


def best_of(positions: npt.NDArray[np.int64], scores: npt.NDArray[Any], limit: int) -> Rows:
    """The best, best first, ties by position."""
    if limit < len(scores):
        # everything at least as good as the last place, so that ties are cut by position and not by chance
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= last)
        positions, scores = positions[kept], scores[kept]
    order = np.lexsort((positions, -scores))[:limit]
    return list(zip(positions[order].tolist(), scores[order].tolist(), strict=True))


def rows_of(positions: Sequence[int], row_of: Mapping[int, int]) -> npt.NDArray[np.intp]:
    """The rows of those positions that have one."""
    return np.array([row for position in positions if (row := row_of.get(position)) is not None], dtype=np.intp)


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
