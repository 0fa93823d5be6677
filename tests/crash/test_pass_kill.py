"""Kill a real process in the middle of a compaction or distillation: the old state or the new one, and a run that ends."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.crash.test_dream_kill import fill

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.host import Host, Parts
from reverie.host.passes import COMPACT, DISTILL
from reverie.models.tokens import TokenCounter
from reverie.store.conformance import HandClock
from reverie.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
SOAK = bool(os.environ.get("REVERIE_SOAK"))
STEPS = ("snapshot", "event", "inserted", "half-retired", "retired") if SOAK else ("inserted", "half-retired")


def pass_and_die(folder: Path, workflow: str, step: str) -> None:
    command = [sys.executable, "-m", "tests.crash.passer", str(folder), workflow, step]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode in (0, -9), done.stderr.decode()[-2000:]


def look(folder: Path, ids: list[str]) -> bool:
    """True when the pass happened. Whatever is there is whole."""
    with reverie.open(folder) as memory:
        readable = {entry.id for entry in memory.ref("bot").list(limit=1000).items}
        compacted = [event for event in memory.events() if event.type == "memory.compacted"]
        archives = memory.host.archives.index(memory.actor)["archives"]
        assert memory.verify().ok
        if not compacted:
            assert readable == set(ids)
            assert not archives
            return False
        (event,) = compacted
        assert readable == {event.entry_id}
        assert sorted(event.data["source_ids"]) == sorted(ids)
        assert [item["outputId"] for item in archives] == ([event.entry_id] if event.data.get("checksum") else [])
        return True


def recovered(folder: Path) -> None:
    """Another process, later: every run that was begun ends, and its last event is its end."""
    later = HandClock(SystemClock().now() + 600_000)
    host = Host(Parts(store=SqliteStore(folder / "reverie.db", clock=later), clock=later, tokens=TokenCounter()))
    try:
        actor = Actor(tenant="default", id="local:test")
        host.runs.recover(actor)
        begun = [e for e in host.reading.events(actor, limit=1000) if e.type == "run.started"]
        for event in begun:
            run = host.runs.get(actor, event.data["run"])
            told: list[Any] = [item for _, item in host.runs.events(actor, run)]
            assert run.ended
            assert told[-1].type == f"run.{run.status.value}" == "run.completed"
            assert sum(item.type == "memory.compacted" for item in told) == 1
    finally:
        host.close()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("workflow", [COMPACT, DISTILL])
def test_killed_at_a_named_step_nothing_is_half_done(tmp_path: Path, workflow: str, step: str) -> None:
    ids = fill(tmp_path)
    pass_and_die(tmp_path, workflow, step)
    assert not look(tmp_path, ids)
    recovered(tmp_path)
    assert look(tmp_path, ids)


def test_killed_at_random_moments_the_pass_is_whole_or_nothing(tmp_path: Path) -> None:
    pick = random.Random(20261116)
    for turn in range(300 if SOAK else 3):
        folder = tmp_path / str(turn)
        ids = fill(folder)
        pass_and_die(folder, (COMPACT, DISTILL)[turn % 2], f"after-{pick.uniform(1, 40):.2f}")
        look(folder, ids)
        recovered(folder)
