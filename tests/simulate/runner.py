"""One run: actors, an order of their steps, and the model after each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.simulate.actors import Op, make
from tests.simulate.baton import SLEEP, Killed, Step, Stuck
from tests.simulate.model import Broken, Model
from tests.simulate.settle import search_bytes
from tests.simulate.world import Scene, World

from reverie.core.errors import ReverieError

MOST_STEPS = 1500
Choose = Callable[[int, list[int], int | None], int]
"""(number of the step, actors that can move, who moved last): who moves now."""


@dataclass
class Run:
    """How a run went."""

    names: Sequence[str]
    choices: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    enabled: list[list[int]] = field(default_factory=list)
    broken: str | None = None
    outcomes: list[str] = field(default_factory=list)

    def schedule(self) -> str:
        """The order, as `0:3 1:2 0`: who moved, and how many steps in a row."""
        parts: list[str] = []
        at = 0
        while at < len(self.choices):
            end = at
            while end < len(self.choices) and self.choices[end] == self.choices[at]:
                end += 1
            parts.append(f"{self.choices[at]}:{end - at}")
            at = end
        return " ".join(parts)

    def told(self) -> str:
        """The failure, and how to see it again."""
        who = " | ".join(self.names)
        return f"{who}: {self.broken}\n  schedule: {self.schedule()}\n  outcomes: {', '.join(self.outcomes)}"


def parse(schedule: str) -> list[int]:
    """The choices that `Run.schedule` names."""
    choices: list[int] = []
    for part in schedule.split():
        who, times = part.split(":")
        choices += [int(who)] * int(times)
    return choices


def follow(choices: Sequence[int]) -> Choose:
    """First these, then whoever moved last for as long as it can."""

    def choose(number: int, able: list[int], last: int | None) -> int:
        if number < len(choices) and choices[number] in able:
            return choices[number]
        return last if last in able else able[0]

    return choose


class Crash(Exception):
    """The process dies before this step."""


def play(
    world: World,
    names: Sequence[str],
    choose: Choose,
    *,
    before: Callable[[int, Model], None] | None = None,
    reopen: Callable[[], None] | None = None,
    epilogue: Callable[[World, Model], None] | None = None,
) -> Run:
    """Carry the use cases out in the chosen order. Never raises for a broken promise: the run says it.

    `before` is called before each step and may raise Crash; then `reopen` opens what is left.
    """
    ops = [make(world, name, slot) for slot, name in enumerate(names)]
    run = Run(list(names))
    try:
        model = Model(world, ops)
        for op in ops:
            world.baton.add(op.work)
        try:
            _steps(world, model, ops, run, choose, before)
        except Crash:
            for op in ops:
                if op.begun is not None and op.ended is None:
                    op.error, op.ended = Killed(), model.step
            assert reopen is not None
            reopen()
            model.check()
        if epilogue is not None:
            epilogue(world, model)
        model.check_tenants()
        world.close()
        search_bytes(world, model)
    except (Broken, Stuck) as fault:
        run.broken = str(fault)
    except ReverieError as fault:
        run.broken = f"a check could not be made: {fault!r}"
    finally:
        if not world.baton.dead:
            world.baton.kill()
    run.outcomes = [_outcome(op) for op in ops]
    return run


def _steps(
    world: World,
    model: Model,
    ops: Sequence[Op],
    run: Run,
    choose: Choose,
    before: Callable[[int, Model], None] | None,
) -> None:
    last: int | None = None
    while able := world.baton.enabled():
        if len(run.steps) >= MOST_STEPS:
            raise Broken(f"not at an end after {MOST_STEPS} steps")
        if before is not None:
            before(len(run.steps), model)
        last = choose(len(run.steps), able, last)
        actor, op = world.baton.actors[last], ops[last]
        run.choices.append(last)
        run.enabled.append(able)
        model.step = len(run.steps) + 1
        if op.begun is None:
            model.began(op)
        run.steps.append(actor.step())
        world.clock.advance(1)
        if run.steps[-1].kind != SLEEP:
            for other in world.baton.actors:
                other.slept = other.slept and other is actor
        if actor.done:
            _end(model, op, world, last)
        model.check()


def _end(model: Model, op: Op, world: World, number: int) -> None:
    actor = world.baton.actors[number]
    op.result, op.error = actor.result, actor.error
    model.ended(op)


def _outcome(op: Op) -> str:
    if op.ended is None:
        return f"{op.label()} not ended"
    return f"{op.label()} {'ok' if op.error is None else type(op.error).__name__}"


def replay(scene: Scene, names: Sequence[str], schedule: str, **how: object) -> Run:
    """A run in a given order."""
    with scene.world() as world:
        return play(world, names, follow(parse(schedule)), **how)  # type: ignore[arg-type]
