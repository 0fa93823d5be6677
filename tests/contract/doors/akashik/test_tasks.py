"""COORDINATE: the state machine of a task, whole; who may do what; races."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stores import on_one_store

from .conftest import Agent

ACTIONS = ("assign", "claim", "release", "start", "block", "unblock", "complete", "fail", "cancel", "retry")
NEXT = {
    ("pending", "assign"): "assigned",
    ("pending", "claim"): "assigned",
    ("pending", "cancel"): "cancelled",
    ("assigned", "assign"): "assigned",
    ("assigned", "release"): "pending",
    ("assigned", "start"): "in_progress",
    ("assigned", "cancel"): "cancelled",
    ("in_progress", "block"): "blocked",
    ("in_progress", "complete"): "completed",
    ("in_progress", "fail"): "failed",
    ("in_progress", "cancel"): "cancelled",
    ("blocked", "unblock"): "in_progress",
    ("blocked", "fail"): "failed",
    ("blocked", "cancel"): "cancelled",
    ("failed", "retry"): "pending",
}
WAYS = {
    "pending": (),
    "assigned": ("claim",),
    "in_progress": ("claim", "start"),
    "blocked": ("claim", "start", "block"),
    "completed": ("claim", "start", "complete"),
    "failed": ("claim", "start", "fail"),
    "cancelled": ("cancel",),
}
STATUS = {"in_progress": "working", "blocked": "waiting"}


def make(agent: Agent, title: str = "load the ship", **fields: Any) -> str:
    return str(agent("COORDINATE", {"action": "create", "task": {"title": title, **fields}})["task"]["id"])


def act(agent: Agent, action: str, task_id: str, **fields: Any) -> dict[str, Any]:
    task: dict[str, Any] = agent("COORDINATE", {"action": action, "task": {"id": task_id, **fields}})["task"]
    return task


def status(agent: Agent) -> tuple[str, str | None]:
    agents = agent.caller.get("/akashik/v1/agents").json()["agents"]
    return next((a["status"], a["current_task_id"]) for a in agents if a["id"] == agent.id)


@on_one_store
@pytest.mark.parametrize(("state", "action"), list(product(WAYS, ACTIONS)))
def test_every_cell_of_the_table(join: Callable[..., Agent], state: str, action: str) -> None:
    agent = join(authority_level=8)
    task_id = make(agent)
    for step in WAYS[state]:
        act(agent, step, task_id)
    after = NEXT.get((state, action))
    fields = {"assignee": agent.id} if action == "assign" else {}
    if after is None:
        body = agent.refused("INVALID_TRANSITION", "COORDINATE", {"action": action, "task": {"id": task_id, **fields}})
        assert (body["http"], body["recoverable"]) == (409, True)
        assert act(agent, "get", task_id)["state"] == state
    else:
        task = act(agent, action, task_id, **fields)
        assert task["state"] == after
        assert task["assignee"] == (
            None if after == "pending" or (state == "pending" and after == "cancelled") else agent.id
        )
        assert task["updated_epoch"] == agent.epoch


@on_one_store
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ACTIONS)), min_size=3, max_size=14))
def test_any_walk_follows_the_table_and_agents_follow_their_tasks(
    join: Callable[..., Agent], steps: list[tuple[int, str]]
) -> None:
    agent = join(authority_level=8)
    tasks = [make(agent, "one"), make(agent, "two")]
    states = ["pending", "pending"]
    for which, action in steps:
        fields = {"assignee": agent.id} if action == "assign" else {}
        response = agent.send("COORDINATE", {"action": action, "task": {"id": tasks[which], **fields}})
        after = NEXT.get((states[which], action))
        assert response.status_code == (200 if after else 409)
        states[which] = after or states[which]
        shown = status(agent)
        working = [tasks[at] for at in (0, 1) if states[at] == "in_progress"]
        waiting = [tasks[at] for at in (0, 1) if states[at] == "blocked"]
        if working:
            assert shown[0] == "working"
            assert shown[1] in working
        elif waiting:
            assert shown[0] == "waiting"
            assert shown[1] in waiting
        else:
            assert shown == ("idle", None)


def test_create_gives_pending_or_assigned(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=6, session="s")
    other = join(agent.caller)
    answer = agent(
        "COORDINATE",
        {
            "action": "create",
            "task": {"id": "t-1", "title": "a", "description": "b", "assignee": other.id, "priority": 2},
        },
    )
    task = answer["task"]
    assert answer["status"] == "ok"
    assert {"reason", "priority"} <= set(task)
    assert {name: task[name] for name in ("id", "title", "description", "state", "assignee", "creator_id")} == {
        "id": "t-1",
        "title": "a",
        "description": "b",
        "state": "assigned",
        "assignee": other.id,
        "creator_id": agent.id,
    }
    assert task["session_id"] == "s"
    assert task["created_epoch"] == task["updated_epoch"] == answer["epoch"]
    assert (task["depends_on"], task["result_unit_id"]) == ([], None)
    agent.refused("INVALID_TRANSITION", "COORDINATE", {"action": "create", "task": {"id": "t-1", "title": "a"}})
    assert [found["id"] for found in agent("COORDINATE", {"action": "list"})["tasks"]] == ["t-1"]
    assert agent.inside(None)("COORDINATE", {"action": "list"})["tasks"] == []


@on_one_store
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"action": "paint", "task": {"id": "t"}},
        {"action": "create"},
        {"action": "create", "task": "t"},
        {"action": "create", "task": {"title": ""}},
        {"action": "create", "task": {"title": 7}},
        {"action": "create", "task": {"title": "t", "depends_on": "u"}},
        {"action": "create", "task": {"title": "t", "assignee": 7}},
        {"action": "create", "task": {"title": "t", "priority": []}},
        {"action": "start"},
        {"action": "start", "task": {"id": 7}},
    ],
)
def test_a_payload_that_makes_no_sense_is_refused(join: Callable[..., Agent], payload: dict[str, Any]) -> None:
    join().refused("INVALID_REQUEST", "COORDINATE", payload)


def test_unknown_tasks_and_agents(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=6)
    agent.refused("NOT_FOUND", "COORDINATE", {"action": "get", "task": {"id": "none"}})
    agent.refused("NOT_FOUND", "COORDINATE", {"action": "create", "task": {"title": "t", "depends_on": ["none"]}})
    agent.refused("AGENT_NOT_REGISTERED", "COORDINATE", {"action": "create", "task": {"title": "t", "assignee": "no"}})
    made = make(agent)
    agent.refused("AGENT_NOT_REGISTERED", "COORDINATE", {"action": "assign", "task": {"id": made, "assignee": "no"}})


def test_only_the_assignee_works_on_it(join: Callable[..., Agent]) -> None:
    owner = join()
    other, senior = join(owner.caller), join(owner.caller, authority_level=6)
    task = make(owner)
    act(owner, "claim", task)
    for action in ("start", "release"):
        other.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": action, "task": {"id": task}})
    other.refused("INVALID_TRANSITION", "COORDINATE", {"action": "claim", "task": {"id": task}})
    act(owner, "start", task)
    for action in ("block", "complete", "fail"):
        senior.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": action, "task": {"id": task}})


def test_authority_4_own_6_for_others_8_cancels_anothers(join: Callable[..., Agent]) -> None:
    four = join()
    two, six, eight = (join(four.caller, authority_level=level) for level in (2, 6, 8))
    two.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": "create", "task": {"title": "t"}})
    for_other = {"action": "create", "task": {"title": "t", "assignee": six.id}}
    four.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", for_other)
    mine = make(four, assignee=four.id)
    given = {"action": "assign", "task": {"id": mine, "assignee": six.id}}
    four.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", given)
    assert six("COORDINATE", given)["task"]["assignee"] == six.id
    free = make(four)
    six.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": "cancel", "task": {"id": free}})
    assert act(eight, "cancel", free)["state"] == "cancelled"
    assert act(four, "cancel", mine)["state"] == "cancelled"


def test_a_task_waits_for_what_it_depends_on(join: Callable[..., Agent]) -> None:
    agent = join()
    first = make(agent)
    second = make(agent, depends_on=[first])
    act(agent, "claim", second)
    agent.refused("INVALID_TRANSITION", "COORDINATE", {"action": "start", "task": {"id": second}})
    for action in ("claim", "start"):
        act(agent, action, first)
    agent.refused("INVALID_TRANSITION", "COORDINATE", {"action": "start", "task": {"id": second}})
    result = agent.record("It is loaded.")
    done = act(agent, "complete", first, result_unit_id=result)
    assert done["result_unit_id"] == result
    assert act(agent, "start", second)["state"] == "in_progress"
    agent.refused("UNIT_NOT_FOUND", "COORDINATE", {"action": "complete", "task": {"id": second, "result_unit_id": "x"}})


def test_a_claim_race_has_one_winner(join: Callable[..., Agent]) -> None:
    owner = join()
    agents = [join(owner.caller) for _ in range(12)]
    task = make(owner)

    def claim(agent: Agent) -> int:
        return agent.send("COORDINATE", {"action": "claim", "task": {"id": task}}).status_code

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(claim, agents))
    assert sorted(answers) == [200] + [409] * 11
    assert act(owner, "get", task)["assignee"] == agents[answers.index(200)].id


def test_leaving_gives_open_tasks_back(join: Callable[..., Agent]) -> None:
    owner = join()
    worker = join(owner.caller)
    tasks = [make(worker) for _ in range(4)]
    for task in tasks[:3]:
        act(worker, "claim", task)
    act(worker, "start", tasks[0])
    act(worker, "start", tasks[1])
    act(worker, "complete", tasks[1])
    worker.record("one")
    worker.record("two", mode="draft")
    answer = worker("DEREGISTER", {"agent_id": worker.id})
    assert answer["cleanup"] == {"units_orphaned": 2, "tasks_reassigned": 2}
    shown = {task: act(owner, "get", task) for task in tasks}
    assert [shown[task]["state"] for task in tasks] == ["pending", "completed", "pending", "pending"]
    assert shown[tasks[0]]["assignee"] is None


def test_a_task_of_a_closed_session_is_not_there_for_others(join: Callable[..., Agent]) -> None:
    owner = join()
    owner("SESSION", {"action": "create", "session": {"id": "s"}})
    task = make(owner.inside("s"))
    outsider = join(owner.caller, authority_level=8)
    outsider.refused("NOT_FOUND", "COORDINATE", {"action": "get", "task": {"id": task}})
    outsider.refused("NOT_FOUND", "COORDINATE", {"action": "cancel", "task": {"id": task}})
    owner("SESSION", {"action": "pause", "session": {"id": "s"}})
    owner.refused("INVALID_TRANSITION", "COORDINATE", {"action": "claim", "task": {"id": task}})
