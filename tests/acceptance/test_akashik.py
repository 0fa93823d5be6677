"""Akashik over real sockets: several processes on one Field, a kill in between, and a port of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance import test_server

PATIENCE = test_server.PATIENCE
_NUMBERS = count(1)


class Child(test_server.Child):
    """A running server."""

    def client(self, key: str | None = None, base: str = "/akashik") -> httpx2.Client:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx2.Client(base_url=self.url + base, headers=headers, timeout=PATIENCE, trust_env=False)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """`start(**environment)`: a server on this test's data."""
    made: list[Child] = []

    def make(**environment: str) -> Child:
        made.append(Child(tmp_path / "data", **environment))
        return made[-1]

    yield make
    for child in made:
        child.kill()


def send(client: httpx2.Client, operation: str, agent: str, payload: dict[str, Any], epoch: int = 0) -> dict[str, Any]:
    envelope = {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": f"m-{next(_NUMBERS)}",
        "operation": operation,
        "agent_id": agent,
        "session_id": None,
        "epoch": epoch,
        "payload": payload,
    }
    response = client.post(f"/v1/{operation.lower()}", json=envelope)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def unit(content: str) -> dict[str, Any]:
    confidence = {"score": 0.5, "reasoning": "counted"}
    return {"type": "observation", "content": content, "intent": {"purpose": "p"}, "confidence": confidence}


def test_two_processes_share_one_clock_and_a_kill_loses_nothing(start: Callable[..., Child]) -> None:
    first = start()
    second = start()
    key = first.key
    with first.client(key) as one, second.client(key) as two:
        send(one, "REGISTER", "a", {"id": "a", "role": "r"})

        def work(number: int) -> tuple[int, str]:
            answer = send((one, two)[number % 2], "RECORD", "a", unit(f"note {number}"))
            return answer["epoch"], answer["memory_unit_id"]

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(work, range(60)))
        assert len({epoch for epoch, _ in made}) == 60
        first.kill()
        made += [work(number) for number in (61, 63)]
        third = start()
        with third.client(key) as three:
            answer = send(three, "RECORD", "a", unit("after the kill"), epoch=5)
            assert answer["epoch"] == max(epoch for epoch, _ in made) + 1
            status = three.get("/v1/field/status").json()
            assert status["units"]["hot"] == 63
            log = three.get("/v1/field/log", params={"limit": 10_000}).json()["events"]
            recorded = {event["memory_unit_id"]: event["epoch"] for event in log if event["type"] == "memory.recorded"}
            assert {unit_id: epoch for epoch, unit_id in made}.items() <= recorded.items()


def test_a_port_of_its_own_serves_akashik_at_its_root(start: Callable[..., Child]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = start(REVERIE_AKASHIK_PORT=str(port))
    headers = {"Authorization": f"Bearer {child.key}"}
    base = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=base, headers=headers, timeout=PATIENCE, trust_env=False) as own:
        assert send(own, "REGISTER", "a", {"id": "a", "role": "r"})["status"] == "registered"
        assert [agent["id"] for agent in own.get("/v1/agents").json()["agents"]] == ["a"]
        assert own.get("/akashik/v1/field/status").status_code == 200
        assert own.get("/healthz").status_code == 404
    with child.client(child.key) as prefixed:
        assert [agent["id"] for agent in prefixed.get("/v1/agents").json()["agents"]] == ["a"]
