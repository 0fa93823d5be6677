"""Readers, the log they may hold up, and the end of a store."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.patience import until
from tests.unit.store.sqlite.batches import HERE, ids, storing

from reverie.core.errors import StoreError, StoreUnavailable
from reverie.store.conformance import HandClock, make_entry, make_event
from reverie.store.conformance.lab import ANYTHING, put
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import store as store_module


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


def test_a_query_that_is_not_finished_does_not_hide_what_is_written_later(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()
    store.write(HERE, storing(id="a"))
    store.write(HERE, storing(id="b"))
    unfinished = store.read(HERE, lambda tx: tx._db.execute("SELECT * FROM entry"))  # as a traceback may keep one
    store.write(HERE, storing(id="c"))
    assert sorted(ids(store)) == ["a", "b", "c"]
    del unfinished


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
