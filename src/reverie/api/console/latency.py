"""Number and duration of searches per tenant: figures only, never queries.

Times are counted by size, in slots of ten minutes for the last day and of one day for the last year or so. The counts
are kept in the store, so that they outlive the process; their size does not grow with the number of searches.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import orjson
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.clock import MS_PER_DAY
from reverie.core.errors import ReverieError
from reverie.memory.hits import Context, SearchResult
from reverie.memory.search import Search
from reverie.store.contract import ControlTx, Store

T = TypeVar("T")
_SLOT = 600_000
_DAYS = 400
_STEP = math.log(1.15)
"""Times that differ by less than 15 % count as one size."""
_SAVE_SECONDS = 15.0
_TENANTS = 1000
Slots = dict[tuple[int, int], Counter[int]]
"""Number of searches of each size, by slot: (start, length) in milliseconds."""


class SearchSlot(Struct, frozen=True):
    """The searches of one slot."""

    at: int
    sizes: Counter[int]

    @property
    def count(self) -> int:
        """Number of searches."""
        return self.sizes.total()

    def slowest_but(self, part: float) -> float:
        """The duration in milliseconds below which this part of the searches are."""
        left = part * self.count
        for size, count in sorted(self.sizes.items()):
            left -= count
            if left < 0:
                return round(math.exp(size * _STEP), 2)
        return 0.0


class Recent:
    """Counts of searches by tenant. Safe for many threads; saved soon after a search, and when asked to."""

    def __init__(self, store: Store, *, read_only: bool = False) -> None:
        self._store = store
        self._read_only = read_only
        self._lock = threading.Lock()
        self._new: dict[str, Slots] = {}
        self._timer: threading.Timer | None = None

    def add(self, tenant: str, seconds: float) -> None:
        """Note one search."""
        now = time.time_ns() // 1_000_000
        size = round(math.log(min(max(seconds * 1000, 0.01), 1e7)) / _STEP)
        with self._lock:
            if tenant not in self._new and len(self._new) >= _TENANTS:
                return
            self._new.setdefault(tenant, {}).setdefault((now - now % _SLOT, _SLOT), Counter())[size] += 1
            if self._timer is None and not self._read_only:
                self._timer = threading.Timer(_SAVE_SECONDS, self.save)
                self._timer.daemon = True
                self._timer.start()

    def of(self, tenant: str, *, since: int, until: int) -> list[SearchSlot]:
        """The searches of a tenant in the slots that begin between two instants, oldest first."""
        kept = self._store.control(lambda tx: _read(tx, tenant))
        with self._lock:
            _merge(kept, self._new.get(tenant, {}))
        return [SearchSlot(at, sizes) for (at, _), sizes in sorted(kept.items()) if since <= at < until]

    def save(self) -> None:
        """Write the new counts. A failed write loses them: they are statistics, not memory."""
        with self._lock:
            new, self._new = self._new, {}
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if not new or self._read_only:
            return
        now = time.time_ns() // 1_000_000

        def body(tx: ControlTx) -> None:
            for tenant, slots in new.items():
                kept = _read(tx, tenant)
                _merge(kept, slots)
                tx.set_setting(_name(tenant), orjson.dumps(list(_rows(_fold(kept, now)))))

        with contextlib.suppress(ReverieError):
            self._store.control(body, write=True)


def _name(tenant: str) -> str:
    return f"console.searches/{tenant}"


def _read(tx: ControlTx, tenant: str) -> Slots:
    found = tx.setting(_name(tenant))
    rows: list[tuple[int, int, dict[str, int]]] = orjson.loads(found) if found else []
    return {(at, width): Counter({int(size): count for size, count in sizes.items()}) for at, width, sizes in rows}


def _rows(slots: Slots) -> Iterator[tuple[int, int, dict[str, int]]]:
    for (at, width), sizes in sorted(slots.items()):
        yield at, width, {str(size): count for size, count in sorted(sizes.items())}


def _merge(into: Slots, slots: Slots) -> None:
    for slot, sizes in slots.items():
        into.setdefault(slot, Counter()).update(sizes)


def _fold(slots: Slots, now: int) -> Slots:
    """Merge slots of more than a day ago into days, and drop days of more than a year ago."""
    kept: Slots = {}
    for (at, width), sizes in slots.items():
        day = at - at % MS_PER_DAY
        slot = (at, width) if width == MS_PER_DAY or now - at < MS_PER_DAY else (day, MS_PER_DAY)
        if now - day < _DAYS * MS_PER_DAY:
            kept.setdefault(slot, Counter()).update(sizes)
    return kept


class TimedHost:
    """The searches of a host, each noted under its tenant."""

    def __init__(self, search: Search, recent: Recent) -> None:
        self._search = search
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def search(self, actor: Actor, *arguments: Any, **named: Any) -> SearchResult:
        """Search, and note the time."""
        return self._time(actor, self._search.search, arguments, named)

    def context(self, actor: Actor, *arguments: Any, **named: Any) -> Context:
        """Pack a context, and note the time of its search."""
        return self._time(actor, self._search.context, arguments, named)

    def contexts(self, actor: Actor, *arguments: Any, **named: Any) -> tuple[Sequence[Context], SearchResult]:
        """Pack several contexts, and note the time of their search."""
        return self._time(actor, self._search.contexts, arguments, named)

    def _time(self, actor: Actor, work: Callable[..., T], arguments: Any, named: Any) -> T:
        started = time.perf_counter()
        result = work(actor, *arguments, **named)
        self._recent.add(actor.tenant, time.perf_counter() - started)
        return result
