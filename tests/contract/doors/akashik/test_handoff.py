"""HANDOFF: a task and what it needs to know, to another agent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent
from .test_tasks import act, make, status


def offer(agent: Agent, to: Agent, task: str = "t-1", **payload: Any) -> dict[str, Any]:
    answer = agent("HANDOFF", {"action": "initiate", "task_id": task, "to_agent": to.id, **payload})
    assert answer["status"] == "initiated"
    handoff: dict[str, Any] = answer["handoff"]
    return handoff


def test_the_package_has_the_tasks_units_and_those_named(join: Callable[..., Agent]) -> None:
    giver = join()
    taker = join(giver.caller)
    mine = giver.record("The rope is wet.", intent={"purpose": "p", "task_id": "t-1"})
    named = giver.record("The captain is ill.")
    other = giver.record("Lunch was good.", intent={"purpose": "p", "task_id": "t-2"})
    context = {"summary": "Half is loaded.", "unit_ids": [named], "open_questions": ["Who steers?"]}
    handoff = offer(giver, taker, reason="end of shift", context=context)
    assert (handoff["from_agent"], handoff["to_agent"]) == (giver.id, taker.id)
    assert (handoff["status"], handoff["task_id"]) == ("pending", "t-1")
    package = handoff["package"]
    assert set(package) == {
        "summary",
        "task",
        "units",
        "unresolved_conflicts",
        "open_questions",
        "token_count",
        "generated_epoch",
    }
    assert {item["id"] for item in package["units"]} == {mine, named}
    assert other not in str(package)
    assert (package["summary"], package["open_questions"]) == ("Half is loaded.", ["Who steers?"])
    assert package["generated_epoch"] == giver.epoch
    assert package["token_count"] > 10
    answer = taker("HANDOFF", {"action": "accept", "handoff_id": handoff["id"]})
    assert (answer["status"], answer["handoff"]["status"]) == ("accepted", "accepted")
    assert {item["id"] for item in answer["handoff"]["package"]["units"]} == {mine, named}


def test_a_package_keeps_its_budget(join: Callable[..., Agent]) -> None:
    giver = join()
    taker = join(giver.caller)
    for number in range(8):
        giver.record(
            f"Crate {number} holds apples, pears and plums from the valley.", intent={"purpose": "p", "task_id": "t"}
        )
    for most in (5, 20, 60):
        context = {"max_tokens": most, "summary": "Apples and pears and plums, in crates, to be loaded."}
        package = offer(giver, taker, "t", context=context)["package"]
        assert package["token_count"] <= most
    assert package["units"]


@on_one_store
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"action": "throw"},
        {"action": "initiate"},
        {"action": "initiate", "task_id": "t"},
        {"action": "initiate", "task_id": "", "to_agent": "x"},
        {"action": "initiate", "task_id": "t", "to_agent": "x", "context": []},
        {"action": "initiate", "task_id": "t", "to_agent": "x", "context": {"max_tokens": 0}},
        {"action": "initiate", "task_id": "t", "to_agent": "x", "context": {"unit_ids": "u"}},
        {"action": "initiate", "task_id": "t", "to_agent": "x", "reason": 7},
        {"action": "accept"},
    ],
)
def test_a_payload_that_makes_no_sense_is_refused(join: Callable[..., Agent], payload: dict[str, Any]) -> None:
    join().refused("INVALID_REQUEST", "HANDOFF", payload)


def test_refusals(join: Callable[..., Agent]) -> None:
    giver = join()
    taker, third = join(giver.caller), join(giver.caller)
    start = {"action": "initiate", "task_id": "t"}
    giver.refused("AGENT_NOT_REGISTERED", "HANDOFF", start | {"to_agent": "nobody"})
    wrong = {"to_agent": taker.id, "context": {"unit_ids": ["none"]}}
    giver.refused("UNIT_NOT_FOUND", "HANDOFF", start | wrong)
    handoff = offer(giver, taker)
    for action in ("accept", "reject"):
        for agent in (giver, third):
            agent.refused("INSUFFICIENT_AUTHORITY", "HANDOFF", {"action": action, "handoff_id": handoff["id"]})
    third.refused("NOT_FOUND", "HANDOFF", {"action": "get", "handoff_id": handoff["id"]})
    giver.refused("NOT_FOUND", "HANDOFF", {"action": "get", "handoff_id": "none"})
    observer = join(giver.caller, authority_level=2)
    observer.refused("INSUFFICIENT_AUTHORITY", "HANDOFF", start | {"to_agent": taker.id})


def test_an_answer_is_given_once(join: Callable[..., Agent]) -> None:
    giver = join()
    taker = join(giver.caller)
    handoff = offer(giver, taker)

    def accept(_: int) -> int:
        return taker.send("HANDOFF", {"action": "accept", "handoff_id": handoff["id"]}).status_code

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(accept, range(6)))
    assert sorted(answers) == [200] + [409] * 5
    taker.refused("INVALID_TRANSITION", "HANDOFF", {"action": "reject", "handoff_id": handoff["id"]})
    listed = giver("HANDOFF", {"action": "list"})["handoffs"]
    assert [(item["id"], item["status"]) for item in listed] == [(handoff["id"], "accepted")]


def test_accepting_moves_the_task_and_rejecting_gives_it_back(join: Callable[..., Agent]) -> None:
    giver = join()
    taker = join(giver.caller)
    task = make(giver)
    act(giver, "claim", task)
    act(giver, "start", task)
    first = offer(giver, taker, task)
    answer = taker("HANDOFF", {"action": "reject", "handoff_id": first["id"]})
    assert (answer["status"], answer["handoff"]["status"]) == ("ok", "rejected")
    assert act(giver, "get", task)["assignee"] == giver.id
    second = offer(giver, taker, task)
    assert second["package"]["task"]["state"] == "in_progress"
    taker("HANDOFF", {"action": "accept", "handoff_id": second["id"]})
    moved = act(giver, "get", task)
    assert (moved["assignee"], moved["state"]) == (taker.id, "in_progress")
    assert status(giver) == ("idle", None)
    assert status(taker) == ("working", task)
    act(taker, "complete", task)
    giver.refused("INVALID_TRANSITION", "HANDOFF", {"action": "initiate", "task_id": task, "to_agent": taker.id})


def test_a_package_shows_what_its_reader_may_see_and_what_is_still_there(join: Callable[..., Agent]) -> None:
    owner = join(authority_level=10)
    low = join(owner.caller, role="intern")
    policy = {"role_rules": [{"role": "intern", "deny_types": ["decision"]}]}
    owner("SESSION", {"action": "create", "session": {"id": "s", "members": [low.id], "policy": policy}})
    inside = owner.inside("s")
    intent = {"purpose": "p", "task_id": "t"}
    hidden = inside.record("The price is nine thousand.", type="decision", intent=intent)
    shown = inside.record("The crates are blue.", intent=intent)
    archived = inside.record("The crates were red in spring.", type="assumption", intent=intent)
    handoff = offer(inside, low, "t")
    inside("COMPACT", {"strategy": "archive", "filter": {"types": ["assumption"]}})
    get = {"action": "get", "handoff_id": handoff["id"]}
    package = low.inside("s")("HANDOFF", get)["handoff"]["package"]
    assert [item["id"] for item in package["units"]] == [shown]
    assert hidden not in str(package)
    assert archived not in str(package)
    inside("COMPACT", {"strategy": "purge", "filter": {"types": ["finding"]}})
    assert low.inside("s")("HANDOFF", get)["handoff"]["package"]["units"] == []


def test_a_handoff_takes_no_task_of_a_closed_session_and_shows_none(join: Callable[..., Agent]) -> None:
    owner = join()
    owner("SESSION", {"action": "create", "session": {"id": "s"}})
    task = make(owner.inside("s"), "rob the bank")
    act(owner.inside("s"), "claim", task)
    thief = join(owner.caller)
    fence = join(owner.caller)
    handoff = offer(thief, fence, task)
    assert handoff["package"]["task"] == {"id": task}
    taken = fence("HANDOFF", {"action": "accept", "handoff_id": handoff["id"]})
    assert "bank" not in str(taken)
    assert act(owner.inside("s"), "get", task)["assignee"] == owner.id


def test_a_task_made_after_the_offer_stays_with_its_assignee(join: Callable[..., Agent]) -> None:
    owner = join()
    thief = join(owner.caller)
    fence = join(owner.caller)
    handoff = offer(thief, fence, "next-one")
    make(owner, id="next-one", assignee=owner.id)
    fence("HANDOFF", {"action": "accept", "handoff_id": handoff["id"]})
    assert act(owner, "get", "next-one")["assignee"] == owner.id


def test_a_task_whose_giver_has_left_goes_to_the_receiver(join: Callable[..., Agent]) -> None:
    owner = join(authority_level=6)
    giver = join(owner.caller)
    taker = join(owner.caller)
    task = make(owner, assignee=giver.id)
    handoff = offer(giver, taker, task)
    giver("DEREGISTER", {"agent_id": giver.id})
    taker("HANDOFF", {"action": "accept", "handoff_id": handoff["id"]})
    assert act(owner, "get", task)["assignee"] == taker.id


def test_a_handoff_of_a_paused_session_is_not_answered_from_elsewhere(join: Callable[..., Agent]) -> None:
    giver = join()
    taker = join(giver.caller)
    giver("SESSION", {"action": "create", "session": {"id": "s", "members": [taker.id]}})
    handoff = offer(giver.inside("s"), taker.inside("s"), make(giver.inside("s")))
    giver("SESSION", {"action": "pause", "session": {"id": "s"}})
    accept = {"action": "accept", "handoff_id": handoff["id"]}
    taker.refused("INVALID_TRANSITION", "HANDOFF", accept)
    giver("SESSION", {"action": "resume", "session": {"id": "s"}})
    assert taker("HANDOFF", accept)["status"] == "accepted"
