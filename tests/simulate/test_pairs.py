"""Every pair of use cases, in every order of their steps.

`make test` bounds the orders of a pair (those with the fewest switches come first), `make soak` hardly does.
"""

from __future__ import annotations

import os
from itertools import count
from zlib import crc32

import pytest
from tests.simulate.actors import NAMES
from tests.simulate.explore import explore
from tests.simulate.model import Model
from tests.simulate.pairs import all_pairs
from tests.simulate.settle import settle, verify
from tests.simulate.world import Scene, World

SOAK = bool(os.environ.get("REVERIE_SOAK"))
MOST = 3000 if SOAK else 4
MOST_POSTGRES = 300 if SOAK else 2
SETTLE_EVERY = 1 if SOAK else 9
"""Counted from the hash of a pair: each settles another of its orders, the same in every run."""
SAMPLE = list(all_pairs(soak=True)) if SOAK else list(all_pairs())[4::10]


def check(scene: Scene, pair: tuple[str, str], most: int) -> None:
    """No order of a pair breaks a promise."""
    numbers = count(crc32(" ".join(pair).encode()))

    def epilogue(world: World, model: Model) -> None:
        if next(numbers) % SETTLE_EVERY == 0:
            settle(world, model)
        else:
            verify(world)

    for run in explore(scene, pair, most=most, epilogue=epilogue):
        assert run.broken is None, run.told()


@pytest.mark.parametrize("first", NAMES)
def test_pairs_on_sqlite(sqlite_scene: Scene, first: str) -> None:
    for pair in all_pairs(soak=SOAK):
        if pair[0].partition("@")[0] == first:
            check(sqlite_scene, pair, MOST)


@pytest.mark.parametrize("pair", SAMPLE, ids=" ".join)
def test_pairs_on_postgres(postgres_scene: Scene, pair: tuple[str, str]) -> None:
    check(postgres_scene, pair, MOST_POSTGRES)
