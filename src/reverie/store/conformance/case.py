"""Cases: finds, runs and reports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc, getmembers, isfunction

from reverie.store.conformance.lab import Lab, OpenStore

CAPABILITIES = (
    "entries",
    "filters",
    "subjects",
    "as_of",
    "paging",
    "expiry",
    "versions",
    "erasure",
    "answers",
    "searches",
    "leases",
    "links",
    "documents",
    "words",
    "vectors",
    "cold",
    "log",
    "control",
    "isolation",
    "rollback",
    "concurrency",
    "snapshots",
    "transfer",
)
"""One file each. A store whose readers and writers take turns may leave out `snapshots` and `transfer`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One promise of the contract, as a test."""

    capability: str
    name: str
    promise: str
    body: Callable[[Lab], None]

    def run(self, open_store: OpenStore) -> None:
        """Run on a new store. Raises when the promise is broken."""
        lab = Lab(open_store)
        try:
            self.body(lab)
        finally:
            lab.store.close()

    def __str__(self) -> str:
        return f"{self.capability}-{self.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A promise that was not kept."""

    case: Case
    fault: Exception


def cases(capabilities: Sequence[str] = CAPABILITIES) -> list[Case]:
    """Every case of the given capabilities: the public functions of their files."""
    found = []
    for capability in capabilities:
        module = import_module(f"reverie.store.conformance.{capability}")
        for name, body in getmembers(module, isfunction):
            if body.__module__ == module.__name__ and not name.startswith("_"):
                found.append(Case(capability, name, getdoc(body) or "", body))
    return found


def check(open_store: OpenStore, *, capabilities: Sequence[str] = CAPABILITIES) -> list[Failure]:
    """Run every case, even after failures. Returns the failures."""
    failures = []
    for case in cases(capabilities):
        try:
            case.run(open_store)
        except Exception as fault:
            failures.append(Failure(case, fault))
    return failures
