"""Token buckets."""

from __future__ import annotations

import pytest

from reverie.core.errors import RateLimited
from reverie.http.limits import AtOnce, RateLimit


class Hands:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_a_burst_then_the_rate() -> None:
    clock = Hands()
    limit = RateLimit(2, 3, clock=clock)
    for _ in range(3):
        limit.take("k")
    with pytest.raises(RateLimited) as refused:
        limit.take("k")
    assert refused.value.details["retry_after_seconds"] == 1
    clock.at += 0.5
    limit.take("k")
    with pytest.raises(RateLimited):
        limit.take("k")
    clock.at += 100
    for _ in range(3):
        limit.take("k")
    with pytest.raises(RateLimited):
        limit.take("k")


def test_keys_do_not_share_a_bucket() -> None:
    limit = RateLimit(1, 1, clock=Hands())
    limit.take("a")
    limit.take("b")
    with pytest.raises(RateLimited):
        limit.take("a")


def test_no_rate_no_limit() -> None:
    limit = RateLimit(0, 0, clock=Hands())
    for _ in range(1000):
        limit.take("k")


def test_a_refused_call_costs_nothing() -> None:
    clock = Hands()
    limit = RateLimit(1, 1, clock=clock)
    limit.take("k")
    for _ in range(10):
        with pytest.raises(RateLimited):
            limit.take("k")
    clock.at += 1
    limit.take("k")


def test_more_than_a_burst_is_paid_for_by_a_longer_wait() -> None:
    clock = Hands()
    limit = RateLimit(10, 100, clock=clock)
    limit.take("k", 250)
    with pytest.raises(RateLimited) as refused:
        limit.take("k", 100)
    assert refused.value.details["retry_after_seconds"] == 25
    clock.at += 25
    limit.take("k", 100)


def test_so_many_at_once_and_no_more() -> None:
    limit = AtOnce(2, of="open streams", retry_after=7)
    with limit.one("k"), limit.one("k"), limit.one("other"):
        with pytest.raises(RateLimited) as refused, limit.one("k"):
            pass
        assert refused.value.details["retry_after_seconds"] == 7
    with limit.one("k"), limit.one("k"):
        pass


def test_no_number_no_limit_at_once() -> None:
    limit = AtOnce(0, of="open streams", retry_after=7)
    with limit.one("k"), limit.one("k"), limit.one("k"):
        pass
