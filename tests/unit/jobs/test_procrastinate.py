"""Jobs carried by the engine on a real PostgreSQL: added once, fairly taken, tried again, taken over, dead, retried."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status
from tests.postgres import shared_server

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.errors import Busy, NotFound, StoreBusy
from reverie.core.job import MOST_ATTEMPTS, Job
from reverie.core.ports import ForgetLine
from reverie.host import Host
from reverie.jobs.procrastinate import EngineQueue, EngineWorker, engine_url
from reverie.jobs.tasks import Tasks
from reverie.ops.jobs import JobObserver
from reverie.ops.metrics import Metrics
from reverie.privacy.forget import UNDER_WAY_MS
from reverie.privacy.ledger import FileLedger
from reverie.providers.tokenizer import TokenCounter
from reverie.store.conformance import HandClock

PATIENCE = 120.0
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = shared_server(tmp_path_factory)
    made = server.make_database()
    yield made
    server.drop_database(made)


@pytest.fixture
def queue(url: str) -> EngineQueue:
    return EngineQueue(url, per_tenant=2)


@pytest.fixture
def host(make_host: Callable[..., Host], queue: EngineQueue) -> Host:
    return make_host(tokens=TokenCounter("o200k_base"), jobs=queue)


@pytest.fixture
def make_worker(host: Host, queue: EngineQueue, url: str) -> Iterator[Callable[..., EngineWorker]]:
    made: list[EngineWorker] = []

    def make(**options: Any) -> EngineWorker:
        made.append(EngineWorker(host, queue, url, **({"poll_seconds": 1} | options)))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


def wait_for(truth: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not truth():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(engine_url(url), autocommit=True) as connection:
        return (
            connection.execute(sql.encode()).fetchall()
            if "SELECT" in sql
            else (connection.execute(sql.encode()), [])[1]
        )


def test_a_job_is_done_once_and_is_gone(host: Host, ada: Actor, make_worker: Callable[..., EngineWorker]) -> None:
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    host.entries.put(ada, "notes", [Draft(content=text) for text in texts])
    assert host.jobs.add(ada, "dream", {"ref": "notes"}) is not None
    assert host.jobs.add(ada, "dream", {"ref": "notes"}) is None
    make_worker().start()
    wait_for(lambda: not host.jobs.all(ada))
    assert len(host.lineage.reports(ada)) == 1


def test_what_is_due_by_the_clock_is_put_into_the_queue_once(
    host: Host, ada: Actor, clock: Any, queue: EngineQueue, make_worker: Callable[..., EngineWorker]
) -> None:
    host.schedules.save(ada, {"cron": "0 * * * *", "ref": "notes"})
    host.entries.put(ada, "notes", [Draft(content="x", expires_at=clock.now() + 1000)])
    clock.advance(3_600_000)
    one, two = make_worker(), make_worker()
    assert one.look() + two.look() + one.look() == 2
    assert sorted(job.name for job in queue.list("acme")) == ["dream", "retain"]
    one.start(), two.start()
    wait_for(lambda: not queue.list("acme"))
    (due,) = host.schedules.all(ada)
    assert due.schedule.last is not None
    assert len(host.reader.events(ada, types=("schedule.fired",))) == 1
    assert len(host.reader.events(ada, types=("memory.expired",))) == 1


def test_a_tenant_with_ten_thousand_jobs_does_not_starve_another_nor_is_starved(queue: EngineQueue, url: str) -> None:
    queue.add_all([Job("", "scan", "greedy", unique=str(n)) for n in range(100)])
    assert rows(url, "SELECT min(priority), max(priority) FROM procrastinate_jobs") == [(-99, 0)]
    with psycopg.connect(engine_url(url), autocommit=True) as connection:  # the other 9,900, as if they had been added
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args) "
            "SELECT 'reverie', 'scan', -n, 'greedy/' || n %% 2, 'greedy/scan/' || n, %s "
            "FROM generate_series(100, 9999) AS n",
            (psycopg.types.json.Jsonb({"tenant": "greedy", "arguments": {}}),),
        )
    for n in range(3):
        queue.add("modest", "scan", {}, unique=str(n))
    order = []
    for _ in range(12):  # as one worker that takes a job at a time would
        (row,) = rows(url, "SELECT id, args ->> 'tenant' FROM procrastinate_fetch_job_v2(NULL, NULL)")
        order.append(row[1])
        rows(url, f"UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = {row[0]}")
    assert order[:6].count("modest") == 3
    assert order.count("greedy") == 9
    queue.add("late", "scan", {})  # its turn comes at once, not after what waits
    (row,) = rows(url, "SELECT args ->> 'tenant' FROM procrastinate_fetch_job_v2(NULL, NULL)")
    (second,) = rows(url, "SELECT args ->> 'tenant' FROM procrastinate_fetch_job_v2(NULL, NULL)")
    assert "late" in (row[0], second[0])


def test_of_one_tenant_only_so_many_jobs_run_at_once(
    host: Host,
    ada: Actor,
    queue: EngineQueue,
    make_worker: Callable[..., EngineWorker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, most, lock, done = 0, 0, threading.Lock(), []

    def slow(actor: Actor) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
            done.append(actor)
        raise NotFound()

    monkeypatch.setattr(host.rescan, "scan", slow)
    queue.add_all([Job("", "scan", "acme", unique=str(n)) for n in range(12)])
    make_worker(concurrency=6).start()
    wait_for(lambda: len(done) == 12)
    assert most == 2


def test_a_job_that_fails_is_tried_again_and_then_dead_until_someone_retries_it(
    host: Host,
    ada: Actor,
    url: str,
    queue: EngineQueue,
    make_worker: Callable[..., EngineWorker],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(_: Actor) -> None:
        raise StoreBusy("a text that nobody should see")

    monkeypatch.setattr(host.rescan, "scan", broken)
    monkeypatch.setattr("reverie.jobs.procrastinate.pause_ms", lambda _: 10)
    metrics = Metrics()
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    make_worker(observer=JobObserver(metrics)).start()
    wait_for(lambda: host.jobs.get(ada, made.id).status == "dead")
    job = host.jobs.get(ada, made.id)
    assert (job.attempts, job.error) == (MOST_ATTEMPTS, "store_busy")
    assert queue.counts() == {"waiting": 0, "running": 0, "dead": 1}
    assert b'reverie_jobs_total{job="scan",outcome="failed"} 5.0' in metrics.render()
    monkeypatch.undo()
    host.jobs.retry(ada, made.id)
    wait_for(lambda: not host.jobs.all(ada))
    said = capsys.readouterr()
    assert "nobody should see" not in said.out + said.err


def test_the_job_of_a_dead_worker_is_taken_over_and_one_that_kills_every_worker_is_dead(
    host: Host, ada: Actor, url: str, make_worker: Callable[..., EngineWorker]
) -> None:
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    for attempt in range(1, MOST_ATTEMPTS + 1):
        rows(url, "SELECT procrastinate_register_worker_v1()")
        rows(url, "SELECT id FROM procrastinate_fetch_job_v2(NULL, (SELECT max(id) FROM procrastinate_workers))")
        with pytest.raises(Busy):
            host.jobs.discard(ada, made.id)
        assert make_worker().look() == 0
        assert host.jobs.get(ada, made.id).status == "running"  # its worker may live
        rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
        make_worker().look()
        job = host.jobs.get(ada, made.id)
        assert (job.status, job.error) == ("dead" if attempt == MOST_ATTEMPTS else "waiting", "worker_lost")
        assert job.attempts == attempt
    host.jobs.discard(ada, made.id)
    assert host.jobs.all(ada) == []


def test_jobs_of_another_tenant_are_not_there(host: Host, ada: Actor) -> None:
    made = host.jobs.add(ada, "scan", {})
    assert made is not None
    stranger = Actor(tenant="other", id="eve")
    assert host.jobs.all(stranger) == []
    for act in (host.jobs.get, host.jobs.retry, host.jobs.discard):
        with pytest.raises(NotFound):
            act(stranger, made.id)


def test_a_job_that_is_retried_may_be_done_before_it_is_shown(
    host: Host, ada: Actor, queue: EngineQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = host.jobs.add(ada, "retain", {})
    assert job is not None
    monkeypatch.setattr(queue, "list", lambda tenant: [])
    assert host.jobs.retry(ada, job.id).status == "waiting"


def test_forgets_of_one_instant_in_two_memories_are_two_jobs(
    make_host: Callable[..., Host], queue: EngineQueue, ada: Actor, clock: HandClock, tmp_path: Path
) -> None:
    ledger = FileLedger(tmp_path / "forgotten.jsonl")
    for ref in ("notes", "plans"):  # neither has a certificate: an older backup was restored
        ledger.add(ForgetLine(ada.tenant, "0" * 64, ref, clock.now(), folded=True))
    host = make_host(ledger=ledger)
    host.entries.put(ada, "notes", [Draft("Hello.")])
    clock.advance(UNDER_WAY_MS)
    jobs = [job for job in Tasks(host).sweeps(ada.tenant) if job.name == "forget"]
    assert len(jobs) == queue.add_all(jobs) == 2


def test_a_worker_survives_the_loss_of_every_connection(
    host: Host, ada: Actor, url: str, make_worker: Callable[..., EngineWorker]
) -> None:
    make_worker(heartbeat_seconds=0.2).start()
    assert host.jobs.add(ada, "scan", {}) is not None
    wait_for(lambda: not host.jobs.all(ada))
    for _ in range(3):
        rows(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'",  # autovacuum is not ours to end
        )
        assert host.jobs.add(ada, "scan", {}) is not None
        wait_for(lambda: not host.jobs.all(ada))


def test_stopping_finishes_the_job_at_hand_and_takes_no_other(
    host: Host,
    ada: Actor,
    queue: EngineQueue,
    make_worker: Callable[..., EngineWorker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, stopping, done = threading.Event(), threading.Event(), []
    scan = host.rescan.scan

    def slow(actor: Actor) -> Any:
        began.set()
        assert stopping.wait(PATIENCE)
        time.sleep(0.5)  # it ends while the worker is being stopped
        done.append(1)
        return scan(actor)

    monkeypatch.setattr(host.rescan, "scan", slow)
    queue.add_all([Job("", "scan", "acme", unique=str(n)) for n in range(5)])
    worker = make_worker(concurrency=1)
    worker.start()
    assert began.wait(PATIENCE)
    stopping.set()
    worker.stop()
    assert len(done) == 1
    assert [job.status for job in queue.list("acme")] == ["waiting"] * 4


def test_the_schema_is_made_once_however_many_start(url: str) -> None:
    faults: list[Exception] = []

    def start() -> None:
        try:
            EngineQueue(url).counts()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=start) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert faults == []
    assert rows(url, "SELECT count(*) FROM job_schema WHERE name LIKE 'engine/%'") == [(1,)]


@pytest.mark.parametrize("lost", ["the request", "the answer"])
@pytest.mark.parametrize("way", ["finish", "retry"])
def test_how_a_job_ended_is_recorded_although_the_connection_is_lost(
    queue: EngineQueue, url: str, make_worker: Callable[..., EngineWorker], lost: str, way: str
) -> None:
    """A worker that lost one connection lives on, so no other one would take its job over."""
    added = queue.add("acme", "retain", {})
    assert added is not None

    async def work() -> None:
        app = make_worker()._app()
        async with app.open_async():
            manager = app.job_manager
            worker = await manager.register_worker()
            job = await manager.fetch_job(queues=["reverie"], worker_id=worker)
            assert job is not None
            assert str(job.id) == added.id
            execute, cuts = manager.connector.execute_query_async, iter([True])

            async def cut(*args: Any, **given: Any) -> None:
                now = next(cuts, False)
                if not now or lost == "the answer":
                    await execute(*args, **given)
                if now:
                    raise ConnectorException from psycopg.OperationalError("the server closed the connection")

            manager.connector.execute_query_async = cut  # type: ignore[method-assign]
            if way == "finish":
                await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)
            else:
                await manager.retry_job(job, retry_at=datetime.now(UTC))

    asyncio.run(work())
    assert [job.status for job in queue.list("acme")] == ([] if way == "finish" else ["waiting"])
