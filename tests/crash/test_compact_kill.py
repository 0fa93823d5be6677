"""Kill a real process at every step of a COMPACT: all of it happened, or nothing."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from tests.crash import compactor
from tests.processes import run

from reverie.akashik import Agent, Field

SOAK = bool(os.environ.get("REVERIE_SOAK"))
UNITS = 8
USUAL = ("half", "sent", "after-commit")
CHOSEN = [(name, step) for name, steps in compactor.STEPS.items() for step in steps if SOAK or step in USUAL]


def fill(folder: str) -> list[str]:
    with Field(folder) as field:
        agent = field.register(id="a", role="r", authority_level=10)
        sure = {"score": 0.9, "reasoning": "r"}
        texts = [f"Wagon {n} of the night train carries {n * 31} crates of apples." for n in range(UNITS)]
        return [agent.record(text, intent="freight", confidence=sure).memory_unit_id for text in texts]


def happened(folder: str, strategy: str, ids: list[str]) -> bool:
    """Whether the COMPACT happened; it must have happened whole."""
    with Field(folder) as field:
        assert field.host.audit.verify(field.actor).ok
        assert field.host.parts.store.check()
        units = field.status().units
        types = [event["type"] for event in field.log(limit=10_000).events]
        done = "field.compacted" in types
        if not done:
            assert (units.hot, units.archived, units.purged) == (UNITS, 0, 0)
            assert not {"memory.archived", "memory.purged", "memory.compacted"} & set(types)
        elif strategy == "purge":
            assert (units.hot, units.archived, units.purged) == (0, 0, UNITS)
            assert types.count("memory.purged") == UNITS
        else:
            made = types.count("memory.compacted")
            assert (units.hot, units.archived, units.purged) == (made, UNITS, 0)
            assert types.count("memory.archived") == UNITS
            if strategy == "summarize":
                outputs = [
                    e["memory_unit_id"] for e in field.log(limit=10_000).events if e["type"] == "memory.compacted"
                ]
                linked = [r["target_id"] for output in outputs for r in field.unit(output)["relations"]]
                assert sorted(linked) == sorted(ids)
        agent = Agent(field, "a", "r")
        left = agent.compact(strategy).units_affected  # and nothing stands in the way of the next one
        assert left == (0 if done else UNITS)
        return done


@pytest.mark.parametrize(("strategy", "step"), CHOSEN)
def test_killed_at_a_named_step_a_compact_is_whole_or_nothing(
    make_target: Callable[..., str], strategy: str, step: str
) -> None:
    folder = make_target()
    ids = fill(folder)
    assert run(compactor.main, folder, strategy, step) == -9
    assert happened(folder, strategy, ids) == (step == "after-commit")


@pytest.mark.parametrize("number", range(30 if SOAK else 2))
def test_killed_at_any_moment_a_compact_is_whole_or_nothing(make_target: Callable[..., str], number: int) -> None:
    folder = make_target()
    ids = fill(folder)
    chosen = random.Random(number)
    strategy = chosen.choice(sorted(compactor.STEPS))
    run(compactor.main, folder, strategy, f"after-{chosen.uniform(1, 60):.2f}")
    happened(folder, strategy, ids)
