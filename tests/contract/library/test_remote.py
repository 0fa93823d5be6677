"""What only a memory on a running host can do, or refuses."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

import reverie
import reverie.aio
from reverie.client import connect


def test_the_key_decides_the_tenant(running: Any, tenant: str) -> None:
    with reverie.open(running.url, key=running.key(tenant)) as memory:
        assert memory.actor.tenant == tenant
    with pytest.raises(reverie.Forbidden, match=f"belongs to the tenant {tenant}, not to other"):
        reverie.open(running.url, key=running.key(tenant), tenant="other")


def test_a_wrong_key_or_none_is_refused_at_once(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(reverie.Unauthenticated):
        reverie.open(running.url, key="rv_nothing")
    monkeypatch.delenv("REVERIE_KEY", raising=False)
    with pytest.raises(reverie.Unauthenticated, match="REVERIE_KEY"):
        reverie.open(running.url)


def test_a_key_without_the_right_is_forbidden(running: Any, tenant: str) -> None:
    from reverie.core.actor import Right

    with reverie.open(running.url, key=running.key(tenant, rights=frozenset({Right.READ}))) as memory:
        with pytest.raises(reverie.Forbidden) as refused:
            memory.ref("notes").put("x")
        assert refused.value.details == {"right": "write"}


def test_the_environment_names_the_host(running: Any, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_URL", running.url)
    monkeypatch.setenv("REVERIE_KEY", running.key(tenant))
    with reverie.open() as memory:
        assert memory.ref("notes").put("Stored over HTTP.").seq == 1
        assert repr(memory) == f"<Memory of tenant {tenant} at {running.url}>"


def test_a_host_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(reverie.HostUnreachable) as away:
        connect(f"http://127.0.0.1:{port}", key="k", retry_seconds=0.5)
    assert time.monotonic() - begun < 30
    assert f"http://127.0.0.1:{port} does not answer (no connection): tried" in away.value.message
    assert "reverie serve" in away.value.message
    assert away.value.details["tries"] > 1


def test_what_a_host_has_of_its_own_is_refused(running: Any, tenant: str) -> None:
    from reverie.core.clock import SystemClock

    with pytest.raises(reverie.Invalid, match="the host's own"):
        reverie.open(running.url, key=running.key(tenant), clock=SystemClock())


def test_a_use_case_without_a_route_says_so(running: Any, tenant: str) -> None:
    with reverie.open(running.url, key=running.key(tenant)) as memory:
        with pytest.raises(reverie.Invalid, match="data folder or a database only") as refused:
            memory.host.windows  # noqa: B018
        assert refused.value.reason == "not_remote"


def test_drafts_of_others_stay_where_they_are(running: Any, tenant: str) -> None:
    with (
        reverie.open(running.url, key=running.key(tenant)) as memory,
        pytest.raises(reverie.Invalid, match="embedded memory only"),
    ):
        memory.ref("notes").list(reverie.Filter(states=frozenset({reverie.EntryState.DRAFT})))


def test_many_callers_in_an_event_loop(running: Any, tenant: str) -> None:
    async def story() -> None:
        async with reverie.aio.open(running.url, key=running.key(tenant)) as memory:
            notes = memory.ref("notes")
            receipts = await asyncio.gather(*(notes.put(f"Note number {n} about parcels.") for n in range(40)))
            assert len({receipt.id for receipt in receipts}) == 40
            assert not any(receipt.replayed for receipt in receipts)
            assert len(await notes.search("parcels", limit=5)) == 5
            assert len([entry async for entry in notes.entries()]) == 40
            assert await memory.dreams.list() == []
            assert repr(notes).startswith("<AsyncRef notes of <AsyncMemory of tenant")

    asyncio.run(story())


def test_events_are_followed_in_an_event_loop(running: Any, tenant: str) -> None:
    async def story() -> None:
        async with reverie.aio.open(running.url, key=running.key(tenant)) as memory:
            wrote = await memory.ref("notes").put("One.")
            async for event in memory.follow(after=0, types=["memory.written"]):
                assert event.entry_id == wrote.id
                break

    asyncio.run(story())
