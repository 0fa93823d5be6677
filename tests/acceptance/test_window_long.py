"""Two hundred turns of a tool-using agent through the real SDK and the window, while things go wrong."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai import OpenAI
from tests.responses_emulator import (
    MODEL,
    Bare,
    Cut,
    Drop,
    Emulator,
    Fail,
    Fault,
    Overflow,
    Raw,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    no_compaction,
    thought,
)

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy

TOOLS: list[Any] = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]
TURNS = 200


def errand(turn: Turn) -> list[dict[str, Any]]:
    """One or two calls, then, every fifth output, some words."""
    if turn.outputs % 5 == 0 and turn.last.get("type") == "function_call_output":
        return [thought(), message(f"Known: {len(turn.facts)} facts, {turn.outputs} outputs.")]
    many = 2 if turn.outputs % 5 in (0, 2) else 1
    return [thought(), *(call("step", {"n": turn.outputs + n}) for n in range(many))]


def trouble(route: str, number: int) -> Fault:
    """Every few requests something goes wrong, in turn."""
    if route == "compact" and number % 2 == 0:
        faults: list[Fault] = [Fail(500), Raw("{"), Twist(empty_output), Twist(no_compaction), Drop(), Fail(429), Cut()]
        return faults[number // 2 % len(faults)]
    if route == "create" and number % 17 == 0:
        every: list[Fault] = [
            Fail(500),
            Drop(),
            Fail(429),
            Overflow(),
            Cut(3),
            Raw("<html>"),
            Drop(answered=True),
            Bare(),
        ]
        return every[number // 17 % len(every)]
    return None


class Agent:
    """Gives the window only what is new; repeats what failed; is killed and started again now and then."""

    def __init__(self, provider: Emulator, memory: reverie.Memory, *, store: bool) -> None:
        self.provider, self.memory, self.store = provider, memory, store
        self.client = OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0, timeout=20)
        self.facts = self.outputs = self.failures = 0
        self.heard = ""
        self.given: list[Any] = []
        self.statuses: list[str] = []
        self.open()

    def open(self) -> None:
        policy = WindowPolicy(trigger_input_tokens=2500, store=self.store)
        self.window = ResponsesWindow.open(self.client, store=self.memory, scope="agent-1/long", policy=policy)

    def turn(self, given: list[Any], *, stream: bool) -> list[Any]:
        """One turn, repeated until it is answered."""
        for _ in range(6):
            try:
                return self.once(given, stream=stream)
            except (openai.APIError, json.JSONDecodeError, EOFError):
                self.failures += 1
        raise AssertionError("no answer in six tries")

    def once(self, given: list[Any], *, stream: bool) -> list[Any]:
        asked = {"model": MODEL, "input": given, "tools": TOOLS, "instructions": "Work."}
        if not stream:
            return [item.to_dict() for item in self.window.create(**asked).output]
        items, last = [], ""
        for event in self.window.create(**asked, stream=True):
            last = event.type
            if event.type == "response.output_item.done":
                items.append(event.item.to_dict())
        if last != "response.completed":
            raise EOFError(last)
        return items

    def run(self, turns: int) -> None:
        for number in range(turns):
            if number % 40 == 39:
                self.open()
            given, self.given = self.given, []
            if not given:
                self.facts += 1
                given = [{"role": "user", "content": f"fact:ask-{self.facts} go on"}]
            output = self.turn(given, stream=number % 3 == 0)
            passed = self.window.diagnostics["remote_compaction"]
            self.statuses += [passed["status"]] if passed else []
            for item in output:
                if item["type"] == "function_call":
                    self.facts += 1
                    self.outputs += 1
                    words = f"fact:out-{self.facts} " + "detail " * 50
                    self.given.append({"type": "function_call_output", "call_id": item["call_id"], "output": words})
                if item["type"] == "message":
                    self.heard = item["content"][0]["text"]


@pytest.mark.parametrize("store", [False, True])
def test_two_hundred_turns_with_faults_stay_bounded_and_finish(memory: reverie.Memory, store: bool) -> None:
    with Emulator(context=6000, model=errand) as provider:
        provider.fault = trouble
        agent = Agent(provider, memory, store=store)
        agent.run(TURNS if not store else TURNS // 3)
        while not (agent.heard and agent.outputs % 5 == 0 and str(agent.outputs) in agent.heard):
            agent.run(1)
        assert agent.failures >= 2
        assert max(seen.tokens for seen in provider.seen) < 6000
        assert agent.statuses.count("compacted") >= 3
        assert agent.heard == f"Known: {agent.facts} facts, {agent.outputs} outputs."
        refused = [seen.code for seen in provider.seen if seen.status == 400 and seen.code != "context_length_exceeded"]
        assert not refused
        assert memory.verify().ok
