"""Host: one property per use case. Doors call these; they are the modules beside this one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reverie.core.actor import Actor
from reverie.services import Services

if TYPE_CHECKING:
    from reverie.dreams.archive import Archives
    from reverie.dreams.consolidate import Consolidator
    from reverie.dreams.engine import DreamEngine
    from reverie.dreams.lineage import Lineage
    from reverie.dreams.spend import SpendLimits
    from reverie.jobs.due import Agenda
    from reverie.jobs.embedding import Embeddings
    from reverie.jobs.queue import Jobs
    from reverie.jobs.schedule import Scheduler
    from reverie.memory.audit import Audit
    from reverie.memory.cursors import Cursors
    from reverie.memory.entries import Entries
    from reverie.memory.export import Bundles
    from reverie.memory.history import History
    from reverie.memory.keys import Keys
    from reverie.memory.lifecycle import Lifecycle
    from reverie.memory.policy import RuleBook
    from reverie.memory.read import Reader
    from reverie.memory.search import Search
    from reverie.privacy.forget import Forget
    from reverie.privacy.rescan import Rescan
    from reverie.protocols.akashik.conformance import Faults
    from reverie.protocols.akashik.field import Field
    from reverie.protocols.openwop.agents import Agents
    from reverie.protocols.openwop.commitments import Commitments
    from reverie.protocols.openwop.conformance.seeding import Seeder
    from reverie.protocols.openwop.forks import Forks
    from reverie.protocols.openwop.heartbeat import Heartbeats
    from reverie.protocols.openwop.injection import Injection
    from reverie.protocols.openwop.passes import Passes
    from reverie.protocols.openwop.runs import Runs
    from reverie.protocols.openwop.workspace import Workspace
    from reverie.store.leases import Leases
    from reverie.window.admin import WindowAdmin

Made = TypeVar("Made")


class made(Generic[Made]):  # noqa: N801  (it reads as a property does)
    """A part of the host, imported and made when it is first asked for, and once however many threads ask.

    `reverie put` needs a tenth of the modules that a server needs; those of the other parts it never reads.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, host: Host, owner: type[Host]) -> Made:
        with host._making:
            if self._name not in vars(host):
                vars(host)[self._name] = self._make(host)  # found there from now on, before this is asked
            return vars(host)[self._name]  # type: ignore[no-any-return]


