"""Pauses in long work, so that the requests of others are served.

Long work calls `pause` between its steps; inside a write transaction that does nothing. The HTTP layer decides how long
a pause is (`http/threads.py`); elsewhere there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import chain, islice
from time import monotonic
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_MOST = 64
"""Items between two readings of the clock."""


class Pauses:
    """The pauses of one piece of long work: `wait` is called, and not again before `seconds` have passed."""

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
    """Let waiting requests of other tenants go first, unless the last pause was a moment ago."""
    if (pauses := PAUSE.get()) is not None and monotonic() >= pauses.until:
        pauses.take()


def paced(items: Iterable[T]) -> Iterable[T]:
    """The items, with pauses between them where long work pauses. A single item is not long work."""
    if (pauses := PAUSE.get()) is None or (isinstance(items, list | tuple) and len(items) < 2):
        return items
    return chain.from_iterable(_slices(iter(items), pauses))


def _slices(items: Iterator[T], pauses: Pauses) -> Iterator[Sequence[T]]:
    """The items in slices: one item, then twice as many each time until a pause is due."""
    size, due = 1, False
    while taken := tuple(islice(items, size)):
        if due:
            pauses.take()
        yield taken
        due = monotonic() >= pauses.until
        size = 1 if due else min(2 * size, _MOST)


def without_pauses(work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
    """The result of `work`, run without pauses because others wait for it: a write transaction."""
    if PAUSE.get() is None:
        return work(*arguments, **named)
    token = PAUSE.set(None)
    try:
        return work(*arguments, **named)
    finally:
        PAUSE.reset(token)


class Pausing(Protocol):
    """Adds pauses to long work of a tenant."""

    def __call__(self, tenant: str, work: Callable[[], T], /) -> Callable[[], T]:
        """The same work, with its pauses."""


def unpaused(_: str, work: Callable[[], T], /) -> Callable[[], T]:
    """Work as it is, in a process that serves no requests."""
    return work
