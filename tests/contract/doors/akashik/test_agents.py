"""REGISTER and DEREGISTER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .conftest import Agent


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
    assert can["persistence"] == "durable"
    assert "compact_dry_run" in can["extensions"]


def test_an_id_is_taken_once(join: Callable[..., Agent]) -> None:
    first = join()
    body = first.refused("AGENT_ID_TAKEN", "REGISTER", {"id": first.id, "role": "thief"})
    assert body["http"] == 409
    assert body["status"] == "rejected"
    assert body["rejection_reason"]
    shown = first.caller.get("/akashik/v1/agents").json()["agents"]
    assert [(agent["id"], agent["role"]) for agent in shown] == [(first.id, "researcher")]
