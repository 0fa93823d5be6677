"""Schedules in real server processes: a due tick fires within seconds, survives a restart, and fires once among two."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.test_server import PATIENCE, Child

import reverie
from reverie.core.clock import SystemClock

MINUTE = 60_000
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words."
Start = Callable[[], Child]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start()`: a server on the data folder that looks at schedules every second."""
    running: list[Child] = []

    def make() -> Child:
        running.append(Child(tmp_path, REVERIE_SCHEDULE_SECONDS="1"))
        return running[-1]

    yield make
    for child in running:
        child.kill()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[reverie.Memory]:
    with reverie.open(tmp_path) as opened:
        yield opened


def fill(memory: reverie.Memory) -> None:
    memory.ref("notes").put_many(
        [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    )


def overdue(memory: reverie.Memory, **fields: Any) -> str:
    """A schedule whose last tick has passed: due as soon as a worker looks, and then not for most of a year."""
    now = time.gmtime()
    cron = f"0 0 1 {(now.tm_mon + 10) % 12 + 1} *"  # the first of last month
    made = SystemClock().now() - 70 * 24 * 60 * MINUTE
    return memory.host.schedules.save(memory.actor, {"cron": cron, "created_at": made, **fields}).id


def wait_for(memory: reverie.Memory, schedule: str, *statuses: str) -> Any:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        last = next(due.schedule.last for due in memory.schedules() if due.schedule.id == schedule)
        if last is not None and last.status in statuses:
            return last
        time.sleep(0.1)
    raise AssertionError("the schedule did not run in time")


def fired(memory: reverie.Memory) -> list[tuple[str, int]]:
    return [(event.data["schedule"], event.data["tick"]) for event in memory.events(types=["schedule.fired"])]


def test_a_due_schedule_fires_and_a_restart_does_not_repeat_it(memory: reverie.Memory, start: Start) -> None:
    fill(memory)
    schedule = overdue(memory, ref="notes")
    first = start()
    done = wait_for(memory, schedule, "done")
    assert [report.id for report in memory.dreams.list()] == list(done.dreams)
    assert len(memory.ref("notes").list().items) == 1
    assert first.stop() == 0
    fill(memory)
    second = start()
    other = overdue(memory, ref="elsewhere")  # proof that the second one is at work
    wait_for(memory, other, "nothing")
    assert [name for name, _ in fired(memory)] == [schedule, other]
    assert len(memory.dreams.list()) == 1
    assert second.stop() == 0
    assert memory.verify().ok


def test_two_servers_fire_a_tick_once(memory: reverie.Memory, start: Start) -> None:
    fill(memory)
    start(), start()
    schedules = [overdue(memory, ref="notes", least_entries=1), *(overdue(memory, ref=f"empty-{n}") for n in range(5))]
    for schedule in schedules:
        wait_for(memory, schedule, "done", "nothing")
    time.sleep(2.5)  # both have looked again
    assert sorted(name for name, _ in fired(memory)) == sorted(schedules)
    assert len(memory.dreams.list()) == 1
    assert memory.verify().ok
