"""Random runs of three to six actors with faults, each decided by one number.

A failing number is printed; `python -m tests.simulate --seed NUMBER` runs it again, step by step the same.
"""

from __future__ import annotations

import os
import time

import pytest
from tests.simulate.seeds import run_seed
from tests.simulate.world import Scene

SOAK = bool(os.environ.get("REVERIE_SOAK"))
SECONDS = float(os.environ.get("REVERIE_SIMULATE_SECONDS", "600"))
"""How long `make soak` tries new seeds on each engine."""


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_seeds_on_sqlite(sqlite_scene: Scene, first: int) -> None:
    for seed in range(first, first + 10):
        run = run_seed(sqlite_scene, seed)
        assert run.broken is None, f"seed {seed}: {run.told()}"


def test_seeds_on_postgres(postgres_scene: Scene) -> None:
    for seed in range(6):
        run = run_seed(postgres_scene, seed)
        assert run.broken is None, f"seed {seed}: {run.told()}"


if SOAK:

    @pytest.mark.soak
    @pytest.mark.parametrize("engine", ["sqlite", "postgres"])
    def test_new_seeds(request: pytest.FixtureRequest, engine: str) -> None:
        scene: Scene = request.getfixturevalue(f"{engine}_scene")
        until, seed = time.monotonic() + SECONDS, time.time_ns() // 1000 % 10**9
        while time.monotonic() < until:
            run = run_seed(scene, seed)
            assert run.broken is None, f"seed {seed} on {engine}: {run.told()}"
            seed += 1
