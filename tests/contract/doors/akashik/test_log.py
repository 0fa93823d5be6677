"""The event log, the numbers of the Field, and reads without a message."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import rfc8785

from .conftest import Agent, unit


def events(agent: Agent, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent.caller.get(f"/akashik/v1/field/log{query}").json()["events"]
    return found


def test_every_operation_is_in_the_log_with_its_epoch(join: Callable[..., Agent]) -> None:
    agent = join()
    other = join(agent.caller)
    first = agent.record("The gate is open.")
    agent.record("The gate was shut at dusk.", relations=[{"type": "supersedes", "target_id": first}])
    other.attune()
    made = [(event["type"], event["operation"], event["agent_id"], event["epoch"]) for event in events(agent)]
    assert made == [
        ("agent.joined", "REGISTER", agent.id, 1),
        ("agent.joined", "REGISTER", other.id, 2),
        ("memory.recorded", "RECORD", agent.id, 3),
        ("memory.recorded", "RECORD", agent.id, 4),
        ("memory.superseded", "RECORD", agent.id, 4),
        ("field.attuned", "ATTUNE", other.id, 5),
    ]


def test_the_hash_can_be_recomputed_and_chains(join: Callable[..., Agent]) -> None:
    agent = join(session="s")
    made = agent.record("The gate is open.", intent={"purpose": "p", "task_id": "t-1"})
    agent.attune(context_hint="gate")
    page = agent.caller.get("/akashik/v1/field/log").json()
    before = None
    for number, event in enumerate(page["events"], 1):
        assert event["seq"] == number
        digest = event.pop("hash")
        assert hashlib.sha256(rfc8785.dumps(event)).hexdigest() == digest
        assert before in (None, event["prev_hash"])
        before = digest
    assert (page["head_seq"], page["head_hash"]) == (number, before)
    recorded = next(event for event in page["events"] if event["type"] == "memory.recorded")
    assert (recorded["memory_unit_id"], recorded["session_id"], recorded["task_id"]) == (made, "s", "t-1")


def test_the_log_has_no_text(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    words = ["zanzibar", "quixotic", "marmalade", "obelisk", "tarpaulin", "gondola", "walrus", "xylophone"]
    agent(
        "RECORD",
        unit(
            words[0],
            intent={"purpose": words[1], "question": words[2]},
            confidence={"score": 0.5, "reasoning": words[3], "evidence": [words[4]]},
            relations=[{"type": "supports", "target_id": words[5], "description": words[6]}],
        ),
    )
    agent.attune(context_hint=words[7], scope={"interests": words})
    agent("COORDINATE", {"action": "create", "task": {"title": words[0], "description": words[1]}, "reason": words[2]})
    agent("SESSION", {"action": "create", "session": {"goal": words[3]}})
    shown = agent.caller.get("/akashik/v1/field/log").text
    assert not [word for word in words if word in shown]


def test_paging_and_filters(join: Callable[..., Agent]) -> None:
    agent = join()
    other = join(agent.caller, session="s")
    for number in range(5):
        agent.record(f"note {number}")
        other.record(f"note {number} again")
    every = events(agent)
    assert events(agent, "?after_seq=3&limit=4") == every[3:7]
    assert events(agent, f"?agent_id={other.id}") == every
    assert events(agent, "?session_id=s") == [event for event in every if event["session_id"] == "s"]
    for query in ("?after_seq=-1", "?limit=0", "?limit=x", "?after_seq=1.5", "?limit=10001"):
        response = agent.caller.get(f"/akashik/v1/field/log{query}")
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


def test_the_status_counts(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    agent.record("one", type="assumption")
    agent.record("two")
    agent.record("three", mode="draft")
    agent("COMPACT", {"strategy": "archive", "filter": {"types": ["assumption"]}})
    shown = agent.caller.get("/akashik/v1/field/status").json()
    assert shown["status"]
    assert shown["conformance_level"] == 3
    assert shown["protocol_version"] == "0.1.0"
    assert shown["epoch"] == agent.epoch
    assert shown["units"] == {"hot": 2, "archived": 1, "purged": 0}
    assert (shown["agents"], shown["conflicts_open"]) == (1, 0)
    head = agent.caller.get("/akashik/v1/field/log").json()
    assert shown["log"] == {"events": head["head_seq"], "head_hash": head["head_hash"]}


def test_a_purged_unit_is_gone_with_a_tombstone(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    made = agent.record("The combination is 4711.")
    agent("COMPACT", {"strategy": "purge", "reason": "asked to"})
    response = agent.caller.get(f"/akashik/v1/units/{made}")
    body = response.json()
    assert (response.status_code, body["code"]) == (410, "UNIT_NOT_FOUND")
    assert body["tombstone"]["unit_id"] == made
    assert body["tombstone"]["reason"] == "asked to"
    assert body["tombstone"]["purged_by"] == agent.id
    assert "4711" not in response.text
    assert agent.caller.get("/akashik/v1/units/none").status_code == 404
    agent.refused("UNIT_NOT_FOUND", "RECORD", unit("x", relations=[{"type": "supersedes", "target_id": made}]))
    agent.record("y", relations=[{"type": "supports", "target_id": made}])


def test_a_purged_unit_is_not_in_a_repeated_answer(join: Callable[..., Agent]) -> None:
    agent = join(authority_level=10)
    agent.record("The combination is 4711.")
    reader = join(agent.caller)
    envelope = reader.envelope("ATTUNE", {"scope": {"role": "r", "max_units": 9}})
    assert "4711" in reader.post("ATTUNE", envelope).text
    agent("COMPACT", {"strategy": "purge"})
    assert "4711" not in reader.post("ATTUNE", envelope).text


def test_another_tenant_sees_nothing(join: Callable[..., Agent]) -> None:
    ours, theirs = join(id="same-name"), join(id="same-name")
    made = ours.record("ours")
    assert theirs.seen(scope={"include_own": True}) == []
    assert theirs.caller.get(f"/akashik/v1/units/{made}").status_code == 404
    assert theirs.caller.get("/akashik/v1/field/status").json()["units"]["hot"] == 0
    assert len(events(theirs)) == 2


def test_a_restart_changes_nothing(make_server: Callable[..., Any], tmp_path: Any) -> None:
    first = make_server(data=tmp_path)
    caller = first.caller("acme")
    agent = Agent(caller, "a", "s")
    agent("REGISTER", {"id": "a", "role": "r"})
    made = agent.record("kept")
    envelope = agent.envelope("RECORD", unit("again"))
    answer = agent.post("RECORD", envelope).json()
    first.host.close()
    second = make_server(data=tmp_path)
    caller.app = second.app
    assert agent.unit(made)["content"] == "kept"
    assert agent.post("RECORD", envelope).json() == answer
    assert agent("RECORD", unit("more"))["epoch"] == answer["epoch"] + 1
