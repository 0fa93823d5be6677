"""Pause and resume: between two steps, inside one, over a restart, and of a pass over memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.doors.openwop.conftest import SEAMS
from tests.contract.doors.openwop.schemas import ERROR, valid
from tests.stores import on_one_store

from reverie.core.entry import Scope
from reverie.protocols.openwop.workflow import ActiveRun, Node, Workflow

PATIENCE = 60.0
COMPACT = "reverie.memory.compact"


class Gate:
    """A workflow of one node that ends when the test says so."""

    def __init__(self, host: Any) -> None:
        self.name, self._open = f"test.gated.{uuid4().hex}", threading.Event()
        node = Node("wait", "core.delay", "Wait for the test")
        host.runs.offer(self.name, Workflow(self._body, nodes=(node,), background=True))

    def _body(self, work: ActiveRun) -> dict[str, Any]:
        with work.node("wait"):
            while not self._open.is_set():
                work.wait(20)
        return {"answer": 42}

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(seamed: Any) -> Iterator[Gate]:
    made = Gate(seamed.host)
    yield made
    made.open()


def started(caller: Any, workflow: str, **inputs: Any) -> str:
    answer = caller.post("/v1/runs", {"workflowId": workflow, "inputs": inputs})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def snapshot(caller: Any, run: str) -> dict[str, Any]:
    found: dict[str, Any] = caller.get(f"/v1/runs/{run}").json()
    return found


def events(caller: Any, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = caller.get(f"/v1/runs/{run}/events").json()["events"]
    return found


def kinds(caller: Any, run: str) -> list[str]:
    return [event["type"] for event in events(caller, run)]


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def ended(caller: Any, run: str) -> str:
    until(lambda: snapshot(caller, run)["status"] in ("completed", "failed", "cancelled"), "the run did not end")
    return str(snapshot(caller, run)["status"])


def test_both_policies_are_advertised(server: Any) -> None:
    found = server.stranger().get("/.well-known/openwop").json()["runs"]["pauseResume"]
    assert found == {"supported": True, "drainPolicies": ["immediate", "drain-current-node"]}


def test_by_default_the_current_node_ends_first(ada: Any, gate: Gate) -> None:
    run = started(ada, gate.name)
    until(lambda: "node.started" in kinds(ada, run), "the node did not start")
    answer = ada.post(f"/v1/runs/{run}:pause")
    assert answer.status_code == 202, answer.text
    assert answer.json().keys() == {"runId", "status", "pausedAt"}
    assert (answer.json()["runId"], answer.json()["status"]) == (run, "paused")
    assert snapshot(ada, run)["status"] == "running"
    gate.open()
    until(lambda: snapshot(ada, run)["status"] == "paused", "the pause took no effect")
    assert kinds(ada, run) == ["run.started", "node.started", "node.completed", "run.paused"]
    assert events(ada, run)[-1]["payload"] == {"drainPolicy": "drain-current-node"}
    answer = ada.post(f"/v1/runs/{run}:resume", {"reason": "go on"})
    assert answer.status_code == 202, answer.text
    assert answer.json().keys() == {"runId", "status", "resumedAt"}
    assert answer.json()["status"] == "running"
    assert ended(ada, run) == "completed"
    assert kinds(ada, run)[3:] == ["run.paused", "run.resumed", "run.completed"]
    assert [event["sequence"] for event in events(ada, run)] == list(range(6))
    assert snapshot(ada, run)["variables"] == {"answer": 42}


def test_an_immediate_pause_drops_the_node_which_starts_afresh(ada: Any) -> None:
    run = started(ada, "conformance-delay", delayMs=30_000)
    until(lambda: "node.started" in kinds(ada, run), "the node did not start")
    paused = ada.post(f"/v1/runs/{run}:pause", {"drainPolicy": "immediate", "reason": "lunch"})
    assert paused.status_code == 202
    until(lambda: snapshot(ada, run)["status"] == "paused", "the pause took no effect")
    assert kinds(ada, run) == ["run.started", "node.started", "run.paused"]
    assert events(ada, run)[-1]["payload"] == {"drainPolicy": "immediate"}
    assert ada.post(f"/v1/runs/{run}:resume").status_code == 202
    until(lambda: kinds(ada, run)[-1] == "node.started", "the node did not start again")
    assert ada.post(f"/v1/runs/{run}/cancel").status_code == 200
    assert ended(ada, run) == "cancelled"
    assert kinds(ada, run)[2:5] == ["run.paused", "run.resumed", "node.started"]


def test_a_pause_withdrawn_before_it_took_effect_is_noted_in_order(ada: Any, gate: Gate) -> None:
    run = started(ada, gate.name)
    until(lambda: "node.started" in kinds(ada, run), "the node did not start")
    for _ in range(3):
        assert ada.post(f"/v1/runs/{run}:pause").status_code == 202
        assert ada.post(f"/v1/runs/{run}:resume").status_code == 202
    gate.open()
    assert ended(ada, run) == "completed"
    seen = kinds(ada, run)
    assert seen[:3] == ["run.started", "node.started", "node.completed"]
    assert seen[3:] == ["run.paused", "run.resumed", "run.completed"]


def test_a_paused_run_can_be_cancelled_and_never_goes_on(ada: Any) -> None:
    run = started(ada, "conformance-cancellable", delayMs=60_000)
    ada.post(f"/v1/runs/{run}:pause", {"drainPolicy": "immediate"})
    until(lambda: "run.paused" in kinds(ada, run), "the pause took no effect")
    bulk = ada.post("/v1/runs:bulk-cancel", {"runIds": [run]}).json()["results"]
    assert bulk == [{"runId": run, "ok": True, "status": "cancelled"}]
    refused = ada.post(f"/v1/runs/{run}:resume")
    assert (refused.status_code, refused.json()["error"]) == (409, "run_terminal")
    assert refused.json()["details"]["runStatus"] == "cancelled"


def test_conflicts_name_the_state(ada: Any) -> None:
    run = started(ada, "conformance-cancellable", delayMs=60_000)
    refused = ada.post(f"/v1/runs/{run}:resume")
    assert (refused.status_code, refused.json()["error"]) == (409, "run_state_conflict")
    assert refused.json()["details"]["runStatus"] == "running"
    key = uuid4().hex
    first = ada.post(f"/v1/runs/{run}:pause", {"drainPolicy": "immediate"}, headers={"Idempotency-Key": key})
    again = ada.post(f"/v1/runs/{run}:pause", {"drainPolicy": "immediate"}, headers={"Idempotency-Key": key})
    assert (again.status_code, again.json()) == (first.status_code, first.json()) == (202, first.json())
    assert again.headers["openwop-idempotent-replay"] == "true"
    refused = ada.post(f"/v1/runs/{run}:pause")
    valid(refused.json(), ERROR)
    assert (refused.status_code, refused.json()["error"]) == (409, "run_state_conflict")
    assert refused.json()["details"] == {"runStatus": "paused", "pausedAt": first.json()["pausedAt"]}
    other = started(ada, "conformance-cancellable", delayMs=60_000)
    mismatch = ada.post(f"/v1/runs/{other}:pause", {"drainPolicy": "immediate"}, headers={"Idempotency-Key": key})
    assert (mismatch.status_code, mismatch.json()["error"]) == (409, "idempotency_key_mismatch")
    ada.post("/v1/runs:bulk-cancel", {"runIds": [run, other]})
    ended(ada, other)
    refused = ada.post(f"/v1/runs/{other}:pause")
    assert (refused.status_code, refused.json()["error"]) == (409, "run_terminal")


@on_one_store
@pytest.mark.parametrize(
    "body", [{"drainPolicy": "later"}, {"drainPolicy": None}, {"drainPolicy": 1}, {"reason": 5}, [], "x"]
)
def test_a_wrong_body_pauses_nothing(ada: Any, body: Any) -> None:
    run = started(ada, "conformance-cancellable", delayMs=60_000)
    refused = ada.post(f"/v1/runs/{run}:pause", body)
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")
    assert snapshot(ada, run)["status"] == "running"
    ada.post(f"/v1/runs/{run}/cancel")


def test_only_the_owner_with_the_scope_pauses(seamed: Any, ada: Any) -> None:
    run = started(ada, "conformance-cancellable", delayMs=60_000)
    stranger = seamed.caller()
    assert stranger.post(f"/v1/runs/{run}:pause").status_code == 404
    assert stranger.post(f"/v1/runs/{run}:resume").status_code == 404
    reader = seamed.caller(ada.tenant, scopes=["runs:read", "runs:create"])
    refused = reader.post(f"/v1/runs/{run}:pause")
    assert (refused.status_code, refused.json()["details"]["scopeRequired"]) == (403, "runs:cancel")
    able = seamed.caller(ada.tenant, scopes=["runs:cancel"])
    assert able.post(f"/v1/runs/{run}:pause").status_code == 202
    ada.post(f"/v1/runs/{run}/cancel")


def test_a_replay_shows_no_pause(ada: Any, gate: Gate) -> None:
    run = started(ada, gate.name)
    until(lambda: "node.started" in kinds(ada, run), "the node did not start")
    ada.post(f"/v1/runs/{run}:pause")
    gate.open()
    until(lambda: "run.paused" in kinds(ada, run), "the pause took no effect")
    ada.post(f"/v1/runs/{run}:resume")
    assert ended(ada, run) == "completed"
    fork = ada.post(f"/v1/runs/{run}:fork", {"mode": "replay"}).json()["runId"]
    assert kinds(ada, fork) == ["run.started", "node.started", "node.completed", "run.completed"]
    assert [event["sequence"] for event in events(ada, fork)] == [0, 1, 2, 3]
    last = ada.get(f"/v1/runs/{fork}/events?lastSequence=2").json()
    assert [event["type"] for event in last["events"]] == ["run.completed"]


def test_a_paused_run_is_paused_after_a_restart(make_server: Callable[..., Any], tmp_path: Any) -> None:
    first = make_server(tmp_path, **SEAMS)
    caller = first.caller("acme")
    run = started(caller, "conformance-delay", delayMs=30_000)
    until(lambda: "node.started" in kinds(caller, run), "the node did not start")
    assert caller.post(f"/v1/runs/{run}:pause", {"drainPolicy": "immediate"}).status_code == 202
    until(lambda: "run.paused" in kinds(caller, run), "the pause took no effect")
    first.host.close()
    second = make_server(tmp_path, **SEAMS)
    caller = second.caller("acme")
    assert second.host.runs.recover(second.host.keys.authenticate(caller.key, door="rest")) == 0
    assert snapshot(caller, run)["status"] == "paused"
    assert caller.post(f"/v1/runs/{run}:resume").status_code == 202
    until(lambda: kinds(caller, run)[-1] == "node.started", "the node did not start again")
    caller.post(f"/v1/runs/{run}/cancel")
    assert ended(caller, run) == "cancelled"
    assert kinds(caller, run)[2:5] == ["run.paused", "run.resumed", "node.started"]


@pytest.mark.parametrize("taken", [False, True], ids=["alone", "taken-meanwhile"])
def test_a_pass_paused_at_once_writes_nothing_and_holds_no_memory(seamed: Any, taken: bool) -> None:
    caller = seamed.caller()
    for n in range(4):
        caller.put(f"The watch of sector {n} saw {n + 3} lorries leave through the north gate.")
    store, scope = seamed.host.parts.store, Scope(caller.tenant, "notes")
    assert store.write(scope, lambda tx: tx.claim("dream/notes", "test", until=tx.now + 600_000))
    answers: list[Any] = []
    body = {"workflowId": COMPACT, "inputs": {"memoryRef": "notes"}}
    starter = threading.Thread(target=lambda: answers.append(caller.post("/v1/runs", body)))
    starter.start()  # the memory is busy: the run waits for it
    begun: list[str] = []

    def look() -> bool:
        found = caller.get("events?type=run.started").json()["events"]
        begun[:] = [event["data"]["run"] for event in found if event["data"].get("workflow") == COMPACT]
        return bool(begun)

    until(look, "the run did not begin")
    assert caller.post(f"/v1/runs/{begun[0]}:pause", {"drainPolicy": "immediate"}).status_code == 202
    starter.join(PATIENCE)
    assert answers[0].json()["status"] == "paused"
    assert kinds(caller, begun[0]) == ["run.started", "run.paused"]
    store.write(scope, lambda tx: tx.release("dream/notes", "test"))
    if taken:
        assert caller.post("/v1/runs", body).json()["status"] == "completed"
    assert caller.post(f"/v1/runs/{begun[0]}:resume").status_code == 202
    assert ended(caller, begun[0]) == "completed"
    compacted = ["memory.compacted"] if not taken else []
    assert kinds(caller, begun[0]) == ["run.started", "run.paused", "run.resumed", *compacted, "run.completed"]


def test_a_dream_of_a_schedule_says_that_it_cannot_pause(ada: Any, seamed: Any) -> None:
    run = seamed.host.runs
    waiting, release = threading.Event(), threading.Event()
    actor = seamed.host.keys.authenticate(ada.key, door="rest")
    seen: list[str] = []

    def body(acting: Any) -> None:
        seen.append(acting.run)
        waiting.set()
        release.wait(PATIENCE)

    thread = threading.Thread(target=lambda: run.around(actor, "reverie.test", body))
    thread.start()
    assert waiting.wait(PATIENCE)
    refused = ada.post(f"/v1/runs/{seen[0]}:pause")
    release.set()
    thread.join(PATIENCE)
    assert (refused.status_code, refused.json()["error"]) == (409, "run_state_conflict")
    assert refused.json()["details"] == {"runStatus": "running"}
