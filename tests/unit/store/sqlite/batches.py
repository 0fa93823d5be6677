"""Batches of writes, and what a store has after them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore

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
            futures.append(pool.submit(store._submit, scope, body))
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
