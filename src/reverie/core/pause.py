"""Pauses of long work, for the requests of others.

Long work calls `pause` between two of its steps, never inside a write transaction. The HTTP layer decides how long a
pause is (`http/threads.py`); elsewhere there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PAUSE: ContextVar[Callable[[], None] | None] = ContextVar("pause", default=None)


def pause() -> None:
    """Let requests of other tenants go first, where some wait."""
    if (wait := PAUSE.get()) is not None:
        wait()
