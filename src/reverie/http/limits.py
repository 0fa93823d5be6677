"""Limits per key: requests, bytes and entries a second; open streams and heavy operations at once."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reverie.core.actor import Actor
from reverie.core.errors import RateLimited
from reverie.settings import Settings

_MOST_BUCKETS = 100_000
_BURST_SECONDS = 10


class RateLimit:
    """A token bucket per key: `per_second` on average, `burst` at once. 0 per second: no limit.

    One amount above `burst` is allowed from a full bucket, and paid for by a longer wait.
    Buckets belong to a process: each of several processes on one store gives a key its full rate.
    """

    def __init__(
        self, per_second: int, burst: int, *, of: str = "requests", clock: Callable[[], float] | None = None
    ) -> None:
        self._rate = per_second
        self._burst = max(burst, 1)
        self._of = of
        self._clock = clock or time.monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key_id: str, amount: int = 1) -> None:
        """Count `amount`. Raises RateLimited with `retry_after_seconds` when the bucket does not hold it."""
        if not self._rate or not amount:
            return
        now, wanted = self._clock(), min(amount, self._burst)
        with self._lock:
            tokens, at = self._buckets.pop(key_id, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - at) * self._rate)
            allowed = tokens >= wanted
            self._buckets[key_id] = (tokens - amount if allowed else tokens, now)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        if not allowed:
            raise _refused(f"Too many {self._of} for this key.", max(1, math.ceil((wanted - tokens) / self._rate)))


class AtOnce:
    """Limit of concurrent streams or operations of one key. 0: no limit."""

    def __init__(self, most: int, *, of: str, retry_after: int) -> None:
        self._most = most
        self._of = of
        self._retry_after = retry_after
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, key_id: str) -> Iterator[None]:
        """Count one while the block runs. Raises RateLimited when the key has as many as it may."""
        with self._lock:
            if self._most and self._open[key_id] >= self._most:
                raise _refused(f"This key already has {self._most} {self._of}.", self._retry_after)
            self._open[key_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[key_id] -= 1
                if not self._open[key_id]:
                    del self._open[key_id]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of every key."""

    requests: RateLimit
    bytes: RateLimit
    entries: RateLimit
    streams: AtOnce
    heavy: AtOnce

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The configured limits. Bytes and entries have a burst of ten seconds' worth."""
        size, entries = settings.bytes_per_second, settings.entries_per_second
        return cls(
            requests=RateLimit(settings.rate_per_second, settings.rate_burst),
            bytes=RateLimit(size, size * _BURST_SECONDS, of="bytes"),
            entries=RateLimit(entries, entries * _BURST_SECONDS, of="entries"),
            streams=AtOnce(settings.streams_per_key, of="open streams", retry_after=10),
            heavy=AtOnce(settings.heavy_per_key, of="running dreams, exports, imports, scans or proofs", retry_after=5),
        )


def key_of(actor: Actor) -> str:
    """The name under which a caller's work is counted."""
    return actor.key_id or actor.id


def _refused(message: str, wait: int) -> RateLimited:
    return RateLimited(f"{message} Try again in {wait} s.", details={"retry_after_seconds": wait})
