"""REPLAY over HTTP: from the log alone, at three depths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.stores import on_one_store

from reverie.protocols.akashik.operations import replay as replaying


@pytest.fixture
def boss(join: Callable[..., Any]) -> Any:
    return join(authority_level=10)


def replay(agent: Any, target: str, kind: str = "memory_unit", depth: str = "full_trace") -> dict[str, Any]:
    answer: dict[str, Any] = agent("REPLAY", {"target_type": kind, "target_id": target, "depth": depth})
    return answer


def chain_of(agent: Any) -> tuple[str, str, str]:
    """A cause, a finding that names it, and a decision that names the finding."""
    cause = agent.record("The dam was inspected.")
    finding = agent.record("The dam has a crack.", relations=[{"type": "caused_by", "target_id": cause}])
    reason = [{"type": "depends_on", "target_id": finding}]
    return cause, finding, agent.record("We lower the lake.", type="decision", relations=reason)


def test_the_causal_chain_follows_relations_in_order_of_epochs(boss: Any) -> None:
    other = boss.record("Nothing to do with it.")
    cause, finding, decision = chain_of(boss)
    answer = replay(boss, decision, "decision")
    assert [line["memory_unit_id"] for line in answer["timeline"]] == [cause, finding, decision]
    assert answer["total_events"] == len(answer["timeline"]) == 3
    assert answer["agents_involved"] == [boss.id]
    assert {"epoch", "event_type", "agent_id", "description", "memory_unit_id", "task_id"} <= answer["timeline"][
        0
    ].keys()
    epochs = [line["epoch"] for line in answer["timeline"]]
    assert epochs == sorted(epochs)
    assert other not in str(answer)
    assert "crack" not in str(answer)
    assert replay(boss, cause)["total_events"] == 1
    detailed = replay(boss, decision, depth="detailed")
    assert [line["memory_unit_id"] for line in detailed["timeline"]] == [decision]
    summary = replay(boss, decision, depth="summary")
    assert summary["summary"]
    assert summary["agents_involved"] == [boss.id]


def test_compactions_and_conflicts_are_part_of_a_units_history(boss: Any) -> None:
    cause, finding, decision = chain_of(boss)
    boss.record("The dam is sound.", relations=[{"type": "contradicts", "target_id": finding}])
    boss("COMPACT", {"strategy": "summarize", "filter": {"status": ["active", "contested"]}})
    boss("COMPACT", {"strategy": "purge", "filter": {"types": ["decision"]}})
    kinds = [line["event_type"] for line in replay(boss, decision)["timeline"]]
    for kind in ("conflict.detected", "memory.contested", "memory.compacted", "memory.archived", "memory.purged"):
        assert kind in kinds
    assert cause
    (synthesis,) = {
        line["memory_unit_id"] for line in replay(boss, cause)["timeline"] if line["event_type"] == "memory.compacted"
    }
    assert cause in {line["memory_unit_id"] for line in replay(boss, synthesis)["timeline"]}


def test_a_session_a_task_and_a_conflict_are_replayed(boss: Any) -> None:
    inside = boss.inside("s")
    task = inside("COORDINATE", {"action": "create", "task": {"title": "t"}})["task"]["id"]
    unit = inside.record("The valve is open.", intent={"purpose": "p", "task_id": task})
    other = inside(
        "RECORD",
        {
            "mode": "committed",
            "type": "finding",
            "content": "It is not.",
            "intent": {"purpose": "p"},
            "confidence": {"score": 1, "reasoning": "r"},
            "relations": [{"type": "contradicts", "target_id": unit}],
        },
    )
    (conflict,) = other["conflicts_detected"]
    assert {line["event_type"] for line in replay(inside, task, "task")["timeline"]} >= {
        "task.created",
        "memory.recorded",
    }
    in_session = replay(inside, "s", "session")["timeline"]
    assert {"memory.recorded", "conflict.detected", "task.created"} <= {line["event_type"] for line in in_session}
    about = replay(inside, conflict, "conflict")["timeline"]
    assert {unit, other["memory_unit_id"]} <= {line["memory_unit_id"] for line in about}
    assert "conflict.detected" in {line["event_type"] for line in about}


@on_one_store
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"target_type": "memory_unit", "target_id": "none"}, "UNIT_NOT_FOUND"),
        ({"target_type": "decision", "target_id": "none"}, "UNIT_NOT_FOUND"),
        ({"target_type": "conflict", "target_id": "none"}, "CONFLICT_NOT_FOUND"),
        ({"target_type": "task", "target_id": "none"}, "NOT_FOUND"),
        ({"target_type": "session", "target_id": "none"}, "NOT_FOUND"),
        ({"target_type": "planet", "target_id": "none"}, "INVALID_REQUEST"),
        ({"target_type": "task"}, "INVALID_REQUEST"),
        ({"target_type": "task", "target_id": "x", "depth": "deep"}, "INVALID_REQUEST"),
    ],
)
def test_what_replay_refuses(boss: Any, payload: dict[str, Any], code: str) -> None:
    boss.refused(code, "REPLAY", payload)


def test_too_much_is_refused_and_never_cut(boss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, decision = chain_of(boss)
    monkeypatch.setattr(replaying, "MOST_EVENTS", 2)
    body = boss.refused("REPLAY_TOO_LARGE", "REPLAY", {"target_type": "decision", "target_id": decision})
    assert body["http"] == 413
    assert "timeline" not in body


def test_an_auditor_may_replay_and_others_drafts_stay_theirs(join: Callable[..., Any], boss: Any) -> None:
    auditor = join(boss.caller, authority_level=0)
    unit = boss.record("The dam holds.")
    assert replay(auditor, unit)["total_events"] == 1
    draft = boss.record("Not yet said.", mode="draft")
    auditor.refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": draft})
    assert replay(boss, draft)["total_events"] == 1


def test_a_closed_session_is_replayed_by_its_members_only(join: Callable[..., Any], boss: Any) -> None:
    owner = join(boss.caller, authority_level=8)
    owner("SESSION", {"action": "create", "session": {"id": "closed", "goal": "g"}})
    unit = owner.inside("closed").record("The key is under the mat.")
    outsider = join(boss.caller)
    outsider.refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": unit})
    outsider.refused("NOT_A_MEMBER", "REPLAY", {"target_type": "session", "target_id": "closed"})
    assert replay(owner.inside("closed"), unit)["total_events"] == 1


def test_units_of_other_interfaces_in_a_closed_session_are_replayed_by_its_members_only(
    join: Callable[..., Any], boss: Any, server: Any
) -> None:
    owner = join(boss.caller, authority_level=8)
    owner("SESSION", {"action": "create", "session": {"id": "closed", "goal": "g"}})
    here = {"ref": "akashik", "source": {"session": "closed"}}
    unit, pinned = (boss.caller.put(f"The key is under mat {n}.", **here) for n in range(2))
    entry = f"memory/akashik/entries/{pinned}"
    assert boss.caller.delete(entry).status_code in (200, 204)
    assert boss.caller.post(f"{entry}/restore", {}).status_code == 200
    outsider = join(server.caller(boss.caller.tenant, authority=4))
    for name in (unit, pinned):
        outsider.refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": name})
    pointing = outsider.record("See there.", relations=[{"type": "informs", "target_id": pinned}])
    assert {line["memory_unit_id"] for line in replay(outsider, pointing)["timeline"]} == {pointing}
    seen = outsider.caller.get("/akashik/v1/field/log").json()["events"]
    assert not {unit, pinned} & {event["memory_unit_id"] for event in seen}
    inside = owner.inside("closed")
    assert replay(inside, unit)["total_events"] == 1
    kinds = [line["event_type"] for line in replay(inside, pinned)["timeline"]]
    assert kinds == ["memory.written", "memory.deleted", "memory.restored"]
    assert {unit, pinned} <= {line["memory_unit_id"] for line in replay(inside, "closed", "session")["timeline"]}
    found = boss.caller.get("/akashik/v1/field/log?session_id=closed").json()["events"]
    assert {unit, pinned} <= {event["memory_unit_id"] for event in found}


def test_a_session_named_like_the_hash_of_another_opens_it_to_nobody(
    join: Callable[..., Any], boss: Any, server: Any
) -> None:
    owner = join(boss.caller, authority_level=8)
    owner("SESSION", {"action": "create", "session": {"id": "closed", "goal": "g"}})
    unit = boss.caller.put("The key is under the mat.", ref="akashik", source={"session": "closed"})
    everything = boss.caller.get("/akashik/v1/field/log").json()["events"]
    (mark,) = {event["session_id"] for event in everything if event["memory_unit_id"] == unit}
    outsider = join(server.caller(boss.caller.tenant, authority=6), authority_level=6)
    outsider("SESSION", {"action": "create", "session": {"id": mark, "goal": "g"}})
    outsider.refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": unit})
    asked = {"target_type": "session", "target_id": mark, "depth": "full_trace"}
    assert unit not in outsider.inside(mark).send("REPLAY", asked).text
    assert unit not in outsider.caller.get("/akashik/v1/field/log").text
    own = outsider.inside(mark).record("Mine alone.")
    owner.refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": own})


def test_a_role_replays_nothing_of_other_interfaces_that_is_hidden_from_it(join: Callable[..., Any], boss: Any) -> None:
    intern = join(boss.caller, role="intern")
    rules = {"role_rules": [{"role": "intern", "deny_types": ["observation"]}]}
    session = {"id": "dam", "members": [intern.id], "policy": rules}
    boss("SESSION", {"action": "create", "session": session})
    unit = boss.caller.put("The dam leaks.", ref="akashik", source={"session": "dam"})
    assert replay(boss.inside("dam"), unit)["total_events"] == 1
    intern.inside("dam").refused("UNIT_NOT_FOUND", "REPLAY", {"target_type": "memory_unit", "target_id": unit})


def test_a_role_replays_nothing_made_of_types_that_are_hidden_from_it(join: Callable[..., Any], boss: Any) -> None:
    intern = join(boss.caller, role="intern")
    rules = {"role_rules": [{"role": "intern", "deny_types": ["decision"]}]}
    session = {"id": "dam", "members": [intern.id], "policy": rules}
    boss("SESSION", {"action": "create", "session": session})
    lead, low = boss.inside("dam"), intern.inside("dam")
    plain = lead.record("The lake has ducks.")
    first = lead.record("We lower the lake on Monday.", type="decision")
    against = [{"type": "contradicts", "target_id": first}]
    payload = {"type": "decision", "content": "We keep the lake.", "intent": {"purpose": "p"}, "relations": against}
    answer = lead("RECORD", {**payload, "confidence": {"score": 0.5, "reasoning": "r"}})
    (conflict,) = answer["conflicts_detected"]
    how = {"conflict_id": conflict, "strategy": "last_write_wins", "resolution": {"rationale": "newer"}}
    lead("MERGE", how)
    lead("COMPACT", {"strategy": "summarize", "filter": {"session_id": "dam", "types": ["decision"]}})
    (made,) = {line["memory_unit_id"] for line in replay(lead, first)["timeline"] if "compacted" in line["event_type"]}
    for kind, target in (("memory_unit", first), ("memory_unit", made), ("conflict", conflict)):
        assert low.send("REPLAY", {"target_type": kind, "target_id": target}).status_code == 404, kind
    timeline = replay(low, "dam", "session")["timeline"]
    assert plain in str(timeline)
    assert not [name for name in (first, made, conflict) if name in str(timeline)]


def test_a_repeat_of_the_message_is_answered_from_the_log_as_it_was(boss: Any) -> None:
    unit = boss.record("The dam holds.")
    envelope = boss.envelope("REPLAY", {"target_type": "memory_unit", "target_id": unit, "depth": "full_trace"})
    first = boss.post("REPLAY", envelope).json()
    boss("COMPACT", {"strategy": "archive"})
    assert boss.post("REPLAY", envelope).json() == first
    assert replay(boss, unit)["total_events"] == 2
