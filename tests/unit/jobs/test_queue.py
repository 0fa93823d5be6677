"""The queue in the store: added once, taken once, tried again, dead, retried, discarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.actor import Actor, Right
from reverie.core.dream import TokenBudgetExceeded
from reverie.core.entry import Draft
from reverie.core.errors import Busy, Forbidden, Invalid, NotFound, StoreBusy
from reverie.core.job import JOBS, MOST_ATTEMPTS
from reverie.host import Host
from reverie.jobs.queue import LEASE_MS, DocumentQueue
from reverie.jobs.tasks import Tasks
from reverie.jobs.worker import Worker
from reverie.providers.tokenizer import TokenCounter

CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter("o200k_base"))


def fill(host: Host, actor: Actor) -> None:
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    host.entries.put(actor, "notes", [Draft(content=text) for text in texts])


def test_every_job_is_defined(host: Host) -> None:
    assert set(Tasks(host)._jobs) == set(JOBS)


def test_a_job_runs_once_and_is_gone(host: Host, ada: Actor) -> None:
    fill(host, ada)
    assert host.jobs.add(ada, "dream", {"ref": "notes"}) is not None
    assert host.jobs.add(ada, "dream", {"ref": "notes"}) is None
    worker = Worker(host, every_seconds=60)
    assert [worker.tick(), worker.tick()] == [1, 0]
    assert len(host.lineage.reports(ada)) == 1
    assert host.jobs.all(ada) == []
    assert host.audit.verify(ada).ok


def test_a_tenant_with_many_jobs_does_not_keep_another_waiting(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[str] = []
    monkeypatch.setattr(
        host.rescan,
        "scan",
        lambda actor: (scanned.append(actor.tenant), type("Report", (), {"entries": 0, "affected": 0}))[1],
    )
    queue = DocumentQueue(host.parts)
    for number in range(30):
        queue.add("greedy", "scan", {}, unique=str(number))
    queue.add("modest", "scan", {})
    worker = Worker(host, every_seconds=60)
    assert worker.tick() == 2
    assert sorted(scanned) == ["greedy", "modest"]
    queue.add("late", "scan", {})
    assert worker.tick() == 2
    assert "late" in scanned
    while worker.tick():
        pass
    assert (scanned.count("greedy"), len(scanned)) == (30, 32)


def test_a_job_that_fails_waits_longer_every_time_and_dies_in_the_end(
    host: Host, ada: Actor, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise StoreBusy()

    monkeypatch.setattr(host.rescan, "scan", broken)
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    worker, pauses = Worker(host, every_seconds=60), []
    for attempt in range(1, MOST_ATTEMPTS):
        assert worker.tick() == 1
        job = host.jobs.get(ada, made.id)
        assert (job.status, job.attempts, job.error) == ("waiting", attempt, "store_busy")
        assert worker.tick() == 0
        pauses.append(job.due_at - clock.now())
        clock.advance(pauses[-1])
    assert pauses == sorted(set(pauses))
    worker.tick()
    assert host.jobs.get(ada, made.id).status == "dead"
    clock.advance(10**9)
    assert worker.tick() == 0
    monkeypatch.undo()
    host.jobs.retry(ada, made.id)
    assert worker.tick() == 1
    assert host.jobs.all(ada) == []


def test_what_cannot_succeed_is_dead_at_once(host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made = host.jobs.add(ada, "dream", {"ref": "notes"})
    assert made is not None

    def costly(*_: Any, **__: Any) -> None:
        raise TokenBudgetExceeded()

    monkeypatch.setattr(host.dreams, "run", costly)
    Worker(host, every_seconds=60).tick()
    job = host.jobs.get(ada, made.id)
    assert (job.status, job.error) == ("dead", "token_budget_exceeded")
    host.jobs.discard(ada, job.id)
    assert host.jobs.all(ada) == []


def test_a_job_whose_worker_died_is_taken_over_and_one_that_kills_every_worker_dies(
    host: Host, ada: Actor, clock: Any
) -> None:
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    queue = DocumentQueue(host.parts)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        taken = queue.take(ada.tenant, f"worker-{attempt}")
        assert taken is not None
        assert taken.attempts == attempt
        assert queue.take(ada.tenant, "another") is None
        with pytest.raises(Busy):
            host.jobs.discard(ada, made.id)
        clock.advance(LEASE_MS + 1)
    assert queue.take(ada.tenant, "the last") is None
    assert (host.jobs.get(ada, made.id).status, host.jobs.get(ada, made.id).error) == ("dead", "worker_lost")


def test_a_worker_that_comes_back_too_late_changes_nothing(host: Host, ada: Actor, clock: Any) -> None:
    assert host.jobs.add(ada, "scan", {}) is not None
    queue = DocumentQueue(host.parts)
    late = queue.take(ada.tenant, "late")
    assert late is not None
    clock.advance(LEASE_MS + 1)
    assert queue.take(ada.tenant, "second") is not None
    queue.failed(late, "late", "store_busy")
    queue.done(late, "late")
    assert [job.status for job in host.jobs.all(ada)] == ["running"]


def test_a_sweep_that_fails_is_seen_and_tried_again(
    host: Host, ada: Actor, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.entries.put(ada, "notes", [Draft(content="x", expires_at=clock.now() + 1000)])
    clock.advance(2000)

    def broken(_: Actor) -> int:
        raise OSError("text that nobody should see")

    worker = Worker(host, every_seconds=60)
    monkeypatch.setattr(host.lifecycle, "expire", broken)
    assert worker.round().failed == 1
    assert worker.round().failed == 1
    (job,) = host.jobs.all(ada)
    assert (job.name, job.attempts, job.error) == ("retain", 1, "internal_error")
    monkeypatch.undo()
    clock.advance(60_000)
    assert worker.tick() == 1
    assert host.jobs.all(ada) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shout", {}),
        ("scan", {"note": "text"}),
        ("dream", {}),
        ("dream", {"ref": 1}),
        ("dream", {"schedule": "s"}),
        ("dream", {"ref": ""}),
    ],
)
def test_what_is_no_job_is_refused(host: Host, ada: Actor, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        host.jobs.add(ada, name, arguments)


def test_jobs_are_for_administrators_of_their_own_tenant(host: Host, ada: Actor) -> None:
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    reader = Actor(tenant="acme", id="bob", rights=frozenset({Right.READ, Right.WRITE}))
    with pytest.raises(Forbidden):
        host.jobs.all(reader)
    stranger = Actor(tenant="other", id="eve")
    assert host.jobs.all(stranger) == []
    for act in (host.jobs.get, host.jobs.retry, host.jobs.discard):
        with pytest.raises(NotFound):
            act(stranger, made.id)
