"""The worker: sweeps, vectors, leases, faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, EntryState
from reverie.core.errors import StoreBusy
from reverie.host import Host
from reverie.jobs.sweep import LEASE, Sweeper
from reverie.jobs.worker import Worker
from reverie.ops.jobs import JobObserver
from reverie.ops.metrics import Metrics
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services

DAY = 86_400_000


def put(host: Host, actor: Actor, content: str = "x", **fields: Any) -> str:
    return host.entries.put(actor, "notes", [Draft(content=content, **fields)])[0].id


def test_what_expired_is_destroyed(make_host: Callable[..., Host], ada: Actor, clock: Any) -> None:
    host = make_host()
    put(host, ada, expires_at=clock.now() + 1000)
    put(host, ada, "stays")
    worker = Worker(host, every_seconds=60)
    assert worker.round().expired == 0
    clock.advance(2000)
    assert worker.round().expired == 1
    assert host.reader.events(ada)[-1].type == "memory.expired"


def test_what_outlived_the_undo_window_is_destroyed(make_host: Callable[..., Host], ada: Actor, clock: Any) -> None:
    host = make_host()
    host.lifecycle.delete(ada, "notes", put(host, ada))
    worker = Worker(host, every_seconds=60)
    assert worker.round().retired == 0
    clock.advance(8 * DAY)
    assert worker.round().retired == 1


def test_an_entry_that_was_restored_and_left_again_meanwhile_keeps_its_retention(
    make_host: Callable[..., Host], ada: Actor, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tokens=TokenCounter())
    said = "On {} we decided to open the pier at nine. Well, there was some talk, as there is."
    again, dreamt = (put(host, ada, said.format(day)) for day in ("Monday", "Tuesday"))
    for entry_id in (again, dreamt):
        host.lifecycle.delete(ada, "notes", entry_id)
    for day in ("Thursday", "Friday"):
        put(host, ada, said.format(day))
    clock.advance(8 * DAY)
    store: Any = host.parts.store
    real = store.write

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()  # between the look of the sweep and its first transaction
        for entry_id in (again, dreamt):
            host.lifecycle.restore(ada, "notes", entry_id)
        host.lifecycle.delete(ada, "notes", again)
        assert host.dreams.run(ada, DreamPlan("notes")) is not None
        return real(*given)

    monkeypatch.setattr(store, "write", meanwhile)
    assert host.lifecycle.retain(ada) == 0
    assert host.reader.get(ada, "notes", dreamt, cold=True).state is EntryState.DREAMT
    assert host.lifecycle.restore(ada, "notes", again).content == said.format("Monday")


def test_missing_vectors_are_made(make_host: Callable[..., Host], make_store: Any, ada: Actor, clock: Any) -> None:
    store = make_store()
    put(make_host(store=store), ada, "a red kite")
    host = Host(Services(store=store, embedder=EMBEDDER, clock=clock))
    assert host.search.search(ada, "notes", "bird").degraded == ("vectors_missing",)
    worker = Worker(host, every_seconds=60)
    assert worker.round().indexed == 1
    assert worker.round().indexed == 0
    assert host.search.search(ada, "notes", "bird").degraded == ()
    assert host.audit.verify(ada).ok


def test_a_quiet_tenant_costs_no_write(make_host: Callable[..., Host], ada: Actor, monkeypatch: Any) -> None:
    host = make_host()
    put(host, ada)
    taken: list[str] = []
    monkeypatch.setattr(host.leases, "take", lambda *_, **__: taken.append("lease"))
    assert Worker(host, every_seconds=60).round().tenants == 0
    assert taken == []


def test_a_tenant_is_swept_by_one_holder_at_a_time(make_host: Callable[..., Host], ada: Actor, clock: Any) -> None:
    host = make_host()
    put(host, ada, expires_at=clock.now() + 1000)
    clock.advance(2000)
    system = host.system_actor(ada.tenant)
    assert host.leases.take(system, LEASE, "another", for_ms=60_000)
    assert Sweeper(host, "me").sweep(ada.tenant) is None
    clock.advance(61_000)  # the other one died
    done = Sweeper(host, "me").sweep(ada.tenant)
    assert done is not None
    assert done.expired == 1


def test_old_answers_to_retries_are_let_go_within_the_hour(
    make_host: Callable[..., Host], ada: Actor, clock: Any
) -> None:
    host = make_host()
    worker = Worker(host, every_seconds=60)
    put(host, ada)
    worker.round()
    host.entries.put(ada, "notes", [Draft(content="y")], idempotency_key="k")
    clock.advance(2 * DAY)
    assert worker.round().tenants == 1
    assert worker.round().tenants == 0


def test_a_fault_is_counted_and_the_other_tenants_are_swept(
    make_host: Callable[..., Host], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, metrics = make_host(), Metrics()
    for tenant in ("one", "two"):
        put(host, Actor(tenant=tenant, id="ada"), expires_at=clock.now() + 1000)
    clock.advance(2000)
    expire = host.lifecycle.expire

    def broken(actor: Actor) -> int:
        if actor.tenant == "one":
            raise StoreBusy()
        return expire(actor)

    monkeypatch.setattr(host.lifecycle, "expire", broken)
    done = Worker(host, every_seconds=60, observer=JobObserver(metrics)).round()
    assert (done.failed, done.expired) == (1, 1)
    assert b'reverie_sweeps_total{outcome="failed"} 1.0' in metrics.render()


def test_it_starts_and_stops(make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host()
    worker, ran = Worker(host, every_seconds=3600), threading.Event()
    monkeypatch.setattr(worker, "round", lambda: (ran.set(), type(worker).round(worker))[1])
    worker.start()
    assert ran.wait(120)
    worker.stop()
    assert "reverie-worker" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}


def test_a_worker_loads_what_dreams_need_when_it_starts(make_host: Callable[..., Host], clock: Any) -> None:
    counted = threading.Event()

    class Tokens:
        name = "words"

        def count(self, text: str) -> int:
            counted.set()
            return len(text.split())

    worker = Worker(make_host(tokens=Tokens()), every_seconds=60)
    worker.start()
    try:
        assert counted.wait(120)
    finally:
        worker.stop()
