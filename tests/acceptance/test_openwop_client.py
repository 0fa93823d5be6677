"""OpenWOP with its official Python client, over a real socket: every call it has for what this host serves."""

from __future__ import annotations

from collections.abc import Iterator

import openwop_client as official
import pytest
from tests.acceptance.test_server import PATIENCE, Child
from tests.postgres import shared_server

SEAMS = {"OPENWOP_TEST_SEAM_ENABLED": "true"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def child(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    arguments: list[str] = []
    if request.param == "postgres":
        arguments = ["--database-url", shared_server(tmp_path_factory).make_database()]
    made = Child(tmp_path_factory.mktemp("data"), *arguments, **SEAMS)
    yield made
    made.kill()


@pytest.fixture
def client(child: Child, monkeypatch: pytest.MonkeyPatch) -> official.OpenwopClient:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return official.OpenwopClient(child.url, child.key or "", timeout=PATIENCE)


def completed(client: official.OpenwopClient, workflow: str, **inputs: object) -> official.RunSnapshot:
    made = client.runs_create(official.CreateRunRequest(workflowId=workflow, inputs=dict(inputs)))
    assert made.eventsUrl.endswith(f"/v1/runs/{made.runId}/events")
    assert [event.type for event in client.runs_events(made.runId)][-1] == "run.completed"
    return client.runs_get(made.runId)


def test_discovery(client: official.OpenwopClient) -> None:
    found = client.discovery_capabilities()
    assert found.protocolVersion == "1.0"
    assert found.limits.maxRequestBodyBytes
    assert found.memory is not None
    assert found.memory.injectionBudget is not None
    assert found.memory.injectionBudget.supported
    document = client.discovery_openapi()
    assert document["openapi"].startswith("3.1")
    assert {"/v1/runs", "/v1/runs/{run_id}", "/v1/agents", "/v1/workflows/{workflow_id}"} <= set(document["paths"])


def test_a_run_from_start_to_fork(client: official.OpenwopClient) -> None:
    run = completed(client, "conformance-agent-memory-roundtrip")
    assert run.status == "completed"
    assert run.eventLogSchemaVersion == 2
    polled = client.runs_poll_events(run.runId)
    assert polled.isComplete
    assert [event.sequence for event in polled.events] == list(range(len(polled.events)))
    later = client.runs_poll_events(run.runId, last_sequence=polled.events[0].sequence)
    assert len(later.events) == len(polled.events) - 1
    batched = client.runs_events(run.runId, buffer_ms=50, stream_mode=["updates", "messages"])
    assert [event.sequence for event in batched] == [event.sequence for event in polled.events]
    replay = client.runs_fork(run.runId, official.ForkRunRequest(fromSeq=0, mode="replay"))
    assert replay.sourceRunId == run.runId
    recorded = client.runs_poll_events(replay.runId).events
    assert [event.type for event in recorded] == [event.type for event in polled.events]
    with pytest.raises(official.WopError) as refused:
        client.runs_fork(run.runId, official.ForkRunRequest(fromSeq=999, mode="branch"))
    assert refused.value.status == 422


def test_memory_passes_are_workflows(child: Child, client: official.OpenwopClient) -> None:
    with child.client() as http:
        for n in range(4):
            http.post("/memory/pass/entries", json={"content": f"Reading {n} of the meter is {n * 7}."})
    definition = client.workflows_get("reverie.memory.compact")
    assert definition["nodes"]
    run = completed(client, "reverie.memory.compact", memoryRef="pass")
    assert (run.variables or {})["sourceCount"] == 4


def test_one_key_makes_one_run(client: official.OpenwopClient) -> None:
    body = official.CreateRunRequest(workflowId="conformance-idempotent", inputs={"nonce": "n"})
    first = client.runs_create(body, idempotency_key="k-1")
    assert client.runs_create(body, idempotency_key="k-1").runId == first.runId
    other = official.CreateRunRequest(workflowId="conformance-idempotent", inputs={"nonce": "m"})
    with pytest.raises(official.WopError) as refused:
        client.runs_create(other, idempotency_key="k-1")
    assert (refused.value.status, refused.value.envelope and refused.value.envelope.error) == (
        409,
        "idempotency_key_mismatch",
    )


def test_cancel_one_and_many(client: official.OpenwopClient) -> None:
    slow = [
        client.runs_create(
            official.CreateRunRequest(workflowId="conformance-cancellable", inputs={"delayMs": 60_000})
        ).runId
        for _ in range(2)
    ]
    assert client.runs_cancel(slow[0]).status in ("cancelling", "cancelled")
    done = client.runs_bulk_cancel(official.BulkCancelRunsRequest(runIds=[*slow, "unknown"]))
    assert [(item.runId, item.ok) for item in done.results] == [(slow[0], True), (slow[1], True), ("unknown", False)]
    assert list(client.runs_events(slow[1]))[-1].type == "run.cancelled"


def test_agents_are_listed_and_dispatched(client: official.OpenwopClient) -> None:
    found = client.agents_list() or []
    assert [agent.agentId for agent in found] == ["conformance-plain", "conformance-requiring"]
    assert found[1].degraded == ["sandbox"]
    assert client.agents_get("conformance-plain") == found[0]
    assert client.agents_get("unknown") is None
    run = completed(client, "reverie.agent.dispatch", agentId="conformance-plain", task="Which pump is loud?")
    assert (run.variables or {})["outcome"] == "escalated"


def test_workspace_files(client: official.OpenwopClient) -> None:
    first = client.put_workspace_file("notes/plan.md", official.PutWorkspaceFileRequest(content="# One"))
    second = client.put_workspace_file(
        "notes/plan.md", official.PutWorkspaceFileRequest(content="# Two"), if_match=first.etag
    )
    assert second.version == first.version + 1
    with pytest.raises(official.WopError) as refused:
        client.put_workspace_file(
            "notes/plan.md", official.PutWorkspaceFileRequest(content="# Late"), if_match=first.etag
        )
    assert refused.value.status == 409
    found = client.get_workspace_file("notes/plan.md")
    assert found is not None
    assert found.content == "# Two"
    old = client.get_workspace_file("notes/plan.md", version=first.version)
    assert old is not None
    assert old.content == "# One"
    assert "notes/plan.md" in [file.path for file in client.list_workspace_files(prefix="notes/") or []]
    assert client.delete_workspace_file("notes/plan.md")
    assert client.get_workspace_file("notes/plan.md") is None


def test_a_run_is_paused_and_resumed(client: official.OpenwopClient) -> None:
    made = client.runs_create(
        official.CreateRunRequest(workflowId="conformance-cancellable", inputs={"delayMs": 60_000})
    )
    paused = client.runs_pause(made.runId, official.PauseRunRequest(drainPolicy="immediate"), idempotency_key="once")
    assert paused.status == "paused"
    assert paused.pausedAt
    assert client.runs_pause(
        made.runId, official.PauseRunRequest(drainPolicy="immediate"), idempotency_key="once"
    ).pausedAt == (paused.pausedAt)
    with pytest.raises(official.WopError) as refused:
        client.runs_pause(made.runId)
    assert refused.value.status == 409
    resumed = client.runs_resume(made.runId)
    assert resumed.status == "running"
    assert resumed.resumedAt
    client.runs_pause(made.runId, official.PauseRunRequest(drainPolicy="immediate"))
    client.runs_cancel(made.runId)
    assert [event.type for event in client.runs_events(made.runId)][-1] == "run.cancelled"


def test_what_is_not_offered_is_absent(client: official.OpenwopClient) -> None:
    run = completed(client, "conformance-noop")
    assert client.runs_debug_bundle(run.runId) is None
    assert client.runs_get_artifact(run.runId, "a") is None
    assert client.runs_ancestry(run.runId) is None
    assert client.tools_list() is None
    for call in (client.runs_pause, client.runs_resume, client.workflows_get):
        with pytest.raises(official.WopError) as refused:
            call("unknown")
        assert refused.value.status == 404


def test_a_wrong_key_is_refused_in_the_closed_envelope(child: Child, client: official.OpenwopClient) -> None:
    del client
    stranger = official.OpenwopClient(child.url, "rvk_unknown", timeout=PATIENCE)
    with pytest.raises(official.WopError) as refused:
        stranger.runs_get("x")
    assert refused.value.status == 401
    assert refused.value.envelope is not None
    assert refused.value.envelope.error == "unauthenticated"
