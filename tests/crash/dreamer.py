"""A child process that dreams once and dies at a named step. Run by test_dream_kill.py.

    python dreamer.py FOLDER-OR-URL STEP

The steps are places in the engine and the store, reached by wrapping them here; production code knows nothing of it.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

import reverie
from reverie.core.dream import DreamPlan
from reverie.host.archives import Archives
from reverie.host.dream import Dreaming
from reverie.host.gating import Gating
from reverie.host.snapshot import Snapshots

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
    "after-commit",
)


def die(*_: Any) -> None:
    """As sudden as a power cut."""
    os.kill(os.getpid(), signal.SIGKILL)


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


def arm(step: str, store: Any) -> None:
    """Make `step` deadly."""
    inside = import_module(type(store).__module__.removesuffix("store") + "writer")
    transaction, writer = inside.PostgresWriteTx if store.name == "postgres" else inside.SqliteWriteTx, inside.Writer
    if step == "claimed":
        after(transaction, "claim")
    elif step == "snapshot":
        after(Snapshots, "take")
    elif step == "distilled":
        after(Gating, "distil")
    elif step == "event":
        after(Dreaming, "_append")
    elif step == "inserted":
        after(transaction, "insert")
    elif step == "linked":
        after(transaction, "link", times=3)
    elif step == "half-retired":
        after(transaction, "change", times=5)
    elif step == "retired":
        after(Dreaming, "_retire")
    elif step == "archived":
        after(transaction, "save")
    elif step == "indexed":
        after(Archives, "reindex")
    elif step == "before-commit":
        after(transaction, "done", times=2)  # the first is the lease
    elif step == "after-commit":
        after(writer, "_commit", times=2)
    elif step.startswith("after-"):
        signal.signal(signal.SIGALRM, die)
        signal.setitimer(signal.ITIMER_REAL, float(step.removeprefix("after-")) / 1000)


if __name__ == "__main__":
    folder, step = sys.argv[1:3]
    memory = reverie.open(folder)
    arm(step, memory.host.parts.store)
    memory.host.dreaming.run(memory.actor, DreamPlan("bot"))
    memory.close()
