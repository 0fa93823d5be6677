"""A Field of a lower level refuses what that level lacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.errors import Invalid
from reverie.settings import Settings

from .conftest import Agent, unit

LEVELS = {
    0: ["REGISTER", "RECORD", "ATTUNE"],
    1: ["DEREGISTER", "DETECT"],
    2: ["MERGE", "SUBSCRIBE", "REPLAY", "COMPACT", "HANDOFF"],
    3: ["COORDINATE", "SESSION"],
}


@pytest.fixture(scope="module", params=[0, 1, 2])
def lower(request: Any, lasting_server: Callable[..., Any]) -> tuple[int, Any]:
    return request.param, lasting_server(akashik_level=request.param)


def test_what_a_level_lacks_is_unsupported(lower: tuple[int, Any], join: Callable[..., Agent]) -> None:
    level, server = lower
    agent = join(server.caller())
    can = agent.answer["field_capabilities"]
    assert can["conformance_level"] == level
    has = [name for least, names in LEVELS.items() if least <= level for name in names]
    assert sorted(can["supported_operations"]) == sorted(has)
    assert len(can["conflict_strategies"]) == (3 if level == 2 else 0)
    for least, names in LEVELS.items():
        for name in names:
            if least > level:
                body = agent.refused("UNSUPPORTED_OPERATION", name, {})
                assert (body["http"], body["recoverable"]) == (501, False)
    nobody = Agent(agent.caller, "never-registered")
    nobody.refused("UNSUPPORTED_OPERATION", "SESSION", {"action": "list"})
    assert server.stranger().post("/akashik/v1/session", {}).status_code == 401


def test_required_operations_are_promised_or_refused(lower: tuple[int, Any], join: Callable[..., Agent]) -> None:
    level, server = lower
    agent = Agent(server.caller(), "picky")
    wanted = [name for names in LEVELS.values() for name in names] + ["FLY"]
    missing = [name for least, names in LEVELS.items() if least > level for name in names] + ["FLY"]
    body = agent.refused(
        "UNSUPPORTED_OPERATION", "REGISTER", {"id": "picky", "role": "r", "required_operations": wanted}
    )
    assert body["status"] == "rejected"
    named = re.findall("[A-Z]{3,}", body["rejection_reason"])
    assert sorted(named) == sorted(missing)
    assert body["field_capabilities"]["conformance_level"] == level
    assert agent.caller.get("/akashik/v1/agents").json()["agents"] == []
    fine = [name for name in wanted if name not in missing]
    assert agent("REGISTER", {"id": "picky", "role": "r", "required_operations": fine})["status"] == "registered"


def test_confidence_is_asked_from_level_1_on(lower: tuple[int, Any], join: Callable[..., Agent]) -> None:
    level, server = lower
    agent = join(server.caller())
    payload = unit("x", confidence=None)
    if level == 0:
        assert agent("RECORD", payload)["status"] == "accepted"
    else:
        agent.refused("MISSING_CONFIDENCE", "RECORD", payload)


def test_sessions_and_authority_bind_from_level_3_on(lower: tuple[int, Any], join: Callable[..., Agent]) -> None:
    _, server = lower
    agent = join(server.caller())
    low = join(agent.caller, authority_level=0)
    made = agent.inside("a").record("in a")
    assert low.inside("b").seen() == [made]
    assert low.record("by an observer")


def test_a_level_is_0_to_3() -> None:
    with pytest.raises(Invalid):
        Settings.load({}, akashik_level=4)
    with pytest.raises(Invalid):
        Settings.load({}, akashik_ref="../etc")


def test_a_field_is_the_memory_it_is_told(make_server: Callable[..., Any], join: Callable[..., Agent]) -> None:
    server = make_server(akashik_ref="team/field")
    agent = join(server.caller())
    made = agent.record("somewhere else")
    shown = agent.caller.get(f"memory/team%2Ffield/entries/{made}")
    assert shown.json()["content"] == "somewhere else"
