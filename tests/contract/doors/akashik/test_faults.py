"""The fault seam, and what RECORD does when a part fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.errors import Invalid
from reverie.settings import Settings

from .conftest import Agent, unit


@pytest.fixture(scope="module")
def seamed(lasting_server: Callable[..., Any]) -> Any:
    return lasting_server(akashik_faults=True)


def fault(agent: Agent, kind: str, *, on: bool) -> None:
    response = agent.caller.post("/akashik/v1/test/faults", {"kind": kind, "on": on})
    assert response.status_code == 200, response.text


def test_production_refuses_the_seam() -> None:
    with pytest.raises(Invalid):
        Settings.load({}, production=True, akashik_faults=True)


def test_the_seam_wants_a_key_and_sense(seamed: Any, join: Callable[..., Agent]) -> None:
    assert seamed.stranger().post("/akashik/v1/test/faults", {"kind": "enrichment", "on": True}).status_code == 401
    caller = join(seamed.caller()).caller
    for body in ({}, [], {"kind": "earthquake", "on": True}, {"kind": "enrichment", "on": 1}):
        assert caller.post("/akashik/v1/test/faults", body).json()["code"] == "INVALID_REQUEST"


def test_a_unit_whose_embedding_failed_is_kept_and_enriched_later(seamed: Any, join: Callable[..., Agent]) -> None:
    agent = join(seamed.caller())
    reader = join(agent.caller)
    fault(agent, "enrichment", on=True)
    answer = agent("RECORD", unit("The crane is out of order."))
    assert (answer["status"], answer["warnings"]) == ("accepted", ["ENRICHMENT_FAILED"])
    assert agent.unit(answer["memory_unit_id"])["status"] == "pending_enrichment"
    assert reader.seen(context_hint="crane") == [answer["memory_unit_id"]]
    fault(agent, "enrichment", on=False)
    assert agent.unit(answer["memory_unit_id"])["status"] == "active"
    assert "warnings" not in agent("RECORD", unit("The crane works again."))


def test_detection_that_times_out_is_put_off(seamed: Any, join: Callable[..., Agent]) -> None:
    agent = join(seamed.caller())
    fault(agent, "detection_timeout", on=True)
    answer = agent("RECORD", unit("The tank holds 40 litres."))
    assert (answer["conflicts_detected"], answer["conflict_detection"]) == ([], "deferred")


def test_a_full_store_takes_nothing(seamed: Any, join: Callable[..., Agent]) -> None:
    agent, neighbour = join(seamed.caller()), join(seamed.caller())
    fault(agent, "storage_full", on=True)
    body = agent.refused("STORAGE_FULL", "RECORD", unit("x"))
    assert (body["http"], body["recoverable"]) == (507, False)
    assert neighbour.record("x")  # faults are of one tenant
    fault(agent, "storage_full", on=False)
    assert agent.record("x")
