"""Pauses of long work, for the requests of others.

Long work calls `pause` between two of its steps; inside a write transaction that does nothing. The HTTP layer decides
how long a pause is (`http/threads.py`); elsewhere there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from time import monotonic
from typing import Protocol, TypeVar

T = TypeVar("T")


class Pauses:
    """The pauses of one piece of long work: `wait` is called, then `seconds` pass before it is called again."""

    __slots__ = ("_seconds", "_wait", "until")

    def __init__(self, wait: Callable[[], object], seconds: float = 0.0) -> None:
        self._wait = wait
        self._seconds = seconds
        self.until = 0.0

    def take(self) -> None:
        """Pause now."""
        self._wait()
        self.until = monotonic() + self._seconds


PAUSE: ContextVar[Pauses | None] = ContextVar("pause", default=None)


def pause() -> None:
    """Let requests of other tenants go first, where some wait and the last pause is a while ago."""
    if (pauses := PAUSE.get()) is not None and monotonic() >= pauses.until:
        pauses.take()


def paced(items: Iterable[T]) -> Iterable[T]:
    """The items, with a pause between two of them where long work pauses at all. One item alone is not long work."""
    return items if PAUSE.get() is None else _paced(items)


def _paced(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if number:
            pause()
        yield item


def without_pauses(work: Callable[[], T]) -> T:
    """The result of `work`, which others wait for: a write transaction."""
    if PAUSE.get() is None:
        return work()
    token = PAUSE.set(None)
    try:
        return work()
    finally:
        PAUSE.reset(token)


class Pausing(Protocol):
    """Makes long work of a tenant pause."""

    def __call__(self, tenant: str, work: Callable[[], T], /) -> Callable[[], T]:
        """The same work, with its pauses."""


def unpaused(_: str, work: Callable[[], T], /) -> Callable[[], T]:
    """Work as it is, in a process that serves no requests."""
    return work
