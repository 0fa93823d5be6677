"""The writing thread: what a batch of strangers must never do to one another."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.patience import until

from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.errors import Conflict, StoreError, StoreFull, StoreUnavailable
from reverie.core.query import Filter
from reverie.store.conformance import HandClock, make_entry, make_event
from reverie.store.conformance.lab import ANYTHING, put
from reverie.store.contract import WouldWait, WriteTx
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import store as store_module
from reverie.store.sqlite import writer as writer_module

HERE = Scope("acme", "notes")
Body = Callable[[WriteTx], Any]


def one_batch(store: SqliteStore, bodies: Sequence[tuple[Scope | None, Body]]) -> list[Future[Any]]:
    """Run bodies in one batch, in this order: the writer is kept busy until all of them wait. None: above tenants."""
    entered, leave = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        entered.set()
        assert leave.wait(120)

    pool = ThreadPoolExecutor(len(bodies) + 1)
    first = pool.submit(store.control, hold, write=True)
    assert entered.wait(120)
    waiting = store._writer._queue
    futures = []
    for number, (scope, body) in enumerate(bodies):
        if scope is None:
            futures.append(pool.submit(store.control, body, write=True))
        else:
            futures.append(pool.submit(store.write, scope, body))
        while waiting.qsize() <= number:
            pass
    leave.set()
    pool.shutdown(wait=True)
    first.result()
    return futures


def ids(store: SqliteStore, where: Filter = Filter()) -> list[str]:  # noqa: B008
    return [e.id for e in store.read(HERE, lambda tx: tx.scan(where, limit=1000)).items]


def storing(**fields: Any) -> Body:
    return lambda tx: put(tx, make_entry(**fields), minted=fields.pop("minted", False))


def sound(store: SqliteStore, events: int) -> None:
    log = store.read(HERE, lambda tx: tx.read_log(limit=10_000))
    head = store.read(HERE, lambda tx: tx.head())
    assert [e.seq for e in log] == list(range(1, events + 1))
    assert all(e.sound() for e in log)
    assert all(b.prev_hash == a.hash for a, b in pairwise(log))
    assert (head.seq, head.hash) == (events, log[-1].hash)
    assert store.check()


def commits(store: SqliteStore) -> Callable[[], int]:
    """Counts the commits of the writing connection from now on."""
    counted: list[int] = []

    def count() -> bool:
        counted.append(1)
        return False

    store._db.set_commit_hook(count)
    return lambda: len(counted)


def test_waiting_writes_share_one_commit(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    done = commits(store)
    for future in one_batch(store, [(HERE, storing(id=f"{n}")) for n in range(20)]):
        future.result()
    assert done() == 2  # the one that held the writer, and all of ours
    sound(store, 20)


def test_a_body_that_raises_after_others_succeeded_takes_only_itself_along(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()

    def raises_after_reading(tx: WriteTx) -> None:
        put(tx, make_entry(id="lost"))
        tx.get("a")  # the waiting rows of everyone are inserted here
        put(tx, make_entry(id="lost too"))
        raise KeyError

    def raises_after_changing(tx: WriteTx) -> None:
        tx.change("a", seq=tx.append(make_event()), state=EntryState.DELETED)
        raise KeyError

    def raises_at_once(tx: WriteTx) -> None:
        raise KeyError

    def reads_then_raises(tx: WriteTx) -> None:
        assert tx.get("a") is not None
        raise KeyError

    done = commits(store)
    bad = (raises_after_reading, raises_after_changing, raises_at_once, reads_then_raises)
    bodies: list[tuple[Scope, Body]] = [(HERE, storing(id="a"))]
    for number, body in enumerate(bad):
        bodies += [(HERE, body), (HERE, storing(id=f"good {number}"))]
    futures = one_batch(store, bodies)
    assert [type(f.exception()) for f in futures] == [type(None), *([KeyError, type(None)] * 4)]
    assert done() == 2
    assert sorted(ids(store)) == ["a", "good 0", "good 1", "good 2", "good 3"]
    positions = [e.position for e in store.read(HERE, lambda tx: tx.scan(Filter(), limit=10)).items]
    assert sorted(positions) == [1, 2, 3, 4, 5]  # what failed used none up
    sound(store, 5)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exit_inside_a_body_reaches_its_caller_only(
    make_store: Callable[..., SqliteStore], fault: type[BaseException]
) -> None:
    store = make_store()
    caught: list[BaseException | None] = []

    def exits(tx: WriteTx) -> None:
        put(tx, make_entry(id="lost"))
        raise fault

    def catching(tx: WriteTx) -> None:
        put(tx, make_entry(id="b"))

    def call() -> None:
        try:
            store.write(HERE, exits)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    futures = one_batch(store, [(HERE, storing(id="a")), (HERE, catching)])
    thread.start()
    thread.join()
    assert [f.exception() for f in futures] == [None, None]
    assert [type(error) for error in caught] == [fault]
    store.write(HERE, storing(id="c"))
    assert sorted(ids(store)) == ["a", "b", "c"]


def test_a_tenant_made_by_a_failing_body_is_not_kept_for_the_next(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    new = Scope("new", "notes")

    def fails(tx: WriteTx) -> None:
        put(tx, make_entry(id="lost"))
        raise KeyError

    futures = one_batch(store, [(HERE, storing(id="x")), (new, fails), (Scope("other", "notes"), storing(id="y"))])
    assert [type(f.exception()) for f in futures] == [type(None), KeyError, type(None)]
    assert store.control(lambda tx: tx.tenants()) == ["acme", "other"]
    futures = one_batch(store, [(new, fails), (new, storing(id="a")), (new, fails), (new, storing(id="b"))])
    assert [type(f.exception()) for f in futures] == [KeyError, type(None), KeyError, type(None)]
    assert store.read(new, lambda tx: [e.seq for e in tx.read_log()]) == [1, 2]
    assert store.read(new, lambda tx: len(tx.match(["kettle"], Filter(), limit=9))) == 2
    assert store.check()


def test_an_embedding_model_first_named_by_a_failing_body_works_for_the_next(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()
    vector = ("model", bytes([1] * 8))

    def fails(tx: WriteTx) -> None:
        tx.change("a", seq=tx.append(make_event()), pinned=True)  # behind a savepoint from here on
        put(tx, make_entry(id="b"), vector=vector)
        tx.get("b")
        raise KeyError

    store.write(HERE, storing(id="a"))
    futures = one_batch(store, [(HERE, fails), (HERE, lambda tx: put(tx, make_entry(id="c"), vector=vector))])
    assert isinstance(futures[0].exception(), KeyError)
    futures[1].result()
    assert store.read(HERE, lambda tx: tx.index_state("model")) == (2, 1)
    assert [m.entry.id for m in store.read(HERE, lambda tx: tx.nearest(vector, Filter(), limit=9))] == ["c"]


def test_an_answer_remembered_by_a_failing_body_is_forgotten_and_an_earlier_one_is_not(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()

    def remembers(answer: bytes, *, fail: bool = False) -> Body:
        def body(tx: WriteTx) -> None:
            tx.append(make_event())
            tx.remember_answer("k", "d", answer, until=tx.now + 1000)
            if fail:
                raise KeyError

        return body

    def recalls(tx: WriteTx) -> Any:
        return tx.recall_answer("k")

    futures = one_batch(store, [(HERE, remembers(b"0", fail=True)), (HERE, recalls), (HERE, remembers(b"1"))])
    assert futures[1].result() is None
    futures = one_batch(store, [(HERE, remembers(b"2")), (HERE, remembers(b"3", fail=True)), (HERE, recalls)])
    assert futures[2].result() == ("d", b"2")
    assert store.read(HERE, recalls) == ("d", b"2")


def test_an_id_freed_by_a_failing_body_can_be_taken_by_the_next(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()

    def fails(tx: WriteTx) -> None:
        put(tx, make_entry(id="a", content="lost"))
        raise KeyError

    futures = one_batch(store, [(HERE, fails), (HERE, storing(id="a")), (HERE, storing(id="a"))])
    assert [type(f.exception()) for f in futures] == [KeyError, type(None), Conflict]
    assert ids(store) == ["a"]


def test_a_control_body_that_fails_leaves_the_batch_whole(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()

    def fails(tx: Any) -> None:
        tx.set_setting("x", b"1")
        raise KeyError

    def broken(tx: Any) -> None:
        tx.set_setting("y", b"1")
        tx._db.execute("SELECT * FROM no_such_table")

    futures = one_batch(store, [(HERE, storing(id="b")), (None, fails), (None, broken), (HERE, storing(id="c"))])
    assert [type(f.exception()) for f in futures] == [type(None), KeyError, StoreError, type(None)]
    assert store.control(lambda tx: (tx.setting("x"), tx.setting("y"))) == (None, None)
    store.write(HERE, storing(id="d"))
    assert sorted(ids(store)) == ["b", "c", "d"]


def test_a_constraint_broken_by_one_body_is_its_own_error(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    lying = make_entry(id="a", content="minted, it says")
    futures = one_batch(
        store,
        [
            (HERE, storing(id="a")),
            (HERE, storing(id="b")),
            (HERE, lambda tx: put(tx, lying, minted=True)),  # found out only when the rows are inserted
            (HERE, storing(id="c")),
        ],
    )
    assert [type(f.exception()) for f in futures] == [type(None), type(None), StoreError, type(None)]
    assert sorted(ids(store)) == ["a", "b", "c"]
    sound(store, 3)


def test_a_row_that_cannot_be_stored_does_not_fail_the_body_that_flushes_it(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()

    def swallows(tx: WriteTx) -> str:
        put(tx, make_entry(id="reader"))
        try:
            tx.get("reader")  # inserts what the body before left waiting
        except Exception:
            return "swallowed"
        return "read"

    futures = one_batch(
        store,
        [
            (HERE, storing(id="good")),
            (HERE, storing(id="too large", created_at=2**70)),
            (HERE, swallows),
            (HERE, storing(id="broken", subject="\ud800")),
            (HERE, storing(id="fine")),
        ],
    )
    kinds = [type(f.exception()) for f in futures]
    assert kinds == [type(None), OverflowError, type(None), UnicodeEncodeError, type(None)]
    assert futures[2].result() == "read"
    assert sorted(ids(store)) == ["fine", "good", "reader"]
    sound(store, 3)


def test_an_error_that_hangs_on_another_body_is_not_given_when_the_batch_fails(
    make_store: Callable[..., SqliteStore],
) -> None:
    """Two writers of one id, and the disk refuses the commit: neither may hear that the other one has it."""
    store = make_store()
    store.write(HERE, storing(id="first"))
    entry: Entry = make_entry(id="a")
    store._db.set_commit_hook(lambda: True)  # every commit is refused
    futures = [
        pool.submit(store.write, HERE, lambda tx: put(tx, entry)) for pool in [ThreadPoolExecutor(4)] for _ in range(4)
    ]
    assert [type(f.exception()) for f in futures] == [StoreError] * 4
    store._db.set_commit_hook(None)
    store.write(HERE, lambda tx: put(tx, entry))
    assert sorted(ids(store)) == ["a", "first"]
    sound(store, 2)


@pytest.mark.parametrize("where", ["flush", "body", "tenant"])
def test_a_full_disk_is_reported_and_survived(make_store: Callable[..., SqliteStore], where: str) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    pages = store._db.execute("PRAGMA page_count").get
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()

    def large(tx: WriteTx) -> None:
        if where == "body":
            tx.change("a", seq=tx.append(make_event()), attributes={"x": "y" * 200_000})
        else:
            put(tx, make_entry(id="b", content="z" * 200_000))

    scope = Scope("another", "notes") if where == "tenant" else HERE
    with pytest.raises(StoreFull):
        store.write(scope, large)
    assert ids(store) == ["a"]
    assert store.control(lambda tx: tx.tenants()) == ["acme"]
    store._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    store.write(scope, large)
    assert store.check()
    sound(store, 2 if where != "tenant" else 1)


def test_a_full_disk_for_one_large_write_is_not_one_for_its_small_neighbours(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    pages = store._db.execute("PRAGMA page_count").get
    store._db.execute(f"PRAGMA max_page_count = {pages + 8}").fetchall()
    futures = one_batch(
        store,
        [(HERE, storing(id="b")), (HERE, storing(id="huge", content="z" * 500_000)), (HERE, storing(id="c"))],
    )
    assert [type(f.exception()) for f in futures] == [type(None), StoreFull, type(None)]
    assert sorted(ids(store)) == ["a", "b", "c"]
    sound(store, 3)


def test_a_failed_rollback_is_made_up_for(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store._db.execute("BEGIN")  # as if a rollback had not worked
    store.write(HERE, storing(id="a"))
    assert ids(store) == ["a"]


def test_a_batch_is_bounded_and_everyone_gets_an_answer(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    with ThreadPoolExecutor(64) as pool:
        results = list(pool.map(lambda n: store.write(HERE, storing(id=f"{n}")).id, range(600)))
    assert results == [f"{n}" for n in range(600)]
    sound(store, 600)


def test_idle_readers_are_bounded(make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_IDLE_READERS", 3)
    store = make_store()
    barrier = threading.Barrier(10)
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: store.read(HERE, lambda tx: barrier.wait(120)), range(10)))
    assert len(store._readers) == 3
    assert store.read(HERE, lambda tx: tx.head().seq) == 0


def test_a_reader_whose_body_failed_is_used_again(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    for _ in range(50):
        with pytest.raises(KeyError):
            store.read(HERE, lambda tx: {}["x"])
    assert len(store._readers) == 1
    assert not store._readers[0].in_transaction


def test_a_reader_cannot_write(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    with pytest.raises(StoreUnavailable):
        store.read(HERE, lambda tx: tx._db.execute("DELETE FROM entry"))
    assert ids(store) == ["a"]


def wal_size(store: SqliteStore) -> int:
    return Path(store.path + "-wal").stat().st_size


def test_the_log_is_emptied_after_a_purge_even_if_a_reader_was_in_the_way(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()
    store.write(HERE, storing(id="a", content="quicksilver words"))
    inside, leave = threading.Event(), threading.Event()

    def slow(tx: Any) -> str:
        before = tx.get("a").content
        inside.set()
        assert leave.wait(120)
        assert tx.get("a").content == before  # the snapshot held all the time
        return before

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(store.read, HERE, slow)
        assert inside.wait(120)
        store.write(HERE, lambda tx: tx.purge("a", seq=tx.append(make_event("memory.purged"))))
        assert store._writer._scrub_owed
        assert wal_size(store) > 0
        store.write(HERE, storing(id="b"))  # nobody waits for the slow reader
        leave.set()
        assert reader.result() == "quicksilver words"
    until(lambda: wal_size(store) == 0 and not store._writer._scrub_owed, "the log was emptied")


def test_a_very_long_read_sees_its_snapshot_while_the_log_grows(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))

    def long(tx: Any) -> None:
        for round_ in range(20):
            worker = threading.Thread(
                target=store.write, args=(HERE, lambda tx: [put(tx, make_entry(content="x" * 3000)) for _ in range(60)])
            )
            worker.start()
            worker.join()
            assert tx.count(ANYTHING) == 1, round_
            assert tx.head().seq == 1

    store.read(HERE, long)
    assert store.read(HERE, lambda tx: tx.count(ANYTHING)) == 1201
    store.write(HERE, lambda tx: tx.purge("a", seq=tx.append(make_event("memory.purged"))))
    assert wal_size(store) == 0


def test_a_store_in_memory_is_its_own(clock: HandClock) -> None:
    one, two = SqliteStore(":memory:", clock=clock), SqliteStore(":memory:", clock=clock)
    one.write(HERE, storing(id="a"))
    assert ids(two) == []
    one.close()
    three = SqliteStore(":memory:", clock=clock)
    assert ids(three) == []
    for store in (two, three):
        store.close()


def test_close_is_idempotent_and_final(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable):
        store.write(HERE, storing(id="b"))
    with pytest.raises(StoreUnavailable):
        ids(store)
    assert not Path(store.path + "-wal").exists()


def test_a_read_that_is_open_while_the_store_closes_ends_well(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))

    def body(tx: Any) -> str:
        store.close()
        return str(tx.get("a").id)

    assert store.read(HERE, body) == "a"
    with pytest.raises(StoreUnavailable):
        ids(store)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, sys
        from reverie.core.entry import Scope
        from reverie.core.errors import StoreUnavailable
        from reverie.store.conformance import make_entry
        from reverie.store.conformance.lab import put
        from reverie.store.sqlite import SqliteStore

        here = Scope("acme", "notes")
        store = SqliteStore(sys.argv[1])
        store.write(here, lambda tx: put(tx, make_entry(id="parent")))
        store.read(here, lambda tx: tx.head())
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (
                lambda: store.write(here, lambda tx: put(tx, make_entry(id="ghost"))),
                lambda: store.read(here, lambda tx: tx.head()),
                lambda: store.control(lambda tx: tx.tenants(), write=True),
            ):
                try:
                    call()
                except StoreUnavailable:
                    refused += 1
            store.close()
            own = SqliteStore(sys.argv[1])
            own.write(here, lambda tx: put(tx, make_entry(id="child")))
            own.close()
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 3, status
        store.write(here, lambda tx: put(tx, make_entry(id="parent again")))
        print(store.read(here, lambda tx: tx.head().seq))
        store.check()
        store.close()
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "memory.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "3", done.stderr


def test_driver_errors_never_leave_untranslated(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    for body in (
        lambda tx: tx._db.execute("SELECT * FROM nothing"),
        lambda tx: tx._db.execute("INSERT INTO setting VALUES (NULL, NULL)"),
    ):
        with pytest.raises(StoreError) as caught:
            store.write(HERE, body)
        assert isinstance(caught.value.__cause__, apsw.Error)
        with pytest.raises(StoreError):
            store.read(HERE, body)


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
