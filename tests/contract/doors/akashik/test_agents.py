"""REGISTER and DEREGISTER."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent, unit


def test_register_answers_the_agent_and_what_the_field_can_do(join: Callable[..., Agent]) -> None:
    agent = join(interests=["ships"])
    answer = agent.answer
    assert answer["status"] == "registered"
    assert answer["rejection_reason"] is None
    assert answer["epoch"] >= 1
    assert answer["agent"] == {
        "id": agent.id,
        "role": "researcher",
        "status": "idle",
        "interests": ["ships"],
        "current_task_id": None,
        "authority_level": 4,
    }
    can: dict[str, Any] = answer["field_capabilities"]
    assert can["conformance_level"] == 3
    assert len(can["supported_operations"]) == 12
    assert can["protocol_version"] == "0.1.0"
    assert len(can["conflict_strategies"]) == 7
    assert can["persistence"] is True
    assert "compact_dry_run" in can["extensions"]


def test_an_id_is_taken_once(join: Callable[..., Agent]) -> None:
    first = join()
    body = first.refused("AGENT_ID_TAKEN", "REGISTER", {"id": first.id, "role": "thief"})
    assert body["http"] == 409
    assert body["status"] == "rejected"
    assert body["rejection_reason"]
    shown = first.caller.get("/akashik/v1/agents").json()["agents"]
    assert [(agent["id"], agent["role"]) for agent in shown] == [(first.id, "researcher")]


@on_one_store
@pytest.mark.parametrize(
    "payload",
    [
        {"id": "", "role": "r"},
        {"id": 7, "role": "r"},
        {"id": "x"},
        {"id": "x", "role": ""},
        {"id": "x", "role": ["r"]},
        {"id": "x", "role": "r" * 257},
        {"id": "x", "role": "r", "interests": "ships"},
        {"id": "x", "role": "r", "interests": [7]},
        {"id": "x", "role": "r", "required_operations": "RECORD"},
        {"id": "x", "role": "r", "authority_level": "4"},
        {"id": "x", "role": "r", "authority_level": 11},
        {"id": "x", "role": "r", "authority_level": True},
        {"role": "r"},
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(server: Any, payload: dict[str, Any]) -> None:
    agent = Agent(server.caller(), "x")
    body = agent.refused("INVALID_REQUEST", "REGISTER", payload)
    assert (body["http"], body["status"], body["agent"]) == (400, "rejected", None)
    assert body["field_capabilities"]["conformance_level"] == 3
    assert agent.caller.get("/akashik/v1/agents").json()["agents"] == []


@on_one_store
@pytest.mark.parametrize("name", ["akashik.field", "akashik.", "akashik.me", "key:abc", "host:reverie", "local:me"])
def test_the_fields_own_names_are_taken(server: Any, name: str) -> None:
    agent = Agent(server.caller(), name)
    agent.refused("AGENT_ID_TAKEN", "REGISTER", {"id": name, "role": "r"})


def test_authority_is_verified_against_the_credential(server: Any, join: Callable[..., Agent]) -> None:
    for most, default in ((10, 4), (4, 4), (2, 2), (0, 0)):
        caller = server.caller(authority=most)
        assert join(caller).answer["agent"]["authority_level"] == default
        assert join(caller, authority_level=most).answer["agent"]["authority_level"] == most
        if most < 10:
            above = Agent(caller, "above")
            payload = {"id": "above", "role": "r", "authority_level": most + 1}
            body = above.refused("INSUFFICIENT_AUTHORITY", "REGISTER", payload)
            assert (body["http"], body["recoverable"]) == (403, False)


def test_nobody_else_speaks_for_an_agent(server: Any, join: Callable[..., Agent]) -> None:
    owner = join()
    other = Agent(server.caller(owner.caller.tenant), owner.id)
    for operation, payload in (
        ("RECORD", unit("x")),
        ("ATTUNE", {"scope": {"role": "r", "max_units": 1}}),
        ("DEREGISTER", {"agent_id": owner.id}),
        ("SESSION", {"action": "list"}),
        ("COMPACT", {"strategy": "archive"}),
    ):
        body = other.refused("AGENT_NOT_REGISTERED", operation, payload)
        assert (body["http"], body["recoverable"]) == (403, True)
    envelope = owner.envelope("RECORD", unit("mine"))
    made = owner.post("RECORD", envelope).json()["memory_unit_id"]
    answer = other.post("RECORD", envelope)
    assert answer.status_code == 403
    assert made not in answer.text


def test_unregistered_is_refused_before_the_payload_is_looked_at(server: Any) -> None:
    nobody = Agent(server.caller(), "nobody")
    for operation in ("RECORD", "ATTUNE", "COMPACT", "DEREGISTER", "DETECT", "MERGE", "REPLAY", "SUBSCRIBE"):
        nobody.refused("AGENT_NOT_REGISTERED", operation, {"nonsense": 1}, epoch=2**60)


def test_leaving_keeps_the_units_and_frees_the_id(server: Any, join: Callable[..., Agent]) -> None:
    agent = join()
    reader = join(agent.caller)
    made = agent.record("still here")
    draft = agent.record("half", mode="draft")
    answer = agent("DEREGISTER", {"agent_id": agent.id})
    assert (answer["status"], answer["cleanup"]["units_orphaned"]) == ("ok", 2)
    agent.refused("AGENT_NOT_REGISTERED", "RECORD", unit("x"))
    assert reader.seen() == [made]
    thief = join(server.caller(agent.caller.tenant), id=agent.id)
    assert thief.seen(scope={"include_own": True}) == [made]  # the id is free, the drafts are not
    thief.refused("INSUFFICIENT_AUTHORITY", "RECORD", unit("no", retracts=[made]))
    thief("DEREGISTER", {"agent_id": thief.id})
    again = join(agent.caller, id=agent.id)
    assert draft not in again.seen(scope={"include_own": True})  # between, it was someone else's


def test_coming_back_brings_ones_drafts_back(join: Callable[..., Agent]) -> None:
    agent = join()
    draft = agent.record("half", mode="draft")
    agent("DEREGISTER", {"agent_id": agent.id})
    again = join(agent.caller, id=agent.id)
    assert again.seen(scope={"include_own": True}) == [draft]


def test_deregister_names_the_agent_that_leaves(join: Callable[..., Agent]) -> None:
    """Left out, it is a mistake, and nobody leaves."""
    scout = join()
    for payload in ({}, {"agent_id": None}, {"agent_id": ""}):
        assert scout.refused("INVALID_REQUEST", "DEREGISTER", payload)["http"] == 400
    assert scout("DEREGISTER", {"agent_id": scout.id})["status"] == "ok"


def test_deregistering_someone_unknown_is_no_error(join: Callable[..., Agent]) -> None:
    agent = join()
    answer = agent("DEREGISTER", {"agent_id": "nobody"})
    assert answer["status"] == "not_found"
    assert answer["cleanup"] == {"units_orphaned": 0, "tasks_reassigned": 0}


def test_another_leaves_by_authority_8(server: Any, join: Callable[..., Agent]) -> None:
    agent = join()
    boss = join(agent.caller, authority_level=8)
    observer = join(agent.caller, authority_level=0)
    agent.refused("INSUFFICIENT_AUTHORITY", "DEREGISTER", {"agent_id": boss.id})
    assert boss("DEREGISTER", {"agent_id": agent.id})["status"] == "ok"
    assert observer("DEREGISTER", {"agent_id": observer.id})["status"] == "ok"


def test_an_id_is_taken_once_also_in_a_race(server: Any) -> None:
    callers = [server.caller("racing-tenant") for _ in range(8)]

    def register(caller: Any) -> int:
        return Agent(caller, "one").send("REGISTER", {"id": "one", "role": "r"}).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(register, callers))
    assert sorted(answers) == [200] + [409] * 7


def test_a_key_that_may_only_read_records_nothing(server: Any, join: Callable[..., Agent]) -> None:
    reader = join(server.caller(rights=["read"], authority=8))
    assert reader.attune()["record"] == []
    reader.refused("INSUFFICIENT_AUTHORITY", "RECORD", unit("x"))
    reader.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": "create", "task": {"title": "t"}})
    writer = server.caller(rights=["write"])
    Agent(writer, "w").refused("INSUFFICIENT_AUTHORITY", "REGISTER", {"id": "w", "role": "r"})


def test_a_subscriber_who_finds_no_free_ticket_is_asked_to_wait(
    join: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = join()
    monkeypatch.setattr("reverie.protocols.akashik.tickets._TRIES", 0)
    wish = {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
    response = agent.send("SUBSCRIBE", wish)
    assert (response.status_code, response.json()["code"]) == (429, "RATE_LIMITED")
    assert int(response.headers["Retry-After"]) == 60
