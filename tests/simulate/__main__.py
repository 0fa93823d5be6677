"""Run the simulator by hand.

    python -m tests.simulate --seed 44                          one seed, again
    python -m tests.simulate --seconds 600                      new seeds for ten minutes
    python -m tests.simulate --actors dream forget              every order of two use cases
    python -m tests.simulate --actors dream forget --schedule "1:2 0:4 1:1"     one order, again

`--engine postgres` does the same on PostgreSQL.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator

from tests.simulate.explore import explore
from tests.simulate.runner import Run, replay
from tests.simulate.seeds import run_seed
from tests.simulate.settle import settle
from tests.simulate.world import Scene, scratch, simulated_time


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description="The deterministic checker.")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, help="run one seed")
    parser.add_argument("--seconds", type=float, help="run new seeds for so long")
    parser.add_argument("--first", type=int, default=None, help="the first of the new seeds")
    parser.add_argument("--actors", nargs="+", help="use cases, such as: dream forget@1")
    parser.add_argument("--schedule", help="one order, as a failure prints it")
    parser.add_argument("--most", type=int, default=10_000, help="at most so many orders")
    asked = parser.parse_args()
    if asked.seed is None and asked.seconds is None and not asked.actors:
        parser.error("say --seed, --seconds or --actors")
    folder = scratch()
    back = simulated_time()
    try:
        return _report(asked, _runs(asked, _scene(asked.engine, folder)))
    finally:
        back()
        shutil.rmtree(folder, ignore_errors=True)


def _scene(engine: str, folder: object) -> Scene:
    from pathlib import Path

    server = None
    if engine == "postgres":
        from tests.postgres import start_server

        home = Path("/tmp/reverie-simulate-postgres")  # as root the server is another user, who must reach it
        home.mkdir(exist_ok=True)
        server = start_server(home)
    return Scene(Path(str(folder)), server)


def _runs(asked: argparse.Namespace, scene: Scene) -> Iterator[tuple[str, Run]]:
    if asked.seed is not None:
        yield f"seed {asked.seed}", run_seed(scene, asked.seed)
    elif asked.actors and asked.schedule:
        yield "schedule", replay(scene, asked.actors, asked.schedule, epilogue=settle)
    elif asked.actors:
        for number, run in enumerate(explore(scene, asked.actors, most=asked.most, epilogue=settle)):
            yield f"order {number}", run
    else:
        until, seed = time.monotonic() + asked.seconds, asked.first or time.time_ns() // 1000 % 10**9
        while time.monotonic() < until:
            yield f"seed {seed}", run_seed(scene, seed)
            seed += 1


def _report(asked: argparse.Namespace, runs: Iterator[tuple[str, Run]]) -> int:
    done = broken = 0
    for name, run in runs:
        done += 1
        if run.broken is not None:
            broken += 1
            print(f"{name}: {run.told()}", flush=True)
        elif asked.seed is not None or asked.schedule:
            print(f"{name}: {' | '.join(run.names)}\n  schedule: {run.schedule()}\n  {', '.join(run.outcomes)}")
    print(f"{done - broken} passed, {broken} failed")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
