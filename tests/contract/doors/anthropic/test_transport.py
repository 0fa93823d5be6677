"""Transport: keys, workspaces, betas, errors, paths, retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from anthropic import Anthropic, APIStatusError, AuthenticationError, PermissionDeniedError, RateLimitError
from tests.contract.doors.anthropic.conftest import Live, refused

STORES = "/anthropic/v1/memory_stores"


def test_either_key_header_is_taken(live: Live) -> None:
    _, key = live.key()
    _, other = live.key()
    assert live.send("GET", STORES, None, headers={"X-Api-Key": key}).status_code == 200
    assert live.send("GET", STORES, key, headers={"X-Api-Key": key}).status_code == 200
    for headers in ({"X-Api-Key": other}, {"X-Api-Key": "x"}):
        answer = live.send("GET", STORES, key, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"
    assert live.send("GET", STORES, None).status_code == 401
    assert live.send("GET", "/v1/host/reverie/memory", None, headers={"X-Api-Key": key}).status_code == 401


def test_the_client_works_at_both_bases(live: Live) -> None:
    tenant, _ = live.key()
    made = live.client(tenant).beta.memory_stores.create(name="a")
    assert live.client(tenant, base="").beta.memory_stores.retrieve(made.id) == made
    assert live.client(tenant, base="/").beta.memory_stores.retrieve(made.id) == made


def test_revoked_and_expired_keys(live: Live) -> None:
    host = live.server.host
    made = host.keys.create("revoked-tenant")
    client = Anthropic(base_url=live.url, api_key=made.key, max_retries=0)
    client.beta.memory_stores.list()
    host.keys.revoke(made.id)
    with pytest.raises(AuthenticationError) as fault:
        client.beta.memory_stores.list()
    assert fault.value.error_code == "key_revoked"


def test_workspaces_are_compared(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    answer = client.beta.memory_stores.with_raw_response.list()
    assert answer.headers["anthropic-workspace-id"] == f"wrkspc_{tenant}"
    client.beta.memory_stores.list(workspace_id=f"wrkspc_{tenant}")
    with pytest.raises(PermissionDeniedError) as fault:
        client.beta.memory_stores.list(workspace_id="wrkspc_other")
    assert fault.value.response.headers["anthropic-workspace-id"] == f"wrkspc_{tenant}"
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"workspace_id": "wrkspc_mine"})
    client.beta.memory_stores.list(workspace_id="wrkspc_mine")
    missing = live.send("GET", f"{STORES}/memstore_x", key)
    assert missing.headers["anthropic-workspace-id"] == "wrkspc_mine"
    assert live.send("GET", "/anthropic/v1/other", key).headers["anthropic-workspace-id"] == "wrkspc_mine"


def test_betas_are_demanded_only_when_strict(live: Live, make_live: Callable[..., Live]) -> None:
    _, key = live.key()
    assert live.send("GET", STORES, key).status_code == 200
    assert live.send("GET", STORES, key, headers={"anthropic-beta": "unknown-1"}).status_code == 200
    strict = make_live(anthropic_strict=True)
    _, key = strict.key()
    answer = strict.send("GET", STORES, key)
    assert answer.status_code == 400
    assert "anthropic-beta" in answer.json()["error"]["message"]
    for beta in ("agent-memory-2026-07-22", "x, managed-agents-2026-04-01"):
        assert strict.send("GET", STORES, key, headers={"anthropic-beta": beta}).status_code == 200
    two = [("anthropic-beta", "x"), ("anthropic-beta", "agent-memory-2026-07-22"), ("authorization", f"Bearer {key}")]
    assert httpx2.get(strict.url + STORES, headers=two).status_code == 200
    strict.client().beta.memory_stores.list()


def test_versions_and_the_beta_query_are_ignored(live: Live) -> None:
    _, key = live.key()
    for version in ("2026-10-21", "2023-06-01", "x"):
        headers = {"anthropic-version": version}
        assert live.send("GET", f"{STORES}?beta=true", key, headers=headers).status_code == 200


def test_posts_without_a_body_are_no_error(live: Live) -> None:
    tenant, key = live.key()
    store = live.client(tenant).beta.memory_stores.create(name="a").id
    headers = {"content-type": "application/json"}
    assert live.send("POST", f"{STORES}/{store}/archive", key, headers=headers).status_code == 200
    assert live.send("POST", f"{STORES}/{store}/archive", key, json={}).status_code == 200
    assert live.send("POST", f"{STORES}/{store}/archive", key, json={"x": 1}).status_code == 400
    assert live.send("DELETE", f"{STORES}/{store}", key).status_code == 200


def test_every_answer_has_a_request_id(live: Live) -> None:
    _, key = live.key()
    for method, path, sent, status in (
        ("GET", STORES, key, 200),
        ("GET", STORES, None, 401),
        ("GET", f"{STORES}/memstore_x", key, 404),
        ("PATCH", STORES, key, 404),
        ("GET", "/anthropic/v1/agents", key, 404),
        ("GET", "/anthropic/v1/messages", key, 404),
        ("GET", "/anthropic", key, 404),
        ("POST", STORES, key, 400),
    ):
        answer = live.send(method, path, sent)
        assert answer.status_code == status, (method, path)
        assert answer.headers["request-id"].startswith("req_")
        if status >= 400:
            body = answer.json()
            assert body["request_id"] == answer.headers["request-id"]
            assert body["type"] == "error"
            assert set(body["error"]) >= {"type", "message", "details"}


def test_broken_bodies(live: Live) -> None:
    _, key = live.key()
    headers = {"content-type": "application/json"}
    for body in (
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"name": "a", "name": "b"}',
        b"\xff",
        b'{"name": ' + b"[" * 100 + b"]" * 100 + b"}",
    ):
        answer = live.send("POST", STORES, key, content=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), body


def test_a_large_body_is_413(make_live: Callable[..., Live]) -> None:
    small = make_live(max_request_bytes=10_000)
    with pytest.raises(APIStatusError) as fault:
        small.client().beta.memory_stores.create(name="x" * 20_000)
    assert (fault.value.status_code, fault.value.type) == (413, "request_too_large")


@pytest.mark.usefixtures("no_refill")
def test_rate_limits_are_429(make_live: Callable[..., Live]) -> None:
    slow = make_live(rate_per_second=1, rate_burst=1)
    client = slow.client()
    client.beta.memory_stores.list()
    with pytest.raises(RateLimitError) as fault:
        client.beta.memory_stores.list()
    assert int(fault.value.response.headers["retry-after"]) >= 1
    assert fault.value.type == "rate_limit_error"


def test_a_read_only_host_is_403(make_live: Callable[..., Live], tmp_path: Path) -> None:
    written = make_live(data=tmp_path)
    _, key = written.key()
    read_only = make_live(data=tmp_path, read_only=True)
    assert read_only.send("GET", STORES, key).status_code == 200
    answer = read_only.send("POST", STORES, key, json={"name": "a"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")


def test_rights_and_scopes(live: Live) -> None:
    tenant, _ = live.key()
    store = live.client(tenant).beta.memory_stores.create(name="a").id
    reader = live.client(tenant, rights=("read",))
    reader.beta.memory_stores.retrieve(store)
    for call in (
        lambda: reader.beta.memory_stores.create(name="b"),
        lambda: reader.beta.memory_stores.archive(store),
        lambda: reader.beta.memory_stores.delete(store),
        lambda: reader.beta.memory_stores.update(store, name="c"),
        lambda: reader.beta.memory_stores.memories.create(store, path="/a", content="x"),
    ):
        refused(call, 403, "permission_error")
    writer = live.client(tenant, rights=("write",))
    refused(lambda: writer.beta.memory_stores.retrieve(store), 403, "permission_error")
    scoped = live.client(tenant, scopes=("memory_stores:read",))
    scoped.beta.memory_stores.retrieve(store)
    refused(lambda: scoped.beta.memory_stores.create(name="b"), 403, "permission_error")
    both = live.client(tenant, scopes=("memory_stores:read", "memory_stores:write"))
    both.beta.memory_stores.create(name="b")


def test_the_door_can_be_taken_away(make_live: Callable[..., Live]) -> None:
    without = make_live(anthropic=False)
    _, key = without.key()
    assert without.send("GET", STORES, key).status_code == 404
    assert "request-id" not in without.send("GET", STORES, key).headers


def test_foreign_hosts_and_pages_are_refused(live: Live) -> None:
    _, key = live.key()
    bad_host = live.send("GET", STORES, key, headers={"host": "evil.example"})
    assert (bad_host.status_code, bad_host.json()["type"]) == (421, "error")
    page = live.send("POST", STORES, key, json={"name": "a"}, headers={"origin": "https://evil.example"})
    assert page.status_code == 403


def test_the_asynchronous_client(live: Live) -> None:
    client = live.async_client()

    async def go() -> list[str]:
        made = await client.beta.memory_stores.create(name="a")
        for n in range(5):
            await client.beta.memory_stores.memories.create(made.id, path=f"/{n}", content="x")
        found = [str(item.path) async for item in client.beta.memory_stores.memories.list(made.id, limit=2)]
        await client.close()
        return found

    assert asyncio.run(go()) == [f"/{n}" for n in range(5)]


def test_openwop_keeps_its_own_paths(live: Live) -> None:
    _, key = live.key()
    answer = live.send("GET", "/v1/agents", key)
    assert "request-id" not in answer.headers
    assert live.send("GET", "/v1/memory_storesx", key).headers.get("request-id") is None
