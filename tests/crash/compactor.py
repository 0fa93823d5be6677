"""A process that compacts a Field once and dies at a named step. Run by test_compact_kill.py."""

from __future__ import annotations

from typing import Any

from tests.crash.dreamer import after, arm_sent, inside
from tests.processes import die_after

from reverie.akashik import Agent, Field
from reverie.dreams.engine import DreamEngine
from reverie.protocols.akashik.operations import compact

STEPS = {
    "archive": ("event", "half", "before-commit", "sent", "after-commit"),
    "purge": ("event", "half", "before-commit", "sent", "after-commit"),
    "summarize": (
        "composed",
        "event",
        "inserted",
        "linked",
        "half",
        "reported",
        "before-commit",
        "sent",
        "after-commit",
    ),
}
_LEASES = {"archive": 0, "purge": 0, "summarize": 1}
"""Transactions before the one that counts."""


def arm_compaction(store: Any, strategy: str, step: str) -> None:
    """Make `step` deadly."""
    transaction, writer = inside(store)
    if step == "composed":
        after(DreamEngine, "compose")
    elif step == "event":
        after(transaction, "append", times=2)
    elif step == "inserted":
        after(transaction, "insert")
    elif step == "linked":
        after(transaction, "link", times=3)
    elif step == "half":
        after(transaction, "purge" if strategy == "purge" else "change", times=4)
    elif step == "reported":
        after(DreamEngine, "keep")
    elif step == "before-commit":
        after(transaction, "done", times=1 + _LEASES[strategy])
    elif step == "sent":
        arm_sent(store, 1 + _LEASES[strategy])
    elif step == "after-commit":
        after(writer, "_commit", times=1 + _LEASES[strategy])
    else:
        die_after(float(step.removeprefix("after-")))


def main(target: str, strategy: str, step: str) -> None:
    compact.LEASE_MS = 1000  # whoever comes next waits for it to end
    field = Field(target)
    arm_compaction(field.host.parts.store, strategy, step)
    Agent(field, "a", "r").compact(strategy)
    field.close()
