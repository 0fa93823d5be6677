"""Notifications of a subscription over real sockets: WebSocket and server-sent events, from two processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.test_server import PATIENCE, Child
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

import reverie

_NUMBERS = count(1)


class Team:
    """Agents that send envelopes to a server."""

    def __init__(self, child: Child) -> None:
        self.child = child
        headers = {"Authorization": f"Bearer {child.key}"}
        self.http = httpx2.Client(base_url=child.url, headers=headers, timeout=PATIENCE, trust_env=False)

    def __call__(self, agent: str, operation: str, session: str | None = None, **payload: Any) -> dict[str, Any]:
        envelope = {
            "protocol": "akashik",
            "version": "0.1.0",
            "id": f"m-{next(_NUMBERS)}",
            "operation": operation,
            "agent_id": agent,
            "session_id": session,
            "epoch": 0,
            "payload": payload,
        }
        response = self.http.post(f"/akashik/v1/{operation.lower()}", json=envelope)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def record(self, agent: str, content: str, session: str | None = None, **fields: Any) -> str:
        sure = {"score": 0.9, "reasoning": "r"}
        unit = {"mode": "committed", "type": "finding", "content": content, "intent": {"purpose": "p"}}
        return str(self(agent, "RECORD", session, **{**unit, "confidence": sure, **fields})["memory_unit_id"])

    def subscribe(self, agent: str, *events: str, session: str | None = None, **more: Any) -> dict[str, Any]:
        wanted = {"events": list(events), **more}
        return self(agent, "SUBSCRIBE", session, action="subscribe", subscription=wanted)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path / "data")
    yield child
    child.kill()


@pytest.fixture
def team(child: Child) -> Team:
    team = Team(child)
    team("a", "REGISTER", id="a", role="r", authority_level=10)
    team("b", "REGISTER", id="b", role="r", interests=["pumps and valves"])
    return team


def received(socket: ClientConnection, wanted: int = 1) -> list[dict[str, Any]]:
    return [json.loads(socket.recv(timeout=PATIENCE)) for _ in range(wanted)]


def test_notifications_over_a_websocket(team: Team, tmp_path: Path) -> None:
    made = team.subscribe("b", "memory.recorded", "conflict.detected", "memory.superseded")
    assert made["websocket_url"].startswith("ws://127.0.0.1:")
    assert "/akashik/" in made["websocket_url"]
    early = team.record("a", "The pump runs at 40 bar.")
    with connect(made["websocket_url"], proxy=None) as socket:
        own = team.record("b", "The pump runs at 55 bar.")
        told = received(socket, 3)
        assert [(item["event"], item["memory_unit_id"]) for item in told] == [
            ("memory.recorded", early),
            ("memory.recorded", own),
            ("conflict.detected", own),
        ]
        members = "subscription_id event epoch relevance_score summary memory_unit_id conflict_id requires_action"
        assert set(members.split()) <= told[0].keys()
        assert told[0]["subscription_id"] == made["subscription"]["id"]
        assert "40 bar" in told[0]["summary"]
        assert [item["requires_action"] for item in told] == [False, False, True]
        team.record("a", "In another session.", session="elsewhere")
        team.record("a", "Only a draft.", mode="draft")
        neighbour = Child(tmp_path / "data")  # what another process commits is told too
        try:
            neighbour.key = team.child.key
            last = Team(neighbour).record("a", "A second process writes.")
        finally:
            neighbour.kill()
        assert received(socket)[0]["memory_unit_id"] == last
        team("b", "SUBSCRIBE", action="unsubscribe", subscription={"id": made["subscription"]["id"]})
        team.record("a", "Nobody is told of this.")
        assert list(socket) == []  # the server closes, and says nothing more
    invented = made["websocket_url"].partition("=")[0] + "=" + "A" * 43
    for address in (made["websocket_url"], invented):  # a ticket opens once, and no answer says what was wrong with it
        with pytest.raises(InvalidStatus) as refused:
            connect(address, proxy=None)
        assert refused.value.response.status_code == 401


def test_notifications_over_server_sent_events(team: Team) -> None:
    made = team.subscribe("b", "memory.recorded", min_relevance=0.5, debounce_ms=0)
    team.record("a", "The canteen has new chairs.")
    wanted = team.record("a", "The pump valves were replaced.")
    with httpx2.Client(timeout=PATIENCE, trust_env=False) as plain:
        with plain.stream("GET", made["sse_url"]) as stream:
            assert stream.status_code == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            data = next(line for line in lines if line.startswith("data: "))
        told = json.loads(data.removeprefix("data: "))
        assert told["memory_unit_id"] == wanted
        assert told["relevance_score"] >= 0.5
        assert plain.get(made["sse_url"]).status_code == 401
        path = made["sse_url"].partition("?")[0]
        assert plain.get(path).status_code == 401
        asked = {"agent_id": "b", "subscription_id": made["subscription"]["id"], "after_seq": "0"}
        with team.http.stream("GET", path, params=asked) as stream:
            assert stream.status_code == 200
            assert any(wanted in line for line in stream.iter_lines() if line.startswith("data: "))
        asked["subscription_id"] = "none-such"
        assert team.http.get(path, params=asked).status_code == 404


def test_a_server_with_open_streams_stops_when_told(team: Team) -> None:
    made = team.subscribe("b", "memory.recorded")
    with connect(made["websocket_url"], proxy=None):
        assert team.child.stop() == 0
    assert not [line for line in team.child.errors if "Traceback" in line]


def test_a_revoked_keys_streams_and_sockets_end_at_once(team: Team, tmp_path: Path) -> None:
    """The key is revoked by another process; the streams of another key go on."""
    with reverie.open(tmp_path / "data") as memory:
        keys = memory.host.keys
        gone, kept = keys.create("default"), keys.create("default")
        mine, theirs = Team(team.child), Team(team.child)
        mine.http.headers["Authorization"] = f"Bearer {gone.key}"
        theirs.http.headers["Authorization"] = f"Bearer {kept.key}"
        mine("m", "REGISTER", id="m", role="r")
        made = mine.subscribe("m", "memory.recorded")
        events = "/v1/host/reverie/events"
        accept = {"Accept": "text/event-stream"}
        with (
            connect(made["websocket_url"], proxy=None) as socket,
            mine.http.stream("GET", mine.subscribe("m", "memory.recorded")["sse_url"]) as notifications,
            mine.http.stream("GET", events, headers=accept) as stream,
            theirs.http.stream("GET", events, headers=accept) as other,
        ):
            keys.revoke(gone.id)
            # each of these ends only because the server ends it: nothing happens in the log, and no heartbeat is due
            assert list(socket) == []
            assert not [line for line in notifications.iter_lines() if line.startswith("data:")]
            assert "event: " in stream.read().decode()
            assert socket.protocol.close_code == 1000
            stored = theirs.http.post("/v1/host/reverie/memory/notes/entries", json={"content": "Still here."})
            assert stored.status_code == 201
            assert any(line == "event: memory.written" for line in other.iter_lines())
        assert mine.http.get(events).status_code == 401


def test_sockets_of_one_key_are_limited(tmp_path: Path) -> None:
    child = Child(tmp_path / "data", REVERIE_STREAMS_PER_KEY="2")
    try:
        team = Team(child)
        team("b", "REGISTER", id="b", role="r")
        urls = [team.subscribe("b", "memory.recorded")["websocket_url"] for _ in range(3)]
        with connect(urls[0], proxy=None), connect(urls[1], proxy=None):
            with pytest.raises(InvalidStatus) as refused:
                connect(urls[2], proxy=None)
            answer = refused.value.response
            assert answer.status_code == 429
            assert int(answer.headers["Retry-After"]) >= 1
            assert json.loads(answer.body)["code"] == "RATE_LIMITED"
    finally:
        child.kill()
