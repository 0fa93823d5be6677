"""Kill a real process at every step of a dream: the whole dream happened, or none of it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from tests.crash import dreamer
from tests.processes import run
from tests.stores import open_store

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.core.dream import DreamPlan
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.conformance import HandClock

SOAK = bool(os.environ.get("REVERIE_SOAK"))


def fill(folder: str) -> list[str]:
    with reverie.open(folder) as memory:
        notes = [f"Order {n} was shipped to warehouse {n % 7} and invoice {n * 31} is paid." for n in range(40)]
        return [receipt.id for receipt in memory.ref("bot").put_many(notes)]


def check_whole_or_nothing(folder: str, ids: list[str]) -> bool:
    """True when the dream happened."""
    with reverie.open(folder) as memory:
        notes = memory.ref("bot")
        readable = {entry.id for entry in notes.list(limit=1000).items}
        reports = memory.host.lineage.reports(memory.actor)
        archives = memory.host.archives.index(memory.actor)["archives"]
        assert memory.verify().ok
        assert memory.host.parts.store.check()
        if not reports:
            assert readable == set(ids)
            assert not archives
            assert not [e for e in memory.events() if e.type in ("memory.compacted", "workspace.updated")]
            return False
        (report,) = reports
        assert readable == {report.output_id}
        assert [item["outputId"] for item in archives] == [report.output_id]
        assert memory.host.archives.get(memory.actor, str(report.checksum))
        assert {link.to_id for link in notes.links(str(report.output_id))} == set(ids)
        assert len([e for e in memory.events() if e.type == "memory.compacted"]) == 1
        assert memory.host.lineage.verify(memory.actor, report.id).ok
        return True


@pytest.mark.parametrize("step", dreamer.STEPS)
def test_killed_at_a_named_step_a_dream_is_whole_or_nothing(make_target: Callable[..., str], step: str) -> None:
    folder = make_target()
    ids = fill(folder)
    assert run(dreamer.main, folder, step) == -9
    happened = check_whole_or_nothing(folder, ids)
    assert happened == (step == "after-commit")


def test_after_a_crash_the_lease_ends_and_the_next_run_starts_clean(make_target: Callable[..., str]) -> None:
    folder = make_target()
    ids = fill(folder)
    assert run(dreamer.main, folder, "distilled") == -9
    with reverie.open(folder) as memory, pytest.raises(reverie.ReverieError, match="being dreamt"):
        memory.host.dreams.run(memory.actor, DreamPlan("bot"))
    later = HandClock(SystemClock().now() + 3_600_000)
    store = open_store(folder, clock=later)
    host = Host(Services(store=store, clock=later, tokens=TokenCounter()))
    assert host.dreams.run(Actor(tenant="default", id="local:test"), DreamPlan("bot")) is not None
    host.close()
    assert check_whole_or_nothing(folder, ids)


def test_killed_at_random_moments_a_dream_is_whole_or_nothing(make_target: Callable[..., str]) -> None:
    pick = random.Random(20261115)
    outcomes = set()
    for turn in range(500 if SOAK else 4):
        folder = make_target(str(turn))
        ids = fill(folder)
        run(dreamer.main, folder, f"after-{pick.uniform(1, 60):.2f}")
        outcomes.add(check_whole_or_nothing(folder, ids))
    assert outcomes
