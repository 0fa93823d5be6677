"""The agenda: workers look at tenants that need something, and at no others."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.core.errors import StoreBusy
from reverie.core.event import NewEvent
from reverie.host import Host
from reverie.jobs.due import Agenda, TenantDue
from reverie.jobs.timetable import TAKEN_MS, Outcome, Schedule, due_tick, ticks_around
from reverie.jobs.worker import Worker
from reverie.protocols.openwop.commitments import COMMITMENT_SPACE, OVER_SPACE, key_of
from reverie.protocols.openwop.runs import LEASE_MS
from reverie.providers.tokenizer import TokenCounter
from reverie.store.contract import Store, WriteTx

HOUR = 3_600_000


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter("o200k_base"))


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tenants that were looked at."""
    seen: list[str] = []
    look = Agenda.look

    def noted(self: Agenda, actor: Actor) -> TenantDue:
        seen.append(actor.tenant)
        return look(self, actor)

    monkeypatch.setattr(Agenda, "look", noted)
    return seen


def of(tenant: str) -> Actor:
    return Actor(tenant=tenant, id="ada")


def test_a_poll_looks_at_the_tenants_that_need_something_and_at_no_others(
    host: Host, clock: Any, looked: list[str]
) -> None:
    for number in range(20):
        cron = "30 * * * *" if number == 7 else "0 3 1 1 *"
        host.schedules.save(of(f"t{number}"), {"cron": cron, "ref": "notes"})
    worker = Worker(host, every_seconds=60)
    worker.tick()
    assert len(looked) == 20
    looked.clear()
    assert worker.tick() == 0
    assert looked == []
    clock.advance(HOUR)
    assert worker.tick() == 1
    assert looked == ["t7"]
    looked.clear()
    worker.tick()
    assert set(looked) <= {"t7"}  # when its next tick is
    looked.clear()
    assert worker.tick() == 0
    assert looked == []


def test_every_change_that_may_need_a_worker_wakes_its_tenant(host: Host, ada: Actor, clock: Any) -> None:
    def sleep() -> None:
        for tenant in host.agenda.awake():
            host.agenda.look(host.system_actor(tenant))

    def asleep_until_then(after_ms: int) -> bool:
        sleep()
        before = host.agenda.awake()
        clock.advance(after_ms)
        return before == [] and host.agenda.awake() == [ada.tenant]

    host.entries.put(ada, "notes", [Draft("x")])
    sleep()
    assert host.agenda.awake() == []
    saved = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    assert host.agenda.awake() == [ada.tenant]
    assert asleep_until_then(HOUR)
    host.schedules.save(ada, {"id": saved.id, "paused": True}, existing=True)
    sleep()
    clock.advance(48 * HOUR)
    assert host.agenda.awake() == []
    host.schedules.drop(ada, saved.id)
    host.commitments.make(ada, "notes", "call back", due=clock.now() + HOUR)
    assert asleep_until_then(HOUR)
    host.commitments.fire_due(ada)
    sleep()
    assert host.agenda.awake() == []
    assert host.jobs.add(ada, "scan", {}) is not None
    assert host.agenda.awake() == [ada.tenant]
    Worker(host, every_seconds=60).tick()
    sleep()
    assert host.agenda.awake() == []


def test_a_run_whose_process_died_wakes_its_tenant(host: Host, ada: Actor, clock: Any) -> None:
    class Died(BaseException):
        pass

    def die(_: Actor) -> None:
        raise Died

    with pytest.raises(Died):
        host.runs.around(ada, "reverie.test", die)
    worker = Worker(host, every_seconds=60)
    worker.tick()
    clock.advance(LEASE_MS)
    assert ada.tenant in host.agenda.awake()
    assert worker.tick() == 1
    assert worker.tick() == 0
    assert host.agenda.awake() == []


def test_a_condition_keeps_its_tenant_awake_and_one_whose_entry_is_gone_does_not(host: Host, ada: Actor) -> None:
    made = host.commitments.make(ada, "notes", "order more", tag="stock:low")
    worker = Worker(host, every_seconds=60)
    assert [worker.tick(), worker.tick()] == [0, 0]
    assert host.agenda.awake() == [ada.tenant]
    host.entries.put(ada, "notes", [Draft("only two are left", tags=("stock:low",))])
    assert worker.tick() == 1
    host.lifecycle.delete(ada, "notes", made.id)
    worker.tick()
    assert host.agenda.awake() == []


def _walked(host: Host, tenant: str, space: str = COMMITMENT_SPACE) -> list[str]:
    found = host.parts.store.read(Scope(tenant), lambda tx: tx.documents(space, limit=1000).items)
    return [document.key for document in found]


def test_commitments_that_have_fired_for_good_cost_a_look_nothing(
    make_host: Callable[..., Host], make_store: Callable[..., Store], ada: Actor, clock: Any
) -> None:
    counted = Counted(make_store())
    host = make_host(store=counted, tokens=TokenCounter("o200k_base"))
    host.commitments.make(ada, "notes", "call the bank", due=clock.now() + HOUR)
    rows = []
    for number in (3, 40):
        for n in range(number):
            host.commitments.make(ada, "notes", f"call {n} of {number}", due=clock.now())
        assert host.commitments.fire_due(ada) == number
        before = counted.rows
        host.agenda.look(ada)
        rows.append(counted.rows - before)
    assert rows[0] == rows[1]
    assert len(_walked(host, ada.tenant)) == 1
    assert host.commitments.infer(ada, "notes") == 0
    assert host.commitments.fire_due(ada) == 0


