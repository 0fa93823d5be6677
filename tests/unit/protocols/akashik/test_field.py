"""The Field from Python: the protocol's operations as methods, its errors as exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest

import reverie
from reverie.akashik import Agent, AkashikError, Field

SURE = {"score": 0.9, "reasoning": "measured twice"}


def test_a_team_shares_a_field(tmp_path: Path) -> None:
    with Field(tmp_path) as field:
        scout = field.register(id="scout", role="researcher", interests=["pumps"], authority_level=10)
        pilot = field.register(id="pilot", role="planner")
        assert scout.registration.field_capabilities.conformance_level == 3
        told = pilot.subscribe(["memory.recorded", "conflict.detected"])
        first = scout.record("The pump runs at 40 bar.", intent="size the pipe", confidence=SURE)
        second = pilot.record("The pump runs at 55 bar.", intent={"purpose": "size the pipe"}, confidence=SURE)
        (conflict,) = second.conflicts_detected
        assert [item.event for item in told.poll()] == ["memory.recorded", "memory.recorded", "conflict.detected"]
        assert told.poll() == []
        assert [item["memory_unit"]["id"] for item in pilot.attune(max_units=5).record] == [first.memory_unit_id]
        assert [item["id"] for item in field.conflicts()] == [conflict]
        merged = scout.merge(conflict, "last_write_wins", rationale="the gauge was replaced")
        assert merged.conflict.resolution.winner_id == second.memory_unit_id
        trace = pilot.replay(first.memory_unit_id, depth="full_trace")
        assert trace.total_events == len(trace.timeline) > 3
        assert scout.compact("archive", status=["superseded"]).units_affected == 1
        assert field.unit(first.memory_unit_id).archived is True
        told.unsubscribe()
        scout.record("The valve is blue.", intent="paint", confidence=SURE)
        assert told.poll() == []
        assert pilot.deregister().status == "ok"
        assert [agent["id"] for agent in field.agents()] == ["scout"]
        assert field.log(limit=1).head_seq == field.status().log.events
    with reverie.open(tmp_path) as memory:  # the same memory, through another door
        (found,) = [name for name, _ in memory.refs()]
        assert memory.ref(found).search("What colour is the valve?").hits[0].entry.content == "The valve is blue."
        assert memory.verify().ok


def test_refusals_are_exceptions_with_the_protocols_code() -> None:
    with Field() as field:
        agent = field.register(id="a", role="r")
        with pytest.raises(AkashikError) as missing:
            agent.record("Something", confidence=SURE)
        assert missing.value.code == "MISSING_INTENT"
        assert missing.value.recoverable
        assert missing.value.operation == "RECORD"
        with pytest.raises(AkashikError) as taken:
            field.register(id="a", role="r")
        assert taken.value.code == "AGENT_ID_TAKEN"
        with pytest.raises(AkashikError) as weak:
            agent.compact("purge")
        assert weak.value.code == "INSUFFICIENT_AUTHORITY"
        with pytest.raises(AkashikError) as nobody:
            Agent(field, "ghost", "r").attune()
        assert nobody.value.code == "AGENT_NOT_REGISTERED"


def test_a_field_of_a_lower_level_refuses_what_it_lacks() -> None:
    with Field(level=1) as field:
        agent = field.register(id="a", role="r")
        assert "COMPACT" not in agent.registration["field_capabilities"]["supported_operations"]
        with pytest.raises(AkashikError) as lacking:
            agent.compact("archive")
        assert lacking.value.code == "UNSUPPORTED_OPERATION"
        with pytest.raises(AkashikError) as scan:
            agent.detect("scan")
        assert scan.value.code == "UNSUPPORTED_OPERATION"
        assert agent.detect("list").conflicts == []


def test_epochs_are_carried_from_answer_to_question() -> None:
    with Field() as field:
        one, other = field.register(id="a", role="r"), field.register(id="b", role="r")
        one.epoch = 1000
        assert one.record("x is here", intent="p", confidence=SURE).epoch == 1001
        assert other.within("s").record("y is there", intent="p", confidence=SURE).epoch == 1002


@pytest.mark.parametrize(
    "odd", [{"x"}, object(), b"x", "\ud800", float("nan"), "a\x00b"], ids=lambda one: type(one).__name__
)
def test_what_json_cannot_hold_is_refused_with_a_code(odd: object) -> None:
    with Field() as field:
        agent = field.register(id="a", role="r")
        with pytest.raises(AkashikError) as refused:
            agent.record("The pump runs.", intent="p", confidence=SURE, extra=odd)
        assert refused.value.code == "INVALID_ENVELOPE"
        assert refused.value.operation == "RECORD"
        assert agent.attune(include_own=True).record == []


def test_tuples_are_lists() -> None:
    with Field() as field:
        agent = field.register(id="a", role="r", interests=("pumps",))
        made = agent.record("The pump runs.", intent="p", confidence=SURE, tags=("pump", "run"))
        assert field.unit(made.memory_unit_id).tags == ["pump", "run"]
        assert len(agent.attune(include_own=True, interests=("pumps",)).record) == 1


def test_a_package_shows_an_agent_no_more_than_its_credential_allows(tmp_path: Path) -> None:
    policy = {"min_authority": {"constraint": 9}}
    with Field(tmp_path) as field:
        lead = field.register(id="lead", role="r", authority_level=10)
        mate = field.register(id="mate", role="r", authority_level=10)
        lead.session("create", id="s", members=["mate"], policy=policy)
        intent = {"purpose": "p", "task_id": "t"}
        lead.within("s").record("At most 40 bar.", type="constraint", intent=intent, confidence=SURE)
        made = lead.within("s").handoff(task_id="t", to_agent="mate").handoff
        assert len(mate.within("s").handoff("get", handoff_id=made.id).handoff.package.units) == 1
    with Field(tmp_path, authority=4) as field:
        mate = Agent(field, "mate", "r", session="s")
        assert mate.attune().record == []
        assert mate.handoff("get", handoff_id=made.id).handoff.package.units == []
