"""Schedules on a clock that moves when told to: what is due, who takes it, and what is said when it was not done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.errors import Invalid, ReadOnly
from reverie.host import Host
from reverie.jobs.schedule import tick_dream
from reverie.jobs.timetable import TAKEN_MS, Schedule, due_tick, next_tick
from reverie.jobs.worker import Worker
from reverie.providers.tokenizer import TokenCounter

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter("o200k_base"))


def fill(host: Host, actor: Actor, ref: str = "notes", count: int = 12) -> None:
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(count)]
    host.entries.put(actor, ref, [Draft(content=text) for text in texts])


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_a_tick_is_taken_once_however_many_workers_look(
    host: Host, make_store: Any, make_host: Any, ada: Actor, clock: Any
) -> None:
    fill(host, ada)
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    assert Worker(host, every_seconds=60).tick() == 0
    clock.advance(HOUR)
    other = make_host(store=make_store(), tokens=TokenCounter("o200k_base"))
    assert [Worker(one, every_seconds=60).tick() for one in (host, other, host)] == [1, 0, 0]
    (due,) = other.schedules.all(ada)
    assert due.schedule.last is not None
    assert (due.schedule.last.status, due.why_not) == ("done", None)
    assert due.next_at == next_tick(made, clock.now())
    assert len(host.lineage.reports(ada)) == 1
    fired = [event.data["tick"] for event in host.reader.events(ada, types=("schedule.fired",))]
    assert len(fired) == len(set(fired)) == 1


def test_a_tick_that_many_workers_take_at_one_instant_is_run_once(
    host: Host, make_store: Any, make_host: Any, ada: Actor, clock: Any
) -> None:
    fill(host, ada)
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    clock.advance(HOUR)
    ((_, tick),) = host.schedules.due_ticks(ada)
    hosts = [make_host(store=make_store(), tokens=TokenCounter("o200k_base")) for _ in range(4)]
    gate = threading.Barrier(8)

    def run(number: int) -> bool:
        gate.wait()
        return hosts[number % 4].schedules.run_tick(ada, made.id, tick, f"worker-{number}") is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(run, range(8))) == 1
    assert len(host.reader.events(ada, types=("schedule.fired",))) == 1
    assert len(host.lineage.reports(ada)) == 1


def test_a_tick_whose_process_died_is_taken_over_and_dreams_once(host: Host, ada: Actor, clock: Any) -> None:
    fill(host, ada)
    made = host.schedules.save(ada, {"cron": "0 0 * * *", "ref": "notes"})
    clock.advance(DAY)
    tick = due_tick(made, clock.now())
    assert tick is not None
    assert host.schedules._take(ada, made.id, tick)  # and then it died
    assert host.schedules.tick(ada) == 0
    clock.advance(TAKEN_MS)
    assert host.schedules.tick(ada) == 1
    (due,) = host.schedules.all(ada)
    assert due.schedule.last is not None
    assert (due.schedule.last.attempts, due.schedule.last.status) == (2, "done")
    assert len(host.lineage.reports(ada)) == 1


def test_a_tick_that_the_process_before_dreamt_in_the_last_instant_is_done(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that lost its lease commits after the next one has looked, and before it takes its snapshot."""
    fill(host, ada)
    schedule = host.schedules.save(ada, {"ref": "notes", "delay_ms": 0})
    dream = host.dreams.run

    def second(actor: Actor, plan: DreamPlan, **options: Any) -> Any:
        assert dream(actor, plan, **options) is not None  # by the other process
        return dream(actor, plan, **options)

    monkeypatch.setattr(host.dreams, "run", second)
    assert host.schedules.tick(ada) == 1
    (due,) = host.schedules.all(ada)
    last = due.schedule.last
    assert last is not None
    assert (last.status, last.dreams) == ("done", [tick_dream(schedule.id, last.tick, "notes")])


def test_missed_ticks_run_once_or_are_skipped(host: Host, ada: Actor, clock: Any) -> None:
    fill(host, ada)
    host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes", "missed": "skip"})
    clock.advance(30 * DAY)
    assert host.schedules.tick(ada) == 1
    clock.advance(HOUR)
    assert host.schedules.tick(ada) >= 1


def test_a_minute_schedule_asleep_for_months_wakes_at_once(clock: Any) -> None:
    schedule = Schedule(id="s", cron="* * * * *", created_at=clock.now())
    now = clock.now() + 90 * DAY
    tick = due_tick(schedule, now)
    assert tick is not None
    assert 0 <= now - tick < MINUTE


def test_one_memory_that_cannot_be_dreamt_does_not_stop_the_others(host: Host, ada: Actor, clock: Any) -> None:
    host.entries.put(ada, "a-small-one", [Draft(content="Haha!"), Draft(content="Oh wow.")])
    fill(host, ada, "notes")
    made = host.schedules.save(ada, {"cron": "0 * * * *"})
    outcome = host.schedules.run_now(ada, made.id)
    assert outcome.status == "done"
    assert [report.ref for report in host.lineage.reports(ada)] == ["notes"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"least_entries": 100}, "below_least_entries"),
        ({"least_tokens": 10**6}, "below_least_tokens"),
        ({"older_than": "7d"}, "there was nothing to do"),
        ({"paused": True}, "paused"),
        ({"budget": 10, "fit": False}, "token_budget_exceeded"),
    ],
)
def test_why_not_is_always_said(host: Host, ada: Actor, fields: dict[str, Any], why: str) -> None:
    fill(host, ada)
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes", **fields})
    if not made.paused:
        host.schedules.run_now(ada, made.id)
    (due,) = host.schedules.all(ada)
    assert due.why_not == why


