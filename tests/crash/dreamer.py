"""A process that dreams once and dies at a named step. Run by test_dream_kill.py.

The steps are places in the engine and the store, reached by wrapping them here; production code knows nothing of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.crash.child import arm as arm_commit
from tests.processes import die, die_after

import reverie
from reverie.core.dream import DreamPlan
from reverie.dreams.archive import Archives
from reverie.dreams.engine import DreamEngine
from reverie.dreams.gates import Gates
from reverie.dreams.snapshot import Snapshots

STEPS = (
    "claimed",
    "snapshot",
    "distilled",
    "event",
    "inserted",
    "linked",
    "half-retired",
    "retired",
    "archived",
    "indexed",
    "before-commit",
    "sent",
    "after-commit",
)


def after(owner: type, name: str, *, times: int = 1) -> None:
    """Die when `owner.name` has returned for the `times`-th time."""
    inner = getattr(owner, name)
    calls = 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        result = inner(*args, **kwargs)
        calls += 1
        if calls == times:
            die()
        return result

    setattr(owner, name, wrapped)


def inside(store: Any) -> tuple[type, type]:
    """What a store writes with: the class of its transactions, and of what commits them."""
    module = import_module(type(store).__module__.removesuffix("store") + "writer")
    return module.PostgresWriteTx if store.name == "postgres" else module.SqliteWriteTx, module.Writer


def arm_sent(store: Any, number: int) -> None:
    """Die when the database has all of a transaction, but for the word that it is to be kept."""
    arm_commit(store, "inside-body" if store.name == "postgres" else "before-commit", number)


def arm(step: str, store: Any) -> None:
    """Make `step` deadly."""
    transaction, writer = inside(store)
    if step == "claimed":
        after(transaction, "claim")
    elif step == "snapshot":
        after(Snapshots, "take")
    elif step == "distilled":
        after(Gates, "distil")
    elif step == "event":
        after(DreamEngine, "_append")
    elif step == "inserted":
        after(transaction, "insert")
    elif step == "linked":
        after(transaction, "link")
    elif step == "half-retired":
        after(transaction, "_cool_recall")  # the index rows are cold, the entries still readable
    elif step == "retired":
        after(DreamEngine, "_retire")
    elif step == "archived":
        after(transaction, "save")
    elif step == "indexed":
        after(Archives, "reindex")
    elif step == "before-commit":
        after(transaction, "done", times=2)  # the first is the lease
    elif step == "sent":
        arm_sent(store, 2)
    elif step == "after-commit":
        after(writer, "_commit", times=2)
    elif step.startswith("after-"):
        die_after(float(step.removeprefix("after-")))


def main(target: str, step: str) -> None:
    memory = reverie.open(target)
    arm(step, memory.host.parts.store)
    memory.host.dreams.run(memory.actor, DreamPlan("bot"))
    memory.close()
