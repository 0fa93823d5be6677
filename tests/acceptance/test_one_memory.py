"""One story, told through every door of one running server: what one door writes, the others read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.acceptance.test_server import PATIENCE, Child
from tests.commands import invoke

import reverie

FIELD = "akashik"
FACT = "The ferry to Runaway Island leaves from pier 17"
_MESSAGES = count(1)


class Story:
    """A server, its key, and the ways in."""

    def __init__(self, target: str, data: Path) -> None:
        self.target = target
        self.data = data
        chosen = ["--database-url", target] if target.startswith("postgresql:") else []
        self.child = Child(Path(data if chosen else target), *chosen)
        self.http = httpx2.Client(
            base_url=self.child.url,
            headers={"Authorization": f"Bearer {self.child.key}"},
            timeout=PATIENCE,
            trust_env=False,
        )

    def akashik(self, operation: str, payload: dict[str, Any], agent: str = "scout") -> dict[str, Any]:
        """One message of an agent."""
        message = {"protocol": "akashik", "version": "0.1.0", "id": f"story-{next(_MESSAGES)}", "operation": operation}
        message |= {"agent_id": agent, "session_id": None, "epoch": 0, "payload": payload}
        answer = self.http.post(f"/akashik/v1/{operation.lower()}", json=message)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def record(self, content: str) -> str:
        confidence = {"score": 0.9, "reasoning": "seen"}
        unit = {"type": "finding", "content": content, "intent": {"purpose": "to sail"}, "confidence": confidence}
        return str(self.akashik("RECORD", unit)["memory_unit_id"])

    def search(self, query: str) -> list[str]:
        """Ids by the query extension of OpenWOP, which is the native REST search."""
        answer = self.http.post(f"/v1/host/reverie/memory/{FIELD}/search", json={"query": query})
        assert answer.status_code == 200, answer.text
        return [hit["entry"]["id"] for hit in answer.json()["hits"]]

    def events(self, kind: str) -> list[dict[str, Any]]:
        answer = self.http.get(f"/v1/host/reverie/events?type={kind}&limit=1000")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["events"]
        return found

    def command(self, *arguments: str) -> Any:
        """What a command prints as JSON, on the same data."""
        where = ["--database-url", self.target] if self.target.startswith("postgresql:") else []
        env = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
        folder = self.data if where else Path(self.target)
        answer = invoke(*arguments, "--json", *where, environment={**env, "REVERIE_DATA": str(folder)})
        assert answer.code == 0, answer
        return answer.json

    def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers over MCP."""

        async def go() -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {self.child.key}"}
            async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
                transport = streamable_http_client(f"{self.child.url}/mcp", http_client=http)
                async with Client(transport) as client:
                    result = await client.call_tool(name, arguments)
                    return dict(json.loads(result.content[0].text))  # type: ignore[union-attr]

        return anyio.run(go)


@pytest.fixture
def story(make_target: Callable[..., str], tmp_path: Path) -> Iterator[Story]:
    told = Story(str(make_target("told")), tmp_path / "keys")
    yield told
    told.http.close()
    told.child.kill()


def test_what_one_door_writes_every_door_reads(story: Story) -> None:
    for agent in ("scout", "keeper"):
        story.akashik("REGISTER", {"id": agent, "role": "sailor", "authority_level": 10}, agent)
    fact = story.record(FACT)
    for number in range(8):
        story.record(f"Buoy {number} was painted and sits {number * 3} metres deep")

    # found by OpenWOP's query extension and REST, by command, by tool and from Python
    question = "which pier for Runaway Island"
    assert story.search(question)[0] == fact
    assert story.command("search", question, "--ref", FIELD)["hits"][0]["entry"]["id"] == fact
    assert story.tool("recall", {"query": question, "ref": FIELD})["memories"][0]["id"] == fact
    if not story.target.startswith("postgresql:"):
        with reverie.open(story.target) as memory:
            assert memory.ref(FIELD).search(question).hits[0].entry.id == fact

    # a COMPACT is a memory.compacted for observers of every protocol
    done = story.akashik("COMPACT", {"strategy": "summarize"})
    assert done["units_affected"] == 9
    events = story.events("memory.compacted")
    assert len(events) == done["synthesis_units_created"]
    taken = {source for event in events for source in event["data"]["sourceIds"]}
    assert fact in taken
    assert {event["data"]["trigger"] for event in events} == {"host-managed"}
    outputs = {event["data"]["outputId"] for event in events}
    assert set(story.search(question)) <= outputs

    # and what a person stores by REST reaches the team
    stored = story.http.post(f"/v1/host/reverie/memory/{FIELD}/entries", json={"content": "The ferry was sold."})
    assert stored.status_code == 201
    seen = story.akashik("ATTUNE", {"scope": {"role": "sailor", "max_units": 100}}, "keeper")
    assert stored.json()["id"] in [item["memory_unit"]["id"] for item in seen["record"]]
    assert story.command("audit", "verify")["ok"] is True
