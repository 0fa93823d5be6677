"""The window around the real `openai` SDK: blocking, awaiting and streaming, against the strict emulator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from tests.responses_emulator import (
    MODEL,
    NOT_FOUND,
    Bare,
    Cut,
    Emulator,
    Fail,
    Overflow,
    Raw,
    Turn,
    Twist,
    call,
    message,
    talker,
    thought,
)

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy

TRIGGER = 2000
CONTEXT = 5000
TOOLS = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]


def errand(turn: Turn) -> list[dict[str, Any]]:
    """Two calls, one call, then an answer, for ever."""
    number = turn.outputs % 3
    if turn.last.get("type") == "function_call_output" and number == 0:
        return [thought(), message(f"Answer with {len(turn.facts)} facts and {turn.outputs} outputs.")]
    many = 2 if number == 0 else 1
    return [thought(), *(call("step", {"number": turn.outputs + n + 1}) for n in range(many))]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=CONTEXT, model=errand) as emulator:
        yield emulator


def client(provider: Emulator, **more: Any) -> OpenAI:
    return OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0, **more)


def opened(provider: Emulator, memory: reverie.Memory, scope: str = "agent-1/task-7", **policy: Any) -> Any:
    given = WindowPolicy(**{"trigger_input_tokens": TRIGGER, **policy})
    return ResponsesWindow.open(client(provider), store=memory, scope=scope, policy=given)


class Talk:
    """A caller: gives what is new (or all there is), runs the tools, counts the facts it told."""

    def __init__(self, window: Any, *, history: bool = False, stream: bool = False) -> None:
        self.window, self.is_history, self.stream = window, history, stream
        self.history: list[Any] = []
        self.said: list[Any] = []
        self.facts = 0
        self.heard = ""
        self.statuses: list[str] = []

    def given(self) -> dict[str, Any]:
        if not self.said:
            self.facts += 1
            self.said = [{"role": "user", "content": f"fact:ask-{self.facts} go on"}]
        how = {"input": [*self.history, *self.said], "input_is": "history"}
        return {"model": MODEL, "tools": TOOLS, "instructions": "Work."} | (
            how if self.is_history else {"input": self.said}
        )

    def take(self, output: list[Any]) -> None:
        shown = [item.to_dict() for item in output if item.type != "reasoning"]
        self.history += [*self.said, *shown]
        self.said = []
        for item in shown:
            if item["type"] == "function_call":
                self.facts += 1
                words = f"fact:out-{self.facts} " + "detail " * 60
                self.said.append({"type": "function_call_output", "call_id": item["call_id"], "output": words})
            elif item["type"] == "message":
                self.heard = item["content"][0]["text"]
        done = self.window.diagnostics["remote_compaction"]
        if done is not None:
            self.statuses.append(done["status"])

    def turn(self) -> None:
        if self.stream:
            items = []
            for event in self.window.create(**self.given(), stream=True):
                if event.type == "response.output_item.done":
                    items.append(event.item)
            self.take(items)
        else:
            self.take(self.window.create(**self.given()).output)

    def run(self, turns: int) -> str:
        for _ in range(turns):
            self.turn()
        return self.heard

    @property
    def outputs(self) -> int:
        return sum(item.get("type") == "function_call_output" for item in self.history)


@pytest.mark.parametrize(
    ("how", "turns", "policy"),
    [
        ({}, 36, {}),
        ({"history": True}, 21, {}),
        ({"stream": True}, 21, {}),
        ({"history": True, "stream": True}, 21, {"store": True}),
        ({}, 21, {"store": True}),
        ({}, 21, {"mode": "trigger"}),
        ({}, 21, {"inject_checkpoint": "brief"}),
        ({}, 21, {"mode": "server_side"}),
        ({"history": True}, 21, {"mode": "server_side"}),
        ({}, 21, {"mode": "server_side", "store": True}),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else str(value),
)
def test_a_long_session_stays_bounded_and_forgets_nothing(
    provider: Emulator, memory: reverie.Memory, how: dict[str, Any], turns: int, policy: dict[str, Any]
) -> None:
    talk = Talk(opened(provider, memory, **policy), **how)
    heard = talk.run(turns)
    assert max(seen.tokens for seen in provider.seen) < CONTEXT
    assert f"{talk.facts} facts and {talk.outputs} outputs" in heard
    assert all(seen.status == 200 for seen in provider.seen)
    if policy.get("mode") == "server_side":
        assert not provider.requests("compact")
        passes = memory.host.windows.passes(memory.actor, "agent-1/task-7")
        assert len(passes) >= 1
        assert {row["trigger_reason"] for row in passes} == {"server_threshold"}
    else:
        assert "compacted" in talk.statuses


def test_a_restart_goes_on_where_it_ended(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory))
    for _ in range(21):
        talk.window = opened(provider, memory)
        talk.turn()
    assert f"{talk.facts} facts and {talk.outputs} outputs" in talk.heard
    assert max(seen.tokens for seen in provider.seen) < CONTEXT


def test_the_payload_goes_back_as_it_came(provider: Emulator, memory: reverie.Memory) -> None:
    odd = "gAAAA ä\\u00e9/+=\u2028 "

    def disguise(answer: dict[str, Any]) -> dict[str, Any]:
        for item in answer["output"]:
            if item["type"] == "compaction":
                provider.vault.sealed[odd] = provider.vault.sealed[item["encrypted_content"]]
                item |= {"encrypted_content": odd, "created_by": "x"}
        return answer

    provider.faults["compact"] = [Twist(disguise)]
    talk = Talk(opened(provider, memory))
    while "compacted" not in talk.statuses:
        talk.window = opened(provider, memory)
        talk.turn()
    talk.window = opened(provider, memory)
    talk.turn()
    sent = [item for item in provider.requests("create")[-1].input if item.get("type") == "compaction"]
    assert [item["encrypted_content"] for item in sent] == [odd]
    assert sent[0]["created_by"] == "x"


def test_several_compaction_items_are_all_kept(provider: Emulator, memory: reverie.Memory) -> None:
    def twice(answer: dict[str, Any]) -> dict[str, Any]:
        last = answer["output"][-1]
        provider.vault.sealed["another"] = provider.vault.sealed[last["encrypted_content"]]
        return {**answer, "output": [*answer["output"], {**last, "id": "cmp_2", "encrypted_content": "another"}]}

    provider.faults["compact"] = [Twist(twice)]
    talk = Talk(opened(provider, memory))
    while "compacted" not in talk.statuses:
        talk.turn()
    assert talk.window.diagnostics["remote_compaction"]["compaction_items"] == 2
    talk.turn()
    assert [i.get("type") for i in provider.requests("create")[-1].input].count("compaction") == 2


def test_passes_are_told_apart_from_turns_by_retries_and_time(memory: reverie.Memory, provider: Emulator) -> None:
    provider.faults["compact"] = [Fail(500), Fail(500)]
    window = ResponsesWindow.open(
        OpenAI(api_key=provider.key, base_url=provider.url, max_retries=2),
        store=memory,
        scope="s",
        policy=WindowPolicy(trigger_input_tokens=1000),
    )
    talk = Talk(window)
    while not talk.statuses:
        talk.turn()
    assert talk.statuses == ["failed"]
    assert len(provider.requests("compact")) == 1
    report = window.diagnostics["remote_compaction"]
    assert report["http_status"] == 500
    assert report["trigger_reason"] in ("token_budget_pressure", "estimated_window_pressure")


def test_a_missing_route_is_asked_once_by_all_scopes(provider: Emulator, memory: reverie.Memory) -> None:
    provider.fault = lambda route, number: Fail(404, NOT_FOUND) if route == "compact" else None
    sdk = client(provider)
    policy = WindowPolicy(trigger_input_tokens=1500)
    talks = [Talk(ResponsesWindow.open(sdk, store=memory, scope=scope, policy=policy)) for scope in ("one", "two")]
    for talk in talks:
        talk.run(12)
    assert len(provider.requests("compact")) == 1
    assert talks[0].statuses[0] == "unsupported_endpoint"
    assert "compacted" in talks[0].statuses
    assert "unsupported_endpoint" not in talks[1].statuses
    assert "compacted" in talks[1].statuses


def test_when_nothing_is_left_it_is_said_once_and_nothing_is_asked(provider: Emulator, memory: reverie.Memory) -> None:
    provider.fault = lambda route, number: Fail(410, {}) if route == "compact" else None
    provider.trigger = "ignored"
    talk = Talk(opened(provider, memory, trigger_input_tokens=1000))
    talk.run(15)
    assert len(provider.requests("compact")) == 1
    triggers = [seen for seen in provider.requests("create") if seen.input[-1].get("type") == "compaction_trigger"]
    assert len(triggers) == 1
    assert "skipped_unsupported_endpoint" in talk.statuses
    assert len(memory.events(types=["remote_compaction_unavailable"])) == 1
    assert max(seen.tokens for seen in provider.requests("create")) < 2000  # shortened from what can be read
    asked = [item for item in provider.requests("create")[-1].input if item.get("role") == "user"]
    assert "fact:ask-1" in str(asked)


def test_answers_nested_too_deep_to_be_read_leave_the_turn_alone(provider: Emulator, memory: reverie.Memory) -> None:
    deep = "[" * 5000
    provider.fault = lambda route, number: Fail(500, deep) if route == "compact" else None
    provider.faults["count"] = [Raw(deep)] * 20
    talk = Talk(opened(provider, memory, trigger_input_tokens=1000, fallback_methods=["standalone"]))
    talk.run(10)
    assert "failed" in talk.statuses


@pytest.mark.parametrize("stream", [False, True])
def test_an_overflow_is_compacted_and_sent_again(provider: Emulator, memory: reverie.Memory, stream: bool) -> None:
    provider.context = 2500
    talk = Talk(opened(provider, memory, trigger_input_tokens=100_000), stream=stream)
    talk.run(30)
    assert "compacted" in talk.statuses
    rows = memory.host.windows.passes(memory.actor, "agent-1/task-7")
    assert {row["trigger_reason"] for row in rows} == {"context_window_error"}
    assert f"{talk.facts} facts and {talk.outputs} outputs" in talk.heard


def test_a_prefix_that_does_not_fit_is_halved_and_then_the_window_is_dropped(
    provider: Emulator, memory: reverie.Memory
) -> None:
    talk = Talk(opened(provider, memory, trigger_input_tokens=100_000))
    talk.run(6)
    provider.faults["create"] = [Overflow()]
    provider.faults["compact"] = [Overflow()]
    talk.turn()
    assert talk.statuses[-1] == "compacted"
    sizes = [len(seen.input) for seen in provider.requests("compact")]
    assert sizes[1] <= sizes[0] // 2 + 1
    talk.run(5)
    provider.faults["create"] = [Overflow()]
    provider.faults["compact"] = [Overflow()] * 4
    talk.turn()
    assert len(sizes) + 2 <= len(provider.requests("compact")) <= len(sizes) + 4
    assert talk.statuses[-1] == "failed_context_window"
    reset = memory.events(types=["provider_window_reset"])[-1]
    assert reset.data["reason"] == "overflow_rebuild"
    assert reset.data["checkpoint_ref"]


def test_one_item_larger_than_the_window_is_the_callers_business(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory, context_window=CONTEXT)
    with pytest.raises(openai.BadRequestError) as refused:
        window.create(model=MODEL, input="word " * 40_000)
    assert refused.value.code == "context_length_exceeded"
    assert window.diagnostics["remote_compaction"]["status"] == "skipped_item_exceeds_window"
    assert not provider.requests("compact")


def test_a_lost_chain_is_replayed_once(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory, store=True))
    talk.run(3)
    assert provider.requests("create")[-1].body["previous_response_id"]
    provider.vault.stored.clear()
    talk.turn()
    found = talk.window.diagnostics["incremental_continuation"]
    assert found["status"] == "fallback_provider_window_replay"
    assert found["fallback_reason"] == "previous_response_id_rejected"
    assert f"{talk.facts} facts" in Talk.run(talk, 3) or talk.facts


def test_a_refused_payload_resets_once_and_the_readable_layer_takes_over(
    provider: Emulator, memory: reverie.Memory
) -> None:
    talk = Talk(opened(provider, memory))
    while "compacted" not in talk.statuses:
        talk.turn()
    provider.vault.sealed.clear()
    talk.turn()
    found = talk.window.diagnostics["incremental_continuation"]
    assert found["status"] == "reset"
    assert found["reset_reason"] == "encrypted_content_rejected"
    event = memory.events(types=["provider_window_reset"])[-1]
    assert event.data["compaction_items_dropped"] == 1
    assert event.data["generation_after"] == event.data["generation_before"] + 1
    checkpoint = memory.ref("agent-1/task-7").get(event.data["checkpoint_ref"])
    assert checkpoint.kind == "checkpoint"
    assert "fact:ask-1" in checkpoint.content
    talk.run(3)


def test_another_account_starts_anew(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory))
    while "compacted" not in talk.statuses:
        talk.turn()
    other = OpenAI(api_key=provider.other_key, base_url=provider.url, max_retries=0)
    talk.window = ResponsesWindow.open(other, store=memory, scope="agent-1/task-7")
    talk.turn()
    assert talk.window.diagnostics["continuation"]["reset_reason"] == "provider_changed"
    assert memory.events(types=["provider_window_reset"])[-1].data["reason"] == "provider_changed"


def test_a_changed_shape_keeps_the_window(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory))
    while "compacted" not in talk.statuses:
        talk.turn()
    while talk.said:
        talk.turn()
    window = talk.window
    window.create(model=MODEL, input="hello", instructions="Other.", tools=TOOLS)
    found = window.diagnostics["continuation"]
    assert found["fallback_reason"] == "request_shape_changed"
    assert found["request_lowering_mode"] == "provider_window_compacted"
    assert any(item.get("type") == "compaction" for item in provider.requests("create")[-1].input)


def test_a_history_that_was_edited_is_a_reset(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory), history=True)
    talk.run(3)
    talk.history[0] = {"role": "user", "content": "something else"}
    talk.turn()
    found = talk.window.diagnostics["continuation"]
    assert found["status"] == "reset"
    assert found["fallback_reason"] == "conversation_not_strict_append_only"
    assert found["first_mismatch_path"] == "/0/content/0/text"
    assert found["mismatch_kind"] == "semantic_mismatch"


def test_what_was_said_twice_is_kept_once_and_the_last_word_counts(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = lambda turn: [thought(), message(f"echo {turn.asked}")]
    window = opened(provider, memory)
    history: list[Any] = []

    def say(text: str) -> None:
        history.append({"role": "user", "content": text})
        answer = window.create(model=MODEL, input=history, input_is="history")
        history.append({"role": "assistant", "content": answer.output_text})

    for number in range(4):
        say(f"word {number}")
    del history[4:]
    say("other 2")
    say("other 3")
    del history[2:]
    say("third 1")
    scope = "agent-1/task-7"
    spoken = [item["content"][0]["text"] for item in memory.host.windows.rebuild(memory.actor, scope)]
    assert spoken == [item["content"] for item in history]
    entries = memory.ref(scope).list(reverie.Filter(kinds=("turn",)), limit=100).items
    assert len(entries) == 2 * (4 + 2 + 1)


@pytest.mark.parametrize("fault", [Fail(500), Fail(429), Cut(), Raw("{broken")], ids=["500", "429", "cut", "broken"])
def test_a_failed_turn_changes_nothing_and_can_be_repeated(
    provider: Emulator, memory: reverie.Memory, fault: Any
) -> None:
    talk = Talk(opened(provider, memory))
    talk.run(4)
    before = talk.window.items()
    generation = talk.window.state.generation
    provider.faults["create"] = [fault]
    with pytest.raises((openai.OpenAIError, json.JSONDecodeError)):
        talk.window.create(**talk.given())
    assert talk.window.items() == before
    assert talk.window.state.generation == generation
    assert not memory.events(types=["provider_window_reset"])
    talk.run(4)
    assert f"{talk.facts} facts" in talk.heard or talk.heard


def test_a_stream_that_ends_early_leaves_the_window_as_it_was(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory), stream=True)
    talk.run(4)
    before = talk.window.items()
    provider.faults["create"] = [Cut(3)]
    with pytest.raises(openai.OpenAIError):
        talk.turn()
    with talk.window.create(**talk.given(), stream=True) as stream:
        next(stream)
    assert talk.window.items() == before
    talk.run(4)


def test_a_stream_whose_end_tells_no_items_still_brings_them(provider: Emulator, memory: reverie.Memory) -> None:
    provider.fault = lambda route, number: Bare() if route == "create" else None
    talk = Talk(opened(provider, memory), stream=True)
    heard = talk.run(30)
    assert f"{talk.facts} facts and {talk.outputs} outputs" in heard


def test_server_side_is_switched_off_after_two_faults(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory, mode="server_side"))
    talk.run(2)
    assert provider.requests("create")[-1].body["context_management"] == [
        {"type": "compaction", "compact_threshold": TRIGGER}
    ]
    provider.faults["create"] = [Fail(500), Fail(500)]
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            talk.turn()
    assert len(memory.events(types=["server_side_disabled"])) == 1
    talk.turn()
    assert "context_management" not in provider.requests("create")[-1].body


def test_a_server_that_forgets_to_compact_is_helped(provider: Emulator, memory: reverie.Memory) -> None:
    provider.server_skips_tool_turns = True
    talk = Talk(opened(provider, memory, mode="server_side", server_compact_threshold=1500))
    heard = talk.run(21)
    assert max(seen.tokens for seen in provider.seen) < CONTEXT
    assert f"{talk.facts} facts and {talk.outputs} outputs" in heard


def test_popping_past_a_compaction_brings_the_earlier_items_back(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory))
    before: list[Any] = []
    while "compacted" not in talk.statuses:
        before = talk.window.items()
        talk.turn()
    everything = len(before)
    popped = []
    while len(talk.window.items()) and len(popped) < 60:
        item = talk.window.pop()
        popped.append(item)
        items = talk.window.items()
        if not any(i.get("type") == "compaction" for i in items):
            break
    items = talk.window.items()
    assert items == before[: len(items)] or items[:everything] == before
    reopened = opened(provider, memory)
    assert reopened.items() == items


def test_clearing_is_a_reset(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory))
    talk.run(3)
    talk.window.clear()
    assert talk.window.items() == []
    assert memory.events(types=["provider_window_reset"])[-1].data["reason"] == "cleared"
    assert opened(provider, memory).items() == []


def test_the_codex_base_is_spoken_to_as_it_demands(provider: Emulator, memory: reverie.Memory) -> None:
    sdk = OpenAI(api_key=provider.key, base_url=provider.codex_url.removesuffix("/codex"), max_retries=0)
    policy = WindowPolicy(trigger_input_tokens=TRIGGER)
    talk = Talk(ResponsesWindow.open(sdk, store=memory, scope="codex", policy=policy), stream=True)
    heard = talk.run(21)
    assert {seen.base for seen in provider.seen} == {"codex"}
    assert not provider.requests("compact")
    assert talk.statuses.count("compacted") >= 1
    assert f"{talk.facts} facts and {talk.outputs} outputs" in heard


def test_a_caller_that_chains_by_itself_is_left_alone(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    provider.model = talker
    first = window.create(model=MODEL, input="one", store=True)
    window.create(model=MODEL, input="two", previous_response_id=first.id, store=True)
    assert window.diagnostics["continuation"]["fallback_reason"] == "client_managed_chain"


def test_asking_for_a_pass(provider: Emulator, memory: reverie.Memory) -> None:
    talk = Talk(opened(provider, memory, trigger_input_tokens=100_000))
    assert talk.window.compact()["status"] == "skipped_no_safe_boundary"
    talk.run(12)
    report = talk.window.compact()
    assert report["status"] == "compacted"
    assert report["trigger_reason"] == "manual"
    assert talk.window.compact()["status"] in ("skipped_cooldown", "skipped_no_safe_boundary")
    talk.run(3)


async def _async_talk(provider: Emulator, memory: reverie.Memory, *, stream: bool) -> Talk:
    sdk = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
    window = await ResponsesWindow.open(
        sdk, store=memory, scope="async", policy=WindowPolicy(trigger_input_tokens=TRIGGER)
    )
    talk = Talk(window)
    for _ in range(21):
        if stream:
            items = []
            async for event in await window.create(**talk.given(), stream=True):
                if event.type == "response.output_item.done":
                    items.append(event.item)
            talk.take(items)
        else:
            talk.take((await window.create(**talk.given())).output)
    await sdk.close()
    return talk


@pytest.mark.parametrize("stream", [False, True])
def test_the_awaiting_client_gets_the_same(provider: Emulator, memory: reverie.Memory, stream: bool) -> None:
    talk = asyncio.run(_async_talk(provider, memory, stream=stream))
    assert f"{talk.facts} facts and {talk.outputs} outputs" in talk.heard
    assert talk.statuses.count("compacted") >= 1
    assert max(seen.tokens for seen in provider.seen) < CONTEXT


def test_a_cancelled_pass_leaves_the_window_and_is_abandoned(provider: Emulator, memory: reverie.Memory) -> None:
    from tests.responses_emulator import Slow

    async def play() -> None:
        sdk = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
        window = await ResponsesWindow.open(
            sdk, store=memory, scope="c", policy=WindowPolicy(trigger_input_tokens=10**6)
        )
        talk = Talk(window)
        for _ in range(12):
            talk.take((await window.create(**talk.given())).output)
        before = await window.items()
        provider.faults["compact"] = [Slow(5)]
        task = asyncio.create_task(window.compact())
        while not provider.requests("compact"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await window.items() == before
        assert len(memory.events(types=["remote_compaction_abandoned"])) == 1
        assert (await window.compact())["status"] == "compacted"
        await sdk.close()

    asyncio.run(play())
