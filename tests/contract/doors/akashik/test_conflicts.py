"""DETECT and MERGE over HTTP: how a conflict opens, who wins, and that it ends once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stores import on_one_store

FAST = "The belt moves at 3 metres per second."
SLOW = "The belt moves at 5 metres per second."
WHY = {"rationale": "looked again"}


@pytest.fixture
def boss(join: Callable[..., Any]) -> Any:
    return join(authority_level=10)


@pytest.fixture
def mate(join: Callable[..., Any], boss: Any) -> Any:
    return join(boss.caller, authority_level=6)


def dispute(one: Any, other: Any, **fields: Any) -> tuple[str, str, str]:
    """Two units that contradict each other, and their conflict."""
    first = one.record("The report is ready for the board.")
    answer = other("RECORD", _unit("We disagree about the report.", first, **fields))
    (conflict,) = answer["conflicts_detected"]
    return first, answer["memory_unit_id"], conflict


def _unit(content: str, target: str, **fields: Any) -> dict[str, Any]:
    return {
        "mode": "committed",
        "type": "finding",
        "content": content,
        "intent": {"purpose": "p"},
        "confidence": {"score": 0.8, "reasoning": "r"},
        "relations": [{"type": "contradicts", "target_id": target}],
        **fields,
    }


def merge(agent: Any, conflict: str, strategy: str, **resolution: Any) -> dict[str, Any]:
    payload = {"conflict_id": conflict, "strategy": strategy, "resolution": {**WHY, **resolution}}
    answer: dict[str, Any] = agent("MERGE", payload)
    return answer


def refused(agent: Any, code: str, conflict: str, strategy: str, **resolution: Any) -> dict[str, Any]:
    payload = {"conflict_id": conflict, "strategy": strategy, "resolution": {**WHY, **resolution}}
    body: dict[str, Any] = agent.refused(code, "MERGE", payload)
    return body


def listed(agent: Any, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent("DETECT", {"mode": "list", "filter": filters})["conflicts"]
    return found


def test_a_declared_contradiction_opens_a_conflict_and_contests_both(boss: Any, mate: Any) -> None:
    first, second, key = dispute(boss, mate)
    (conflict,) = listed(boss)
    assert conflict["id"] == key
    assert {conflict["unit_a"], conflict["unit_b"]} == {first, second}
    assert (conflict["status"], conflict["detected_by"], conflict["type"]) == ("detected", "explicit", "factual")
    assert "report" not in conflict["description"]
    assert {boss.unit(first)["status"], boss.unit(second)["status"]} == {"contested"}
    assert first in mate.seen()
    assert [item["id"] for item in boss.attune()["conflicts"]] == [key]
    assert listed(boss, status=["resolved"]) == []
    assert listed(boss, status=["detected"], types=["factual"], involving_agents=[mate.id])
    assert listed(boss, involving_agents=["somebody-else"]) == []


def test_contradicting_statements_are_found_when_they_are_recorded(boss: Any, mate: Any) -> None:
    first = boss.record(FAST)
    answer = mate("RECORD", {**_unit(SLOW, first), "relations": []})
    assert len(answer["conflicts_detected"]) == 1
    (conflict,) = listed(boss)
    assert conflict["detected_by"] == "logical"
    again = boss("DETECT", {"mode": "scan"})
    assert again["scan_coverage"]["new_conflicts_found"] == 0
    assert again["scan_coverage"]["units_scanned"] == 2
    assert [item["id"] for item in again["conflicts"]] == [conflict["id"]]
    checked = boss("DETECT", {"mode": "check", "target_id": first})
    assert [item["id"] for item in checked["conflicts"]] == [conflict["id"]]


def test_agreeing_and_unrelated_units_are_left_alone(boss: Any, mate: Any) -> None:
    boss.record(FAST)
    mate.record(FAST)
    mate.record("The canteen serves soup on Fridays.")
    mate.inside("elsewhere").record(SLOW)
    assert listed(boss) == []
    assert boss("DETECT", {"mode": "scan"})["scan_coverage"]["new_conflicts_found"] == 0


def test_a_long_unit_is_recorded_and_summarised_like_any_other(boss: Any, mate: Any) -> None:
    boss.record(FAST)
    chatter = "".join(f"The keeper of lighthouse {chr(97 + n % 26)} waved again. " for n in range(1000))
    assert len(mate("RECORD", {**_unit(f"{SLOW} {chatter}", ""), "relations": []})["conflicts_detected"]) == 1
    long = mate.record(chatter)
    assert boss("COMPACT", {"strategy": "summarize"})["units_affected"] == 1
    assert boss.unit(long)["archived"] is True


def test_archived_units_are_not_looked_at(boss: Any, mate: Any) -> None:
    boss.record(FAST)
    boss("COMPACT", {"strategy": "archive"})
    mate.record(SLOW)
    assert listed(boss) == []


@on_one_store
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({}, "INVALID_REQUEST"),
        ({"mode": "guess"}, "INVALID_REQUEST"),
        ({"mode": "check"}, "INVALID_REQUEST"),
        ({"mode": "check", "target_id": "none-such"}, "UNIT_NOT_FOUND"),
        ({"mode": "list", "filter": {"status": ["open"]}}, "INVALID_FILTER"),
        ({"mode": "list", "filter": {"colour": []}}, "INVALID_FILTER"),
        ({"mode": "list", "filter": []}, "INVALID_FILTER"),
    ],
)
def test_what_detect_refuses(boss: Any, payload: dict[str, Any], code: str) -> None:
    boss.refused(code, "DETECT", payload)


@pytest.mark.parametrize("strategy", ["last_write_wins", "confidence_weighted", "evidence_count", "authority"])
def test_one_unit_wins(boss: Any, mate: Any, strategy: str) -> None:
    sure = {"score": 0.95, "reasoning": "r", "evidence": ["a", "b"]}
    first, second, key = dispute(boss, mate, confidence=sure)
    winner = {"winner_id": second} if strategy == "authority" else {}
    answer = merge(boss, key, strategy, **winner)
    assert answer["status"] == "resolved"
    assert answer["conflict"]["resolution"] == {
        "strategy": strategy,
        "winner_id": second,
        "rationale": "looked again",
        "resolved_by": boss.id,
        "epoch_resolved": answer["epoch"],
    }
    assert answer["side_effects"]["superseded_units"] == [first]
    assert answer["side_effects"]["new_unit_id"] is None
    assert sorted(answer["side_effects"]["notified_agents"]) == sorted([boss.id, mate.id])
    assert boss.unit(first)["status"] == "superseded"
    assert boss.unit(second)["status"] == "active"
    assert boss.attune()["conflicts"] == []
    assert refused(boss, "INVALID_TRANSITION", key, strategy, **winner)["http"] == 409


def test_supports_count_as_evidence(boss: Any, mate: Any) -> None:
    first, _, key = dispute(boss, mate)
    refused(boss, "MERGE_FAILED", key, "evidence_count")
    mate.record("The board said so.", relations=[{"type": "supports", "target_id": first}])
    assert merge(boss, key, "evidence_count")["conflict"]["resolution"]["winner_id"] == first


def test_a_tie_or_another_winner_than_computed_changes_nothing(boss: Any, mate: Any) -> None:
    first, second, key = dispute(boss, mate)
    assert refused(boss, "MERGE_FAILED", key, "confidence_weighted")["http"] == 409
    refused(boss, "MERGE_FAILED", key, "last_write_wins", winner_id=first)
    assert listed(boss)[0]["status"] == "detected"
    assert merge(boss, key, "last_write_wins", winner_id=second)["status"] == "resolved"


def test_authority_must_not_be_below_that_of_the_authors(boss: Any, mate: Any) -> None:
    first, _, key = dispute(boss, mate)
    assert refused(mate, "INSUFFICIENT_AUTHORITY", key, "authority", winner_id=first)["http"] == 403
    merge(boss, key, "authority", winner_id=first)


@pytest.mark.parametrize("strategy", ["last_write_wins", "confidence_weighted", "evidence_count", "authority", "vote"])
@pytest.mark.parametrize("gone", ["retracted", "superseded"])
def test_a_unit_that_was_withdrawn_wins_no_conflict(boss: Any, mate: Any, strategy: str, gone: str) -> None:
    sure = {"score": 0.95, "reasoning": "r", "evidence": ["a", "b"]}
    live, withdrawn, key = dispute(boss, mate, confidence=sure)
    taken = {"retracts": [withdrawn]}
    replaced = {"relations": [{"type": "supersedes", "target_id": withdrawn}]}
    mate.record("We withdraw the objection.", **(taken if gone == "retracted" else replaced))
    named = strategy in ("authority", "vote")
    refused(boss, "MERGE_FAILED", key, strategy, winner_id=withdrawn)
    assert (boss.unit(live)["status"], boss.unit(withdrawn)["status"]) == ("contested", gone)
    answer = merge(boss, key, strategy, **({"winner_id": live} if named else {}))
    if strategy == "vote":
        assert answer["status"] == "pending_vote"
        return
    assert answer["conflict"]["resolution"]["winner_id"] == live
    assert (boss.unit(live)["status"], boss.unit(withdrawn)["status"]) == ("active", gone)


def test_votes_for_a_unit_that_is_withdrawn_afterwards_count_no_more(
    boss: Any, mate: Any, join: Callable[..., Any]
) -> None:
    live, withdrawn, key = dispute(boss, mate)
    voters = [join(boss.caller, authority_level=6) for _ in range(2)]
    assert [merge(one, key, "vote", winner_id=withdrawn)["status"] for one in voters] == ["pending_vote"] * 2
    mate.record("We withdraw the objection.", retracts=[withdrawn])
    assert merge(boss, key, "vote", winner_id=live)["status"] == "pending_vote"
    assert merge(voters[0], key, "vote", winner_id=live)["status"] == "pending_vote"
    answer = merge(voters[1], key, "vote", winner_id=live)
    assert (answer["status"], answer["conflict"]["resolution"]["winner_id"]) == ("resolved", live)
    assert boss.unit(live)["status"] == "active"


def test_a_conflict_of_two_withdrawn_units_can_be_ended(boss: Any, mate: Any) -> None:
    first, second, key = dispute(boss, mate)
    mate.record("We withdraw the objection.", retracts=[second])
    boss.record("There is no report.", retracts=[first])
    assert merge(boss, key, "last_write_wins")["status"] == "resolved"
    assert {boss.unit(first)["status"], boss.unit(second)["status"]} == {"retracted"}


def test_synthesis_takes_the_place_of_both(boss: Any, mate: Any) -> None:
    first, second, key = dispute(boss, mate)
    refused(boss, "INVALID_REQUEST", key, "synthesis")
    answer = merge(boss, key, "synthesis", synthesis="The report is ready but for one page.")
    made = boss.unit(answer["side_effects"]["new_unit_id"])
    assert made["type"] == "synthesis"
    assert made["source"]["agent_id"] == "akashik.field"
    assert {(r["type"], r["target_id"]) for r in made["relations"]} == {("elaborates", first), ("elaborates", second)}
    assert made["intent"]["purpose"]
    assert made["confidence"]["reasoning"]
    assert sorted(answer["side_effects"]["superseded_units"]) == sorted([first, second])
    assert mate.seen() == [made["id"]]


def test_forgetting_a_subject_reaches_the_synthesis_that_ended_its_conflict(boss: Any, mate: Any) -> None:
    first = boss.record("Odalys has gate 9.", subject="odalys")
    against = {"relations": [{"type": "contradicts", "target_id": first}], "tags": ["subject:Kim", "badges"]}
    (key,) = mate("RECORD", _unit("Kim has gate 9.", first, **against))["conflicts_detected"]
    merge(boss, key, "synthesis", synthesis="Odalys and Kim share gate 9.")
    (made,) = [item["memory_unit"] for item in mate.attune()["record"] if item["memory_unit"]["type"] == "synthesis"]
    assert made["tags"] == ["subject:Kim", "subject:odalys"]
    assert boss.caller.post("/v1/host/reverie/memory/forget", {"subject": "odalys"}).status_code == 200
    assert "Odalys" not in str(mate.attune(scope={"include_own": True}))
    assert boss.caller.get(f"/akashik/v1/units/{made['id']}").status_code == 410


def test_escalation_leaves_both_and_only_a_human_ends_it(boss: Any, mate: Any) -> None:
    first, second, key = dispute(boss, mate)
    answer = merge(mate, key, "human_escalation")
    assert answer["status"] == "escalated"
    assert answer["conflict"]["status"] == "escalated"
    assert {boss.unit(first)["status"], boss.unit(second)["status"]} == {"contested"}
    assert [item["status"] for item in boss.attune()["conflicts"]] == ["escalated"]
    refused(mate, "INVALID_TRANSITION", key, "last_write_wins")
    refused(boss, "INVALID_TRANSITION", key, "human_escalation")
    assert merge(boss, key, "authority", winner_id=first)["status"] == "resolved"


def test_votes_need_a_quorum_and_a_majority(boss: Any, mate: Any, join: Callable[..., Any]) -> None:
    first, second, key = dispute(boss, mate)
    others = [join(boss.caller, authority_level=6) for _ in range(3)]
    assert merge(boss, key, "vote", winner_id=first)["status"] == "pending_vote"
    assert listed(boss)[0]["status"] == "resolving"
    assert merge(mate, key, "vote", winner_id=second)["status"] == "pending_vote"
    assert merge(mate, key, "vote", winner_id=first)["status"] == "pending_vote"
    assert merge(mate, key, "vote", winner_id=second)["status"] == "pending_vote"
    refused(mate, "INVALID_REQUEST", key, "vote", winner_id="somebody")
    answer = merge(others[0], key, "vote", winner_id=second)
    assert answer["status"] == "resolved"
    assert answer["conflict"]["resolution"]["winner_id"] == second


def test_a_session_sets_its_own_quorum(boss: Any, mate: Any) -> None:
    policy = {"membership": "open", "vote_quorum": 2}
    boss("SESSION", {"action": "create", "session": {"id": "s", "goal": "g", "policy": policy}})
    mate("SESSION", {"action": "join", "session": {"id": "s"}})
    first, _, key = dispute(boss.inside("s"), mate.inside("s"))
    assert merge(boss.inside("s"), key, "vote", winner_id=first)["status"] == "pending_vote"
    assert merge(mate.inside("s"), key, "vote", winner_id=first)["status"] == "resolved"


@on_one_store
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"strategy": "coin"}, "INVALID_REQUEST"),
        ({"strategy": None}, "INVALID_REQUEST"),
        ({"resolution": None}, "INVALID_REQUEST"),
        ({"resolution": {"rationale": "  "}}, "INVALID_REQUEST"),
        ({"resolution": {"rationale": 7}}, "INVALID_REQUEST"),
        ({"resolution": {"rationale": "r", "winner_id": 7}}, "INVALID_REQUEST"),
        ({"conflict_id": "none-such"}, "CONFLICT_NOT_FOUND"),
        ({"conflict_id": None}, "INVALID_REQUEST"),
    ],
)
def test_what_merge_refuses(boss: Any, mate: Any, change: dict[str, Any], code: str) -> None:
    _, _, key = dispute(boss, mate)
    payload = {"conflict_id": key, "strategy": "last_write_wins", "resolution": WHY, **change}
    boss.refused(code, "MERGE", payload)
    assert listed(boss)[0]["status"] == "detected"


def test_merge_needs_authority_6(join: Callable[..., Any], boss: Any, mate: Any) -> None:
    _, _, key = dispute(boss, mate)
    refused(join(boss.caller, authority_level=4), "INSUFFICIENT_AUTHORITY", key, "last_write_wins")


def test_of_many_merges_at_once_exactly_one_succeeds(boss: Any, mate: Any) -> None:
    _, _, key = dispute(boss, mate)
    payload = {"conflict_id": key, "strategy": "last_write_wins", "resolution": WHY}
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: boss.send("MERGE", payload).status_code, range(8)))
    assert sorted(codes) == [200] + [409] * 7


def test_a_unit_of_two_conflicts_stays_contested_until_both_end(boss: Any, mate: Any) -> None:
    first, _, key = dispute(boss, mate)
    other = mate("RECORD", _unit("Quite another objection.", first))["conflicts_detected"][0]
    merge(boss, key, "authority", winner_id=first)
    assert boss.unit(first)["status"] == "contested"
    merge(boss, other, "authority", winner_id=first)
    assert boss.unit(first)["status"] == "active"


def test_conflicts_of_a_closed_session_are_nobody_elses_business(join: Callable[..., Any], boss: Any) -> None:
    owner = join(boss.caller, authority_level=8)
    owner("SESSION", {"action": "create", "session": {"id": "closed", "goal": "g"}})
    _, _, key = dispute(owner.inside("closed"), owner.inside("closed"))
    outsider = join(boss.caller, authority_level=6)
    assert listed(outsider) == []
    assert outsider.attune()["conflicts"] == []
    refused(outsider, "CONFLICT_NOT_FOUND", key, "last_write_wins")
    outsider.refused("CONFLICT_NOT_FOUND", "REPLAY", {"target_type": "conflict", "target_id": key})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["last_write_wins", "human_escalation", "vote", "authority", "synthesis", "confidence_weighted"]
        ),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@on_one_store
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_is_tried_the_life_of_a_conflict_is_the_protocols(
    join: Callable[..., Any], boss: Any, mate: Any, steps: list[tuple[str, bool, bool]]
) -> None:
    """A model of the lifecycle beside the Field: they agree after every step."""
    first, second, key = dispute(boss, mate)
    status, ballots = "detected", {}
    for strategy, human, choose_first in steps:
        agent = boss if human else mate
        winner = first if choose_first else second
        resolution: dict[str, Any] = {"rationale": "r"}
        if strategy in ("vote", "authority"):
            resolution["winner_id"] = winner
        if strategy == "synthesis":
            resolution["synthesis"] = "both in one"
        response = agent.send("MERGE", {"conflict_id": key, "strategy": strategy, "resolution": resolution})
        expected = status
        if status == "resolved" or (status == "escalated" and (not human or strategy in ("human_escalation", "vote"))):
            assert response.json()["code"] == "INVALID_TRANSITION"
        elif strategy == "confidence_weighted":
            assert response.json()["code"] == "MERGE_FAILED"
        elif strategy == "authority" and not human:
            assert response.json()["code"] == "INSUFFICIENT_AUTHORITY"
        elif strategy == "human_escalation":
            expected = "escalated"
        elif strategy == "vote":
            ballots[agent.id] = winner
            expected = "resolving"
        else:
            expected = "resolved"
        (now,) = [item for item in listed(boss) if item["id"] == key]
        assert now["status"] == expected
        assert ("resolution" in now) == (expected == "resolved")
        states = {boss.unit(first)["status"], boss.unit(second)["status"]}
        if expected == "resolved":
            assert "superseded" in states
            assert "contested" not in states
        else:
            assert states == {"contested"}
        status = expected
