"""Host: one line per use case. Doors call this; it calls the modules beside it."""

from __future__ import annotations

from reverie.core.actor import Actor
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
from reverie.host.parts import Parts
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
from reverie.host.workflows import workflows
from reverie.host.workspace import Workspace
from reverie.host.write import Writing


class Host:
    """A memory host. Every method of every part takes the actor first: who calls decides the tenant.

    `host.writing.put(...)`, `host.recall.search(...)`: the attributes are the use cases.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.rules = RuleBook(parts)
        self.writing = Writing(parts, self.rules)
        self.reading = Reading(parts)
        self.recall = Recall(parts)
        self.lifecycle = Lifecycle(parts, self.rules)
        self.bundles = Bundles(parts, self.rules, self.writing)
        self.audit = Audit(parts)
        self.keys = Keys(parts)
        self.scanning = Scanning(parts, self.rules)
        faults = Faults(enabled=parts.field.faults)
        self.reindexing = Reindexing(parts, faults)
        self.archives = Archives(parts, self.rules)
        self.dreaming = Dreaming(parts, self.rules, self.writing, self.archives)
        self.forgetting = Forgetting(parts, self.rules, self.writing, self.archives)
        self.field = Field(parts, self.rules, self.writing, self.archives, self.dreaming, self.reindexing, faults)
        self.consolidating = Consolidating(parts, self.rules)
        self.commitments = Commitments(parts, self.writing)
        self.passes = Passes(
            parts, self.rules, self.reading, self.dreaming, self.consolidating, self.archives, self.commitments
        )
        self.seeding = Seeding(parts, self.rules)
        self.instants = Instants(parts)
        self.heartbeats = Heartbeats(parts)
        self.workspace = Workspace(parts, self.rules)
        self.runs = Runs(parts, self.rules, self.writing)
        self.schedules = Schedules(parts, self.rules, self.dreaming, self.consolidating, self.runs)
        self.forks = Forks(parts, self.runs)
        self.injection = Injection(parts, self.recall)
        for name, workflow in workflows(parts, self.passes, self.injection).items():
            self.runs.offer(name, workflow)
        self.lineage = Lineage(parts, self.rules, self.archives)
        self.spending = Spending(parts)
        self.agents = Agents(parts, self.rules)
        self.leases = Leases(parts)
        self.cursors = Cursors(parts)
        self.jobs = Jobs(parts)
        self.agenda = Agenda(parts)
        self.windows = Windows(parts, self.rules, self.writing)

    def tenants(self) -> list[str]:
        """Every tenant. For the worker and the command line; no door that a tenant can reach calls it."""
        return self.parts.store.control(lambda tx: tx.tenants())

    def system_actor(self, tenant: str) -> Actor:
        """The host itself, acting for a tenant: sweeps, jobs."""
        return Actor(tenant=tenant, id="host:reverie", door="host")

    def close(self) -> None:
        """Finish what was accepted, then let go of everything."""
        self.parts.store.close()
