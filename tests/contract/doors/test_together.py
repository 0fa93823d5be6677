"""Requests that wait at the same time: they share commits and looks at the key, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import httpx2
import pytest
from tests.contract.doors.conftest import API, Server

from reverie.core.entry import Source

ENTRIES = f"{API}/memory/notes/entries"


def client_of(server: Server, key: str | None) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=server.app)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"Authorization": f"Bearer {key}"}, timeout=None
    )


def test_puts_that_wait_together_share_transactions(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = server.caller()
    store, writes = server.host.parts.store, []
    write = store.write

    def counted(scope: Any, body: Any) -> Any:
        writes.append(scope)
        return write(scope, body)

    monkeypatch.setattr(store, "write", counted)

    async def all_at_once() -> list[httpx2.Response]:
        async with client_of(server, caller.key) as client:
            return await asyncio.gather(*(client.post(ENTRIES, json={"content": f"Kite {n}."}) for n in range(64)))

    answers = asyncio.run(all_at_once())
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 64
    assert len(writes) <= 16
    assert len(caller.get("memory/notes/entries?limit=100").json()["entries"]) == 64


def test_puts_of_several_keys_share_transactions_and_keep_their_authors(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server.caller(authority=10)
    callers = [first, *(server.caller(first.tenant, authority=level) for level in (7, 4, 1))]
    store, writes = server.host.parts.store, []
    write = store.write

    def counted(scope: Any, body: Any) -> Any:
        writes.append(scope)
        return write(scope, body)

    monkeypatch.setattr(store, "write", counted)

    async def all_at_once() -> list[str]:
        clients = [client_of(server, caller.key) for caller in callers]
        source = {"source": {"trust": 9}}
        asked = (
            client.post(ENTRIES, json={"content": f"Kite {n}."} | (source if n else {}))
            for n in range(16)
            for client in clients
        )
        return [answer.json()["id"] for answer in await asyncio.gather(*asked)]

    ids = asyncio.run(all_at_once())
    assert len(writes) <= 16
    entries = {one["id"]: one for one in first.get("memory/notes/entries?limit=100").json()["entries"]}
    events = {one["memory_unit_id"]: one for one in first.get("events?limit=100").json()["events"]}
    for number, entry_id in enumerate(ids):
        author = callers[number % 4]
        name = f"key:{str(author.key).split('_')[1]}"
        level = (10, 7, 4, 1)[number % 4]
        assert entries[entry_id]["source"]["actor"] == events[entry_id]["agent_id"] == name
        assert entries[entry_id]["source"]["trust"] == min(9 if number >= 4 else Source().trust, level)


def test_a_put_that_is_refused_leaves_those_next_to_it_alone(server: Server) -> None:
    caller = server.caller()
    caller.patch("policy", {"max_entry_bytes": 100})

    async def all_at_once() -> list[int]:
        async with client_of(server, caller.key) as client:
            texts = ["x" * 200 if n % 4 == 0 else f"Kite {n}." for n in range(32)]
            asked: list[Coroutine[Any, Any, httpx2.Response]] = [
                client.post(ENTRIES, json={"content": text}) for text in texts
            ]
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    assert asyncio.run(all_at_once()) == [413 if n % 4 == 0 else 201 for n in range(32)]


def test_a_key_revoked_between_two_turns_of_the_loop_is_refused(server: Server) -> None:
    caller = server.caller()
    assert caller.key is not None

    async def turns() -> list[set[int]]:
        async with client_of(server, caller.key) as client:

            async def burst() -> set[int]:
                asked = (client.get(f"{API}/me") for _ in range(8))
                return {answer.status_code for answer in await asyncio.gather(*asked)}

            before = await burst()
            server.host.keys.revoke(str(caller.key).split("_")[1])
            return [before, await burst()]

    assert asyncio.run(turns()) == [{200}, {401}]
