"""Work that continues after its request was answered, in a bounded number of threads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from reverie.core.errors import Busy

MOST = 64
_JOIN_SECONDS = 5.0
_LOG = logging.getLogger("reverie.runs")


class Background:
    """Background threads of one process. `stop` sets `stopping`, and every thread ends at its next step."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise Busy when the maximum number of threads is running."""
        with self._lock:
            if len(self._threads) >= MOST:
                raise Busy(f"{MOST} runs are active in the background already. Try again when one has ended.")

    def start(self, work: Callable[[], object]) -> None:
        """Run `work` in its own thread."""

        def whole() -> None:
            try:
                work()
            except Exception as fault:  # the run's record says that it failed; texts of errors may hold memory
                _LOG.error("A run in the background failed: %s", type(fault).__name__)
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=whole, name="reverie-run", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def stop(self) -> None:
        """Ask all threads to end, and wait for them, a few seconds in total."""
        self.stopping.set()
        with self._lock:
            threads = list(self._threads)
        until = time.monotonic() + _JOIN_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
