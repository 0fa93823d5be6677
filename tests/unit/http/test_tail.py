"""Following the log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.http import tail as tailing
from reverie.http.tail import Tail
from reverie.http.threads import Threads
from reverie.store.conformance import HandClock


def make_tail(host: Host) -> Tail:
    return Tail(host, Threads())


def follow(actor: Actor, tail: Tail, script: Callable[[list[Any]], None], **options: Any) -> list[Any]:
    """Follow until `script`, called after each page, stops the tail."""

    async def go() -> list[Any]:
        seen: list[Any] = []
        async for page in tail.follow(actor, **({"after": 0, "types": None} | options)):
            seen.append(None if page is None else [event.seq for event in page.events])
            script(seen)
        return seen

    return asyncio.run(asyncio.wait_for(go(), 30))


def put(host: Host, actor: Actor, count: int = 1) -> None:
    host.entries.put(actor, "notes", [Draft(content=f"number {n}") for n in range(count)])


def test_what_is_there_then_what_comes(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    tail = make_tail(host)
    put(host, ada, 3)

    def script(seen: list[Any]) -> None:
        if len(seen) == 1:
            put(host, ada, 2)  # committed without a ring, as another process would
        else:
            tail.stop()

    assert follow(ada, tail, script) == [[1, 2, 3], [4, 5]]


def test_long_logs_come_in_pages_without_a_gap(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "_PAGE", 4)
    host = make_host()
    tail = make_tail(host)
    put(host, ada, 10)
    pages = follow(ada, tail, lambda seen: tail.stop() if sum(map(len, seen)) >= 9 else None, after=1)
    assert [seq for page in pages for seq in page] == list(range(2, 11))


def test_only_the_types_asked_for(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    tail = make_tail(host)
    put(host, ada, 2)
    host.rules.set_policy(ada, {"max_tags": 5})
    assert follow(ada, tail, lambda _: tail.stop(), types=("policy.changed",)) == [[3]]


def test_a_quiet_stream_shows_signs_of_life(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(tailing, "POLL_SECONDS", 0.01)
    host = make_host()
    tail = make_tail(host)
    assert follow(ada, tail, lambda seen: tail.stop() if len(seen) == 3 else None) == [None] * 3


def with_key(host: Host, actor: Actor) -> Actor:
    return replace(actor, key_id=host.keys.create(actor.tenant).id)


def test_a_stream_ends_when_its_key_does(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    actor = with_key(host, ada)
    put(host, ada)

    def script(_: list[Any]) -> None:
        host.keys.revoke(str(actor.key_id))  # as another process would: nothing rings here
        put(host, ada)

    assert follow(actor, make_tail(host), script) in ([[1]], [[1], [2]])


def test_a_busy_stream_ends_when_its_key_does_too(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    actor = with_key(host, ada)
    put(host, ada)

    def script(seen: list[Any]) -> None:
        put(host, ada)
        if len(seen) == 3:
            host.keys.revoke(str(actor.key_id))

    assert 3 <= len(follow(actor, make_tail(host), script)) < 100


def test_a_stream_ends_when_its_key_expires(make_host: Callable[..., Host], ada: Actor, clock: HandClock) -> None:
    host = make_host()
    key = host.keys.create(ada.tenant, expires_at=clock.now() + 1000)
    put(host, ada)
    assert follow(replace(ada, key_id=key.id), make_tail(host), lambda _: clock.advance(2000)) == [[1]]


def test_a_key_that_is_not_valid_opens_no_stream(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    put(host, ada)
    assert follow(replace(ada, key_id="unknown"), make_tail(host), lambda _: None) == []


def test_the_other_streams_of_a_tenant_go_on(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    tail, one, two = make_tail(host), with_key(host, ada), with_key(host, ada)
    put(host, ada)

    async def seen(actor: Actor, script: Callable[[], None]) -> list[int]:
        numbers: list[int] = []
        async for page in tail.follow(actor, after=0, types=None):
            numbers += [event.seq for event in page.events] if page else []
            script()
        return numbers

    def stop_later() -> None:
        asyncio.get_running_loop().call_later(0.1, tail.stop)

    async def go() -> list[list[int]]:
        first = asyncio.ensure_future(seen(one, lambda: host.keys.revoke(str(one.key_id))))
        second = asyncio.ensure_future(seen(two, lambda: None))
        ended = await asyncio.wait_for(first, 30)
        assert not second.done()
        put(host, ada)
        stop_later()
        return [ended, await asyncio.wait_for(second, 30)]

    assert asyncio.run(go())[0] == [1]


def test_many_streams_of_a_tenant_cost_one_look_and_one_read(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    tail = make_tail(host)
    looks: list[str] = []
    reads: list[int] = []
    look, read = tail._look, tail._page

    def counted_read(tenant: str, after: int, *how: Any) -> Any:
        reads.append(after)
        return read(tenant, after, *how)

    def counted(tenant: str, keys: list[str]) -> tuple[int, set[str]]:
        looks.append(tenant)
        return look(tenant, keys)

    tail._look = counted  # type: ignore[method-assign]
    tail._page = counted_read  # type: ignore[method-assign]

    async def one() -> int:
        return sum([len(page.events) async for page in tail.follow(ada, after=0, types=None) if page])

    async def go() -> list[int]:
        streams = [asyncio.ensure_future(one()) for _ in range(20)]
        while len(looks) < 20:
            await asyncio.sleep(0.01)
        before = len(looks)
        put(host, ada)
        tail.ring(ada.tenant)
        while len(looks) < before + 2:
            await asyncio.sleep(0.01)
        tail.stop()
        counts = await asyncio.gather(*streams)
        assert len(looks) < before + 20
        assert reads == [0]
        return counts

    assert asyncio.run(asyncio.wait_for(go(), 30)) == [1] * 20


def test_a_long_log_is_read_once_for_many_slow_streams_while_it_grows(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full pages stay as they are; they are encoded where they are read, one at a time, and never on the event loop."""
    monkeypatch.setattr(tailing, "_PAGE", 4)
    host = make_host()
    tail = make_tail(host)
    reads: list[int] = []
    busy: list[int] = []
    encoding: set[int] = set()
    read = tail._page

    def counted_read(tenant: str, after: int, *how: Any) -> Any:
        busy.append(1)
        try:
            assert len(busy) == 1
            reads.append(after)
            return read(tenant, after, *how)
        finally:
            busy.pop()

    def encode(event: Any) -> bytes:
        encoding.add(threading.get_ident())
        return b"%d " % event.seq

    tail._page = counted_read  # type: ignore[method-assign]
    put(host, ada, 12)

    async def one() -> bytes:
        seen = b""
        async for page in tail.follow(ada, after=0, types=None, encode=encode):
            seen += page.encoded if page else b""
            if seen.endswith(b"8 "):
                put(host, ada)  # it grows under them
                tail.ring(ada.tenant)
            if seen.count(b" ") >= 12:
                return seen
        return seen

    async def go() -> list[bytes]:
        return await asyncio.gather(*[one() for _ in range(10)])

    seen = asyncio.run(asyncio.wait_for(go(), 30))
    assert all(one.startswith(b"1 2 3 4 5 6 7 8 9 10 11 12 ") for one in seen)
    assert reads.count(0) == reads.count(4) == 1
    assert threading.get_ident() not in encoding


