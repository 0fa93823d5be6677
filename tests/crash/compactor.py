"""A child process that compacts a Field once and dies at a named step. Run by test_compact_kill.py.

python compactor.py FOLDER STRATEGY STEP
"""

from __future__ import annotations

import signal
import sys

from tests.crash.dreamer import after, die

from reverie.akashik import Agent, Field
from reverie.host.condense import Condensing
from reverie.store.sqlite.write import SqliteWriteTx
from reverie.store.sqlite.writer import Writer

STEPS = {
    "archive": ("event", "half", "before-commit", "after-commit"),
    "purge": ("event", "half", "before-commit", "after-commit"),
    "summarize": ("composed", "event", "inserted", "linked", "half", "reported", "before-commit", "after-commit"),
}
_LEASES = {"archive": 0, "purge": 0, "summarize": 1}
"""Transactions before the one that counts."""


def arm_compaction(strategy: str, step: str) -> None:
    """Make `step` deadly."""
    if step == "composed":
        after(Condensing, "compose")
    elif step == "event":
        after(SqliteWriteTx, "append", times=2)
    elif step == "inserted":
        after(SqliteWriteTx, "insert")
    elif step == "linked":
        after(SqliteWriteTx, "link", times=3)
    elif step == "half":
        after(SqliteWriteTx, "purge" if strategy == "purge" else "change", times=4)
    elif step == "reported":
        after(Condensing, "keep")
    elif step == "before-commit":
        after(SqliteWriteTx, "done", times=1 + _LEASES[strategy])
    elif step == "after-commit":
        after(Writer, "_commit", times=1 + _LEASES[strategy])
    else:
        signal.signal(signal.SIGALRM, die)
        signal.setitimer(signal.ITIMER_REAL, float(step.removeprefix("after-")) / 1000)


if __name__ == "__main__":
    folder, strategy, step = sys.argv[1:4]
    field = Field(folder)
    arm_compaction(strategy, step)
    Agent(field, "a", "r").compact(strategy)
    field.close()
