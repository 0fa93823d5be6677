"""`reverie mcp` on a running host: the tools of a program that knows no address and no key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

import reverie
from reverie.api.cli.main import run


def child_of(running: Any, tenant: str, *arguments: str) -> StdioServerParameters:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "OTEL_"))}
    env |= {"REVERIE_KEY": running.key(tenant), "REVERIE_URL": running.url}
    return StdioServerParameters(command=sys.executable, args=["-m", "reverie", "mcp", *arguments], env=env)


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    return {**json.loads(result.content[0].text), "is_error": bool(result.is_error)}  # type: ignore[union-attr]


def test_the_tools_use_the_memory_of_the_host(running: Any, tenant: str) -> None:
    async def go() -> None:
        async with Client(child_of(running, tenant)) as client:
            kept = await called(client, "remember", content="Ada prefers tea over coffee.", subject="ada")
            for n in range(12):
                await called(client, "remember", content=f"Parcel {n % 4} left the depot at gate {n % 4}.")
            again = [await called(client, "remember", content="Once.", idempotency_key="k", ref="other") for _ in "ab"]
            assert again[0] == again[1]
            found = await called(client, "recall", query="What does Ada drink?", since="1h", limit=3)
            assert found["memories"][0]["id"] == kept["id"]
            assert (await called(client, "recall", limit=1))["more"] is True
            assert "tea" in (await called(client, "context", purpose="Ada's drinks", budget=300))["text"]
            assert {row["ref"] for row in (await called(client, "memories"))["memories"]} == {"default", "other"}
            assert (await called(client, "dream", preview=True))["sources"] == 12
            made = await called(client, "dream")
            assert made["dreamt"] is True
            report = await client.read_resource(f"reverie://dream/{made['dream']}")
            assert json.loads(report.contents[0].text)["id"] == made["dream"]  # type: ignore[union-attr]
            assert (await called(client, "dream", undo=made["dream"]))["restored"] == 12
            assert (await called(client, "dream"))["dreamt"] is True
            again = await called(client, "dream")
            assert again["dreamt"] is False
            assert again["reason"]
            assert (await called(client, "forget", subject="ada", preview=True))["preview"] is True
            assert (await called(client, "forget", subject="ada"))["forgotten"] == 1
            assert (await called(client, "recall", query="x", since="garbage"))["is_error"]
            assert {str(one.uri) for one in (await client.list_resources()).resources} >= {"reverie://index"}
            entries = await client.read_resource("reverie://memory/other")
            (entry,) = json.loads(entries.contents[0].text)["entries"]  # type: ignore[union-attr]
            assert entry["content"] == "Once."
            with pytest.raises(MCPError):
                await client.read_resource("reverie://memory/other/none")
            prompt = await client.get_prompt("recall", {"topic": "parcels"})
            assert "depot" in prompt.messages[0].content.text  # type: ignore[union-attr]

    anyio.run(go)
    with reverie.open(running.url, key=running.key(tenant)) as memory:
        assert [entry.content for entry in memory.ref("other").entries()] == ["Once."]


def test_the_graph_of_the_host(running: Any, tenant: str) -> None:
    async def go() -> None:
        async with Client(child_of(running, tenant, "--profile", "reference")) as client:
            ada = {"name": "Ada", "entityType": "person", "observations": ["drinks tea"]}
            bob = {"name": "Bob", "entityType": "person", "observations": []}
            assert (await called(client, "create_entities", entities=[ada, bob]))["entities"] == [ada, bob]
            knows = {"from": "Ada", "to": "Bob", "relationType": "knows"}
            await called(client, "create_relations", relations=[knows])
            more = [{"entityName": "Bob", "contents": ["plays chess"]}]
            assert not (await called(client, "add_observations", observations=more))["is_error"]
            assert (await called(client, "search_nodes", query="chess"))["entities"][0]["name"] == "Bob"
            missing = await called(client, "add_observations", observations=[{"entityName": "Eve", "contents": ["x"]}])
            assert missing["message"] == "Entity with name Eve not found"
            await called(client, "delete_relations", relations=[knows])
            await called(client, "delete_entities", entityNames=["Bob"])
            assert await called(client, "read_graph") == {"entities": [ada], "relations": [], "is_error": False}

    anyio.run(go)


def test_the_field_is_named_by_its_address(
    running: Any, tenant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REVERIE_KEY", running.key(tenant))
    assert run(["mcp", "--akashik", "--url", running.url]) == 1
    assert f"{running.url}/akashik/mcp" in capsys.readouterr().err


def test_a_named_folder_wins_over_the_host_of_the_environment(running: Any, tenant: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(child_of(running, tenant, "--data", str(tmp_path))) as client:
            await called(client, "remember", content="Only here.")

    anyio.run(go)
    with reverie.open(running.url, key=running.key(tenant)) as memory:
        assert memory.refs() == []


def test_a_host_that_is_away(running: Any) -> None:
    env = {**os.environ, "REVERIE_KEY": "none"}
    command = [sys.executable, "-m", "reverie", "mcp", "--url", "http://127.0.0.1:9"]
    ended = subprocess.run(command, env=env, input="", capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "http://127.0.0.1:9 does not answer" in ended.stderr
