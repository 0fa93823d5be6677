"""How much a caller may send: bytes in a request, requests in a second."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.core.errors import RateLimited, TooLarge
from reverie.serve.door import Door, door_of
from reverie.serve.problems import problem

_MOST_BUCKETS = 100_000


class BodyLimit:
    """Refuses a body over the limit before reading it, or (without a length) as soon as it passes the limit."""

    def __init__(self, app: ASGIApp, *, most: int, doors: Sequence[Door] = ()) -> None:
        self.app = app
        self.most = most
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
        if length is not None and not (length.isdigit() and len(length) < 19):
            return await problem(400, "validation_error", "Content-Length is not a number.")(scope, receive, send)
        if length is not None and int(length) > self.most:
            door = door_of(self._doors, scope["path"])
            shape = door.shape(scope["path"]) if door else None
            refusal = problem(413, "too_large", self.message, details={"max_bytes": self.most}, shape=shape)
            return await refusal(scope, receive, send)
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self.most:
                    raise TooLarge(self.message, details={"max_bytes": self.most})
            return message

        return await self.app(scope, counted, send)

    @property
    def message(self) -> str:
        return f"A request body is at most {self.most} bytes. Send less at a time."


class RateLimit:
    """A token bucket per key: `per_second` on average, `burst` at once. 0 per second: no limit.

    Per process; several processes on one store each give a key its full rate.
    """

    def __init__(self, per_second: int, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._burst = max(burst, 1)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key_id: str) -> None:
        """Count one request. Raises RateLimited with `retry_after_seconds` when the bucket is empty."""
        if not self._rate:
            return
        now = self._clock()
        with self._lock:
            tokens, at = self._buckets.pop(key_id, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - at) * self._rate)
            allowed = tokens >= 1
            self._buckets[key_id] = (tokens - 1 if allowed else tokens, now)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = max(1, math.ceil((1 - tokens) / self._rate))
            raise RateLimited(
                f"Too many requests for this key. Try again in {wait} s.", details={"retry_after_seconds": wait}
            )
