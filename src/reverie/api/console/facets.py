"""A cache of the counts of a memory by kind, tag, subject and source: a search asks for them with every letter."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping

from reverie.core.actor import Actor
from reverie.host import Host

_MOST = 200
_FRESH_SECONDS = 3.0
_DESTROYED = ("memory.forgotten", "memory.purged", "memory.redacted")
Counts = Mapping[str, list[tuple[str, int]]]


class Facets:
    """The counts of the memories looked at last, without names that were destroyed since. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[int, float, Counts]] = OrderedDict()

    def of(self, host: Host, actor: Actor, ref: str) -> Counts:
        """The counts of a memory: as it is now, or was at most three seconds ago."""
        head, now, key = host.reader.snapshot(actor), time.monotonic(), (actor.tenant, ref)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and (kept[0] == head or now - kept[1] < _FRESH_SECONDS):
            destroyed = kept[0] != head and host.reader.events(actor, after=kept[0], limit=1, types=_DESTROYED)
            if not destroyed:
                return kept[2]
        found = host.reader.facets(actor, ref)
        with self._lock:
            self._kept[key] = (head, now, found)
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
