"""Runs over HTTP: start, look at, follow, cancel."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from tests.contract.doors.openwop.schemas import ERROR, MEMORY_ENTRY, PAYLOADS, RUN_EVENT, RUN_SNAPSHOT, valid
from tests.stores import on_one_store

from reverie.core.actor import Right
from reverie.core.entry import Scope
from reverie.core.run import Interrupted, RunStatus

ENDS = {"run.completed", "run.failed", "run.cancelled"}
FIXTURES = [
    "conformance-agent-memory-cross-tenant",
    "conformance-agent-memory-injection-budget",
    "conformance-agent-memory-redaction",
    "conformance-agent-memory-roundtrip",
    "conformance-agent-memory-ttl",
    "conformance-noop",
]
PLAIN = [
    "conformance-cancellable",
    "conformance-delay",
    "conformance-failure",
    "conformance-idempotent",
    "conformance-identity",
    "conformance-multi-node",
]
EMPTIES = "conformance-agent-memory-injection-budget"
LINES = [f"The backup of cluster {name} ran for {n + 20} minutes on Monday night." for n, name in enumerate("ABCDE")]


def start(caller: Any, workflow: str, **body: Any) -> dict[str, Any]:
    """Start a run and look at it; its snapshot."""
    answer = caller.post("/v1/runs", {"workflowId": workflow, **body})
    assert answer.status_code == 201, answer.text
    begun = answer.json()
    assert set(begun) == {"runId", "status", "eventsUrl", "statusUrl"}
    snapshot = caller.get(begun["statusUrl"]).json()
    valid(snapshot, RUN_SNAPSHOT)
    assert snapshot["runId"] == begun["runId"]
    assert snapshot["workflowId"] == workflow
    return dict(snapshot)


def events(caller: Any, run_id: str, **query: Any) -> list[dict[str, Any]]:
    """The events of a run, each checked; gapless, the end last."""
    answer = caller.get(f"/v1/runs/{run_id}/events", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()["events"]
    for event in found:
        valid(event, RUN_EVENT)
        assert event["runId"] == run_id
        if event["type"] in PAYLOADS:
            valid(event["payload"], PAYLOADS[event["type"]])
        assert None not in event.values()
    assert [event["sequence"] for event in found] == list(range(len(found)))
    assert [event["type"] for event in found if event["type"] in ENDS] == [found[-1]["type"]]
    assert len({event["eventId"] for event in found}) == len(found)
    return list(found)


def of_type(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in found if event["type"] == name]


def fill(caller: Any, ref: str) -> list[str]:
    return [caller.put(line, ref=ref) for line in LINES]


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_fixture_completes_and_names_what_it_wrote(ada: Any, fixture: str) -> None:
    run = start(ada, fixture, tenantId="made-up-tenant")
    assert run["status"] == "completed"
    assert run["owner"]["tenant"] == ada.tenant
    found = events(ada, run["runId"])
    assert found[0]["type"] == "run.started"
    assert found[-1]["type"] == "run.completed"
    written = of_type(found, "memory.written")
    assert written
    for event in written:
        shown = ada.get(f"/v1/memory/{event['payload']['memoryRef'].replace('/', '%2F')}").json()["entries"]
        there = {entry["id"] for entry in shown}
        absent = fixture == EMPTIES or event["payload"]["memoryId"] == run["variables"].get("expiredId")
        assert (event["payload"]["memoryId"] in there) != absent


def test_fixtures_exist_only_with_the_seams(server: Any, seamed: Any) -> None:
    listed = seamed.stranger().get("/.well-known/openwop").json()
    assert listed["fixtures"] == sorted(FIXTURES + PLAIN)
    assert "fixtures" not in server.stranger().get("/.well-known/openwop").json()
    acme = server.caller()
    for fixture in FIXTURES + PLAIN:
        refused = acme.post("/v1/runs", {"workflowId": fixture})
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


def test_what_a_run_writes_it_reads(ada: Any) -> None:
    run = start(ada, "conformance-agent-memory-roundtrip")
    entry = run["variables"]["memoryReadback"]
    valid(entry, MEMORY_ENTRY)
    written = of_type(events(ada, run["runId"]), "memory.written")
    assert [event["payload"]["memoryId"] for event in written] == [entry["id"]]


def test_what_has_expired_is_in_no_list(ada: Any) -> None:
    variables = start(ada, "conformance-agent-memory-ttl")["variables"]
    assert [entry["id"] for entry in variables["memoryList"]] == [variables["freshId"]]
    assert variables["expiredId"] != variables["freshId"]


def test_a_run_s_own_secret_is_marked(ada: Any) -> None:
    content = start(ada, "conformance-agent-memory-redaction")["variables"]["memoryReadback"]["content"]
    assert "[REDACTED:conformance-test-secret]" in content
    assert "byok" not in content


@pytest.mark.parametrize("probe", [None, "mem_tenant:somebody_agent:else_longTerm", "../x"])
def test_another_tenant_s_memory_is_empty(ada: Any, probe: str | None) -> None:
    inputs = {} if probe is None else {"probeMemoryRef": probe}
    variables = start(ada, "conformance-agent-memory-cross-tenant", inputs=inputs)["variables"]
    assert [entry["id"] for entry in variables["ownerProbe"]] == [variables["ownerEntryId"]]
    assert variables["crossTenantProbe"] == []


def test_the_host_s_own_writes_name_no_node(ada: Any) -> None:
    run = start(ada, "conformance-noop")
    (written,) = of_type(events(ada, run["runId"]), "memory.written")
    assert "nodeId" not in written
    assert "nodeId" not in written["payload"]
    assert run["variables"] == {}


def test_a_compaction_is_a_run_with_one_event(acme: Any) -> None:
    ids = fill(acme, "team/a")
    run = start(acme, "reverie.memory.compact", inputs={"memoryRef": "team/a"})
    (compacted,) = of_type(events(acme, run["runId"]), "memory.compacted")
    assert sorted(compacted["payload"]["sourceIds"]) == sorted(ids)
    assert "distillation" not in compacted["payload"]
    output = acme.get(f"memory/team%2Fa/entries/{compacted['payload']['outputId']}").json()
    assert f"compacted-from:{run['runId']}" in output["tags"]
    assert compacted["payload"]["byteSize"] == len(output["content"].encode())


def test_a_distillation_is_a_run_that_writes_the_index(acme: Any) -> None:
    fill(acme, "team/b")
    run = start(acme, "reverie.memory.distill", inputs={"memoryRef": "team/b"})
    found = events(acme, run["runId"])
    (compacted,) = of_type(found, "memory.compacted")
    (updated,) = of_type(found, "workspace.updated")
    assert updated["payload"] == {"path": "MEMORY-INDEX.json", "version": 1}
    assert compacted["payload"]["distillation"]["indexUpdated"] is True
    index = json.loads(acme.get("/v1/host/workspace/files/MEMORY-INDEX.json").json()["content"])
    assert [item["outputId"] for item in index["archives"]] == [compacted["payload"]["outputId"]]
    assert run["variables"]["archiveChecksum"] == index["archives"][0]["archiveChecksum"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_budget_that_is_too_small_fails_the_run_and_says_what_it_takes(acme: Any, nested: bool) -> None:
    def options(budget: int) -> dict[str, Any]:
        return {"distillation": {"tokenBudget": budget}} if nested else {"distillation.tokenBudget": budget}

    ids = fill(acme, "team/c")
    asked = {"inputs": {"memoryRef": "team/c"}}
    failed = start(acme, "reverie.memory.distill", **asked, configurable=options(1))
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "token_budget_exceeded"
    assert failed["error"]["details"]["budget"] == 1
    least = failed["error"]["details"]["minimumRequired"]
    found = events(acme, failed["runId"])
    assert [event["type"] for event in found] == ["run.started", "run.failed"]
    assert found[-1]["payload"]["error"]["code"] == "token_budget_exceeded"
    assert start(acme, "reverie.memory.distill", **asked, configurable=options(least - 1))["status"] == "failed"
    assert {e["id"] for e in acme.get("memory/team%2Fc/entries").json()["entries"]} == set(ids)
    assert acme.get("/v1/host/workspace/files").json() == {"files": []}
    done = start(acme, "reverie.memory.distill", **asked, configurable=options(least))
    assert done["status"] == "completed"
    assert done["variables"]["tokensUsed"] <= least


def test_a_consolidation_is_a_run(acme: Any) -> None:
    for _ in range(3):
        acme.put("The office is closed on Fridays.", ref="team/d")
    counts = []
    for _ in range(2):
        run = start(acme, "reverie.memory.consolidate", inputs={"memoryRef": "team/d"})
        (done,) = of_type(events(acme, run["runId"]), "agent.memory.consolidated")
        counts.append((done["payload"]["inputCount"], done["payload"]["outputCount"]))
    assert counts == [(3, 1), (1, 1)]


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"workflowId": 7},
        {"workflowId": ""},
        {"workflowId": "no.such.workflow"},
        {"workflowId": "reverie.memory.compact"},
        {"workflowId": "reverie.memory.compact", "inputs": []},
        {"workflowId": "reverie.memory.compact", "inputs": {"memoryRef": 5}},
        {"workflowId": "reverie.memory.compact", "inputs": {"memoryRef": "../up"}},
        {"workflowId": "reverie.memory.compact", "inputs": {"memoryRef": "a/../b"}},
        {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": ""}},
        *(
            {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": "r"}, "configurable": options}
            for options in (
                {"distillation.tokenBudget": 0},
                {"distillation.tokenBudget": -5},
                {"distillation.tokenBudget": "8000"},
                {"distillation.tokenBudget": 1.5},
                {"distillation.tokenBudget": True},
                {"distillation": {"tokenBudget": 0}},
            )
        ),
        {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": "r", "x": "y" * 70_000}},
        {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": "r"}, "tags": ["t" * 257]},
        {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": "r"}, "tags": "t"},
    ],
    ids=str,
)
def test_a_request_that_cannot_be_right_begins_nothing(acme: Any, body: dict[str, Any]) -> None:
    before = acme.get("events").json()["events"]
    answer = acme.post("/v1/runs", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    valid(answer.json(), ERROR)
    assert acme.get("events").json()["events"] == before


def test_a_run_is_its_tenant_s_alone(seamed: Any, ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    rival = seamed.caller()
    for method, path, body in (
        ("GET", f"/v1/runs/{run}", None),
        ("GET", f"/v1/runs/{run}/events", None),
        ("GET", f"/v1/runs/{run}/events/poll", None),
        ("POST", f"/v1/runs/{run}/cancel", None),
        ("POST", f"/v1/runs/{run}:fork", {"mode": "replay"}),
        ("GET", f"/v1/host/sample/test/runs/{run}/events", None),
    ):
        options = {"json": body} if body else {}
        foreign = rival.send(method, path, **options)
        unknown = rival.send(method, path.replace(run, "0" * 26), **options)
        assert (foreign.status_code, foreign.json()) == (unknown.status_code, unknown.json())
        assert (foreign.status_code, foreign.json()["error"]) == (404, "not_found")
        assert seamed.stranger().send(method, path, **options).status_code == 401


def test_what_a_caller_sends_with_a_run_passes_the_redactor(ada: Any) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    run = start(ada, "conformance-noop", inputs={"note": secret}, metadata={"x": [secret]}, tags=[secret])
    assert secret not in json.dumps(run)
    assert "REDACTED" in json.dumps([run["inputs"], run["metadata"], run["tags"]])


@on_one_store
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("streamMode=nonsense", "unsupported_stream_mode"),
        ("streamMode=updates,nonsense", "unsupported_stream_mode"),
        ("streamMode=", "unsupported_stream_mode"),
        ("bufferMs=5001", "validation_error"),
        ("bufferMs=-1", "validation_error"),
        ("bufferMs=x", "validation_error"),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_how_to_stream_is_checked_before_the_form_is_chosen(ada: Any, accept: str, query: str, code: str) -> None:
    run = start(ada, "conformance-noop")["runId"]
    answer = ada.get(f"/v1/runs/{run}/events?{query}", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    if code == "unsupported_stream_mode":
        assert answer.json()["details"]["supported"] == ["updates", "values", "messages", "debug"]


def test_memory_events_appear_in_updates_and_debug(ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    shown = {}
    for mode in ("updates", "values", "messages", "debug"):
        found = ada.get(f"/v1/runs/{run}/events?streamMode={mode}").json()["events"]
        shown[mode] = [event["type"] for event in found]
    assert shown["updates"] == shown["debug"] == ["run.started", "memory.written", "run.completed"]
    assert shown["values"] == shown["messages"] == ["run.started", "run.completed"]


def test_a_poll_goes_on_after_what_was_seen(ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    whole = ada.get(f"/v1/runs/{run}/events/poll").json()
    assert set(whole) == {"runId", "events", "lastEventSeq", "isComplete", "runStatus", "isTerminal"}
    assert (whole["isComplete"], whole["isTerminal"], whole["runStatus"]) == (True, True, "completed")
    assert whole["lastEventSeq"] == whole["events"][-1]["sequence"] == 2
    rest = ada.get(f"/v1/runs/{run}/events/poll?lastSequence=0&timeout=1").json()
    assert rest["events"] == whole["events"][1:]
    past = ada.get(f"/v1/runs/{run}/events/poll?lastSequence=99&timeout=30")
    assert (past.status_code, past.json()["events"]) == (200, [])
    assert ada.get(f"/v1/runs/{run}/events/poll?lastSequence=x").status_code == 400


def test_a_stream_says_the_same_and_ends_with_the_run(ada: Any) -> None:
    run = start(ada, "conformance-agent-memory-ttl")["runId"]
    answer = ada.get(f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    whole = events(ada, run)
    assert sse(answer.text) == [(str(e["sequence"]), e["type"], e) for e in whole]
    for last in ("1", f"{run}-1"):
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
        assert sse(ada.get(f"/v1/runs/{run}/events", headers=headers).text) == sse(answer.text)[2:]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "-1"}  # as in a poll: nothing was seen
    assert sse(ada.get(f"/v1/runs/{run}/events", headers=headers).text) == sse(answer.text)
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "3"}
    assert sse(ada.get(f"/v1/runs/{run}/events", headers=headers).text) == []
    headers["Last-Event-ID"] = "nonsense"
    assert ada.get(f"/v1/runs/{run}/events", headers=headers).status_code == 400


def sse(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(id, event, data) of each server-sent event."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


def test_a_run_that_has_ended_stays_as_it_is_when_cancelled(ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    before = events(ada, run)
    answer = ada.post(f"/v1/runs/{run}/cancel")
    assert answer.json() == {"runId": run, "status": "completed", "alreadyTerminal": True}
    assert events(ada, run) == before


def test_to_cancel_a_run_no_right_to_read_it_is_needed(seamed: Any, ada: Any) -> None:
    writer = seamed.caller(ada.tenant, rights=frozenset({Right.WRITE}))
    one, other = [start(ada, "conformance-cancellable", inputs={"delayMs": 60_000})["runId"] for _ in range(2)]
    assert writer.post("/v1/runs:bulk-cancel", {"runIds": [one]}).json()["results"][0]["ok"]
    answer = writer.post(f"/v1/runs/{other}/cancel")
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] in ("cancelling", "cancelled")
    assert writer.get(f"/v1/runs/{other}").status_code == 403
    assert writer.post("/v1/runs/nope/cancel").status_code == 404


@pytest.mark.parametrize("name", ["reverie.memory.compact", "reverie.memory.distill"])
def test_a_pass_that_is_canceled_while_it_works_writes_nothing(
    seamed: Any, ada: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    engine = seamed.host.dreams
    make = engine._make

    def late(dream: Any) -> Any:
        assert ada.post(f"/v1/runs/{dream.id}/cancel").json()["status"] == "cancelling"
        return make(dream)

    ref = f"canceled/{name}"
    texts = [{"id": f"e{n}", "content": f"The ferry of day {n} leaves at {n} past nine."} for n in range(5)]
    ada.post("/v1/test/memory/seed", {"memoryRef": ref, "entries": texts})
    monkeypatch.setattr(engine, "_make", late)
    run = seamed.host.runs.start(seamed.host.system_actor(ada.tenant), name, inputs={"memoryRef": ref})
    assert run.status is RunStatus.CANCELLED
    assert "memory.compacted" not in [event["type"] for event in events(ada, run.id)]
    left = ada.get(f"/v1/memory/{quote(ref, safe='')}").json()["entries"]
    assert sorted(entry["id"] for entry in left) == [f"e{n}" for n in range(5)]


def test_a_run_at_work_is_asked_to_stop_and_stops_at_its_end(seamed: Any, ada: Any) -> None:
    host = seamed.host
    actor = host.system_actor(ada.tenant)

    def body(acting: Any) -> None:
        answer = ada.post(f"/v1/runs/{acting.run}/cancel")
        assert answer.json() == {"runId": acting.run, "status": "cancelling"}
        assert ada.post(f"/v1/runs/{acting.run}/cancel").json()["status"] == "cancelling"
        still = ada.get(f"/v1/runs/{acting.run}/events/poll").json()
        assert (still["isTerminal"], still["runStatus"]) == (False, "cancelling")

    run, _ = host.runs.around(actor, "reverie.memory.distill", body)
    assert run.status is RunStatus.CANCELLED
    assert [event["type"] for event in events(ada, run.id)] == ["run.started", "run.cancelling", "run.cancelled"]


def test_nothing_is_written_in_the_name_of_a_run_that_has_ended(seamed: Any, ada: Any) -> None:
    host = seamed.host
    run = start(ada, "conformance-noop")["runId"]
    before = events(ada, run)
    late = host.system_actor(ada.tenant)
    late = type(late)(**{name: getattr(late, name) for name in late.__slots__} | {"run": run})
    from reverie.core.entry import Draft
    from reverie.core.run import RunOver

    with pytest.raises(RunOver):
        host.entries.put(late, "late", [Draft("too late")])
    assert events(ada, run) == before


def test_an_event_of_another_source_does_not_enter_a_run(ada: Any) -> None:
    run = start(ada, "conformance-noop")["runId"]
    before = events(ada, run)
    ada.put("A note that claims to be of the run.", ref="x", source={"run": run})
    assert events(ada, run) == before


def test_a_run_without_a_process_is_ended_once_and_said_to_be_interrupted(seamed: Any, ada: Any) -> None:
    host, actor = seamed.host, seamed.host.system_actor(ada.tenant)

    class Killed(BaseException):
        """What no handler catches: the process is gone."""

    def body(acting: Any) -> None:
        raise Killed

    with pytest.raises(Killed):
        host.runs.around(actor, "reverie.memory.distill", body)
    (started,) = ada.get("events?type=run.started").json()["events"]
    run = started["data"]["run"]
    assert ada.get(f"/v1/runs/{run}").json()["status"] == "running"
    assert host.runs.recover(actor) == 0  # its lease has not ended: someone may be at it
    host.parts.store.write(Scope(ada.tenant), lambda tx: tx.release(f"run/{run}", host.runs._holder))
    assert host.runs.recover(actor) == 1
    assert host.runs.recover(actor) == 0
    found = ada.get(f"/v1/runs/{run}").json()
    assert (found["status"], found["error"]["code"]) == ("failed", "run_interrupted")
    assert [event["type"] for event in events(ada, run)] == ["run.started", "run.failed"]


def test_an_interrupted_pass_goes_on_and_is_not_done_twice(seamed: Any, ada: Any) -> None:
    host, actor = seamed.host, seamed.host.system_actor(ada.tenant)
    fill(ada, "again")

    class Killed(BaseException):
        """What no handler catches: the process is gone."""

    for when in ("before", "after"):

        def body(acting: Any, when: str = when) -> None:
            if when == "after":
                host.passes.distil(acting, "again", run_id=acting.run)
            raise Killed

        with pytest.raises(Killed):
            host.runs.around(
                actor,
                "reverie.memory.distill",
                body,
                ref="again",
                inputs={"memoryRef": "again"},
                interrupted=Interrupted.AGAIN,
            )
        run = ada.get("events?type=run.started").json()["events"][-1]["data"]["run"]
        host.parts.store.write(Scope(ada.tenant), lambda tx, run=run: tx.release(f"run/{run}", host.runs._holder))
        assert host.runs.recover(actor) == 1
        assert ada.get(f"/v1/runs/{run}").json()["status"] == "completed"
        found = events(ada, run)
        assert len(of_type(found, "memory.compacted")) == 1
        assert len(of_type(found, "workspace.updated")) == 1
        fill(ada, "again")


def test_scopes_of_a_key_limit_what_it_may_do_with_runs(seamed: Any) -> None:
    owner = seamed.caller()
    run = start(owner, "conformance-noop")["runId"]
    requests = {
        "runs:create": ("POST", "/v1/runs", {"workflowId": "conformance-noop"}),
        "runs:read": ("GET", f"/v1/runs/{run}", None),
        "runs:cancel": ("POST", f"/v1/runs/{run}/cancel", None),
    }
    for scope in requests:
        caller = seamed.caller(owner.tenant, scopes=[scope])
        for needed, (method, path, body) in requests.items():
            answer = caller.send(method, path, **({"json": body} if body else {}))
            assert (answer.status_code == 403) == (needed != scope), (scope, needed)
            if answer.status_code == 403:
                assert answer.json()["details"]["scopeRequired"] == needed


def test_the_tenant_s_events_are_listed_by_type_and_since_a_position_or_an_instant(acme: Any) -> None:
    fill(acme, "listed")
    start(acme, "reverie.memory.compact", inputs={"memoryRef": "listed"})
    (compacted,) = acme.get("events?type=memory.compacted&since=").json()["events"]
    assert acme.get(f"events?type=memory.compacted&since={compacted['seq']}").json()["events"] == []
    before = acme.get(f"events?type=memory.compacted&since={compacted['seq'] - 1}").json()["events"]
    assert before == [compacted]
    assert acme.get("events", params={"since": "2020-01-01T00:00:00Z", "type": ""}).json()["events"][0]["seq"] == 1
    later = acme.get("events", params={"since": "2099-01-01T00:00:00+02:00"})
    assert later.json()["events"] == []
    assert acme.get("events?since=whenever").status_code == 400
