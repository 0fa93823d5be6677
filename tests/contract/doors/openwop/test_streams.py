"""Streams of a run's events: which modes go together, and events in batches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import ERROR, valid
from tests.contract.doors.openwop.test_runs import events, start
from tests.contract.doors.openwop.test_workflows import begin
from tests.stores import on_one_store

from reverie.core.entry import Scope
from reverie.core.event import NewEvent
from reverie.core.run import RUN_SPACE
from reverie.protocols.openwop.runs import Runs


def frames(caller: Any, run_id: str, query: str = "", **headers: str) -> list[dict[str, str]]:
    """The frames of a stream that has ended."""
    path = f"/v1/runs/{run_id}/events{query}"
    answer = caller.get(path, headers={"Accept": "text/event-stream", **headers})
    assert answer.status_code == 200, answer.text
    blocks = [block.splitlines() for block in answer.text.split("\n\n") if "data: " in block]
    return [dict(line.split(": ", 1) for line in block) for block in blocks]


@on_one_store
@pytest.mark.parametrize(
    "modes", ["values,updates", "updates,values", "nope", "updates,nope", "", "values,values,debug"]
)
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_a_combination_there_is_not_is_refused(ada: Any, modes: str, accept: str) -> None:
    run = start(ada, "conformance-noop")["runId"]
    answer = ada.get(f"/v1/runs/{run}/events?streamMode={modes}", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_stream_mode")
    assert answer.json()["details"]["supported"] == ["updates", "values", "messages", "debug"]
    valid(answer.json(), ERROR)


def test_a_list_of_modes_sends_each_event_once(ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    mixed = frames(ada, run, "?streamMode=updates,messages")
    assert mixed == frames(ada, run, "?streamMode=updates")
    assert [frame["event"] for frame in mixed] == [event["type"] for event in events(ada, run)]
    assert "memory.written" not in [frame["event"] for frame in frames(ada, run, "?streamMode=messages")]


def test_a_buffered_stream_has_the_same_events_in_batches(ada: Any) -> None:
    run = start(ada, "conformance-multi-node")["runId"]
    batches = frames(ada, run, "?bufferMs=4000")
    assert {frame["event"] for frame in batches} == {"batch"}
    shown = [json.loads(frame["data"]) for frame in batches]
    assert all(shown)
    assert [event for batch in shown for event in batch] == events(ada, run)
    assert [int(frame["id"]) for frame in batches] == [batch[-1]["sequence"] for batch in shown]
    rest = frames(ada, run, "?bufferMs=4000", **{"Last-Event-ID": "3"})
    assert [event["sequence"] for frame in rest for event in json.loads(frame["data"])] == [4, 5, 6, 7]


def test_the_end_of_a_run_does_not_wait_for_the_buffer(ada: Any) -> None:
    """Events of a run that is going: the last batch comes with the end, not when the buffer is full."""
    run = begin(ada, "conformance-delay", delayMs=300)
    batches = [json.loads(frame["data"]) for frame in frames(ada, run, "?bufferMs=5000")]
    assert batches[-1][-1]["type"] == "run.completed"
    assert [event["sequence"] for batch in batches for event in batch] == [0, 1, 2, 3]


@pytest.mark.parametrize("query", ["", "?bufferMs=0", "?streamMode=values&bufferMs=1000"])
def test_no_buffer_no_batch(ada: Any, query: str) -> None:
    run = start(ada, "conformance-noop")["runId"]
    assert "batch" not in {frame["event"] for frame in frames(ada, run, query)}


@on_one_store
@pytest.mark.parametrize("wrong", ["", "-1", "5001", "1.5", "x"])
def test_a_buffer_out_of_range_is_refused(ada: Any, wrong: str) -> None:
    run = start(ada, "conformance-noop")["runId"]
    answer = ada.get(f"/v1/runs/{run}/events?bufferMs={wrong}")
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def of_a_newer_engine(server: Any, caller: Any, run: str) -> str:
    """The run, as a later version of the host would store it."""

    def raise_version(tx: Any) -> None:
        stored = json.loads(tx.load(RUN_SPACE, run).body)
        body = json.dumps(stored | {"engine": 2, "status": "a-status-of-the-future"}).encode()
        tx.save(RUN_SPACE, run, body, seq=tx.append(NewEvent("document.saved", "TEST", "test")))

    server.host.parts.store.write(Scope(caller.tenant), raise_version)
    return run


def test_a_run_of_a_newer_engine_stops_no_other_from_being_cancelled_or_recovered(seamed: Any, ada: Any) -> None:
    newer = of_a_newer_engine(seamed, ada, begin(ada, "conformance-cancellable", delayMs=60_000))
    going = begin(ada, "conformance-cancellable", delayMs=60_000)
    results = ada.post("/v1/runs:bulk-cancel", {"runIds": [newer, going]}).json()["results"]
    assert [(item["runId"], item["ok"]) for item in results] == [(newer, False), (going, True)]
    assert results[0]["error"]["code"] == "engine_version_mismatch"
    assert seamed.host.runs.recover(seamed.host.system_actor(ada.tenant)) == 0


@pytest.mark.parametrize(("workflow", "last"), [("identity", "node.completed"), ("failure", "node.failed")])
def test_whoever_reads_the_end_of_a_node_early_reads_what_stays(
    seamed: Any, ada: Any, monkeypatch: pytest.MonkeyPatch, workflow: str, last: str
) -> None:
    early: list[dict[str, Any]] = []
    finish = Runs._finish

    def looked(runs: Runs, actor: Any, run: Any, *given: Any, **named: Any) -> Any:
        early.extend(ada.get(f"/v1/runs/{run.id}/events").json()["events"])
        return finish(runs, actor, run, *given, **named)

    monkeypatch.setattr(Runs, "_finish", looked)
    run = start(ada, f"conformance-{workflow}", inputs={"payload": {"a": 1}})
    found = events(ada, run["runId"])
    assert last in [event["type"] for event in found]
    assert early == found[: len(early)]


def test_a_run_of_a_newer_engine_is_refused_whole(seamed: Any, ada: Any) -> None:
    run = of_a_newer_engine(seamed, ada, start(ada, "conformance-noop")["runId"])
    answer = ada.get(f"/v1/runs/{run}")
    assert (answer.status_code, answer.json()["error"]) == (409, "engine_version_mismatch")
    assert answer.json()["details"] == {"runId": run, "persistedVersion": 2, "currentVersion": 1}
