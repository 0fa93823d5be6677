"""Forks: a replay re-reads what was recorded and sees memory as it was, or says that it cannot; a branch runs anew."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import ERROR, valid
from tests.contract.doors.openwop.test_runs import events, fill, of_type, start
from tests.stores import on_one_store

RECORDED = ("type", "payload", "timestamp", "sequence", "nodeId")


def fork(caller: Any, run_id: str, **body: Any) -> Any:
    return caller.post(f"/v1/runs/{run_id}:fork", body)


def recorded(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: event[name] for name in RECORDED if name in event} for event in found]


def written_ids(found: list[dict[str, Any]]) -> list[str]:
    return [event["payload"]["memoryId"] for event in of_type(found, "memory.written")]


@pytest.mark.parametrize("workflow", ["conformance-agent-memory-ttl", "conformance-noop"])
def test_a_replay_shows_the_recorded_events_and_writes_nothing(ada: Any, workflow: str) -> None:
    source = start(ada, workflow)
    before = ada.get("events").json()["next"]
    answer = fork(ada, source["runId"], mode="replay")
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert set(made) >= {"runId", "sourceRunId", "fromSeq", "mode", "status", "eventsUrl"}
    assert made["runId"] != source["runId"]
    assert (made["sourceRunId"], made["fromSeq"], made["mode"]) == (source["runId"], 0, "replay")
    original, replayed = events(ada, source["runId"]), events(ada, made["runId"])
    assert recorded(replayed) == recorded(original)
    assert written_ids(replayed)
    assert {event["runId"] for event in replayed} == {made["runId"]}
    assert [e["type"] for e in ada.get(f"events?after={before}").json()["events"]] == ["run.replayed"]
    snapshot = ada.get(f"/v1/runs/{made['runId']}").json()
    assert snapshot["status"] == source["status"]
    assert snapshot["variables"] == source["variables"]
    assert snapshot["memorySnapshotSeq"] == source["memorySnapshotSeq"]
    assert events(ada, source["runId"]) == original


def test_a_replay_of_a_replay_is_the_same(ada: Any) -> None:
    source = start(ada, "conformance-noop")["runId"]
    once = fork(ada, source, mode="replay", fromSeq=1).json()
    twice = fork(ada, once["runId"], mode="replay").json()
    assert (twice["sourceRunId"], once["fromSeq"]) == (once["runId"], 1)
    assert recorded(events(ada, twice["runId"])) == recorded(events(ada, source))


def test_a_pass_is_never_run_again_by_a_replay(acme: Any) -> None:
    fill(acme, "passes")
    source = start(acme, "reverie.memory.distill", inputs={"memoryRef": "passes"})["runId"]
    fill(acme, "passes")
    before = acme.get("memory/passes/entries").json()["entries"]
    made = fork(acme, source, mode="replay").json()
    assert recorded(events(acme, made["runId"])) == recorded(events(acme, source))
    assert acme.get("memory/passes/entries").json()["entries"] == before


def test_a_failed_run_is_replayed_as_failed(acme: Any) -> None:
    fill(acme, "fails")
    options = {"inputs": {"memoryRef": "fails"}, "configurable": {"distillation.tokenBudget": 1}}
    source = start(acme, "reverie.memory.distill", **options)
    made = fork(acme, source["runId"], mode="replay").json()
    again = acme.get(f"/v1/runs/{made['runId']}").json()
    assert (made["status"], again["error"]) == ("failed", source["error"])


def test_a_branch_is_a_new_run_that_writes_anew(ada: Any) -> None:
    source = start(ada, "conformance-noop", tags=["one"])["runId"]
    made = fork(ada, source, mode="branch", fromSeq=0, runOptionsOverlay={"tags": ["two"]}).json()
    assert (made["mode"], made["fromSeq"], made["status"]) == ("branch", 0, "completed")
    assert set(written_ids(events(ada, made["runId"]))).isdisjoint(written_ids(events(ada, source)))
    assert ada.get(f"/v1/runs/{made['runId']}").json()["tags"] == ["two"]
    started = events(ada, made["runId"])[0]
    assert started["payload"]["forkedFrom"] == {"runId": source, "fromSeq": 0, "mode": "branch"}


@pytest.mark.parametrize("mode", ["replay", "branch"])
def test_a_fork_beyond_the_log_is_refused_first(ada: Any, mode: str) -> None:
    source = start(ada, "conformance-noop")["runId"]
    for overlay in ({}, {"runOptionsOverlay": {"tags": ["x"]}}):
        for beyond in (3, 2**63, 10**30):
            answer = fork(ada, source, mode=mode, fromSeq=beyond, **overlay)
            assert (answer.status_code, answer.json()["error"]) == (422, "invalid_from_seq")
            valid(answer.json(), ERROR)
    assert fork(ada, source, mode=mode, fromSeq=2).status_code == 201


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"mode": "again"},
        {"mode": "branch"},
        {"mode": "replay", "fromSeq": -1},
        {"mode": "replay", "fromSeq": "0"},
        {"mode": "replay", "fromSeq": 1.5},
        {"mode": "replay", "runOptionsOverlay": {"tags": ["x"]}},
        {"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"inputs": 5}},
        {"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"tags": [5]}},
        {"mode": "branch", "fromSeq": 0, "runOptionsOverlay": "x"},
    ],
    ids=str,
)
def test_a_fork_that_cannot_be_right_is_refused(ada: Any, body: dict[str, Any]) -> None:
    source = start(ada, "conformance-noop")["runId"]
    answer = fork(ada, source, **body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_an_empty_overlay_is_no_overlay(ada: Any) -> None:
    source = start(ada, "conformance-noop")["runId"]
    assert fork(ada, source, mode="replay", runOptionsOverlay={}).status_code == 201


def test_what_was_dreamt_or_deleted_since_is_still_seen(acme: Any) -> None:
    ids = fill(acme, "past")
    source = start(acme, "reverie.memory.consolidate", inputs={"memoryRef": "past"})["runId"]
    acme.delete(f"memory/past/entries/{ids[0]}")
    start(acme, "reverie.memory.compact", inputs={"memoryRef": "past"})
    assert fork(acme, source, mode="replay").status_code == 201


def test_memory_that_was_destroyed_is_not_made_up(acme: Any) -> None:
    acme.put("Ines prefers the morning train.", ref="gone", tags=["subject:ines"])
    fill(acme, "gone")
    source = start(acme, "reverie.memory.consolidate", inputs={"memoryRef": "gone"})["runId"]
    later = start(acme, "reverie.memory.consolidate", inputs={"memoryRef": "other"})["runId"]
    assert acme.post("memory/forget", {"subject": "ines"}).status_code == 200
    answer = fork(acme, source, mode="replay", fromSeq=1)
    assert (answer.status_code, answer.json()["error"]) == (422, "replay_memory_snapshot_unavailable")
    assert answer.json()["details"] == {"fromSeq": 1, "sourceRunId": source, "reason": "retention_expired"}
    assert fork(acme, source, mode="replay", fromSeq=99).json()["error"] == "invalid_from_seq"
    assert fork(acme, later, mode="replay").status_code == 201
    assert fork(acme, source, mode="branch", fromSeq=0).status_code == 201


def test_erasing_reaches_what_runs_show(seamed: Any, ada: Any) -> None:
    run = start(ada, "conformance-agent-memory-roundtrip")
    entry = run["variables"]["memoryReadback"]
    actor = seamed.host.system_actor(ada.tenant)
    seamed.host.lifecycle.erase(actor, "conformance/agent-memory-roundtrip", entry["id"])
    shown = ada.get(f"/v1/runs/{run['runId']}")
    assert shown.json()["variables"]["memoryReadback"] is None
    assert entry["content"] not in shown.text


def test_the_host_s_own_run_is_not_forked_or_cancelled(ada: Any) -> None:
    ada.send("PUT", "/v1/host/workspace/files/a.md", json={"content": "x"})
    run = ada.get("events?type=workspace.updated").json()["events"][0]["data"]["run"]
    assert fork(ada, run, mode="replay").json()["error"] == "validation_error"
    refused = ada.post(f"/v1/runs/{run}/cancel")
    assert (refused.status_code, refused.json()["error"]) == (403, "run_forbidden")
