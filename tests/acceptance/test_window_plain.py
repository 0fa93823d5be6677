"""The window as a plain library: raw items, any HTTP client, no store. A long session against the strict emulator."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from tests.responses_emulator import (
    MODEL,
    NOT_FOUND,
    Emulator,
    Fail,
    Fault,
    Raw,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    no_compaction,
    thought,
)

from reverie.window import Base, WindowPolicy, WindowState

TOOLS = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]
TRIGGER = 4000
CONTEXT = 8000


def errand(turn: Turn) -> list[dict[str, Any]]:
    """Two calls, one call, then an answer, for ever."""
    number = turn.outputs % 3
    if turn.last.get("type") == "function_call_output" and number == 0:
        return [thought(), message(f"Answer with {len(turn.facts)} facts and {turn.outputs} outputs.")]
    many = 2 if number == 0 else 1
    return [thought(), *(call("step", {"number": turn.outputs + n + 1}) for n in range(many))]


class Session:
    """A caller who repeats everything it ever said and heard, and never shortens it."""

    def __init__(self, provider: Emulator, state: WindowState, *, history: bool = True) -> None:
        self.provider, self.state, self.is_history = provider, state, history
        self.history: list[Any] = []
        self.said: list[Any] = []
        self.http = httpx2.Client(headers={"authorization": f"Bearer {provider.key}"}, timeout=30, trust_env=False)
        self.passes: list[str] = []
        self.facts = 0

    def post(self, path: str, body: Any) -> httpx2.Response:
        return self.http.post(self.state.base.url + path, json=body)

    def turn(self) -> dict[str, Any]:
        """One model request, and a pass when one is due before or after it."""
        self.state.begin_round()
        given = [*self.history, *self.said] if self.is_history else list(self.said)
        mode = "history" if self.is_history else "items"
        body, _ = self.state.plan(given, input_is=mode, model=MODEL, tools=TOOLS, instructions="Work.")
        if self.compact():
            body = self.state.rebuild_body()
        answer = self.post("/responses", body)
        assert answer.status_code == 200, answer.text
        self.state.accept(answer.text)
        self.compact()
        output = answer.json()["output"]
        shown = [item for item in output if item["type"] != "reasoning"]
        self.history += [*self.said, *({k: v for k, v in item.items() if k not in ("id", "status")} for item in shown)]
        self.said = []
        for item in shown:
            if item["type"] == "function_call":
                self.facts += 1
                words = f"fact:out-{self.facts} " + "detail " * 60
                self.said.append({"type": "function_call_output", "call_id": item["call_id"], "output": words})
        return answer.json()

    def compact(self) -> bool:
        request = self.state.compaction_request()
        if request is None:
            if self.state.remote_compaction:
                self.passes.append(self.state.remote_compaction["status"])
            return False
        assert self.state.attempt is not None
        answer = self.post(self.state.attempt.path, request)
        self.state.accept_compaction(answer.text, http_status=answer.status_code)
        assert self.state.remote_compaction is not None
        self.passes.append(self.state.remote_compaction["status"])
        return self.passes[-1] == "compacted"

    def run(self, turns: int) -> str:
        """So many turns; the words of the last answer."""
        heard = ""
        for number in range(turns):
            if not self.said:
                self.facts += 1
                self.said = [{"role": "user", "content": f"fact:ask-{self.facts} go on, {number}"}]
            for item in self.turn()["output"]:
                if item["type"] == "message":
                    heard = item["content"][0]["text"]
        return heard


def opened(provider: Emulator, **policy: Any) -> WindowState:
    given = WindowPolicy(trigger_input_tokens=TRIGGER, **policy)
    return WindowState("agent-1/task-7", base=Base.of(provider.url), policy=given)


@pytest.mark.parametrize(("history", "store", "turns"), [(True, False, 102), (True, True, 60), (False, False, 60)])
def test_a_long_session_stays_bounded_and_nothing_is_forgotten(history: bool, store: bool, turns: int) -> None:
    with Emulator(context=CONTEXT, model=errand) as provider:
        session = Session(provider, opened(provider, store=store), history=history)
        heard = session.run(turns)
        assert max(seen.tokens for seen in provider.seen) < CONTEXT
        assert session.passes.count("compacted") >= turns // 25
        assert set(session.passes) <= {"compacted", "skipped_cooldown"}
        outputs = sum(item.get("type") == "function_call_output" for item in session.history)
        assert f"{session.facts} facts and {outputs} outputs" in heard


@pytest.mark.parametrize(
    "faults",
    [
        [Fail(500)],
        [Fail(429, {"error": {"message": "slow down", "type": "x", "code": "rate_limit"}})],
        [Raw("{broken")],
        [Twist(empty_output), Twist(no_compaction)],
        [Fail(404, {"error": {"message": "Item with id 'rs_1' not found. Items are not persisted", "type": "x", "param": "input", "code": None}})],
    ],
    ids=["500", "429", "broken", "empty", "innocent-404"],
)  # fmt: skip
def test_a_failed_pass_costs_tokens_and_nothing_else(faults: list[Fault]) -> None:
    with Emulator(context=CONTEXT, model=errand) as provider:
        provider.faults["compact"] = list(faults)
        session = Session(provider, opened(provider))
        heard = session.run(60)
        assert session.passes.count("compacted") >= 1
        assert f"{session.facts} facts" in heard
        assert max(seen.tokens for seen in provider.seen) < CONTEXT


@pytest.mark.parametrize(
    "missing", [Fail(404, NOT_FOUND), Fail(405, "no"), Fail(410, {}), Fail(501, "{}"), Fail(404, "<html>")]
)
def test_a_missing_route_is_asked_once_and_the_trigger_item_takes_over(missing: Fail) -> None:
    with Emulator(context=CONTEXT, model=errand) as provider:
        provider.fault = lambda route, number: missing if route == "compact" else None
        session = Session(provider, opened(provider))
        heard = session.run(60)
        assert len(provider.requests("compact")) == 1
        assert session.passes[0] == "unsupported_endpoint"
        assert session.passes.count("compacted") >= 2
        assert f"{session.facts} facts" in heard


def test_what_is_sent_is_what_was_received() -> None:
    with Emulator(context=CONTEXT, model=errand) as provider:
        session = Session(provider, opened(provider))
        session.run(60)
        payloads = {text for text, sealed in provider.vault.sealed.items() if sealed.kind == "compaction"}
        sent = [item for seen in provider.requests("create") for item in seen.input if item.get("type") == "compaction"]
        assert sent
        assert {item["encrypted_content"] for item in sent} <= payloads
        assert all(set(item) == {"id", "type", "encrypted_content"} for item in sent)
        bodies = [json.loads(seen.raw) for seen in provider.requests("compact")]
        assert all(set(body) <= {"model", "input", "instructions", "prompt_cache_key"} for body in bodies)
