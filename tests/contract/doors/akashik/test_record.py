"""RECORD: modes, the order of refusals, confidence, relations, retraction, partial failure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent, unit

TYPES = [
    "finding",
    "decision",
    "observation",
    "intention",
    "assumption",
    "constraint",
    "question",
    "contradiction",
    "synthesis",
    "correction",
    "human_directive",
]
RELATIONS = [
    "supports",
    "contradicts",
    "depends_on",
    "supersedes",
    "caused_by",
    "elaborates",
    "answers",
    "blocks",
    "informs",
]


@on_one_store
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_kept(join: Callable[..., Agent], kind: str) -> None:
    agent = join()
    shown = agent.unit(agent.record("The valve leaks.", type=kind))
    assert shown["type"] == kind
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", shown["id"])


def test_the_unit_is_what_was_recorded_and_what_the_field_adds(join: Callable[..., Agent]) -> None:
    agent = join(role="engineer", session="dock")
    target = agent.record("before")
    confidence = {"score": 1, "reasoning": "saw it", "evidence": ["photo"], "assumptions": ["daylight"]}
    answer = agent(
        "RECORD",
        unit(
            "The valve leaks.",
            intent={"purpose": "repair", "task_id": "t-1", "question": "where?"},
            confidence=confidence,
            relations=[{"type": "supports", "target_id": target, "description": "same valve"}],
        ),
    )
    shown = agent.unit(answer["memory_unit_id"])
    stamp = shown["source"].pop("timestamp")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", stamp)
    assert shown == {
        "id": answer["memory_unit_id"],
        "mode": "committed",
        "type": "finding",
        "content": "The valve leaks.",
        "intent": {"purpose": "repair", "task_id": "t-1", "question": "where?"},
        "confidence": confidence,
        "source": {"agent_id": agent.id, "agent_role": "engineer", "session_id": "dock"},
        "relations": [{"type": "supports", "target_id": target, "description": "same valve"}],
        "status": "active",
        "epoch": answer["epoch"],
    }


def test_what_the_field_makes_is_never_taken_from_the_agent(join: Callable[..., Agent]) -> None:
    agent = join()
    forged = {"id": "mine", "epoch": 99, "status": "retracted", "source": {"agent_id": "root"}, "archived": True}
    shown = agent.unit(agent.record("x", **forged))
    assert shown["id"] != "mine"
    assert shown["epoch"] == 2
    assert shown["status"] == "active"
    assert shown["source"]["agent_id"] == agent.id
    assert "archived" not in shown


INTENTS: list[Any] = [None, "why", [], {}, {"purpose": None}, {"purpose": ""}, {"purpose": "  \n"}, {"purpose": 7}]


@on_one_store
@pytest.mark.parametrize("mode", ["draft", "committed"])
@pytest.mark.parametrize("intent", INTENTS)
def test_intent_comes_first(join: Callable[..., Agent], intent: Any, mode: str) -> None:
    agent = join()
    payload = {"mode": mode, "type": "nonsense", "content": "", "confidence": {"score": 7}, "intent": intent}
    body = agent.refused("MISSING_INTENT", "RECORD", payload)
    assert (body["http"], body["recoverable"], body["status"]) == (400, True, "rejected")
    assert body["rejection_reason"]
    del payload["intent"]
    agent.refused("MISSING_INTENT", "RECORD", payload)


def test_the_order_of_refusals(join: Callable[..., Agent]) -> None:
    agent = join()
    wrong: dict[str, Any] = {"intent": {"purpose": "p"}, "confidence": {"score": 7}}
    agent.refused("INVALID_REQUEST", "RECORD", wrong)
    agent.refused("INVALID_REQUEST", "RECORD", wrong | {"type": "nonsense"})
    agent.refused("INVALID_REQUEST", "RECORD", wrong | {"content": "x"})
    agent.refused("INVALID_REQUEST", "RECORD", wrong | {"content": "  ", "type": "nonsense"})
    agent.refused("INVALID_TYPE", "RECORD", wrong | {"content": "x", "type": "nonsense"})
    agent.refused("INVALID_TYPE", "RECORD", wrong | {"content": "x", "type": ["finding"]})
    agent.refused("INVALID_CONFIDENCE", "RECORD", wrong | {"content": "x", "type": "finding"})
    agent.refused("INVALID_CONFIDENCE", "RECORD", wrong | {"content": "x", "type": "finding", "mode": "draft"})
    agent.refused("MISSING_CONFIDENCE", "RECORD", wrong | {"content": "x", "type": "finding", "confidence": {}})
    assert agent.caller.get("/akashik/v1/field/status").json()["units"] == {"hot": 0, "archived": 0, "purged": 0}


@on_one_store
@pytest.mark.parametrize("score", [-0.1, 1.1, "0.5", True, [], {}])
def test_a_score_is_a_number_from_0_to_1(join: Callable[..., Agent], score: Any) -> None:
    confidence = {"score": score, "reasoning": "r"}
    join().refused("INVALID_CONFIDENCE", "RECORD", unit("x", confidence=confidence))


@on_one_store
@pytest.mark.parametrize(
    "confidence",
    [None, {}, {"score": 0.5}, {"reasoning": "r"}, {"score": None, "reasoning": "r"}, {"score": 0, "reasoning": " "}],
)
def test_a_committed_unit_needs_confidence_a_draft_never(join: Callable[..., Agent], confidence: Any) -> None:
    agent = join()
    agent.refused("MISSING_CONFIDENCE", "RECORD", unit("x", confidence=confidence))
    assert agent.record("x", confidence=confidence, mode="draft")


@on_one_store
@pytest.mark.parametrize("score", [0, 1, 0.0, 1.0, 0.37])
def test_the_ends_of_the_scale_are_scores(join: Callable[..., Agent], score: float) -> None:
    agent = join()
    shown = agent.unit(agent.record("x", confidence={"score": score, "reasoning": "r"}))
    assert shown["confidence"]["score"] == score


@on_one_store
@pytest.mark.parametrize(
    "change",
    [
        {"mode": "final"},
        {"content": 7},
        {"relations": {}},
        {"relations": ["x"]},
        {"relations": [{"type": "likes", "target_id": "x"}]},
        {"relations": [{"type": "supports"}]},
        {"relations": [{"type": "supports", "target_id": ""}]},
        {"relations": [{"type": "supports", "target_id": "x", "description": 7}]},
        {"retracts": "x"},
        {"retracts": [7]},
        {"intent": {"purpose": "p", "task_id": 7}},
        {"confidence": {"score": 0.5, "reasoning": "r", "evidence": "one"}},
        {"content": "x" * 70_000},
        {"intent": {"purpose": "p" * 70_000}},
    ],
)
def test_other_faults_are_invalid_requests(join: Callable[..., Agent], change: dict[str, Any]) -> None:
    body = join().refused(
        "INVALID_REQUEST", "RECORD", unit("x", **{k: v for k, v in change.items() if k != "content"}) | change
    )
    assert body["http"] == 400


def test_mode_is_committed_unless_said(join: Callable[..., Agent]) -> None:
    agent = join()
    payload = unit("x")
    del payload["mode"]
    shown = agent.unit(agent("RECORD", payload)["memory_unit_id"])
    assert (shown["mode"], shown["status"]) == ("committed", "active")


def test_a_draft_is_its_authors_until_committed(join: Callable[..., Agent], server: Any) -> None:
    author = join()
    other = join(author.caller)
    stranger = server.caller(author.caller.tenant)
    draft = author.record("half a thought", mode="draft")
    assert author.unit(draft)["status"] == "draft"
    assert author.unit(draft)["mode"] == "draft"
    assert author.seen() == []
    assert author.seen(scope={"include_own": True}) == [draft]
    assert other.seen(scope={"include_own": True, "include_archived": True}) == []
    assert stranger.get(f"/akashik/v1/units/{draft}").status_code == 404
    other.refused("UNIT_NOT_FOUND", "RECORD", unit("x", relations=[{"type": "supersedes", "target_id": draft}]))
    whole = author.record("a thought", relations=[{"type": "supersedes", "target_id": draft}])
    assert author.unit(draft)["status"] == "superseded"
    assert other.seen() == [whole]


@on_one_store
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_is_kept(join: Callable[..., Agent], relation: str) -> None:
    agent = join()
    target = agent.record("The pump runs.")
    made = agent.record("The harbour is closed.", relations=[{"type": relation, "target_id": target}])
    assert agent.unit(made)["relations"] == [{"type": relation, "target_id": target, "description": None}]


def test_superseding_takes_the_old_unit_out(join: Callable[..., Agent]) -> None:
    one = join()
    two = join(one.caller)
    old = one.record("The door is red.")
    new = two.record("The door was painted green.", relations=[{"type": "supersedes", "target_id": old}])
    assert one.unit(old)["status"] == "superseded"
    assert one.unit(old)["content"] == "The door is red."
    reader = join(one.caller)
    assert reader.seen(scope={"include_archived": True}) == [new]


@on_one_store
@pytest.mark.parametrize("relation", RELATIONS)
def test_only_contradicts_and_supersedes_need_their_target(join: Callable[..., Agent], relation: str) -> None:
    agent = join()
    payload = unit("x", relations=[{"type": relation, "target_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}])
    if relation in ("contradicts", "supersedes"):
        assert agent.refused("UNIT_NOT_FOUND", "RECORD", payload)["http"] == 404
        assert agent.caller.get("/akashik/v1/field/status").json()["units"]["hot"] == 0
    else:
        assert agent("RECORD", payload)["status"] == "accepted"


def test_only_the_author_or_authority_10_retracts(join: Callable[..., Agent]) -> None:
    author = join()
    other, operator = join(author.caller), join(author.caller, authority_level=10)
    first, second = author.record("The bridge is open."), author.record("Tea is served at four.")
    other.refused("INSUFFICIENT_AUTHORITY", "RECORD", unit("no", retracts=[first]))
    assert author.unit(first)["status"] == "active"
    author.record("I was wrong about the bridge.", type="correction", retracts=[first])
    operator.record("House rules.", type="human_directive", retracts=[second])
    assert [author.unit(unit_id)["status"] for unit_id in (first, second)] == ["retracted"] * 2
    assert first not in other.seen(scope={"include_archived": True})
    author.refused("UNIT_NOT_FOUND", "RECORD", unit("no", retracts=["nothing"]))


def test_a_contradiction_opens_a_conflict(join: Callable[..., Agent]) -> None:
    one = join()
    two = join(one.caller)
    first = one.record("The gate is open.")
    answer = two("RECORD", unit("The gate is shut.", relations=[{"type": "contradicts", "target_id": first}]))
    assert len(answer["conflicts_detected"]) == 1
    assert one.unit(first)["status"] == "contested"
    assert one.attune()["conflicts"][0]["id"] == answer["conflicts_detected"][0]


def test_what_a_draft_says_touches_nobody(join: Callable[..., Agent]) -> None:
    agent = join()
    first = agent.record("The gate is open.")
    relations = [{"type": kind, "target_id": first} for kind in ("contradicts", "supersedes")]
    answer = agent("RECORD", unit("Or not?", mode="draft", relations=relations, retracts=[first]))
    assert answer["conflicts_detected"] == []
    assert agent.unit(first)["status"] == "active"


def test_subject_and_tags_are_kept_and_come_back(join: Callable[..., Agent]) -> None:
    agent = join()
    unit_id = agent.record("Ana asked for tea.", subject="Ana Lopez", tags=["tea", "subject:Bo", "tea"])
    shown = agent.unit(unit_id)
    assert (shown["subject"], shown["tags"]) == ("Ana Lopez", ["tea", "subject:Bo"])
    plain = agent.unit(agent.record("Nothing more."))
    assert "subject" not in plain
    assert "tags" not in plain


def test_a_forget_reaches_units_by_their_subject_and_leaves_a_tombstone(join: Callable[..., Agent]) -> None:
    agent = join()
    ids = [agent.record("Ana asked for tea.", subject="Ana"), agent.record("So did she.", tags=["subject:ANA"])]
    kept = agent.record("Bo asked for tea.", subject="Bo")
    done = agent.caller.post("/v1/host/reverie/memory/forget", {"subject": " ana "}).json()
    assert (done["forgotten"], done["ways"]) == (2, {"subject": 1, "tag": 1})
    for unit_id in ids:
        gone = agent.caller.get(f"/akashik/v1/units/{unit_id}")
        assert gone.status_code == 410
        stone = gone.json()["tombstone"]
        assert (stone["unit_id"], stone["reason"]) == (unit_id, "forget")
        replayed = agent("REPLAY", {"target_type": "memory_unit", "target_id": unit_id, "depth": "full_trace"})
        assert [line["tombstone"] for line in replayed["timeline"] if "tombstone" in line] == [stone]
        log = agent.caller.get("/akashik/v1/field/log").json()["events"]
        assert [one["data"]["tombstone"] for one in log if "tombstone" in one["data"]].count(stone) == 1
    assert agent.unit(kept)["subject"] == "Bo"


@pytest.mark.parametrize(
    "labels",
    [
        {"subject": ""},
        {"subject": 7},
        {"subject": "x" * 257},
        {"tags": "tea"},
        {"tags": [""]},
        {"tags": [1]},
        {"tags": ["x" * 257]},
        {"tags": [f"t{n}" for n in range(65)]},
    ],
)
def test_labels_that_cannot_be_kept_are_refused(join: Callable[..., Agent], labels: dict[str, Any]) -> None:
    join().refused("INVALID_REQUEST", "RECORD", unit("Text.", **labels))
