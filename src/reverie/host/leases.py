"""Leases: work that only one process may do at a time."""

from __future__ import annotations

from reverie.core.actor import Actor
from reverie.core.entry import Scope
from reverie.core.errors import ReadOnly
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