def test_a_commitment_that_an_older_version_fired_moves_out_of_the_way_and_fires_no_more(
    host: Host, ada: Actor, clock: Any
) -> None:
    made = host.commitments.make(ada, "notes", "call back", due=clock.now())
    key = key_of(made.ref, made.id)

    def as_before(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.saved", "COMMIT", "host:test"))
        fired = msgspec.structs.replace(made, fired_for=made.due, fires=1)
        tx.save(COMMITMENT_SPACE, key, msgspec.json.encode(fired), seq=seq)

    host.parts.store.write(Scope(ada.tenant), as_before)
    worker = Worker(host, every_seconds=60)
    assert [worker.tick(), worker.tick()] == [0, 0]
    assert (_walked(host, ada.tenant), _walked(host, ada.tenant, OVER_SPACE)) == ([], [key])
    assert host.commitments.infer(ada, "notes") == 0
    assert host.reader.events(ada, types=("commitment.fired",)) == []
    assert host.agenda.awake() == []


def test_a_commitment_whose_entry_was_destroyed_is_no_longer_looked_at(host: Host, ada: Actor, clock: Any) -> None:
    made = host.commitments.make(ada, "notes", "order more", tag="stock:low")
    kept = host.commitments.make(ada, "notes", "order less", tag="stock:high")
    host.lifecycle.erase(ada, "notes", made.id)
    host.lifecycle.delete(ada, "notes", kept.id)
    host.commitments.fire_due(ada)
    assert _walked(host, ada.tenant) == [key_of("notes", kept.id)]  # it may come back
    assert _walked(host, ada.tenant, OVER_SPACE) == []


def test_a_tick_whose_worker_died_wakes_its_tenant(host: Host, ada: Actor, clock: Any) -> None:
    saved = host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    clock.advance(HOUR)
    (due,) = host.schedules.due_ticks(ada)
    assert host.schedules._take(ada, saved.id, due[1], "gone") is not None
    host.agenda.look(ada)
    assert host.agenda.awake() == []
    clock.advance(TAKEN_MS)
    assert host.agenda.awake() == [ada.tenant]
    assert host.agenda.look(ada).ticks[0][1] == due[1]


def test_what_is_saved_while_a_worker_looks_is_not_slept_over(
    host: Host, ada: Actor, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.schedules.save(ada, {"cron": "0 3 1 1 *", "ref": "notes"})
    find, saved = host.agenda._find, []

    def found_then_saved(tx: Any) -> TenantDue:
        seen = find(tx)
        if not saved:
            saved.append(clock.now())
            other = Host(host.parts)
            other.schedules.save(ada, {"delay_ms": 0, "ref": "notes"})
        return seen

    monkeypatch.setattr(host.agenda, "_find", found_then_saved)
    assert len(host.agenda.look(ada).ticks) == 1
    assert host.agenda.awake() == [ada.tenant]


def test_a_tenant_that_cannot_be_looked_at_does_not_stop_the_others(
    host: Host, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in ("bad", "good"):
        host.schedules.save(of(tenant), {"cron": "0 * * * *", "ref": "notes"})
    clock.advance(HOUR)
    look = Agenda.look

    def broken(self: Agenda, actor: Actor) -> TenantDue:
        if actor.tenant == "bad":
            raise StoreBusy()
        return look(self, actor)

    monkeypatch.setattr(Agenda, "look", broken)
    worker = Worker(host, every_seconds=60)
    assert worker.tick() == 1
    assert "bad" in host.agenda.awake()


def test_what_another_release_wrote_is_found_by_the_first_look_of_a_process(host: Host, ada: Actor, clock: Any) -> None:
    host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    host.parts.store.write(Scope(ada.tenant), lambda tx: tx.wake(None, exactly=True))  # as if it knew nothing of waking
    clock.advance(HOUR)
    assert host.agenda.awake() == []
    assert Worker(host, every_seconds=60).tick() == 1


@pytest.mark.parametrize("seed", range(24))
def test_looking_only_when_told_to_finds_the_same_ticks_as_looking_all_the_time(seed: int) -> None:
    pick = random.Random(seed)
    start = 1_790_000_000_000 + pick.randrange(86_400_000)
    schedule = Schedule(
        id=f"s{seed}",
        cron=pick.choice(["*/7 * * * *", "0 * * * *", "30 2 * * *", "15 */3 * * 1-5"]),
        zone=pick.choice(["UTC", "Europe/Berlin", "America/New_York"]),
        jitter_ms=pick.choice([0, 0, 90_000, 5 * HOUR]),
        missed=pick.choice(["once", "skip"]),
        created_at=start,
    )

    def run(at: int, one: Schedule, tick: int) -> Schedule:
        return msgspec.structs.replace(one, last_tick=tick, last=Outcome(tick, at, "done"))

    step, end = 60_000, start + 40 * HOUR
    always, told = schedule, schedule
    seen: list[tuple[int, int]] = []
    found: list[tuple[int, int]] = []
    wake = start
    for at in range(start, end, step):
        tick = due_tick(always, at)
        if tick is not None:
            seen.append((at, tick))
            always = run(at, always, tick)
        if at >= wake:
            tick, after = ticks_around(told, at)
            if tick is not None:
                found.append((at, tick))
                told = run(at, told, tick)
                after = ticks_around(told, at)[1]
            assert after is not None
            assert after > at
            wake = after
    assert found == seen
