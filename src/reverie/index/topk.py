"""The best of many scores: shared by words and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reverie.core.lazy import np

if TYPE_CHECKING:
    import numpy.typing as npt


class Found(NamedTuple):
    """A passage and how well it matches."""

    position: int
    number: int
    score: float
    cover: float = 0.0
    span: tuple[int, int] | None = None
    """The characters that it is; None: the whole content."""

    @property
    def key(self) -> tuple[int, int]:
        """What tells it apart."""
        return self.position, self.number


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
