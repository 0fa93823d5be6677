"""Turns of the writing thread: whose write is next, and who may not wait."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.unit.store.sqlite.batches import HERE, Body, ids, one_batch, sound, storing

from reverie.core.entry import Scope
from reverie.store.conformance import HandClock, make_entry
from reverie.store.conformance.lab import put
from reverie.store.contract import WouldWait, WriteTx
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import writer as writer_module


def test_many_writes_of_one_tenant_delay_another_by_one_commit(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOST_IN_A_BATCH", 8)
    store, done = make_store(), []

    def body(tenant: str, number: int) -> Body:
        return lambda _: done.append((tenant, number))

    bodies = [(Scope("greedy", "notes"), body("greedy", number)) for number in range(30)]
    futures = one_batch(store, [*bodies, (Scope("acme", "notes"), body("acme", 0))])
    for future in futures:
        future.result(30)
    assert ("acme", 0) in done[:8]
    assert [number for tenant, number in done if tenant == "greedy"] == list(range(30))
    assert not store._writer._left


def test_large_batches_are_committed_one_by_one_and_small_writes_go_first(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, commits = make_store(), []
    work = writer_module.Writer._commit_all

    def noted(writer: Any, jobs: Any) -> None:
        commits.append([job.scope.tenant for job in jobs if job.scope])
        work(writer, jobs)

    monkeypatch.setattr(writer_module.Writer, "_commit_all", noted)

    def body(weight: int) -> Body:
        def stored(_: Any) -> None:
            return None

        stored.weight = weight  # type: ignore[attr-defined]
        return stored

    batches = [(Scope("greedy", "notes"), body(1000)) for _ in range(3)]
    small = [(Scope(tenant, "notes"), body(1)) for tenant in ("acme", "brook")]
    for future in one_batch(store, [*batches, *small]):
        future.result(30)
    assert commits[-4:] == [["acme", "brook"], ["greedy"], ["greedy"], ["greedy"]]
    assert not store._writer._left


def test_small_writes_do_not_keep_a_large_batch_waiting_for_ever() -> None:
    writer = object.__new__(writer_module.Writer)
    writer._queue, writer._left, writer._passed = queue.SimpleQueue(), [], 0

    def job(weight: int) -> writer_module._Job:
        made = writer_module._Job(Scope("acme", "notes"), lambda _: None)
        made.heavy = weight > writer_module.HEAVY
        return made

    writer._queue.put(job(1000))
    taken: list[list[bool]] = []
    while len(taken) < 5:
        writer._queue.put(job(1))
        taken.append([one.heavy for one in writer._take()])
    assert taken[: writer_module.MOST_PASSES + 1] == [[False]] * writer_module.MOST_PASSES + [[True]]


def test_turns_keep_each_tenants_order() -> None:
    jobs = [writer_module._Job(Scope(tenant, "notes"), lambda _: None) for tenant in "aaaaabbc"]
    chosen, left = writer_module.in_turn(jobs, 5)
    assert [job.scope.tenant for job in chosen if job.scope] == ["a", "a", "b", "b", "c"]
    assert [jobs.index(job) for job in chosen] == sorted(jobs.index(job) for job in chosen)
    assert [job.scope.tenant for job in left if job.scope] == ["a", "a", "a"]


def at_once(**fields: Any) -> Body:
    def body(tx: WriteTx) -> Any:
        return put(tx, make_entry(**fields), minted=False)

    body.waits = False  # type: ignore[attr-defined]
    return body


def test_a_body_that_may_not_wait_is_refused_before_anything_is_done(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, at_once(id="a"))
    entered, leave = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        entered.set()
        assert leave.wait(120)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(store.control, hold, write=True)
        assert entered.wait(120)
        assert not store.free
        with pytest.raises(WouldWait):
            store.write(HERE, at_once(id="b"))
        leave.set()
        held.result()
    assert ids(store) == ["a"]


def test_a_body_that_may_not_wait_does_not_wait_for_another_process(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    store._writer._took = 0.0
    other = apsw.Connection(store.path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(WouldWait):
        store.write(HERE, at_once(id="b"))
    other.execute("ROLLBACK")
    other.close()
    store._writer._took = 0.0
    store.write(HERE, at_once(id="c"))
    assert sorted(ids(store)) == ["a", "c"]
    sound(store, 2)


def test_a_long_log_and_a_slow_disk_are_left_to_a_thread(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "SLOW_SECONDS", 1000.0)
    store = make_store()
    store.write(HERE, at_once(id="a"))
    assert store.free
    monkeypatch.setattr(writer_module, "LOG_PAGES", 1)
    assert not store.free
    with pytest.raises(WouldWait):
        store.write(HERE, at_once(id="b"))
    store.write(HERE, storing(id="b"))  # folds the log
    assert store.free
    monkeypatch.setattr(writer_module, "SLOW_SECONDS", 0.0)
    assert not store.free


def test_an_interrupt_at_the_end_of_a_write_refuses_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "memory.db", clock=HandClock())
    store.write(HERE, lambda tx: put(tx, make_entry(id="first")))
    measured = iter([0.0])

    def interrupted() -> float:
        for value in measured:
            return value
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writer_module.time, "perf_counter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.write(HERE, lambda tx: put(tx, make_entry(id="second")))
    store.write(HERE, lambda tx: put(tx, make_entry(id="third")))
    assert store.read(HERE, lambda tx: tx.get("third")) is not None
    store.close()
