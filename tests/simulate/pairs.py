"""Which use cases meet in which runs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulate.actors import NAMES

AIMED = (
    ("forget@0", "forget@0"),
    ("forget@0", "delete@1"),
    ("delete@0", "delete@0"),
    ("delete@1", "undo"),
    ("delete@1", "restore@1"),
    ("delete@1", "restore@2"),
    ("undo", "restore@2"),
    ("put@0", "forget@0"),
    ("import", "forget@0"),
    ("turn", "forget@0"),
)
"""Pairs that aim at the same thing where the first and second slot of a pair do not."""


def all_pairs() -> Iterator[tuple[str, str]]:
    """Every use case with every use case, itself among them."""
    for at, one in enumerate(NAMES):
        for other in NAMES[at:]:
            yield one, other
    yield from AIMED
