"""Workers: the definition of each job, and two ways to run them, in this process or by an engine on PostgreSQL."""

from typing import Protocol

from reverie.worker.local import Round, Worker

__all__ = ["Round", "Runner", "Worker"]


class Runner(Protocol):
    """Something that runs jobs beside the caller."""

    def start(self) -> None:
        """Begin."""

    def stop(self, *, patience_seconds: float = 30.0) -> None:
        """Take no more jobs, finish those at hand."""
