"""Dreams started by a page of this process: the progress of each, and its end when it made no report."""

from __future__ import annotations

import threading
from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

_MOST = 1000


class DreamProgress(Struct, frozen=True):
    """One dream under way, or just over."""

    id: str
    tenant: str
    ref: str
    step: str = "waiting"
    done: int = 0
    total: int = 0
    over: bool = False
    error: str | None = None
    """Reason of the failure; None while it runs, and on success."""


class Running:
    """The last dreams started here. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, DreamProgress] = OrderedDict()

    def begin(self, run: DreamProgress) -> None:
        """Add a dream that is about to start."""
        with self._lock:
            self._runs[run.id] = run
            if len(self._runs) > _MOST:
                self._runs.popitem(last=False)

    def step(self, dream_id: str, step: str, done: int, total: int) -> None:
        """Note the progress of a dream."""
        self._change(dream_id, step=step, done=done, total=total)

    def end(self, dream_id: str, error: str | None = None) -> None:
        """Note the end of a dream."""
        self._change(dream_id, over=True, error=error)

    def of(self, tenant: str, dream_id: str) -> DreamProgress | None:
        """The dream, when this tenant started it here."""
        with self._lock:
            run = self._runs.get(dream_id)
        return run if run is not None and run.tenant == tenant else None

    def _change(self, dream_id: str, **changes: object) -> None:
        with self._lock:
            if dream_id in self._runs:
                self._runs[dream_id] = replace(self._runs[dream_id], **changes)
