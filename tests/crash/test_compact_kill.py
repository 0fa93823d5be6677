"""Kill a real process at every step of a COMPACT: all of it happened, or nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crash.compactor import STEPS

from reverie.akashik import Agent, Field

COMPACTOR = Path(__file__).with_name("compactor.py")
SOAK = bool(os.environ.get("REVERIE_SOAK"))
UNITS = 8
USUAL = ("inserted", "half", "before-commit", "after-commit")
CHOSEN = [(name, step) for name, steps in STEPS.items() for step in steps if SOAK or step in USUAL]


def fill(folder: Path) -> list[str]:
    with Field(folder) as field:
        agent = field.register(id="a", role="r", authority_level=10)
        sure = {"score": 0.9, "reasoning": "r"}
        texts = [f"Wagon {n} of the night train carries {n * 31} crates of apples." for n in range(UNITS)]
        return [agent.record(text, intent="freight", confidence=sure).memory_unit_id for text in texts]


def compact_and_die(folder: Path, strategy: str, step: str) -> int:
    command = [sys.executable, str(COMPACTOR), str(folder), strategy, step]
    root = str(Path(__file__).parent.parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, env=env)
    assert done.returncode in (0, -9, -14), done.stderr.decode()[-2000:]  # -14: the alarm rang on the way out
    return done.returncode


def happened(folder: Path, strategy: str, ids: list[str]) -> bool:
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
def test_killed_at_a_named_step_a_compact_is_whole_or_nothing(tmp_path: Path, strategy: str, step: str) -> None:
    ids = fill(tmp_path)
    assert compact_and_die(tmp_path, strategy, step) == -9
    assert happened(tmp_path, strategy, ids) == (step == "after-commit")


@pytest.mark.parametrize("number", range(30 if SOAK else 2))
def test_killed_at_any_moment_a_compact_is_whole_or_nothing(tmp_path: Path, number: int) -> None:
    ids = fill(tmp_path)
    chosen = random.Random(number)
    strategy = chosen.choice(sorted(STEPS))
    compact_and_die(tmp_path, strategy, f"after-{chosen.uniform(1, 60):.2f}")
    happened(tmp_path, strategy, ids)
