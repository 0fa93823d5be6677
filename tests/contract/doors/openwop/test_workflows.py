"""Workflow definitions, the plain fixtures, and many runs cancelled at once."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import ERROR, WORKFLOW, valid
from tests.contract.doors.openwop.test_runs import FIXTURES, PLAIN, events, start
from tests.stores import on_one_store

PASSES = ["reverie.memory.compact", "reverie.memory.consolidate", "reverie.memory.distill"]


def begin(caller: Any, workflow: str, **inputs: Any) -> str:
    """Start a run that goes on in the background; its id."""
    answer = caller.post("/v1/runs", {"workflowId": workflow, "inputs": inputs})
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "running"
    return str(answer.json()["runId"])


def until(caller: Any, run_id: str, *statuses: str) -> dict[str, Any]:
    """The run, once it has one of these statuses."""
    for _ in range(600):
        run = dict(caller.get(f"/v1/runs/{run_id}").json())
        if run["status"] in statuses:
            return run
        time.sleep(0.05)
    raise AssertionError(run)


@on_one_store
@pytest.mark.parametrize("workflow", [*PASSES, *FIXTURES, *PLAIN])
def test_every_workflow_that_can_be_run_has_a_definition(ada: Any, workflow: str) -> None:
    answer = ada.get(f"/v1/workflows/{workflow}")
    assert answer.status_code == 200
    shown = answer.json()
    valid(shown, WORKFLOW)
    assert shown["id"] == workflow
    nodes = [node["id"] for node in shown["nodes"]]
    assert [(edge["sourceNodeId"], edge["targetNodeId"]) for edge in shown["edges"]] == list(pairwise(nodes))


def test_what_cannot_be_run_has_none(acme: Any, server: Any) -> None:
    for workflow in ("nope", *FIXTURES, *PLAIN):
        answer = acme.get(f"/v1/workflows/{workflow}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
        valid(answer.json(), ERROR)
    assert server.caller(scopes=["runs:read"]).get(f"/v1/workflows/{PASSES[0]}").status_code == 403
    assert server.caller(scopes=["manifest:read"]).get(f"/v1/workflows/{PASSES[0]}").status_code == 200


def test_identity_gives_back_its_payload(ada: Any) -> None:
    payload = {"text": "hello", "n": 42, "on": True, "list": [1, "two", {"three": 3}], "deep": {"er": {"leaf": None}}}
    run = start(ada, "conformance-identity", inputs={"payload": payload, "more": 1})
    assert run["status"] == "completed"
    assert run["variables"] == {"payload": payload}
    found = {event["type"]: event for event in events(ada, run["runId"])}
    assert found["node.completed"]["nodeId"] == "identity"
    assert found["node.completed"]["payload"] == found["run.completed"]["payload"] == {"outputs": {"payload": payload}}


def test_nodes_follow_each_other_each_once(ada: Any) -> None:
    run = start(ada, "conformance-multi-node")
    steps = [(event["type"], event["nodeId"]) for event in events(ada, run["runId"]) if "nodeId" in event]
    assert steps == [(kind, name) for name in "abc" for kind in ("node.started", "node.completed")]


def test_a_failure_says_the_same_everywhere(ada: Any) -> None:
    run = start(ada, "conformance-failure")
    assert run["status"] == "failed"
    assert run["error"]["code"] == "conformance_failure"
    assert run["error"]["message"]
    found = {event["type"]: event["payload"] for event in events(ada, run["runId"])}
    assert found["run.failed"] == found["node.failed"] == {"error": run["error"]}


def test_a_delay_runs_and_then_ends(ada: Any) -> None:
    run_id = begin(ada, "conformance-delay", delayMs=300)
    run = until(ada, run_id, "completed")
    assert run["status"] == "completed"
    assert [event["type"] for event in events(ada, run_id)] == [
        "run.started",
        "node.started",
        "node.completed",
        "run.completed",
    ]


@on_one_store
@pytest.mark.parametrize(
    ("workflow", "inputs"),
    [
        ("conformance-delay", {"delayMs": -1}),
        ("conformance-delay", {"delayMs": 30_001}),
        ("conformance-cancellable", {"delayMs": 0}),
        ("conformance-cancellable", {"delayMs": "1"}),
        ("conformance-identity", {}),
        ("conformance-identity", {"payload": [1]}),
        ("conformance-idempotent", {}),
    ],
)
def test_inputs_that_cannot_be_right_begin_nothing(ada: Any, workflow: str, inputs: dict[str, Any]) -> None:
    answer = ada.post("/v1/runs", {"workflowId": workflow, "inputs": inputs})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_a_cancel_ends_a_run_that_waits(ada: Any) -> None:
    run_id = begin(ada, "conformance-cancellable", delayMs=60_000)
    asked = ada.post(f"/v1/runs/{run_id}/cancel")
    assert asked.json()["status"] in ("cancelling", "cancelled")
    assert until(ada, run_id, "cancelled")["status"] == "cancelled"
    found = [event["type"] for event in events(ada, run_id)]
    assert found[-1] == "run.cancelled"
    assert "node.completed" not in found


def test_many_are_cancelled_each_by_itself(seamed: Any, ada: Any) -> None:
    going = begin(ada, "conformance-cancellable", delayMs=60_000)
    foreign = start(seamed.caller(), "conformance-noop")["runId"]
    done = start(ada, "conformance-noop")["runId"]
    answer = ada.post("/v1/runs:bulk-cancel", {"runIds": [done, "nope", going, foreign], "reason": "enough"})
    assert answer.status_code == 200
    ended, unknown, stopped, hidden = answer.json()["results"]
    assert (ended["runId"], ended["ok"], ended["error"]["code"]) == (done, False, "run_terminal")
    assert (unknown["ok"], unknown["error"]["code"]) == (False, "not_found")
    assert hidden == {**unknown, "runId": foreign}
    assert (stopped["runId"], stopped["ok"]) == (going, True)
    until(ada, going, "cancelled")
    again = ada.post("/v1/runs:bulk-cancel", {"runIds": [going]}).json()["results"]
    assert again == [{"runId": going, "ok": True, "status": "cancelled"}]


@on_one_store
@pytest.mark.parametrize("body", [{}, {"runIds": []}, {"runIds": "x"}, {"runIds": [1]}, {"runIds": ["x"] * 101}])
def test_a_bulk_that_makes_no_sense_is_refused(ada: Any, body: dict[str, Any]) -> None:
    answer = ada.post("/v1/runs:bulk-cancel", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    valid(answer.json(), ERROR)
    if len(body.get("runIds", ())) > 100:
        assert answer.json()["details"]["maxRunIds"] == 100


def test_a_bulk_needs_the_scope_of_a_cancel(server: Any) -> None:
    refused = server.caller(scopes=["runs:create"]).post("/v1/runs:bulk-cancel", {"runIds": ["x"]})
    assert refused.json()["details"]["scopeRequired"] == "runs:cancel"
    assert server.caller(scopes=["runs:cancel"]).post("/v1/runs:bulk-cancel", {"runIds": ["x"]}).status_code == 200


def test_a_run_in_the_background_survives_its_process(make_server: Any, tmp_path: Any) -> None:
    first = make_server(data=tmp_path, openwop_seams=True)
    caller = first.caller()
    run_id = begin(caller, "conformance-delay", delayMs=30_000)
    first.host.runs.stop()  # its process ends
    second = make_server(data=tmp_path, openwop_seams=True)
    caller.app = second.app
    assert caller.get(f"/v1/runs/{run_id}").json()["status"] == "running"
    caller.post(f"/v1/runs/{run_id}/cancel")
    assert caller.get(f"/v1/runs/{run_id}").json()["status"] in ("cancelling", "cancelled")
