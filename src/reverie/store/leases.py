"""Leases on work that only one process may do at a time, and the names of their holders."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.core.errors import ReadOnly, ReverieError
from reverie.core.ports import Clock
from reverie.core.query import Lease
from reverie.store.contract import Store


class Leases:
    """Named leases of a tenant. A lease that is not given back expires."""

    def __init__(self, store: Store, clock: Clock, read_only: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._read_only = read_only

    def take(self, actor: Actor, name: str, holder: str, *, for_ms: int) -> bool:
        """Take a lease that is free, expired or already ours. False when someone else holds it."""
        if self._read_only:
            raise ReadOnly()
        until = self._clock.now() + for_ms
        return self._store.write(Scope(actor.tenant), lambda tx: tx.claim(name, holder, until=until))

    def current(self, actor: Actor, *, limit: int = 100) -> list[Lease]:
        """The leases that are held now."""
        actor.require(Right.ADMIN)
        return self._store.read(Scope(actor.tenant), lambda tx: tx.leases(limit=limit))

    def give_back(self, actor: Actor, name: str, holder: str) -> None:
        """Release a lease; does nothing when it is not ours."""
        self._store.write(Scope(actor.tenant), lambda tx: tx.release(name, holder))

    @contextmanager
    def holding(self, actor: Actor, name: str, holder: str, *, for_ms: int) -> Iterator[bool]:
        """Hold a lease while the block runs, then release it. Yields False when someone else holds it."""
        if not self.take(actor, name, holder, for_ms=for_ms):
            yield False
            return
        try:
            with self.beating(actor, name, holder, for_ms=for_ms):
                yield True
        finally:
            self.give_back(actor, name, holder)

    @contextmanager
    def beating(self, actor: Actor, name: str, holder: str, *, for_ms: int) -> Iterator[None]:
        """Renew a lease that is ours while the block runs, so that it can be short and a dead holder is noticed soon.

        The lease is not released: the block does that in its last transaction, or the lease expires.
        """
        over = threading.Event()

        def beat() -> None:
            while not over.wait(for_ms / 3000):
                try:
                    if not self.take(actor, name, holder, for_ms=for_ms):
                        return  # someone else has it: too late
                except ReverieError:
                    continue  # the next beat may come through

        heart = threading.Thread(target=beat, name="reverie-heartbeat", daemon=True)
        heart.start()
        try:
            yield
        finally:
            over.set()
            heart.join()


def holder(suffix: str) -> str:
    """The name of a lease holder: machine, process id, start of the process, and one piece of its work."""
    return f"{_process(os.getpid())}/{suffix}"


@lru_cache(1)
def _process(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_began(pid)}"


def is_dead(name: str) -> bool:
    """Whether the process that took a lease has ended. False when that is unknown, as on another machine."""
    host, _, rest = name.partition("/")
    pid, _, rest = rest.partition("/")
    began = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _began(int(pid)) != began


def _began(pid: int) -> str:
    """Return the start time of a process, in its system's own unit; a reused process id has another start time."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "0"
    fields = text.rpartition(")")[2].split()
    # state is the third field of the file and the first after the name; the start is the twenty-second
    return "gone" if fields[0] in ("Z", "X") else fields[19]
