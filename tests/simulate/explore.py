"""Every order of the steps of a few actors, without those that differ only in the order of steps that commute.

Each run is looked at for races: two steps of different actors whose order can matter, with nothing between them that
fixes it. For each, a run is tried in which the later actor moves first (dynamic partial-order reduction after Flanagan
and Godefroid). Orders with few switches come first: under a bound they are what finds most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tests.simulate.baton import Step
from tests.simulate.runner import Run, follow, play
from tests.simulate.world import Scene


def explore(
    scene: Scene, names: Sequence[str], *, most: int, epilogue: Callable[..., None] | None = None
) -> Iterator[Run]:
    """Runs in different orders, until all were tried or `most` were."""
    frontier: list[tuple[int, int, tuple[int, ...]]] = []
    seen: set[object] = set()
    count = 0

    def add(prefix: tuple[int, ...], key: object) -> None:
        nonlocal count
        if key not in seen:
            seen.add(key)
            heapq.heappush(frontier, (_switches(prefix), count, prefix))
            count += 1

    for first in range(len(names)):
        add((first,), ((), first))
    done = 0
    while frontier and done < most:
        _, _, prefix = heapq.heappop(frontier)
        with scene.world() as world:
            run = play(world, names, follow(prefix), epilogue=epilogue)
        done += 1
        yield run
        if run.broken is None:
            for at, actor in races(run):
                add((*run.choices[:at], actor), (canonical(run.steps[:at]), actor))


def races(run: Run) -> Iterator[tuple[int, int]]:
    """(before which step, who should move there instead)."""
    steps = run.steps
    for later in range(len(steps)):
        for earlier in range(later - 1, -1, -1):
            one, two = steps[earlier], steps[later]
            if one.actor == two.actor:
                continue
            if one.depends_on(two):
                if two.actor in run.enabled[earlier]:
                    yield earlier, two.actor
                break


def canonical(steps: Sequence[Step]) -> tuple[object, ...]:
    """The same for orders that differ only in steps that commute: by depth, then by actor."""
    depth: list[int] = []
    for at, step in enumerate(steps):
        depth.append(1 + max((depth[b] for b in range(at) if steps[b].depends_on(step)), default=0))
    return tuple(
        sorted((d, s.actor, s.kind, s.moved, s.failed, s.ref or "") for d, s in zip(depth, steps, strict=True))
    )


def _switches(prefix: Sequence[int]) -> int:
    return sum(one != two for one, two in pairwise(prefix))
