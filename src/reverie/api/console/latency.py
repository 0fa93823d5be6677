"""How long this process took for the last searches of each tenant. Figures only; nothing of what was asked."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reverie.core.actor import Actor
from reverie.memory.search import Context, Search, SearchResult

T = TypeVar("T")
_EACH = 500
_TENANTS = 1000


class Recent:
    """The last searches by tenant: when, and how many milliseconds. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, deque[tuple[int, float]]] = OrderedDict()

    def add(self, tenant: str, seconds: float) -> None:
        """Note one search."""
        with self._lock:
            found = self._seen.setdefault(tenant, deque(maxlen=_EACH))
            self._seen.move_to_end(tenant)
            found.append((time.time_ns() // 1_000_000, round(seconds * 1000, 2)))
            if len(self._seen) > _TENANTS:
                self._seen.popitem(last=False)

    def of(self, tenant: str, *, since: int, until: int) -> list[tuple[int, float]]:
        """The last searches of a tenant between two instants, oldest first."""
        with self._lock:
            return [one for one in self._seen.get(tenant, ()) if since <= one[0] < until]


class Noted:
    """The searches of a host, each noted under its tenant."""

    def __init__(self, search: Search, recent: Recent) -> None:
        self._search = search
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def search(self, actor: Actor, *arguments: Any, **named: Any) -> SearchResult:
        """As the host's, and timed."""
        return self._timed(actor, self._search.search, arguments, named)

    def context(self, actor: Actor, *arguments: Any, **named: Any) -> Context:
        """The same: a context is packed from a search."""
        return self._timed(actor, self._search.context, arguments, named)

    def contexts(self, actor: Actor, *arguments: Any, **named: Any) -> tuple[Sequence[Context], SearchResult]:
        """The same."""
        return self._timed(actor, self._search.contexts, arguments, named)

    def _timed(self, actor: Actor, work: Callable[..., T], arguments: Any, named: Any) -> T:
        started = time.perf_counter()
        result = work(actor, *arguments, **named)
        self._recent.add(actor.tenant, time.perf_counter() - started)
        return result
