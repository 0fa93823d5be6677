"""The memory of acceptance tests: on each store, unless a file has one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import reverie


@pytest.fixture
def memory(make_target: Callable[..., str]) -> Iterator[reverie.Memory]:
    """A new memory."""
    with reverie.open(make_target()) as opened:
        yield opened
