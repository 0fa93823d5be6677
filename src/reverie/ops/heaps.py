"""The heaps of a process that serves: few, because memory that one thread has freed is then used by the next."""

from __future__ import annotations

import ctypes
import os
import sys

MOST = 2
_M_ARENA_MAX = -8
"""The name of the number of heaps in glibc's mallopt(3)."""


def bound_heaps(most: int = MOST) -> bool:
    """Let all threads share so many heaps, where the C library is glibc; call it before the first thread starts.

    By default each thread has a heap of its own, up to eight a core, and keeps what it freed: under mixed load some
    40 MB of 280 after four minutes, and growing. `MALLOC_ARENA_MAX` is an operator's own choice. Returns whether the
    number was set.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none, or one that does nothing
    return mallopt is not None and mallopt(_M_ARENA_MAX, most) == 1
