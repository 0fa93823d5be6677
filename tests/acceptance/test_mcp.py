"""MCP with the real client: over stdio to a child process, and over streamable HTTP to a real socket."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.acceptance.test_server import PATIENCE, Child


def child_of(data: Path, *arguments: str) -> StdioServerParameters:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "OTEL_"))}
    command = ["-m", "reverie.api.cli.main", "mcp", "--data", str(data), *arguments]
    return StdioServerParameters(command=sys.executable, args=command, env=env)


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers: once, as text; for the Field as structure too."""
    result = await client.call_tool(name, arguments)
    answer = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert result.structured_content == (answer if name.startswith("akashik_") else None)
    return {**answer, "is_error": bool(result.is_error)}


def unit(content: str) -> dict[str, Any]:
    return {
        "mode": "committed",
        "type": "finding",
        "content": content,
        "intent": {"purpose": "to be known"},
        "confidence": {"score": 0.9, "reasoning": "measured"},
    }


def test_memory_tools_over_stdio(tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(child_of(tmp_path)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"remember", "recall", "context", "forget", "dream", "memories"}
            assert all(tool.description for tool in tools.values())
            kept = await called(client, "remember", content="Ada prefers tea over coffee.", subject="ada")
            assert not kept["is_error"]
            for n in range(12):
                await called(client, "remember", content=f"Parcel {n % 4} left the depot at gate {n % 4}.")
            found = await called(client, "recall", query="What does Ada drink?", limit=3)
            assert found["memories"][0]["id"] == kept["id"]
            packed = await called(client, "context", purpose="Ada's drinks", budget=300)
            assert "tea" in packed["text"]
            assert packed["tokens"] <= 300
            assert (await called(client, "dream", preview=True))["sources"] == 12  # the parcels
            assert (await called(client, "dream"))["dreamt"] is True
            assert (await called(client, "forget", subject="ada"))["forgotten"] == 1
            assert "tea" not in json.dumps(await called(client, "recall", query="tea"))
            wrong = await called(client, "recall", query="x", typo=1)
            assert wrong["is_error"]
            assert wrong["code"] == "validation_error"
            assert (await called(client, "forget"))["is_error"]

    anyio.run(go)


def test_akashik_tools_over_stdio(tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(child_of(tmp_path, "--akashik")) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            operations = "register deregister record attune detect merge replay compact subscribe handoff coordinate"
            assert names == {f"akashik_{name}" for name in [*operations.split(), "session"]}
            me = {"agent_id": "a"}
            joined = await called(client, "akashik_register", **me, payload={"id": "a", "role": "r"})
            assert joined["status"] == "registered"
            recorded = await called(client, "akashik_record", **me, payload=unit("The pump runs at 40 bar."), epoch=7)
            assert recorded["epoch"] == 8
            other = await called(client, "akashik_record", **me, payload=unit("The pump runs at 55 bar."))
            assert len(other["conflicts_detected"]) == 1
            scope = {"role": "r", "max_units": 5, "include_own": True}
            seen = await called(client, "akashik_attune", **me, payload={"scope": scope})
            assert len(seen["record"]) == 2
            refused = await called(client, "akashik_record", **me, payload={"content": "x", "type": "finding"})
            assert refused["is_error"]
            assert refused["code"] == "MISSING_INTENT"
            assert refused["operation"] == "RECORD"
            pushed = await called(client, "akashik_subscribe", **me, payload={"action": "subscribe"})
            assert pushed["is_error"]
            assert (await called(client, "akashik_subscribe", **me, payload={"action": "list"}))["subscriptions"] == []
            again = [
                await called(client, "akashik_compact", **me, payload={"strategy": "purge"}, message_id="m"),
                await called(client, "akashik_compact", agent_id="nobody", payload={"strategy": "archive"}),
            ]
            assert [answer["code"] for answer in again] == ["INSUFFICIENT_AUTHORITY", "AGENT_NOT_REGISTERED"]

    anyio.run(go)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path / "data")
    yield child
    child.kill()


def test_both_sets_of_tools_over_streamable_http(child: Child) -> None:
    async def go() -> None:
        headers = {"Authorization": f"Bearer {child.key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
            async with Client(streamable_http_client(f"{child.url}/akashik/mcp", http_client=http)) as client:
                me = {"agent_id": "h"}
                assert (await called(client, "akashik_register", **me, payload={"id": "h", "role": "r"}))["epoch"]
                recorded = await called(client, "akashik_record", **me, payload=unit("The mill has 12 sails."))
                assert recorded["status"] == "accepted"
            async with Client(streamable_http_client(f"{child.url}/mcp", http_client=http)) as client:
                refs = (await called(client, "memories"))["memories"]
                assert len(refs) == 1
                found = await called(client, "recall", query="How many sails?", ref=refs[0]["ref"])
                assert found["memories"][0]["id"] == recorded["memory_unit_id"]

    anyio.run(go)


@pytest.mark.parametrize("path", ["/mcp", "/akashik/mcp"])
def test_without_a_key_nothing_is_said(child: Child, path: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=child.url, trust_env=False, timeout=PATIENCE) as client:
        assert client.post(path, json=body, headers=accept).status_code == 401
        wrong = {**accept, "Authorization": "Bearer rvk_" + "a" * 12 + "_" + "b" * 43}
        assert client.post(path, json=body, headers=wrong).status_code == 401
        right = {**accept, "Authorization": f"Bearer {child.key}"}
        for junk in (b"", b"{", b"[]", b'{"jsonrpc": 7}', b"\xff\xfe"):
            sent = client.post(path, content=junk, headers={**right, "Content-Type": "application/json"})
            assert 400 <= sent.status_code < 500, (junk, sent.status_code)
        assert client.get(path, headers=right).status_code == 405
    assert not [line for line in child.errors if "Traceback" in line]
