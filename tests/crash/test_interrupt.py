"""Control-C at any moment of a write: the store goes on, nothing acknowledged is lost, nothing is stored by halves."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Callable

from tests.processes import Child
from tests.stores import open_store

from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.contract import Store
from reverie.store.sqlite import SqliteStore

SOAK = os.environ.get("REVERIE_SOAK") == "1"
HERE = Scope("acme", "notes")


def write(store: Store, key: str) -> str:
    store.write(HERE, lambda tx: [put(tx, make_entry(id=f"{key}-{n}", tags=("t",))) for n in range(3)])
    return key


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def write_and_be_interrupted(target: str, rounds: int, longest: float) -> None:
    """The main thread writes and is interrupted again and again; two others write too, and notice nothing of it."""
    chance, told, interrupts, over, faults = random.Random(1), [], 0, threading.Event(), []
    store = open_store(target)
    if isinstance(store, SqliteStore):
        store._db.execute("PRAGMA synchronous = OFF")  # more of the time inside our own code

    def neighbour(name: str) -> None:
        number = 0
        while not over.is_set():
            try:
                told.append(write(store, f"{name}-{number}"))
            except BaseException as fault:
                faults.append(repr(fault))
            number += 1

    others = [threading.Thread(target=neighbour, args=(name,), daemon=True) for name in ("one", "two")]
    for other in others:
        other.start()
    signal.signal(signal.SIGALRM, interrupt)
    for number in range(rounds):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.random() * longest)
            for n in range(50):
                told.append(write(store, f"{number}-{n}"))
        except KeyboardInterrupt:
            interrupts += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    over.set()
    for other in others:
        other.join(120)
        assert not other.is_alive(), "the store hangs"
    assert not faults, faults[:3]
    told.append(write(store, "last"))
    store.close()
    print(json.dumps({"told": told, "interrupts": interrupts}))


def test_interrupted_while_writing(make_target: Callable[..., str], engine: str) -> None:
    rounds = 20_000 if SOAK else 400 if engine == "sqlite" else 200
    target = make_target("memory.db")
    child = Child(write_and_be_interrupted, target, rounds, 0.002 if engine == "sqlite" else 0.01)
    assert child.end(seconds=3600) == 0
    answer = json.loads(child.said)
    assert answer["interrupts"] > rounds // 2
    store = open_store(target)
    ids = {e.id for e in store.read(HERE, lambda tx: tx.scan(Filter(), limit=10**6)).items}
    keys = {entry_id.rsplit("-", 1)[0] for entry_id in ids}
    assert len(ids) == 3 * len(keys)  # whole writes only
    assert set(answer["told"]) <= keys
    log = store.read(HERE, lambda tx: tx.read_log(limit=10**6))
    assert [e.seq for e in log] == list(range(1, len(ids) + 1))
    assert all(e.sound() for e in log)
    store.check()
    store.close()
