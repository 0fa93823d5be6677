"""Dispatch: an installed agent answers from memory, by quotes or by a model, or escalates."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import ERROR, valid
from tests.stores import on_one_store

from reverie.core.actor import Actor
from reverie.core.run import DISPATCH
from reverie.host import Host
from reverie.protocols.openwop.dispatch import ANSWERS
from reverie.providers.chat import NONSENSE, ChatReply, Prompt
from reverie.providers.llm import PaidChat

NOTES = [
    "The staging database moved to port 5433 in March.",
    "Deploys to production need a second reviewer.",
    "The office coffee machine is descaled every Friday.",
]


def install(server: Any, caller: Any, **more: Any) -> Actor:
    actor = Actor(tenant=caller.tenant, id="local:test")
    server.host.agents.install(
        actor, {"agentId": "ops", "persona": "A careful operator", "modelClass": "general", **more}
    )
    for note in NOTES:
        caller.post("/v1/host/reverie/memory/ops/entries", json={"content": note}).raise_for_status()
    return actor


def dispatch(caller: Any, task: str, **inputs: Any) -> Any:
    body = {"workflowId": DISPATCH, "inputs": {"agentId": "ops", "task": task, **inputs}}
    return caller.post("/v1/runs", json=body)


def run_of(caller: Any, answer: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["runId"]
    events = caller.get(f"/v1/runs/{run_id}/events/poll").json()["events"]
    return caller.get(f"/v1/runs/{run_id}").json(), events


def test_the_advertisement_follows_the_dispatcher(server: Any, make_server: Any, tmp_path: Any) -> None:
    agents = server.caller().get("/.well-known/openwop").json()["agents"]
    assert agents["supported"] is True
    assert agents["manifestRuntime"] == {"supported": True, "installScope": "tenant"}
    make_server(data=tmp_path)
    closed = make_server(data=tmp_path, read_only=True).stranger().get("/.well-known/openwop").json()["agents"]
    assert closed["supported"] is False
    assert "manifestRuntime" not in closed


def test_an_agent_quotes_what_it_recalls(server: Any, acme: Any) -> None:
    install(server, acme)
    run, events = run_of(acme, dispatch(acme, "Which port does the staging database use?"))
    assert run["status"] == "completed"
    assert run["agent"] == {"agentId": "ops"}
    assert run["variables"]["outcome"] == "completed"
    assert run["variables"]["answer"][0]["content"] == NOTES[0]
    own = [event for event in events if event["type"].startswith("agent.")]
    assert [event["type"] for event in own] == ["agent.reasoned", "agent.decided"]
    assert all(event["payload"]["agentId"] == "ops" for event in own)
    reasoned, decided = (event["payload"] for event in own)
    assert run["variables"]["answer"][0]["id"] in reasoned["memoryIds"]
    assert decided["outcome"] == "completed"
    assert decided["confidence"] >= decided["confidenceThreshold"]
    assert not any(word in json.dumps(events) for word in ("5433", "port", "reviewer"))


def test_the_task_is_not_kept_after_the_run(server: Any, acme: Any) -> None:
    install(server, acme)
    run, _ = run_of(acme, dispatch(acme, "Which port does the staging database of Wilhelmina use?"))
    assert run["status"] == "completed"
    assert run["inputs"] == {"agentId": "ops"}


@pytest.mark.parametrize("more", [{"confidenceThreshold": 1.0}, {}])
def test_an_agent_that_is_not_sure_escalates(server: Any, acme: Any, more: dict[str, Any]) -> None:
    install(server, acme, **more)
    task = "Which port does the staging database use?" if more else "Who composed the third symphony?"
    run, events = run_of(acme, dispatch(acme, task))
    assert run["status"] == "completed"
    assert run["variables"]["outcome"] == "escalated"
    assert run["variables"]["answer"] == []
    assert events[-1]["type"] == "run.completed"


def test_the_budget_bounds_what_is_quoted(server: Any, acme: Any) -> None:
    install(server, acme)
    run, events = run_of(acme, dispatch(acme, "staging database port and production deploys", tokenBudget=15))
    reasoned = next(event["payload"] for event in events if event["type"] == "agent.reasoned")
    assert reasoned["tokens"] <= 15
    assert len(run["variables"]["answer"]) <= 1


def test_tools_outside_the_allowlist_are_refused(server: Any, acme: Any) -> None:
    install(server, acme, toolAllowlist=["web.get"])
    _, events = run_of(acme, dispatch(acme, "staging database port", availableTools=["web.get", "shell.run"]))
    assert next(event["payload"]["toolsRefused"] for event in events if event["type"] == "agent.reasoned") == 1
    assert not [event for event in events if "tool" in event["type"]]


@on_one_store
@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({"agentId": "unknown", "task": "x"}, 404),
        ({"agentId": "ops"}, 400),
        ({"agentId": "ops", "task": ""}, 400),
        ({"agentId": "ops", "task": "x" * 5000}, 400),
        ({"agentId": "ops", "task": "x", "tokenBudget": 0}, 400),
        ({"agentId": "ops", "task": "x", "tokenBudget": True}, 400),
        ({"agentId": "ops", "task": "x", "availableTools": "all"}, 400),
        ({"agentId": "ops", "task": "x", "memoryRef": "\n"}, 400),
    ],
)
def test_bad_requests_make_no_run(server: Any, acme: Any, inputs: dict[str, Any], status: int) -> None:
    actor = install(server, acme)
    before = server.host.reader.snapshot(actor)
    answer = acme.post("/v1/runs", json={"workflowId": DISPATCH, "inputs": inputs})
    assert answer.status_code == status
    valid(answer.json(), ERROR)
    assert not server.host.reader.events(actor, after=before, types=("run.started",))


@pytest.mark.parametrize("agent", ["acme/ops@1", "ops//night", "ops/"])
def test_an_agent_whose_id_cannot_name_a_memory_is_dispatched(server: Any, acme: Any, agent: str) -> None:
    actor = install(server, acme)
    server.host.agents.install(actor, {"agentId": agent, "persona": "Night watch", "modelClass": "general"})
    run, events = run_of(acme, dispatch(acme, "Which port does the staging database use?", agentId=agent))
    assert (run["status"], run["variables"]["outcome"]) == ("completed", "escalated")
    (ref,) = [event["payload"]["memoryRef"] for event in events if event["type"] == "agent.reasoned"]
    acme.put(NOTES[0], ref=ref)
    run, _ = run_of(acme, dispatch(acme, "Which port does the staging database use?", agentId=agent))
    assert run["variables"]["answer"][0]["content"] == NOTES[0]
    assert run_of(acme, dispatch(acme, "staging database port?", agentId="ops"))[0]["variables"]["answer"]


def test_an_agent_of_another_tenant_cannot_be_dispatched(server: Any, acme: Any) -> None:
    install(server, acme)
    assert dispatch(server.caller(), "staging database port").status_code == 404


def test_the_seam_dispatches_the_agents_of_the_suite(seamed: Any, ada: Any) -> None:
    agent = ada.get("/v1/agents").json()["agents"][0]["agentId"]
    path = f"/v1/host/sample/agents/{agent}/dispatch"
    answer = ada.post(path, json={"task": "anything", "validateHandoff": False, "availableTools": []})
    body = answer.json()
    assert answer.status_code == 200
    assert body["agentId"] == agent
    assert body["status"] in ("completed", "escalated")
    assert {event["type"] for event in body["events"]} >= {"agent.reasoned", "agent.decided"}
    assert all(event["agentId"] == agent for event in body["events"])
    assert ada.post("/v1/host/sample/agents/unknown/dispatch", json={"task": "x"}).status_code == 404
    assert ada.post(path, json={"task": {"steps": ["one", 2]}}).status_code == 200
    assert ada.post(path, json={"task": {"steps": 2**64}}).json()["error"] == "validation_error"


def test_without_seams_the_seam_does_not_exist(server: Any, acme: Any) -> None:
    assert acme.post("/v1/host/sample/agents/ops/dispatch", json={"task": "x"}).status_code == 404


class Scripted:
    """A chat model that answers with JSON, and refuses a prompt without the memories and the task."""

    name = "test/scripted"
    parameters = ""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []

    def ask(self, prompt: Prompt, *, seconds: float) -> ChatReply:
        assert seconds > 0
        assert "Memories:\n- " in prompt.user
        assert "\nTask: " in prompt.user
        self.prompts.append(prompt)
        return ChatReply(self.answers.pop(0), 50, 10)


def with_model(server: Any, model: Scripted) -> Host:
    chat = PaidChat(model, count=server.host.parts.tokens.count, price_in=100, price_out=400)
    return Host(dataclasses.replace(server.host.parts, chat=chat))


def test_a_model_answers_from_the_same_memories(server: Any, acme: Any) -> None:
    actor = install(server, acme)
    model = Scripted("not json", '{"answer": "It uses port 5433."}')
    host = with_model(server, model)
    run = host.runs.start(actor, DISPATCH, inputs={"agentId": "ops", "task": "staging database port?"})
    answer = host.runs.variables(actor, run)["answer"]
    assert answer.content == "It uses port 5433."
    assert answer.ref == ANSWERS
    assert len(model.prompts) == 2
    assert "A careful operator" in model.prompts[0].system
    assert host.spend.day(actor).calls == 2


def test_a_model_that_answers_nothing_has_failed(server: Any, acme: Any) -> None:
    actor = install(server, acme)
    host = with_model(server, Scripted('{"answer": " "}'))
    run = host.runs.start(actor, DISPATCH, inputs={"agentId": "ops", "task": "staging database port?"})
    assert run.fault is not None
    assert (run.fault.code, run.fault.details) == ("model_failed", {"fault": NONSENSE})


def test_a_forget_reaches_the_answer_of_a_model(server: Any, acme: Any) -> None:
    actor = install(server, acme)
    acme.post(
        "/v1/host/reverie/memory/ops/entries",
        json={"content": "Lena Vargas runs the staging database.", "subject": "lena"},
    ).raise_for_status()
    host = with_model(server, Scripted('{"answer": "Lena Vargas runs it."}'))
    run = host.runs.start(actor, DISPATCH, inputs={"agentId": "ops", "task": "Who runs the staging database?"})
    assert host.runs.variables(actor, run)["answer"].content == "Lena Vargas runs it."
    acme.post("/v1/host/reverie/memory/forget", json={"subject": "lena"}).raise_for_status()
    assert host.runs.variables(actor, run)["answer"] is None


def test_a_spend_limit_fails_the_run_before_the_call(server: Any, acme: Any) -> None:
    actor = install(server, acme)
    server.host.rules.set_policy(actor, {"model_calls_per_day": 0})
    model = Scripted('{"answer": "never"}')
    host = with_model(server, model)
    run = host.runs.start(actor, DISPATCH, inputs={"agentId": "ops", "task": "staging database port?"})
    assert run.status == "failed"
    assert not model.prompts
