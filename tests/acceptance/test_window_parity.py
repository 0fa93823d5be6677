"""What users of the `openai` client know works in a window: parsing, streams, raw answers, background, closing."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import pytest
from openai import APIConnectionError, AsyncOpenAI, AsyncStream, OpenAI, Stream
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel
from tests.responses_emulator import MODEL, Cut, Emulator, Overflow, Raw, Turn, call, message, thought

import reverie
from reverie.core.errors import Conflict
from reverie.responses import AsyncWindow, ResponsesWindow, SyncWindow, WindowPolicy

SCOPE = "agent-1/task-5"


class Known(BaseModel):
    """What the model says it knows."""

    facts: list[str]


def recall(turn: Turn) -> list[dict[str, Any]]:
    if turn.body.get("text", {}).get("format", {}).get("type") == "json_schema":
        return [thought(), message(json.dumps({"facts": turn.facts}))]
    return [thought(), message(f"I know {len(turn.facts)}: {' '.join(turn.facts)}")]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=6000, model=recall) as emulator:
        yield emulator


def client(provider: Emulator) -> OpenAI:
    return OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)


def opened(provider: Emulator, memory: reverie.Memory, **policy: Any) -> SyncWindow:
    given = WindowPolicy(**{"trigger_input_tokens": 3000, **policy})
    return ResponsesWindow.open(client(provider), store=memory, scope=SCOPE, policy=given)


def words(memory: reverie.Memory) -> list[str]:
    """The ledger of the scope, oldest first."""
    found = [entry for entry in memory.ref(SCOPE).list(limit=200).items if entry.kind == "turn"]
    return [entry.content for entry in sorted(found, key=lambda entry: entry.attributes["position"])]


def test_parse_gives_the_model_and_keeps_the_turn(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    parsed = window.parse(model=MODEL, input="fact:two", text_format=Known)
    assert parsed.output_parsed == Known(facts=["fact:one", "fact:two"])
    assert len(provider.requests("create")[-1].input) >= 3
    again = window.responses.parse(model=MODEL, input="and?", text_format=Known)
    assert again.output_parsed == Known(facts=["fact:one", "fact:two"])
    assert window.diagnostics["continuation"]["status"] == "hit"
    assert len(window.state.items) == 9


def test_stream_is_the_managers_own_and_updates_the_window_once(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    with window.stream(model=MODEL, input="fact:one", text_format=Known) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.output_text.delta" in kinds
    assert kinds[-1] == "response.completed"
    assert final.output_parsed == Known(facts=["fact:one"])
    assert len(window.state.items) == 3
    assert window.state.generation == 1


def test_a_stream_refused_for_length_begins_again_unseen(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory, trigger_input_tokens=100_000)
    for number in range(4):
        window.create(model=MODEL, input=f"fact:n{number} " + "word " * 100)
    provider.faults["create"] = [Overflow()]
    with window.stream(model=MODEL, input="and?") as stream:
        assert stream.get_final_response().output_text.startswith("I know 4:")


def test_raw_answers_have_headers_and_are_the_last_ones(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory, store=True)
    window.create(model=MODEL, input="fact:one")
    provider.vault.stored.clear()  # the chain is lost: the request is repeated
    raw = window.responses.with_raw_response.create(model=MODEL, input="fact:two")
    assert raw.headers["x-request-id"]
    assert raw.parse().output_text == "I know 2: fact:one fact:two"
    assert window.diagnostics["continuation"]["fallback_reason"] == "previous_response_id_rejected"
    parsed = window.responses.with_raw_response.parse(model=MODEL, input="and?", text_format=Known).parse()
    assert parsed.output_parsed == Known(facts=["fact:one", "fact:two"])
    with window.responses.with_streaming_response.create(model=MODEL, input="fact:three") as response:
        assert response.headers["x-request-id"]
        assert response.parse().output_text.startswith("I know 3:")
    streamed = window.responses.with_raw_response.create(model=MODEL, input="fact:four", stream=True)
    assert [event.type for event in streamed.parse()][-1] == "response.completed"
    assert window.create(model=MODEL, input="and?").output_text.startswith("I know 4:")


def test_types_are_the_sdks(provider: Emulator, memory: reverie.Memory) -> None:
    window = ResponsesWindow.open(client(provider), store=memory, scope=SCOPE)
    assert_type(window, SyncWindow)
    answer = window.create(model=MODEL, input="fact:one")
    assert_type(answer, Response)
    stream = window.create(model=MODEL, input="fact:two", stream=True)
    assert_type(stream, Stream[ResponseStreamEvent])
    assert [event.type for event in stream][-1] == "response.completed"
    with pytest.raises(TypeError):
        window.create(MODEL, "hello")  # type: ignore[call-overload]
    assert "memory" in (inspect.getdoc(window.create) or "")

    async def awaited() -> None:
        async with AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0) as sdk:
            other = await ResponsesWindow.open(sdk, store=memory, scope="other")
            assert_type(other, AsyncWindow)
            assert_type(await other.create(model=MODEL, input="fact:one"), Response)
            events = await other.create(model=MODEL, input="fact:two", stream=True)
            assert_type(events, AsyncStream[ResponseStreamEvent])
            assert [event.type async for event in events][-1] == "response.completed"
            found = await other.parse(model=MODEL, input="and?", text_format=Known)
            assert found.output_parsed == Known(facts=["fact:one", "fact:two"])
            async with other.stream(model=MODEL, input="fact:three") as manager:
                assert (await manager.get_final_response()).output_text.startswith("I know 3:")
            raw = await other.responses.with_raw_response.create(model=MODEL, input="and?")
            assert raw.headers["x-request-id"]
            async with other.responses.with_streaming_response.create(model=MODEL, input="and?") as response:
                assert (await response.parse()).output_text.startswith("I know 3:")
            assert len(other.state.items) == 18

    asyncio.run(awaited())


def test_a_window_closes_what_it_opened_and_nothing_else(
    provider: Emulator, memory: reverie.Memory, tmp_path: Path
) -> None:
    sdk = client(provider)
    with ResponsesWindow.open(sdk, store=memory, scope=SCOPE) as window:
        window.create(model=MODEL, input="fact:one")
    window.close()
    with pytest.raises(RuntimeError, match="closed"):
        window.create(model=MODEL, input="fact:two")
    assert len(provider.requests("create")) == 1
    assert words(memory)[0] == "fact:one"  # the memory is still open
    own = ResponsesWindow.open(sdk, store=str(tmp_path / "own"), scope=SCOPE)
    own.create(model=MODEL, input="fact:one")
    own.close()
    own.close()
    with reverie.open(tmp_path / "own") as again:
        assert words(again)[0] == "fact:one"

    async def awaited() -> None:
        async with AsyncOpenAI(api_key=provider.key, base_url=provider.url) as other:
            async with await ResponsesWindow.open(other, store=str(tmp_path / "own"), scope=SCOPE) as held:
                await held.create(model=MODEL, input="fact:two")
            with pytest.raises(RuntimeError, match="closed"):
                await held.create(model=MODEL, input="fact:three")
            await held.aclose()

    asyncio.run(awaited())


def test_the_store_of_a_request_is_the_providers(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    kept = window.create(model=MODEL, input="fact:one", store=True)
    assert kept.id in provider.vault.stored
    assert window.create(model=MODEL, input="fact:two").id not in provider.vault.stored


# background


def test_a_question_in_the_background_is_kept_at_once_and_its_answer_when_it_is_fetched(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    asked = window.create(model=MODEL, input="fact:two", background=True)
    assert asked.status == "queued"
    assert window.diagnostics["background_pending"] == asked.id
    assert words(memory)[-1] == "fact:two"
    before = len(provider.requests("create"))
    provider.polls = 5
    provider.waiting[asked.id] = 1
    with pytest.raises(Conflict, match=asked.id) as refused:
        window.create(model=MODEL, input="fact:three")
    assert refused.value.reason == "background_pending"
    assert len(provider.requests("create")) == before
    assert window.compact() is None
    other = opened(provider, memory)  # another process
    assert other.responses.retrieve(asked.id).output_text == "I know 2: fact:one fact:two"
    assert words(memory)[-2:] == ["fact:two", "I know 2: fact:one fact:two"]
    assert window.responses.retrieve(asked.id).status == "completed"  # a second time changes nothing
    assert words(memory).count("fact:two") == 1
    assert window.create(model=MODEL, input="fact:three").output_text.startswith("I know 3:")
    assert len(window.state.items) == 9


def test_the_next_turn_fetches_what_is_finished(provider: Emulator, memory: reverie.Memory) -> None:
    provider.polls = 0
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one", background=True)
    assert window.create(model=MODEL, input="fact:two").output_text == "I know 2: fact:one fact:two"
    assert words(memory) == [
        "fact:one",
        "I know 1: fact:one",
        "fact:two",
        "I know 2: fact:one fact:two",
    ]


def test_a_cancelled_or_lost_answer_leaves_the_question_in_the_ledger_only(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    asked = window.create(model=MODEL, input="fact:two", background=True)
    assert window.responses.cancel(asked.id).status == "cancelled"
    assert window.create(model=MODEL, input="and?").output_text == "I know 1: fact:one"
    lost = window.create(model=MODEL, input="fact:three", background=True)
    del provider.vault.stored[lost.id]
    assert window.create(model=MODEL, input="and?").output_text == "I know 1: fact:one"
    assert {"fact:two", "fact:three"} <= set(words(memory))


def test_an_answer_in_the_background_survives_a_gateway_that_answers_for_the_provider(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.polls = 0
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one", background=True)
    provider.faults["other"] = [Raw("<html>One moment</html>")]
    with pytest.raises(Conflict):
        window.create(model=MODEL, input="fact:two")
    assert window.create(model=MODEL, input="fact:two").output_text == "I know 2: fact:one fact:two"


def test_a_stream_in_the_background_that_breaks_off_is_fetched_later(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.faults["create"] = [Cut(4)]
    window = opened(provider, memory)
    seen: list[Any] = []
    stream = window.create(model=MODEL, input="fact:one", background=True, stream=True)
    with pytest.raises(APIConnectionError):
        seen.extend(stream)
    assert words(memory) == ["fact:one"]
    resumed = window.responses.retrieve(seen[0].response.id, stream=True)
    assert [event.type for event in resumed][-1] == "response.completed"
    assert window.create(model=MODEL, input="fact:two").output_text == "I know 2: fact:one fact:two"


# conversations that are kept at the provider


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_kept_at_the_provider_is_in_the_ledger(
    provider: Emulator, memory: reverie.Memory, stream: bool
) -> None:
    window = opened(provider, memory)
    for name in ("one", "two"):
        asked: dict[str, Any] = {"model": MODEL, "input": f"fact:{name}", "conversation": "conv_1"}
        if stream:
            assert [event.type for event in window.create(**asked, stream=True)][-1] == "response.completed"
        else:
            window.create(**asked)
    assert window.diagnostics["continuation"]["fallback_reason"] == "client_managed_chain"
    assert words(memory) == ["fact:one", "I know 1: fact:one", "fact:two", "I know 2: fact:one fact:two"]
    assert [seen.body["conversation"] for seen in provider.requests("create")] == ["conv_1", "conv_1"]
    assert window.create(model=MODEL, input="and?").output_text == "I know 2: fact:one fact:two"
    assert window.diagnostics["continuation"]["reset_reason"] == "semantic_rebuild"


def test_a_tool_call_of_a_parsed_answer_is_answered(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = lambda turn: (
        recall(turn) if turn.outputs else [thought(), call("step", {"number": 1}), call("step", {"number": 2})]
    )
    window = opened(provider, memory)
    parsed = window.parse(model=MODEL, input="fact:one", text_format=Known)
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "fact:two"}
        for item in parsed.output
        if item.type == "function_call"
    ]
    assert len(outputs) == 2
    done = window.parse(model=MODEL, input=outputs, text_format=Known)
    assert done.output_parsed == Known(facts=["fact:one", "fact:two"])


def test_counting_takes_the_window_along_and_changes_nothing(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one " + "word " * 300)
    before = window.items()
    counted = window.responses.input_tokens.count(model=MODEL, input="and now?")
    assert window.items() == before
    window.create(model=MODEL, input="and now?")
    assert counted.input_tokens == provider.requests("create")[-1].tokens

    async def awaited() -> int:
        async with await ResponsesWindow.open(
            AsyncOpenAI(api_key=provider.key, base_url=provider.url), store=memory, scope=SCOPE
        ) as other:
            return (await other.responses.input_tokens.count(model=MODEL, input="and then?")).input_tokens

    assert asyncio.run(awaited()) > counted.input_tokens
