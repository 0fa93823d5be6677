"""The writing thread: what a batch of strangers must never do to one another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.store.sqlite.batches import HERE, Body, commits, ids, one_batch, sound, storing

from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.errors import Conflict, StoreError, StoreFull
from reverie.core.query import Filter
from reverie.store.conformance import make_entry, make_event
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore


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
