"""The use cases that jobs call, and the observer they report to. Use cases of higher layers are ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from reverie.core.actor import Actor
from reverie.core.job import Job
from reverie.core.ports import ForgetLine
from reverie.core.run import RunStarter

if TYPE_CHECKING:
    from reverie.dreams.archive import Archives
    from reverie.dreams.consolidate import Consolidator
    from reverie.dreams.engine import DreamEngine
    from reverie.jobs.due import Agenda
    from reverie.jobs.embedding import Embeddings
    from reverie.jobs.schedule import Scheduler
    from reverie.memory.file_retention import FileRetention
    from reverie.memory.lifecycle import Lifecycle
    from reverie.memory.policy import RuleBook
    from reverie.memory.searches import RecordedSearches
    from reverie.services import Services
    from reverie.store.leases import Leases


class RunPort(RunStarter, Protocol):
    """Work as runs, and runs whose process died."""

    def recover(self, actor: Actor) -> int:
        """Take over interrupted runs; returns how many."""

    def stop(self) -> None:
        """End the work in the background."""


class CommitmentPort(Protocol):
    """Promises with a date."""

    def fire_due(self, actor: Actor) -> int:
        """Fire the commitments that are due; returns how many."""


class DreamQueuePort(Protocol):
    """Dreams that a protocol accepted and did not run yet."""

    def work(self, actor: Actor, *, holder: str) -> int:
        """Run them; returns how many."""


class ForgetPort(Protocol):
    """Forgets that were cut off, and their repetition."""

    def cut_off(self, actor: Actor) -> Sequence[ForgetLine]:
        """Lines of the ledger that the log has no certificate of."""

    def replay(self, actor: Actor) -> int:
        """Repeat every forget of the ledger; returns how many found something."""

    def again(self, actor: Actor, lines: Sequence[ForgetLine]) -> int:
        """Repeat these forgets; returns how many found something."""


class ScanReport(Protocol):
    """Counts of a re-scan."""

    @property
    def entries(self) -> int:
        """Entries read."""

    @property
    def affected(self) -> int:
        """Entries in which a secret was found."""


class ScanPort(Protocol):
    """Searches stored text for secrets."""

    def scan(self, actor: Actor) -> ScanReport:
        """Scan every entry of the tenant."""


class UseCases(Protocol):
    """The use cases that jobs need of a host. Each is loaded on first use."""

    @property
    def parts(self) -> Services: ...
    @property
    def rules(self) -> RuleBook: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def file_retention(self) -> FileRetention: ...
    @property
    def archives(self) -> Archives: ...
    @property
    def searches(self) -> RecordedSearches: ...
    @property
    def embeddings(self) -> Embeddings: ...
    @property
    def dreams(self) -> DreamEngine: ...
    @property
    def consolidator(self) -> Consolidator: ...
    @property
    def agenda(self) -> Agenda: ...
    @property
    def schedules(self) -> Scheduler: ...
    @property
    def runs(self) -> RunPort: ...
    @property
    def commitments(self) -> CommitmentPort: ...
    @property
    def memory_dreams(self) -> DreamQueuePort: ...
    @property
    def forget(self) -> ForgetPort: ...
    @property
    def rescan(self) -> ScanPort: ...

    def tenants(self) -> list[str]:
        """Every tenant."""

    def system_actor(self, tenant: str) -> Actor:
        """The host itself, acting for a tenant."""


class Observer:
    """Receives the outcome of jobs. This one ignores it; `ops.jobs` logs and counts it."""

    def done(self, job: Job, result: Mapping[str, Any]) -> None:
        """A job did its work."""

    def failed(self, name: str, code: str, fault: BaseException) -> None:
        """A job, or the search for jobs, failed."""

    def ticked(self, schedules: int) -> None:
        """Ticks of schedules and queued jobs were run."""

    def swept(self, counts: Mapping[str, int]) -> None:
        """A round over all tenants ended."""
