"""Waiting for an event instead of a time: as long as it takes, up to a limit that only a fault reaches."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which nothing more is expected to happen, also on a machine with much else to do."""


def until(happened: Callable[[], object], what: str = "it", *, seconds: float = PATIENCE) -> None:
    """Return when `happened` is true; fail when that takes too long."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.01)
