"""Optimistic writes: prepare outside the transaction, and repeat when another writer was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TRIES = 20
"""Attempts by default. Each prepares from the state left by the last writer."""


class Moved(Exception):
    """The data behind a prepared write has changed. Raised inside the transaction, so that nothing is written."""


def retry(
    work: Callable[[int], T],
    *,
    busy: Callable[[], Exception] | None = None,
    on: type[Exception] | tuple[type[Exception], ...] = Moved,
    tries: int = TRIES,
) -> T:
    """`work(attempt)`, repeated while it raises `on`. After the last attempt, raises `busy()` or that exception."""
    for attempt in range(tries - 1):
        try:
            return work(attempt)
        except on:
            continue
    try:
        return work(tries - 1)
    except on:
        if busy is None:
            raise
        raise busy() from None
