"""The nightly dream: on by default for large memories, switched by policy, and no cost where nothing was written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.jobs.timetable import NIGHTLY
from reverie.providers.tokenizer import TokenCounter
from reverie.store.conformance import HandClock

HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter())


def lines(number: int, first: int = 0) -> list[Draft]:
    return [
        Draft(
            content=f"Crate {n} was seen near gate {n % 7}, painted {('red', 'green', 'blue')[n % 3]} by the night crew."
        )
        for n in range(first, first + number)
    ]


def hot(host: Host, ada: Actor) -> int:
    return sum(TokenCounter().count(entry.content) for entry in host.reader.page(ada, "plant", limit=1000).items)


def at_night(host: Host, ada: Actor, clock: HandClock) -> int:
    """Let the clock go to the next 03:00 and look, as a worker does; returns how many ticks ran."""
    clock.advance(host.rules.policy(ada).next_night(clock.now()) - clock.now())
    if ada.tenant not in host.agenda.awake():
        return 0
    ran = 0
    for schedule, tick in host.agenda.look(ada).ticks:
        ran += host.schedules.run_tick(ada, schedule.id, tick, "worker") is not None
    host.agenda.look(ada)
    return ran


def test_a_large_memory_is_dreamt_at_three_and_sleeps_when_nothing_happens(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    host.entries.put(ada, "plant", lines(60))
    assert host.schedules.all(ada) == []
    host.entries.put(ada, "plant", lines(340, first=60))
    (due,) = host.schedules.all(ada)
    assert (due.schedule.id, due.schedule.cron, due.schedule.fit) == (NIGHTLY, "0 3 * * *", True)
    assert due.next_at is not None
    assert datetime.fromtimestamp(due.next_at / 1000, UTC).hour == 3
    assert host.agenda.look(ada).ticks == ()
    before = hot(host, ada)
    assert before > 4000
    assert at_night(host, ada, clock) == 1
    assert len(host.lineage.reports(ada)) > 1, "all parts of the memory in one night"
    assert hot(host, ada) < before
    assert at_night(host, ada, clock) == 1  # it looks once more, and finds nothing
    nights = [at_night(host, ada, clock) for _ in range(5)]
    assert nights == [0] * 5
    assert ada.tenant not in host.agenda.awake()
    host.entries.put(ada, "plant", lines(200, first=1000))
    assert at_night(host, ada, clock) == 1


def test_the_switch_is_a_policy_and_pausing_or_removing_it_lasts(host: Host, ada: Actor, clock: HandClock) -> None:
    host.entries.put(ada, "plant", lines(400))
    host.rules.set_policy(ada, {"nightly": "off"})
    assert host.schedules.all(ada)[0].schedule.paused
    assert at_night(host, ada, clock) == 0
    host.rules.set_policy(ada, {"nightly": "on"})
    host.schedules.save(ada, {"id": NIGHTLY, "paused": True}, existing=True)
    host.entries.put(ada, "plant", lines(10, first=500))
    assert at_night(host, ada, clock) == 0
    host.schedules.drop(ada, NIGHTLY)
    host.entries.put(ada, "plant", lines(10, first=600))
    assert host.schedules.all(ada) == []
    assert at_night(host, ada, clock) == 0
    assert host.lineage.reports(ada) == []


def test_the_hour_is_the_tenants(host: Host, ada: Actor) -> None:
    host.rules.set_policy(ada, {"zone": "Asia/Tokyo"})
    noon = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1000)
    assert datetime.fromtimestamp(host.rules.policy(ada).next_night(noon) / 1000, UTC).hour == 18


def test_what_happens_while_the_switch_is_off_does_not_turn_it_off_for_good(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    host.entries.put(ada, "plant", lines(400))
    host.rules.set_policy(ada, {"nightly": "off"})
    assert host.schedules.run_now(ada, NIGHTLY).status == "done"
    assert host.schedules.save(ada, {"id": NIGHTLY, "budget": 6000}, existing=True).paused
    assert host.schedules.all(ada)[0].schedule.paused
    host.rules.set_policy(ada, {"nightly": "on"})
    host.entries.put(ada, "plant", lines(400, first=400))
    (due,) = host.schedules.all(ada)
    assert (due.schedule.paused, due.schedule.budget) == (False, 6000)
    assert at_night(host, ada, clock) == 1


def test_a_night_that_ends_after_the_switch_was_turned_off_leaves_it_to_the_policy(
    host: Host, ada: Actor, clock: HandClock
) -> None:
    host.entries.put(ada, "plant", lines(400))

    def off(step: str, *_: object) -> None:
        if step == "commit":
            host.rules.set_policy(ada, {"nightly": "off"})

    clock.advance(host.rules.policy(ada).next_night(clock.now()) - clock.now())
    assert host.schedules.tick(ada, progress=off) == 1
    assert at_night(host, ada, clock) == 0
    host.rules.set_policy(ada, {"nightly": "on"})
    host.entries.put(ada, "plant", lines(400, first=400))
    assert at_night(host, ada, clock) == 1
