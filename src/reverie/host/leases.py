"""Leases: work that only one process may do at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from reverie.core.actor import Actor
from reverie.core.entry import Scope
from reverie.core.errors import ReadOnly, ReverieError
from reverie.host.parts import Parts


class Leases:
    """Named leases of a tenant. One that is not given back ends by itself."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take(self, actor: Actor, name: str, holder: str, *, for_ms: int) -> bool:
        """Take a lease that is free, over, or already ours. False when someone else holds it."""
        if self._parts.read_only:
            raise ReadOnly()
        until = self._parts.clock.now() + for_ms
        return self._parts.store.write(Scope(actor.tenant), lambda tx: tx.claim(name, holder, until=until))

    def give_back(self, actor: Actor, name: str, holder: str) -> None:
        """Let others have it."""
        self._parts.store.write(Scope(actor.tenant), lambda tx: tx.release(name, holder))

    @contextmanager
    def beating(self, actor: Actor, name: str, holder: str, *, for_ms: int) -> Iterator[None]:
        """Renew a lease that is ours while the block runs, so that it can be short and a dead holder is noticed soon.

        It is not given back: the block does that in its last transaction, or it ends by itself.
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
