"""Host: one property per use case. Doors call these; they are the modules beside this one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reverie.core.actor import Actor
from reverie.host.parts import Parts

if TYPE_CHECKING:
    from reverie.host.agenda import Agenda
    from reverie.host.agents import Agents
    from reverie.host.archives import Archives
    from reverie.host.audit import Audit
    from reverie.host.commitments import Commitments
    from reverie.host.consolidate import Consolidating
    from reverie.host.cursors import Cursors
    from reverie.host.dream import Dreaming
    from reverie.host.erase import Forgetting
    from reverie.host.export import Bundles
    from reverie.host.field.faults import Faults
    from reverie.host.field.field import Field
    from reverie.host.forks import Forks
    from reverie.host.heartbeat import Heartbeats
    from reverie.host.injection import Injection
    from reverie.host.instant import Instants
    from reverie.host.jobs import Jobs
    from reverie.host.keys import Keys
    from reverie.host.leases import Leases
    from reverie.host.lifecycle import Lifecycle
    from reverie.host.lineage import Lineage
    from reverie.host.passes import Passes
    from reverie.host.read import Reading
    from reverie.host.recall import Recall
    from reverie.host.reindex import Reindexing
    from reverie.host.rules import RuleBook
    from reverie.host.runs import Runs
    from reverie.host.scan import Scanning
    from reverie.host.schedule import Schedules
    from reverie.host.seeding import Seeding
    from reverie.host.spend import Spending
    from reverie.host.windows import Windows
    from reverie.host.workspace import Workspace
    from reverie.host.write import Writing

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

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._making = threading.RLock()

    @made
    def rules(self) -> RuleBook:
        from reverie.host.rules import RuleBook

        return RuleBook(self.parts)

    @made
    def writing(self) -> Writing:
        from reverie.host.write import Writing

        return Writing(self.parts, self.rules)

    @made
    def reading(self) -> Reading:
        from reverie.host.read import Reading

        return Reading(self.parts)

    @made
    def recall(self) -> Recall:
        from reverie.host.recall import Recall

        return Recall(self.parts)

    @made
    def lifecycle(self) -> Lifecycle:
        from reverie.host.lifecycle import Lifecycle

        return Lifecycle(self.parts, self.rules)

    @made
    def bundles(self) -> Bundles:
        from reverie.host.export import Bundles

        return Bundles(self.parts, self.rules, self.writing)

    @made
    def audit(self) -> Audit:
        from reverie.host.audit import Audit

        return Audit(self.parts)

    @made
    def keys(self) -> Keys:
        from reverie.host.keys import Keys

        return Keys(self.parts)

    @made
    def scanning(self) -> Scanning:
        from reverie.host.scan import Scanning

        return Scanning(self.parts, self.rules)

    @made
    def faults(self) -> Faults:
        from reverie.host.field.faults import Faults

        return Faults(enabled=self.parts.field.faults)

    @made
    def reindexing(self) -> Reindexing:
        from reverie.host.reindex import Reindexing

        return Reindexing(self.parts, lambda tenant: self.faults.on(tenant, "enrichment"))

    @made
    def archives(self) -> Archives:
        from reverie.host.archives import Archives

        return Archives(self.parts, self.rules)

    @made
    def dreaming(self) -> Dreaming:
        from reverie.host.dream import Dreaming

        return Dreaming(self.parts, self.rules, self.writing, self.archives)

    @made
    def forgetting(self) -> Forgetting:
        from reverie.host.erase import Forgetting

        return Forgetting(self.parts, self.rules, self.writing, self.archives)

    @made
    def field(self) -> Field:
        from reverie.host.field.field import Field

        return Field(self.parts, self.rules, self.writing, self.archives, self.dreaming, self.reindexing, self.faults)

    @made
    def consolidating(self) -> Consolidating:
        from reverie.host.consolidate import Consolidating

        return Consolidating(self.parts, self.rules)

    @made
    def commitments(self) -> Commitments:
        from reverie.host.commitments import Commitments

        return Commitments(self.parts, self.writing)

    @made
    def passes(self) -> Passes:
        from reverie.host.passes import Passes

        return Passes(
            self.parts, self.rules, self.reading, self.dreaming, self.consolidating, self.archives, self.commitments
        )

    @made
    def seeding(self) -> Seeding:
        from reverie.host.seeding import Seeding

        return Seeding(self.parts, self.rules)

    @made
    def instants(self) -> Instants:
        from reverie.host.instant import Instants

        return Instants(self.parts)

    @made
    def heartbeats(self) -> Heartbeats:
        from reverie.host.heartbeat import Heartbeats

        return Heartbeats(self.parts)

    @made
    def workspace(self) -> Workspace:
        from reverie.host.workspace import Workspace

        return Workspace(self.parts, self.rules)

    @made
    def runs(self) -> Runs:
        from reverie.host.runs import Runs
        from reverie.host.workflows import workflows

        runs = Runs(self.parts, self.rules, self.writing)
        for name, workflow in workflows(self.parts, self.passes, self.injection).items():
            runs.offer(name, workflow)
        return runs

    @made
    def schedules(self) -> Schedules:
        from reverie.host.schedule import Schedules

        return Schedules(self.parts, self.rules, self.dreaming, self.consolidating, self.runs)

    @made
    def forks(self) -> Forks:
        from reverie.host.forks import Forks

        return Forks(self.parts, self.runs)

    @made
    def injection(self) -> Injection:
        from reverie.host.injection import Injection

        return Injection(self.parts, self.recall)

    @made
    def lineage(self) -> Lineage:
        from reverie.host.lineage import Lineage

        return Lineage(self.parts, self.rules, self.archives)

    @made
    def spending(self) -> Spending:
        from reverie.host.spend import Spending

        return Spending(self.parts)

    @made
    def agents(self) -> Agents:
        from reverie.host.agents import Agents

        return Agents(self.parts, self.rules)

    @made
    def leases(self) -> Leases:
        from reverie.host.leases import Leases

        return Leases(self.parts.store, self.parts.clock, read_only=self.parts.read_only)

    @made
    def cursors(self) -> Cursors:
        from reverie.host.cursors import Cursors

        return Cursors(self.parts)

    @made
    def jobs(self) -> Jobs:
        from reverie.host.jobs import Jobs

        return Jobs(self.parts)

    @made
    def agenda(self) -> Agenda:
        from reverie.host.agenda import Agenda
        from reverie.host.commitments import upcoming_commitment
        from reverie.host.runs import upcoming_recovery

        return Agenda(self.parts, upcoming_recovery, upcoming_commitment)

    @made
    def windows(self) -> Windows:
        from reverie.host.windows import Windows

        return Windows(self.parts, self.rules, self.writing)

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
