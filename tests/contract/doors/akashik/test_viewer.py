"""GET routes have no envelope: `agent_id` says who looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .conftest import Agent


def _closed_session(join: Callable[..., Agent], server: Any) -> tuple[Agent, Agent, Agent, str]:
    caller = server.caller()
    maker = join(caller, authority_level=6)
    outsider = join(caller)
    human = join(caller, authority_level=10)
    maker("SESSION", {"action": "create", "session": {"id": "closed", "policy": {"membership": "invite"}}})
    unit_id = maker.inside("closed").record("only for members")
    return maker, outsider, human, unit_id


def _events(agent: Agent) -> list[dict[str, Any]]:
    answer = agent.caller.get(f"/akashik/v1/field/log?limit=10000&agent_id={agent.id}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


def test_the_log_shows_an_agent_its_sessions_and_authority_10_every_row(
    join: Callable[..., Agent], server: Any
) -> None:
    maker, outsider, human, unit_id = _closed_session(join, server)
    assert unit_id in [event["memory_unit_id"] for event in _events(maker)]
    assert unit_id not in [event["memory_unit_id"] for event in _events(outsider)]
    everything = _events(human)
    assert [event["seq"] for event in everything] == list(range(1, len(everything) + 1))
    assert {event["agent_id"] for event in everything} >= {maker.id, outsider.id, human.id}


def test_a_unit_is_found_by_members_only(join: Callable[..., Agent], server: Any) -> None:
    maker, outsider, human, unit_id = _closed_session(join, server)
    statuses = [
        agent.caller.get(f"/akashik/v1/units/{unit_id}?agent_id={agent.id}").status_code
        for agent in (maker, outsider, human)
    ]
    assert statuses == [200, 404, 200]


def test_nobody_looks_through_an_agent_of_another_credential(join: Callable[..., Agent], server: Any) -> None:
    maker, _, _, unit_id = _closed_session(join, server)
    other = server.caller(maker.caller.tenant)
    for path in (f"units/{unit_id}", "field/log", "conflicts"):
        answer = other.get(f"/akashik/v1/{path}?agent_id={maker.id}")
        assert (answer.status_code, answer.json()["code"]) == (403, "AGENT_NOT_REGISTERED")
