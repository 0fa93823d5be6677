"""A sweep of one tenant: destroy expired text and make missing vectors, under a lease."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.entry import EntryState, Scope
from reverie.jobs.ports import UseCases
from reverie.memory.files import due
from reverie.memory.lifecycle import retentions
from reverie.memory.read import ANYTHING
from reverie.store.contract import ReadTx

LEASE = "sweep"
LEASE_MS = 60_000
TRIM_EVERY_MS = 60 * 60_000
_EXPIRED = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED}, expired=True)


class Swept(Struct, frozen=True):
    """The result of a sweep."""

    expired: int = 0
    retired: int = 0
    indexed: int = 0
    collected: int = 0
    """Archives of dreams that outlived their retention."""


class Sweeper:
    """Sweeps tenants for one holder. Any number of holders may work on one store: a lease keeps them apart."""

    def __init__(self, host: UseCases, holder: str) -> None:
        self._host = host
        self._holder = holder
        self._whole_at: dict[str, int] = {}  # tenant: the log position at which no vector was missing
        self._collected_at: dict[str, int] = {}  # tenant: when its archives were looked through
        self._trimmed_at: dict[str, tuple[int, int]] = {}  # tenant: when, and the log position then

    def due(self, tenant: str) -> list[str]:
        """Return the sweeps (`retain`, `reindex`) that a tenant needs now.

        Looking costs a read and no write, so that thousands of quiet tenants cost next to nothing.
        """
        self._host.searches.flush(tenant)
        retention = retentions(self._host.rules.latest(tenant).policy)

        def body(tx: ReadTx) -> tuple[int, bool]:
            over = (
                tx.scan(_EXPIRED, limit=1).items
                or any(tx.cold(one.state, before=tx.now - one.kept_ms, limit=1, files=one.files) for one in retention)
                or next(due(tx, limit=1), None)
            )
            return tx.head().seq, bool(over)

        head, over = self._host.parts.store.read(Scope(tenant), body)
        found = []
        if self._outdated(tenant) or over or self._untrimmed(tenant, head):
            found.append("retain")
        if self._unindexed(tenant, head):
            found.append("reindex")
        return found

    def sweep(self, tenant: str) -> Swept | None:
        """Do the due work; None when there is none, or another holder has the lease."""
        work = {"retain": self.retain, "reindex": self.reindex}
        done = [work[name](tenant) for name in self.due(tenant)]
        total = Swept()
        for one in done:
            if one is not None:
                total = Swept(*(getattr(total, name) + getattr(one, name) for name in Swept.__struct_fields__))
        return total if any(one is not None for one in done) else None

    def retain(self, tenant: str) -> Swept | None:
        """Destroy what expired or outlived its retention; None when another holder has the lease."""

        def work(actor: Actor) -> Swept:
            expired = self._host.lifecycle.expire(actor)
            retired = self._host.file_retention.sweep(actor) + self._host.lifecycle.retain(actor)
            self._host.parts.store.write(Scope(tenant), lambda tx: tx.trim())
            return Swept(expired, retired, collected=self._host.archives.collect(actor))

        return self._under_lease(tenant, LEASE, work)

    def reindex(self, tenant: str) -> Swept | None:
        """Make the missing vectors; None when another holder has the lease."""
        return self._under_lease(tenant, "reindex", lambda actor: Swept(indexed=self._host.embeddings.fill(actor)))

    def _under_lease(self, tenant: str, lease: str, work: Callable[[Actor], Swept]) -> Swept | None:
        actor, leases = self._host.system_actor(tenant), self._host.leases
        with leases.holding(actor, lease, self._holder, for_ms=LEASE_MS) as ours:
            return work(actor) if ours else None

    def _outdated(self, tenant: str) -> bool:
        """Whether archives outlived their retention: looked at once an hour."""
        now = self._host.parts.clock.now()
        if now - self._collected_at.get(tenant, 0) < TRIM_EVERY_MS:
            return False
        self._collected_at[tenant] = now
        return bool(self._host.archives.outdated(self._host.system_actor(tenant)))

    def _unindexed(self, tenant: str, head: int) -> bool:
        """Whether vectors are missing. Looking reads the whole index, so it is done only when the log has moved."""
        if self._whole_at.get(tenant) == head:
            return False
        if not self._host.embeddings.complete(self._host.system_actor(tenant)):
            return True
        self._whole_at[tenant] = head
        return False

    def _untrimmed(self, tenant: str, head: int) -> bool:
        """Whether answers to old retries may be waiting: once an hour, in tenants that wrote since."""
        now = self._host.parts.clock.now()
        last, position = self._trimmed_at.setdefault(tenant, (now, head))
        if now - last < TRIM_EVERY_MS or position == head:
            return False
        self._trimmed_at[tenant] = (now, head)  # another process may be the one that sweeps it
        return True
