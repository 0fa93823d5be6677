"""Kill a real process in the middle of a compaction or distillation: the old state or the new one, and a run that ends."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.crash import passer
from tests.crash.test_dream_kill import fill
from tests.processes import run
from tests.stores import open_store

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.core.run import COMPACT, DISTILL
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.conformance import HandClock

SOAK = bool(os.environ.get("REVERIE_SOAK"))
STEPS = ("snapshot", "event", "inserted", "half-retired", "retired") if SOAK else ("inserted", "retired")


def look(folder: str, ids: list[str]) -> bool:
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


def recovered(folder: str) -> None:
    """Another process, later: every run that was begun ends, and its last event is its end."""
    later = HandClock(SystemClock().now() + 600_000)
    host = Host(Services(store=open_store(folder, clock=later), clock=later, tokens=TokenCounter()))
    try:
        actor = Actor(tenant="default", id="local:test")
        host.runs.recover(actor)
        begun = [e for e in host.reader.events(actor, limit=1000) if e.type == "run.started"]
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
def test_killed_at_a_named_step_nothing_is_half_done(make_target: Callable[..., str], workflow: str, step: str) -> None:
    folder = make_target()
    ids = fill(folder)
    assert run(passer.main, folder, workflow, step) == -9
    assert not look(folder, ids)
    recovered(folder)
    assert look(folder, ids)


def test_killed_at_random_moments_the_pass_is_whole_or_nothing(make_target: Callable[..., str]) -> None:
    pick = random.Random(20261116)
    for turn in range(300 if SOAK else 3):
        folder = make_target(str(turn))
        ids = fill(folder)
        run(passer.main, folder, (COMPACT, DISTILL)[turn % 2], f"after-{pick.uniform(1, 40):.2f}")
        look(folder, ids)
        recovered(folder)