async def turns(
    stream: Callable[[], Awaitable[None]], number: int, begin: Callable[[], Awaitable[None]] | None = None
) -> list[int]:
    """How many of so many streams went on in each turn of the event loop, after `begin`."""
    went_on = 0

    async def one() -> None:
        nonlocal went_on
        await stream()
        went_on += 1

    streams = [asyncio.ensure_future(one()) for _ in range(number)]
    if begin is not None:
        await begin()
    seen: list[int] = []
    while not all(one.done() for one in streams):
        await asyncio.sleep(0)
        seen.append(went_on)
        went_on = 0
    return seen


def test_streams_are_woken_a_few_in_a_turn_of_the_event_loop(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "_WOKEN", 3)
    host = make_host()
    tail = make_tail(host)
    put(host, ada)

    async def one() -> None:
        async with tail.watch(ada.tenant, None) as watch:
            await watch.wait(30)

    async def ring() -> None:
        watch = None
        while watch is None or len(watch._waiting) < 20:
            await asyncio.sleep(0.01)
            watch = tail._watches.get(ada.tenant)
        put(host, ada)
        tail.ring(ada.tenant)

    in_one_turn = asyncio.run(asyncio.wait_for(turns(one, 20, ring), 30))
    assert sum(in_one_turn) == 20
    assert max(in_one_turn) <= 6  # those of this turn, and of the one before


def test_streams_that_waited_for_one_read_proceed_a_few_in_a_turn(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "_WOKEN", 3)
    host = make_host()
    tail = make_tail(host)
    put(host, ada)

    async def one() -> None:
        async for _ in tail.follow(ada, after=0, types=None):
            return

    in_one_turn = asyncio.run(asyncio.wait_for(turns(one, 20), 30))
    assert sum(in_one_turn) == 20
    assert max(in_one_turn) <= 6  # those of this turn, and of the one before


def test_a_stream_shows_the_callers_tenant_only(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    tail = make_tail(host)
    put(host, Actor(tenant="other", id="eve"), 5)
    put(host, ada)
    assert follow(ada, tail, lambda _: tail.stop()) == [[1]]


def test_the_heartbeat_is_often_enough_for_proxies() -> None:
    assert tailing.HEARTBEAT_SECONDS + tailing.POLL_SECONDS <= 15


def test_a_ring_wakes_at_once(make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tailing, "POLL_SECONDS", 1000.0)
    host = make_host()
    tail = make_tail(host)
    put(host, ada)

    def script(seen: list[Any]) -> None:
        if len(seen) == 2:
            tail.stop()
        else:
            put(host, ada)
            asyncio.get_running_loop().call_later(0.01, tail.ring, ada.tenant)

    assert follow(ada, tail, script) == [[1], [2]]