class Host:
    """A memory host. Every method of every part takes the actor first: who calls decides the tenant.

    `host.writing.put(...)`, `host.recall.search(...)`: the attributes are the use cases.
    """

    def __init__(self, parts: Services) -> None:
        self.parts = parts
        self._making = threading.RLock()

    @made
    def rules(self) -> RuleBook:
        from reverie.memory.policy import RuleBook

        return RuleBook(self.parts)

    @made
    def writing(self) -> Entries:
        from reverie.memory.entries import Entries

        return Entries(self.parts, self.rules)

    @made
    def reading(self) -> Reader:
        from reverie.memory.read import Reader

        return Reader(self.parts)

    @made
    def recall(self) -> Search:
        from reverie.memory.search import Search

        return Search(self.parts)

    @made
    def lifecycle(self) -> Lifecycle:
        from reverie.memory.lifecycle import Lifecycle

        return Lifecycle(self.parts, self.rules)

    @made
    def bundles(self) -> Bundles:
        from reverie.memory.export import Bundles

        return Bundles(self.parts, self.rules, self.writing)

    @made
    def audit(self) -> Audit:
        from reverie.memory.audit import Audit

        return Audit(self.parts)

    @made
    def keys(self) -> Keys:
        from reverie.memory.keys import Keys

        return Keys(self.parts, self.rules)

    @made
    def scanning(self) -> Rescan:
        from reverie.privacy.rescan import Rescan

        return Rescan(self.parts, self.rules)

    @made
    def faults(self) -> Faults:
        from reverie.protocols.akashik.conformance import Faults

        return Faults(enabled=self.parts.field.faults)

    @made
    def reindexing(self) -> Embeddings:
        from reverie.jobs.embedding import Embeddings

        return Embeddings(self.parts, lambda tenant: self.faults.on(tenant, "enrichment"))

    @made
    def archives(self) -> Archives:
        from reverie.dreams.archive import Archives

        return Archives(self.parts, self.rules)

    @made
    def dreaming(self) -> DreamEngine:
        from reverie.dreams.engine import DreamEngine

        return DreamEngine(self.parts, self.rules, self.writing, self.archives)

    @made
    def forgetting(self) -> Forget:
        from reverie.privacy.forget import Forget

        return Forget(self.parts, self.rules, self.writing, self.archives)

    @made
    def field(self) -> Field:
        from reverie.protocols.akashik.field import Field

        return Field(self.parts, self.rules, self.writing, self.archives, self.dreaming, self.reindexing, self.faults)

    @made
    def consolidating(self) -> Consolidator:
        from reverie.dreams.consolidate import Consolidator

        return Consolidator(self.parts, self.rules)

    @made
    def commitments(self) -> Commitments:
        from reverie.protocols.openwop.commitments import Commitments

        return Commitments(self.parts, self.writing)

    @made
    def passes(self) -> Passes:
        from reverie.protocols.openwop.passes import Passes

        return Passes(
            self.parts, self.rules, self.reading, self.dreaming, self.consolidating, self.archives, self.commitments
        )

    @made
    def seeding(self) -> Seeder:
        from reverie.protocols.openwop.conformance.seeding import Seeder

        return Seeder(self.parts, self.rules)

    @made
    def instants(self) -> History:
        from reverie.memory.history import History

        return History(self.parts)

    @made
    def heartbeats(self) -> Heartbeats:
        from reverie.protocols.openwop.heartbeat import Heartbeats

        return Heartbeats(self.parts)

    @made
    def workspace(self) -> Workspace:
        from reverie.protocols.openwop.workspace import Workspace

        return Workspace(self.parts, self.rules)

    @made
    def runs(self) -> Runs:
        from reverie.protocols.openwop.runs import Runs
        from reverie.protocols.openwop.workflows import workflows

        runs = Runs(self.parts, self.rules, self.writing)
        for name, workflow in workflows(self.parts, self.passes, self.injection).items():
            runs.offer(name, workflow)
        return runs

    @made
    def schedules(self) -> Scheduler:
        from reverie.jobs.schedule import Scheduler

        return Scheduler(self.parts, self.rules, self.dreaming, self.consolidating, self.runs)

    @made
    def forks(self) -> Forks:
        from reverie.protocols.openwop.forks import Forks

        return Forks(self.parts, self.runs)

    @made
    def injection(self) -> Injection:
        from reverie.protocols.openwop.injection import Injection

        return Injection(self.parts, self.recall)

    @made
    def lineage(self) -> Lineage:
        from reverie.dreams.lineage import Lineage

        return Lineage(self.parts, self.rules, self.archives)

    @made
    def spending(self) -> SpendLimits:
        from reverie.dreams.spend import SpendLimits

        return SpendLimits(self.parts)

    @made
    def agents(self) -> Agents:
        from reverie.protocols.openwop.agents import Agents

        return Agents(self.parts, self.rules)

    @made
    def leases(self) -> Leases:
        from reverie.store.leases import Leases

        return Leases(self.parts.store, self.parts.clock, read_only=self.parts.read_only)

    @made
    def cursors(self) -> Cursors:
        from reverie.memory.cursors import Cursors

        return Cursors(self.parts)

    @made
    def jobs(self) -> Jobs:
        from reverie.jobs.queue import Jobs

        return Jobs(self.parts, self.rules)

    @made
    def agenda(self) -> Agenda:
        from reverie.jobs.due import Agenda
        from reverie.protocols.openwop.commitments import upcoming_commitment
        from reverie.protocols.openwop.runs import upcoming_recovery

        return Agenda(self.parts, upcoming_recovery, upcoming_commitment)

    @made
    def windows(self) -> WindowAdmin:
        from reverie.window.admin import WindowAdmin

        return WindowAdmin(self.parts, self.rules, self.writing)

    def use_cases(self) -> dict[str, Any]:
        """Every part by its name, all of them made now: what is wrong with one shows here."""
        return {name: getattr(self, name) for name, kind in vars(Host).items() if isinstance(kind, made)}

    def tenants(self) -> list[str]:
        """Every tenant. For the worker and the command line; no door that a tenant can reach calls it."""
        return self.parts.store.control(lambda tx: tx.tenants())

    def system_actor(self, tenant: str) -> Actor:
        """The host itself, acting for a tenant: sweeps, jobs."""
        return Actor(tenant=tenant, id="host:reverie", door="host")

    def close(self) -> None:
        """Finish what was accepted, then let go of everything."""
        self.parts.store.close()
