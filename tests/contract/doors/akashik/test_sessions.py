"""SESSION: life, members, policy; and what a session hides."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent, unit


def create(agent: Agent, name: str, **fields: Any) -> Agent:
    """Make a session; its creator inside it."""
    agent("SESSION", {"action": "create", "session": {"id": name, **fields}})
    return agent.inside(name)


def act(agent: Agent, action: str, name: str, **fields: Any) -> dict[str, Any]:
    answer = agent("SESSION", {"action": action, "session": {"id": name, **fields}})
    session: dict[str, Any] = answer["session"]
    return session


def test_a_session_is_made_with_its_creator_in_it(join: Callable[..., Agent]) -> None:
    agent = join()
    answer = agent("SESSION", {"action": "create", "session": {"goal": "load the ship", "members": ["bo"]}})
    session = answer["session"]
    assert session["members"] == [agent.id, "bo"]
    assert session["creator_id"] == agent.id
    assert (session["status"], session["goal"]) == ("active", "load the ship")
    assert (session["created_epoch"], session["ended_epoch"]) == (answer["epoch"], None)
    assert session["policy"] == {
        "membership": "invite",
        "role_rules": [],
        "min_authority": {},
        "vote_quorum": 3,
        "cross_session": False,
    }
    assert act(agent, "get", session["id"]) == session
    agent.refused("INVALID_TRANSITION", "SESSION", {"action": "create", "session": {"id": session["id"]}})


@on_one_store
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"action": "destroy"},
        {"action": "create", "session": "s"},
        {"action": "create", "session": {"id": 7}},
        {"action": "create", "session": {"goal": 7}},
        {"action": "create", "session": {"members": "bo"}},
        {"action": "create", "session": {"policy": []}},
        {"action": "create", "session": {"policy": {"membership": "secret"}}},
        {"action": "create", "session": {"policy": {"colour": "blue"}}},
        {"action": "create", "session": {"policy": {"role_rules": [{"role": "r", "deny_types": ["gossip"]}]}}},
        {"action": "create", "session": {"policy": {"min_authority": {"finding": 11}}}},
        {"action": "create", "session": {"policy": {"vote_quorum": 0}}},
        {"action": "pause"},
    ],
)
def test_a_payload_that_makes_no_sense_is_refused(join: Callable[..., Agent], payload: dict[str, Any]) -> None:
    join().refused("INVALID_REQUEST", "SESSION", payload)


STATES = ("active", "paused", "ended")
MOVES = {("active", "pause"): "paused", ("paused", "resume"): "active", ("active", "end"): "ended"}
MOVES |= {("paused", "end"): "ended"}
WAYS = {"active": (), "paused": ("pause",), "ended": ("end",)}


@on_one_store
@pytest.mark.parametrize(("state", "action"), list(product(STATES, ("pause", "resume", "end"))))
def test_every_cell_of_its_life(join: Callable[..., Agent], state: str, action: str) -> None:
    agent = join()
    create(agent, "s")
    for step in WAYS[state]:
        act(agent, step, "s")
    after = MOVES.get((state, action))
    if after is None:
        agent.refused("INVALID_TRANSITION", "SESSION", {"action": action, "session": {"id": "s"}})
        assert act(agent, "get", "s")["status"] == state
    else:
        session = act(agent, action, "s")
        assert session["status"] == after
        assert (session["ended_epoch"] is not None) == (after == "ended")


def test_a_paused_session_is_read_and_not_written(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    inside = create(agent, "s", members=["bo"])
    made = inside.record("before the pause")
    act(agent, "pause", "s")
    inside.refused("INVALID_TRANSITION", "RECORD", unit("no"))
    inside.refused("INVALID_TRANSITION", "COORDINATE", {"action": "create", "task": {"title": "t"}})
    inside.refused("INVALID_TRANSITION", "HANDOFF", {"action": "initiate", "task_id": "t", "to_agent": "bo"})
    assert inside.seen(scope={"include_own": True}) == [made]
    assert inside("DETECT", {"mode": "list"})["status"] == "ok"
    assert inside("COORDINATE", {"action": "list"})["tasks"] == []
    assert inside("HANDOFF", {"action": "list"})["handoffs"] == []
    act(agent, "resume", "s")
    assert inside.record("after the pause")


def test_an_ended_session_is_read_replayed_and_compacted(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    inside = create(agent, "s")
    made = inside.record("before the end")
    act(agent, "end", "s")
    for operation, payload in (
        ("RECORD", unit("no")),
        ("COORDINATE", {"action": "create", "task": {"title": "t"}}),
        ("HANDOFF", {"action": "initiate", "task_id": "t", "to_agent": "bo"}),
        ("MERGE", {"conflict_id": "c", "strategy": "last_write_wins", "resolution": {"rationale": "r"}}),
    ):
        inside.refused("INVALID_TRANSITION", operation, payload)
    assert inside.seen(scope={"include_own": True}) == [made]
    assert inside("COMPACT", {"strategy": "archive", "filter": {"session_id": "s"}})["units_affected"] == 1
    for action in ("join", "leave", "set_policy", "pause", "resume", "end"):
        fields = {"policy": {"vote_quorum": 2}} if action == "set_policy" else {}
        agent.refused("INVALID_TRANSITION", "SESSION", {"action": action, "session": {"id": "s", **fields}})


def test_membership_is_by_invitation_or_open(join: Callable[..., Agent], server: Any) -> None:
    owner = join()
    guest, outsider = join(owner.caller), join(owner.caller)
    inside = create(owner, "closed", members=[guest.id])
    secret = inside.record("The vault is behind the painting.")
    assert guest.inside("closed").seen() == [secret]
    body = outsider.inside("closed").refused("NOT_A_MEMBER", "ATTUNE", {"scope": {"role": "r", "max_units": 9}})
    assert (body["http"], body["recoverable"]) == (403, False)
    outsider.refused("NOT_A_MEMBER", "SESSION", {"action": "join", "session": {"id": "closed"}})
    outsider.refused("NOT_A_MEMBER", "SESSION", {"action": "get", "session": {"id": "closed"}})
    invite = {"action": "join", "session": {"id": "closed", "members": [outsider.id]}}
    guest.refused("INSUFFICIENT_AUTHORITY", "SESSION", invite)
    owner("SESSION", invite)
    assert outsider.inside("closed").seen() == [secret]
    act(outsider, "leave", "closed")
    outsider.inside("closed").refused("NOT_A_MEMBER", "RECORD", unit("x"))
    outsider.refused("NOT_A_MEMBER", "SESSION", {"action": "leave", "session": {"id": "closed"}})
    create(owner, "wide", policy={"membership": "open"})
    outsider.inside("wide").refused("NOT_A_MEMBER", "RECORD", unit("x"))
    assert outsider.id in act(outsider, "join", "wide")["members"]
    assert outsider.inside("wide").record("x")
    listed = [session["id"] for session in outsider("SESSION", {"action": "list"})["sessions"]]
    assert listed == ["wide"]
    low = server.caller(owner.caller.tenant, authority=2)
    assert low.get(f"/akashik/v1/units/{secret}").status_code == 404
    unknown = owner.refused("NOT_FOUND", "SESSION", {"action": "get", "session": {"id": "nowhere"}})
    assert unknown["http"] == 404


def test_a_session_that_was_never_created_is_open(join: Callable[..., Agent]) -> None:
    one = join(session="just-a-name")
    two = join(one.caller, session="just-a-name")
    made = one.record("hello")
    assert two.seen() == [made]
    session = act(two, "get", "just-a-name")
    assert session["members"] == [one.id, two.id]
    assert (session["status"], session["creator_id"]) == ("active", None)
    two.refused("INVALID_TRANSITION", "SESSION", {"action": "create", "session": {"id": "just-a-name"}})
    two.refused("INSUFFICIENT_AUTHORITY", "SESSION", {"action": "end", "session": {"id": "just-a-name"}})


def test_the_creator_has_authority_8_in_its_session_only(join: Callable[..., Agent]) -> None:
    owner = join()
    member, outsider = join(owner.caller), join(owner.caller, authority_level=8)
    inside = create(owner, "s", members=[member.id])
    made = member.inside("s")("COORDINATE", {"action": "create", "task": {"title": "t"}})["task"]
    cancel = {"action": "cancel", "task": {"id": made["id"]}}
    assert inside("COORDINATE", cancel)["task"]["state"] == "cancelled"
    for action in ("pause", "end"):
        member.refused("INSUFFICIENT_AUTHORITY", "SESSION", {"action": action, "session": {"id": "s"}})
        outsider.refused("NOT_A_MEMBER", "SESSION", {"action": action, "session": {"id": "s"}})
    other = member("COORDINATE", {"action": "create", "task": {"title": "t"}})["task"]
    owner.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": "cancel", "task": {"id": other["id"]}})
    assert act(owner, "pause", "s")["status"] == "paused"
    operator = join(owner.caller, authority_level=10)
    assert act(operator, "end", "s")["status"] == "ended"


def test_a_session_of_ones_own_gives_no_authority_elsewhere(join: Callable[..., Agent]) -> None:
    victim = join()
    climber = join(victim.caller)
    made = victim.record("The lock is sound.")
    task = victim("COORDINATE", {"action": "create", "task": {"title": "t"}})["task"]["id"]
    relation = [{"type": "contradicts", "target_id": made}]
    conflict = victim("RECORD", unit("The lock is broken.", relations=relation))["conflicts_detected"][0]
    inside = create(climber, "mine")
    own = inside.record("Only this is mine to archive.")
    inside.refused("INSUFFICIENT_AUTHORITY", "DEREGISTER", {"agent_id": victim.id})
    inside.refused("INSUFFICIENT_AUTHORITY", "COORDINATE", {"action": "cancel", "task": {"id": task}})
    merge = {"conflict_id": conflict, "strategy": "last_write_wins", "resolution": {"rationale": "r"}}
    inside.refused("INSUFFICIENT_AUTHORITY", "MERGE", merge)
    wide = {"strategy": "archive", "filter": {"status": ["active", "contested"]}}
    assert inside("COMPACT", wide)["units_affected"] == 1
    assert inside.unit(own)["archived"] is True
    assert "archived" not in victim.unit(made)


def test_sessions_are_partitions_and_so_is_none(join: Callable[..., Agent]) -> None:
    writer = join()
    reader = join(writer.caller, authority_level=10)
    ids = {name: writer.inside(name).record(f"in {name}") for name in (None, "a", "b")}
    for name, made in ids.items():
        assert reader.inside(name).seen(scope={"include_archived": True}) == [made]
    across = [{"type": "supersedes", "target_id": ids["a"]}]
    writer.inside("b").refused("UNIT_NOT_FOUND", "RECORD", unit("x", relations=across))
    create(writer, "wide", members=[reader.id], policy={"cross_session": True})
    seen = reader.inside("wide").seen()
    assert set(seen) == set(ids.values())


def test_role_rules_and_minimum_authority_hide_types(join: Callable[..., Agent]) -> None:
    owner = join()
    low, high = join(owner.caller, role="intern"), join(owner.caller, role="lead", authority_level=6)
    policy = {"role_rules": [{"role": "intern", "deny_types": ["decision"]}], "min_authority": {"constraint": 6}}
    inside = create(owner, "s", members=[low.id, high.id], policy=policy)
    ids = {kind: inside.record(f"a {kind}", type=kind) for kind in ("finding", "decision", "constraint")}
    assert set(low.inside("s").seen()) == {ids["finding"]}
    assert set(high.inside("s").seen()) == set(ids.values())
    changed = act(owner, "set_policy", "s", policy={"role_rules": []})
    assert changed["policy"]["min_authority"] == {"constraint": 6}
    assert set(low.inside("s").seen()) == {ids["finding"], ids["decision"]}
    wish = {"action": "set_policy", "session": {"id": "s", "policy": {"vote_quorum": 1}}}
    low.refused("INSUFFICIENT_AUTHORITY", "SESSION", wish)


def test_a_role_that_sees_no_observations_sees_none_of_other_interfaces(join: Callable[..., Agent]) -> None:
    owner = join()
    low, high = join(owner.caller, role="intern"), join(owner.caller, role="lead")
    policy = {"role_rules": [{"role": "intern", "deny_types": ["observation"]}]}
    inside = create(owner, "s", members=[low.id, high.id], policy=policy)
    kept = inside.record("The crane is tested.")
    owner.caller.put("The crane failed twice.", ref="akashik", source={"session": "s"})
    assert {unit["memory_unit"]["type"] for unit in high.inside("s").attune()["record"]} == {"finding", "observation"}
    seen = low.inside("s").attune()
    assert [unit["memory_unit"]["id"] for unit in seen["record"]] == [kept]
    assert seen["context_budget"]["units_available"] == 1


def test_the_log_keeps_a_sessions_secrets(join: Callable[..., Agent], server: Any) -> None:
    owner = join()
    inside = create(owner, "s")
    made = inside.record("x")
    stranger = join(server.caller(owner.caller.tenant, authority=6))
    seen = stranger.caller.get("/akashik/v1/field/log").json()["events"]
    assert made not in [event["memory_unit_id"] for event in seen]
    assert all(event["session_id"] != "s" for event in seen)
    everything = owner.caller.get("/akashik/v1/field/log?session_id=s").json()["events"]
    assert made in [event["memory_unit_id"] for event in everything]


def test_a_dream_of_another_interface_keeps_the_words_of_a_session_from_others(join: Callable[..., Agent]) -> None:
    owner = join()
    outsider, guest = join(owner.caller), join(owner.caller)
    first, second = (create(owner, name, members=[guest.id]) for name in ("north", "south"))
    hidden = [
        one.record(f"The {thing} key of the {place} vault is behind painting {n}.")
        for n, (one, place) in enumerate(((first, "north"), (second, "south")) * 3)
        for thing in ("spare", "brass")
    ]
    open_ones = [outsider.record(f"The ferry of pier {n} leaves at {n} past nine.") for n in range(12)]
    plan = owner.caller.post("/v1/host/reverie/memory/akashik/dreams", {"plan": True, "budget": 8000}).json()
    assert plan["left_out"]["members"] == len(hidden)
    owner.caller.post("/v1/host/reverie/memory/akashik/dreams", {"budget": 8000})
    owner.caller.post("/v1/host/reverie/memory/akashik/consolidate", {})
    seen = outsider.attune(scope={"max_units": 100})["record"]
    assert "vault" not in str(seen)
    assert {item["memory_unit"]["id"] for item in seen} != set(open_ones)  # the dream happened
    assert {*guest.inside("north").seen(), *guest.inside("south").seen()} >= set(hidden)
