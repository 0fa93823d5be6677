"""Following the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.serve import tail as tailing
from reverie.serve.tail import Tail


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


def follow(host: Host, actor: Actor, tail: Tail, script: Callable[[list[Any]], None], **options: Any) -> list[Any]:
    """Follow until `script`, called after each page, stops the tail."""

    async def go() -> list[Any]:
        seen: list[Any] = []
        chosen = {"after": 0, "types": None, "still_allowed": yes} | options
        async for page in tail.follow(host, actor, **chosen):
            seen.append(None if page is None else [event.seq for event in page])
            script(seen)
        return seen

    return asyncio.run(asyncio.wait_for(go(), 30))


def put(host: Host, actor: Actor, count: int = 1) -> None:
    host.writing.put(actor, "notes", [Draft(content=f"number {n}") for n in range(count)])


def test_what_is_there_then_what_comes(make_host: Callable[..., Host], ada: Actor) -> None:
    host, tail = make_host(), Tail()
    put(host, ada, 3)

    def script(seen: list[Any]) -> None:
        if len(seen) == 1:
            put(host, ada, 2)  # committed without a ring, as another process would
        else:
            tail.stop()

    assert follow(host, ada, tail, script) == [[1, 2, 3], [4, 5]]


def test_long_logs_come_in_pages_without_a_gap(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "_PAGE", 4)
    host, tail = make_host(), Tail()
    put(host, ada, 10)
    pages = follow(host, ada, tail, lambda seen: tail.stop() if sum(map(len, seen)) >= 9 else None, after=1)
    assert [seq for page in pages for seq in page] == list(range(2, 11))


def test_only_the_types_asked_for(make_host: Callable[..., Host], ada: Actor) -> None:
    host, tail = make_host(), Tail()
    put(host, ada, 2)
    host.rules.set_policy(ada, {"max_tags": 5})
    assert follow(host, ada, tail, lambda _: tail.stop(), types=("policy.changed",)) == [[3]]


def test_a_quiet_stream_shows_signs_of_life(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(tailing, "POLL_SECONDS", 0.01)
    host, tail = make_host(), Tail()
    assert follow(host, ada, tail, lambda seen: tail.stop() if len(seen) == 3 else None) == [None] * 3


def test_a_stream_ends_when_its_key_does(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "HEARTBEAT_SECONDS", 0.01)
    assert follow(make_host(), ada, Tail(), lambda _: None, still_allowed=no) == []


def test_a_busy_stream_ends_when_its_key_does_too(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(tailing, "POLL_SECONDS", 0.02)
    host = make_host()
    put(host, ada)
    pages = follow(host, ada, Tail(), lambda _: put(host, ada), still_allowed=no)
    assert 1 <= len(pages) < 100


def test_a_stream_shows_the_callers_tenant_only(make_host: Callable[..., Host], ada: Actor) -> None:
    host, tail = make_host(), Tail()
    put(host, Actor(tenant="other", id="eve"), 5)
    put(host, ada)
    assert follow(host, ada, tail, lambda _: tail.stop()) == [[1]]


def test_the_heartbeat_is_often_enough_for_proxies() -> None:
    assert tailing.HEARTBEAT_SECONDS + tailing.POLL_SECONDS <= 15


def test_a_ring_wakes_at_once() -> None:
    async def go() -> float:
        tail, loop = Tail(), asyncio.get_running_loop()
        started = loop.time()
        loop.call_later(0.01, tail.ring)
        await tail.wait(10)
        return loop.time() - started

    assert asyncio.run(go()) < 5
