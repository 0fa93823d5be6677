"""A process that writes under load until it is killed. It prints the key of every write it was acknowledged.

Every thread walks the same endless list of writes from its own start: the key says what is written, so a retry with
the same key is the same request. A kill point ends the process itself, in the middle of the commit named.
"""

from __future__ import annotations

import os
import random
import threading
from typing import Any

from tests.processes import die
from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.services import Services

ADA = Actor(tenant="acme", id="ada")


def drafts_of(key: str) -> list[Draft]:
    """What the write with this key stores: one to four entries, some large."""
    chance = random.Random(key)
    size = chance.choice([1, 1, 1, 20, 600])
    return [
        Draft(f"{key} part {n} " + "of the kettle " * size, tags=(key,), attributes={"key": key})
        for n in range(chance.choice([1, 1, 2, 4]))
    ]


def put(host: Host, key: str) -> list[str]:
    """Store what belongs to a key; the ids."""
    return [r.id for r in host.entries.put(ADA, "notes", drafts_of(key), idempotency_key=key)]


def arm(store: Any, point: str, number: int) -> None:
    """Kill the process in the commit of the given number."""
    if store.name == "sqlite":
        store._writer._db = DyingConnection(store._db, point, number)
        return
    from reverie.store.postgres.batch import Batch

    commit, send, left = Batch.commit, Batch.send, [number]

    def dying(batch: Batch) -> Any:
        left[0] -= 1
        if left[0] == 0 and point == "before-commit":
            die()
        if left[0] == 0 and point == "inside-body":
            send(batch, batch.waiting)  # all of it is at the server, but for the commit
            die()
        result = commit(batch)
        if left[0] == 0 and point == "after-commit":
            die()
        return result

    Batch.commit = dying  # type: ignore[method-assign]


class DyingConnection:
    """The writing connection, which kills the process before or after the commit of the given number."""

    def __init__(self, db: Any, point: str, number: int) -> None:
        self._db, self._point, self._left = db, point, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *rest: Any) -> Any:
        if sql == "COMMIT":
            self._left -= 1
            if self._left == 0 and self._point == "before-commit":
                die()
            result = self._db.execute(sql, *rest)
            if self._left == 0 and self._point == "after-commit":
                die()
            return result
        if "INSERT INTO event" in sql and self._left == 1 and self._point == "inside-body":
            result = self._db.execute(sql, *rest)
            die()
            return result
        return self._db.execute(sql, *rest)


def main(path: str, seed: str, threads: int = 4, point: str = "") -> None:
    os.write(1, b"begun\n")
    store = open_store(path)
    if point:
        arm(store, point, 5)
    host = Host(Services(store=store))
    told = threading.Lock()

    def work(number: int) -> None:
        n = 0
        while True:
            key = f"{seed}-{number}-{n}"
            ids = put(host, key)
            with told:
                os.write(1, f"{key} {' '.join(ids)}\n".encode())
            if n % 5 == 4:
                host.lifecycle.erase(ADA, "notes", ids[0])
                with told:
                    os.write(1, f"-{key} {ids[0]}\n".encode())
            n += 1

    for number in range(threads):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    os.write(1, b"ready\n")
    threading.Event().wait()
