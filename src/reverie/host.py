"""Host: the use cases by name, each loaded when it is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.core.actor import Actor
from reverie.services import Services

if TYPE_CHECKING:
    from reverie.dreams.archive import Archives
    from reverie.dreams.consolidate import Consolidator
    from reverie.dreams.engine import DreamEngine
    from reverie.dreams.lineage import Lineage
    from reverie.dreams.replay import Replays
    from reverie.dreams.spend import SpendLimits
    from reverie.jobs.due import Agenda
    from reverie.jobs.embedding import Embeddings
    from reverie.jobs.ports import CommitmentPort, DreamQueuePort, RunPort
    from reverie.jobs.queue import Jobs
    from reverie.jobs.schedule import Scheduler
    from reverie.memory.audit import Audit
    from reverie.memory.bulk import Bulk
    from reverie.memory.cursors import Cursors
    from reverie.memory.entries import Entries
    from reverie.memory.export import Bundles
    from reverie.memory.file_retention import FileRetention
    from reverie.memory.history import History
    from reverie.memory.idempotency import Idempotency
    from reverie.memory.keys import Keys
    from reverie.memory.lifecycle import Lifecycle
    from reverie.memory.policy import RuleBook
    from reverie.memory.read import Reader
    from reverie.memory.search import Search
    from reverie.memory.searches import RecordedSearches
    from reverie.memory.sessions import Sessions
    from reverie.privacy.forget import Forget
    from reverie.privacy.rescan import Rescan
    from reverie.store.leases import Leases
    from reverie.window.admin import WindowAdmin

UseCase = TypeVar("UseCase")

USE_CASES = {
    "audit": "reverie.memory.audit:Audit parts",
    "bulk": "reverie.memory.bulk:Bulk reader lifecycle",
    "cursors": "reverie.memory.cursors:Cursors parts",
    "entries": "reverie.memory.entries:Entries parts rules",
    "bundles": "reverie.memory.export:Bundles parts rules entries",
    "file_retention": "reverie.memory.file_retention:FileRetention parts rules",
    "history": "reverie.memory.history:History parts",
    "idempotency": "reverie.memory.idempotency:Idempotency parts rules",
    "keys": "reverie.memory.keys:Keys parts rules",
    "lifecycle": "reverie.memory.lifecycle:Lifecycle parts rules",
    "rules": "reverie.memory.policy:RuleBook parts",
    "reader": "reverie.memory.read:Reader parts",
    "search": "reverie.memory.search:Search parts searches",
    "searches": "reverie.memory.searches:RecordedSearches parts rules",
    "sessions": "reverie.memory.sessions:Sessions parts keys",
    "archives": "reverie.dreams.archive:Archives parts rules",
    "consolidator": "reverie.dreams.consolidate:Consolidator parts rules commitments.infer",
    "dreams": "reverie.dreams.engine:DreamEngine parts rules entries archives replays",
    "lineage": "reverie.dreams.lineage:Lineage parts rules archives searches memory_dream_undo.undo_report",
    "replays": "reverie.dreams.replay:Replays search searches",
    "spend": "reverie.dreams.spend:SpendLimits parts",
    "agenda": (
        "reverie.jobs.due:Agenda "
        "parts "
        "reverie.protocols.openwop.runs:upcoming_recovery "
        "reverie.protocols.openwop.commitments:upcoming_commitment "
        "reverie.protocols.anthropic.dream_records:upcoming_dream"
    ),
    "embeddings": "reverie.jobs.embedding:Embeddings parts faults.holds_vectors",
    "jobs": "reverie.jobs.queue:Jobs parts rules",
    "schedules": "reverie.jobs.schedule:Scheduler parts rules dreams consolidator runs",
    "leases": "reverie.store.leases:Leases parts.store parts.clock parts.read_only",
    "windows": "reverie.window.admin:WindowAdmin parts rules entries",
    "forget": (
        "reverie.privacy.forget:Forget "
        "parts rules entries archives dreams searches "
        "field_texts "
        "reverie.protocols.openwop.workspace_texts:TEXTS "
        "reverie.protocols.anthropic.texts:TEXTS"
    ),
    "rescan": "reverie.privacy.rescan:Rescan parts rules",
    "faults": "reverie.protocols.akashik.conformance:FaultSwitches parts.field.faults",
    "field": "reverie.protocols.akashik.field:Field parts rules entries archives dreams embeddings faults",
    "field_texts": "reverie.protocols.akashik.texts:FieldTexts parts",
    "memory_stores": "reverie.protocols.anthropic.stores:Stores parts rules",
    "memories": "reverie.protocols.anthropic.memories:Memories parts rules entries",
    "memory_versions": "reverie.protocols.anthropic.versions:Versions parts rules memories",
    "memory_dreams": ("reverie.protocols.anthropic.dreams:MemoryDreams parts rules dreams memory_stores memories runs"),
    "memory_dream_undo": "reverie.protocols.anthropic.dream_undo:DreamUndo parts rules memories",
    "agents": "reverie.protocols.openwop.agents:Agents parts rules",
    "dispatcher": ("reverie.protocols.openwop.dispatch:Dispatcher parts rules agents search injection spend"),
    "commitments": "reverie.protocols.openwop.commitments:Commitments parts entries",
    "seeder": "reverie.protocols.openwop.conformance.seeding:Seeder parts rules",
    "forks": "reverie.protocols.openwop.forks:Forks parts runs",
    "injection_probe": (
        "reverie.protocols.openwop.conformance.injection:InjectionProbe parts injection entries reader lifecycle"
    ),
    "injection": "reverie.protocols.openwop.injection:Injection parts search",
    "passes": "reverie.protocols.openwop.passes:PassRunner parts rules reader dreams consolidator archives",
    "runs": "reverie.protocols.openwop.runs:Runs parts rules entries workflows",
    "workflows": "reverie.protocols.openwop.workflows:workflows parts passes dispatcher injection_probe",
    "workspace": "reverie.protocols.openwop.workspace:Workspace parts rules",
}
"""For each use case `module:Class`, then the arguments of its constructor: attributes of the host, or `module:name`."""

_NAMES = {made.split(maxsplit=1)[0]: name for name, made in USE_CASES.items()}


class Host:
    """A memory host: its use cases, such as `host.entries.put(...)` and `host.search.search(...)`.

    Every method of a use case takes the actor first, who decides the tenant. Use cases of a protocol are found by
    class: `host.use(Runs)`. A use case is imported and made on first use, once, whichever thread asks first: `reverie
    put` needs a tenth of the modules that a server needs.
    """

    if TYPE_CHECKING:
        rules: RuleBook
        entries: Entries
        reader: Reader
        search: Search
        searches: RecordedSearches
        replays: Replays
        lifecycle: Lifecycle
        bundles: Bundles
        file_retention: FileRetention
        audit: Audit
        bulk: Bulk
        keys: Keys
        sessions: Sessions
        rescan: Rescan
        embeddings: Embeddings
        archives: Archives
        dreams: DreamEngine
        forget: Forget
        consolidator: Consolidator
        commitments: CommitmentPort
        history: History
        idempotency: Idempotency
        runs: RunPort
        schedules: Scheduler
        lineage: Lineage
        spend: SpendLimits
        leases: Leases
        cursors: Cursors
        jobs: Jobs
        agenda: Agenda
        windows: WindowAdmin
        memory_dreams: DreamQueuePort

    def __init__(self, parts: Services) -> None:
        self.parts = parts
        self.at_close: list[Callable[[], None]] = []
        """Callbacks to run before the store is closed."""
        self._making = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name not in USE_CASES:
            raise AttributeError(f"A host has no {name!r}.")
        with self._making:
            if name not in vars(self):
                made, *arguments = USE_CASES[name].split()
                vars(self)[name] = _load(made)(*(self._argument(argument) for argument in arguments))
            return vars(self)[name]

    def use(self, kind: type[UseCase]) -> UseCase:
        """A use case by its class."""
        found: UseCase = getattr(self, _NAMES[f"{kind.__module__}:{kind.__name__}"])
        return found

    def _argument(self, path: str) -> Any:
        if ":" in path:
            return _load(path)
        found: Any = self
        for name in path.split("."):
            found = getattr(found, name)
        return found

    def use_cases(self) -> dict[str, Any]:
        """Every use case by its name. Makes those that were not used yet."""
        return {name: getattr(self, name) for name in USE_CASES}

    def tenants(self) -> list[str]:
        """The names of all tenants. Only for the worker and the command line, never for a request of a tenant."""
        return self.parts.store.control(lambda tx: tx.tenants())

    def system_actor(self, tenant: str) -> Actor:
        """The host itself as an actor of a tenant, for sweeps and jobs."""
        return Actor(tenant=tenant, id="host:reverie", door="host")

    def close(self) -> None:
        """Finish all accepted work, then release every resource."""
        if "runs" in vars(self):
            self.runs.stop()
        for finish in self.at_close:
            finish()
        if "searches" in vars(self):
            self.searches.flush()
        self.parts.store.close()


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
