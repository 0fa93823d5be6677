"""A passage that was found: shared by words and vectors."""

from __future__ import annotations

from typing import NamedTuple


class ScoredPassage(NamedTuple):
    """A passage and how well it matches. Position and number tell it apart."""

    position: int
    number: int
    score: float
    cover: float = 0.0
    span: tuple[int, int] | None = None
    """The characters that it is; None: the whole content."""