def test_what_is_small_already_is_no_failure(host: Host, ada: Actor) -> None:
    host.entries.put(ada, "notes", [Draft(content="Haha!"), Draft(content="Oh wow.")])
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    outcome = host.schedules.run_now(ada, made.id)
    assert (outcome.status, outcome.code) == ("nothing", "cannot_be_smaller")


def test_a_few_short_entries_asked_for_by_name_are_dreamt_as_on_demand(host: Host, ada: Actor, clock: Any) -> None:
    texts = ("The gate code is 4411.", "Ines prefers trains.", "The boiler is serviced in June.")
    host.entries.put(ada, "notes", [Draft(content=text) for text in texts])
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    assert host.schedules.run_now(ada, made.id).status == "done"
    (event,) = host.reader.events(ada, types=("memory.compacted",))
    assert event.data["sources"] == 3
    assert event.data["trigger"] == "host-managed"
    clock.advance(HOUR)
    assert host.schedules.run_now(ada, made.id).status == "nothing"  # a second one changes nothing


def test_daylight_saving_neither_repeats_nor_loses_a_night(clock: Any) -> None:
    schedule = Schedule(id="s", cron="30 2 * * *", zone="Europe/Berlin")
    at, seen = ms("2026-10-23T12:00:00+00:00"), []
    for _ in range(4):
        tick = next_tick(schedule, at)
        assert tick is not None
        seen.append(datetime.fromtimestamp(tick / 1000, tz=UTC).isoformat())
        at = tick
    assert [text[:10] for text in seen] == ["2026-10-24", "2026-10-25", "2026-10-26", "2026-10-27"]
    spring = next_tick(schedule, ms("2027-03-27T12:00:00+00:00"))
    assert spring is not None
    assert datetime.fromtimestamp(spring / 1000, tz=UTC).isoformat()[:10] == "2027-03-28"


def test_jitter_is_the_same_for_every_process() -> None:
    schedule = Schedule(id="s", cron="0 3 * * *", jitter_ms=HOUR)
    first = next_tick(schedule, ms("2026-11-15T00:00:00+00:00"))
    assert first is not None
    assert ms("2026-11-15T03:00:00+00:00") <= first < ms("2026-11-15T04:00:00+00:00")
    assert next_tick(Schedule(id="s", cron="0 3 * * *", jitter_ms=HOUR), ms("2026-11-15T00:00:00+00:00")) == first


def test_jitter_never_repeats_a_tick(host: Host, ada: Actor, clock: Any) -> None:
    fill(host, ada)
    host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes", "jitter": "30m"})
    for _ in range(48):
        clock.advance(30 * MINUTE)
        host.schedules.tick(ada)
    ticks = [event.data["tick"] for event in host.reader.events(ada, types=("schedule.fired",))]
    assert len({tick // HOUR for tick in ticks}) == len(ticks)
    assert 22 <= len(ticks) <= 24


def test_the_next_tick_is_shown_while_its_jitter_runs(host: Host, ada: Actor, clock: Any) -> None:
    made = host.schedules.save(ada, {"cron": "0 * * * *", "jitter": "30m"})
    tick = next_tick(made, clock.now())
    assert tick is not None
    clock.advance(tick // HOUR * HOUR - clock.now())
    (due,) = host.schedules.all(ada)
    assert due.next_at == tick


def test_a_cron_expression_with_seconds_is_refused(host: Host, ada: Actor) -> None:
    with pytest.raises(Invalid, match="five fields"):
        host.schedules.save(ada, {"cron": "* * * * * *"})


def test_a_year_is_the_horizon(host: Host, ada: Actor, clock: Any) -> None:
    clock.advance(ms("2097-03-01T00:00:00+00:00") - clock.now())
    with pytest.raises(Invalid) as refused:
        host.schedules.save(ada, {"cron": "0 0 29 2 *"})  # 2100 is no leap year
    assert refused.value.reason == "schedule_horizon_exceeded"


def test_a_read_only_host_runs_nothing(make_host: Any, make_store: Any, host: Host, ada: Actor) -> None:
    made = host.schedules.save(ada, {"cron": "0 * * * *"})
    frozen = make_host(store=make_store(), read_only=True)
    assert frozen.schedules.tick(ada) == 0
    with pytest.raises(ReadOnly):
        frozen.schedules.run_now(ada, made.id)


def test_archives_are_collected_after_their_retention(host: Host, ada: Actor, clock: Any) -> None:
    fill(host, ada)
    made = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    host.schedules.run_now(ada, made.id)
    worker = Worker(host, every_seconds=60)
    assert worker.round().collected == 0
    clock.advance(31 * DAY)
    assert worker.round().collected == 1
    assert host.reader.events(ada, types=("archive.collected",))
    assert host.archives.index(ada)["archives"] == []
    assert host.audit.verify(ada).ok
