"""The emulator refuses what the provider refuses: otherwise what passes against it would prove nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from tests.responses_emulator import (
    MODEL,
    NOT_FOUND,
    Bare,
    Cut,
    Drop,
    Emulator,
    Fail,
    Overflow,
    Raw,
    Stall,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    thought,
    worker,
)

CALL = {"type": "function_call", "call_id": "c1", "name": "step", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
USER = {"role": "user", "content": "hello"}
TRIGGER = {"type": "compaction_trigger"}
TOOLS: list[Any] = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


def client(provider: Emulator, *, key: str = "", codex: bool = False, **more: Any) -> OpenAI:
    base = provider.codex_url if codex else provider.url
    return OpenAI(api_key=key or provider.key, base_url=base, max_retries=0, **more)


def refusal(provider: Emulator, path: str = "create", **body: Any) -> tuple[int, Any, Any, str]:
    """(status, code, param, message) of a refused request."""
    sdk = client(provider)
    body = {"model": MODEL, **body}
    send: Any = sdk.responses.create if path == "create" else sdk.responses.compact
    with pytest.raises(openai.APIStatusError) as caught:
        send(**body)
    error = caught.value.response.json()["error"]
    return caught.value.status_code, error["code"], error["param"], error["message"]


def dumped(items: Any) -> list[dict[str, Any]]:
    return [item.to_dict() for item in items]


def test_a_plain_answer_and_its_stream_say_the_same(provider: Emulator) -> None:
    sdk = client(provider)
    answer = sdk.responses.create(model=MODEL, input="hello")
    assert answer.status == "completed"
    assert answer.usage.input_tokens > 0
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    with sdk.responses.create(model=MODEL, input="hello", stream=True) as stream:
        kinds = [event.type for event in stream]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds


def test_tool_calls_go_round(provider: Emulator) -> None:
    provider.model = worker(2)
    sdk = client(provider)
    items: list[Any] = [{"role": "user", "content": "go fact:start"}]
    for _ in range(3):
        answer = sdk.responses.create(model=MODEL, input=items, tools=TOOLS, store=True)
        items += dumped(answer.output)
        for item in answer.output:
            if item.type == "function_call":
                items.append({"type": "function_call_output", "call_id": item.call_id, "output": "fact:done"})
    assert answer.output_text == "Done after 2 steps, with 2 facts."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"extra_body": {"nonsense": 1}, "input": "x"}, (400, "unknown_parameter", "nonsense")),
        ({"input": [{"type": "nonsense"}]}, (400, "invalid_value", "input[0]")),
        ({"input": [{**USER, "nonsense": 1}]}, (400, "unknown_parameter", "input[0].nonsense")),
        ({"input": [{"role": "robot", "content": "x"}]}, (400, "invalid_value", "input[0].role")),
        ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, (400, "invalid_value", "input[0].content[0].type")),
        ({"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]}, (400, "invalid_value", "input[0].content[0].type")),
        ({"input": [{"type": "function_call", "call_id": "a", "name": "b"}]}, (400, "missing_required_parameter", "input[0].arguments")),
        ({"input": [{**CALL, "call_id": "c" * 65}]}, (400, "string_above_max_length", "input[0].call_id")),
        ({"input": [{**CALL, "arguments": {}}]}, (400, "invalid_type", "input[0].arguments")),
        ({"input": [{**CALL, "async_": True}]}, (400, "unknown_parameter", "input[0].async_")),
        ({"input": [{"type": "compaction_summary", "encrypted_content": "x"}]}, (400, "invalid_value", "input[0]")),
        ({"input": "x", "max_output_tokens": 3}, (400, "integer_below_min_value", "max_output_tokens")),
        ({"input": "x", "context_management": [{"type": "compaction", "compact_threshold": 10}]}, (400, "integer_below_min_value", "context_management[0].compact_threshold")),
        ({"input": "x", "context_management": {"type": "compaction"}}, (400, "invalid_type", "context_management")),
        ({"input": "x", "context_management": [{"type": "other"}]}, (400, "invalid_value", "context_management[0].type")),
        ({"input": "x", "model": "no-such"}, (404, "model_not_found", "model")),
        ({"input": "x", "previous_response_id": "resp_none"}, (400, "previous_response_not_found", "previous_response_id")),
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(provider: Emulator, body: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert refusal(provider, **body)[:3] == expected


def test_calls_and_outputs_come_in_pairs(provider: Emulator) -> None:
    status, code, param, words = refusal(provider, input=[USER, CALL])
    assert (status, code, param, words) == (400, None, "input", "No tool output found for function call c1.")
    words = refusal(provider, input=[USER, RESULT])[3]
    assert words == "No tool call found for function call output with call_id c1."
    assert "No tool call" in refusal(provider, input=[RESULT, CALL])[3]
    mixed = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}
    assert "No tool call" in refusal(provider, input=[CALL, mixed])[3]
    assert refusal(provider, "compact", input=[USER, CALL])[3] == "No tool output found for function call c1."
    assert client(provider).responses.create(model=MODEL, input=[USER, CALL, RESULT]).status == "completed"


def test_ids_of_what_was_not_stored_are_unknown(provider: Emulator) -> None:
    answer = client(provider).responses.create(model=MODEL, input="x", store=False)
    items = [USER, *dumped(answer.output), USER]
    status, code, param, words = refusal(provider, input=items, store=False)
    assert (status, code, param) == (404, None, "input")
    assert words.startswith(f"Item with id '{answer.output[0].id}' not found. Items are not persisted")
    bare = [{name: value for name, value in item.items() if name not in ("id", "status")} for item in items]
    assert client(provider).responses.create(model=MODEL, input=bare, store=False).status == "completed"
    lost = [USER, {"type": "item_reference", "id": answer.output[1].id}]
    assert refusal(provider, input=lost)[0] == 404
    thoughtless = [USER, {"type": "reasoning", "summary": [], "id": answer.output[0].id}, {**bare[2]}]
    assert refusal(provider, input=thoughtless)[0] == 404


def test_stored_ids_go_with_their_reasoning(provider: Emulator) -> None:
    answer = client(provider).responses.create(model=MODEL, input="x")
    thinking, saying = dumped(answer.output)
    words = refusal(provider, input=[USER, saying, USER])[3]
    assert words == (
        f"Item '{saying['id']}' of type 'message' was provided without its required 'reasoning' item: '{thinking['id']}'."
    )
    words = refusal(provider, input=[USER, thinking])[3]
    assert words == f"Item '{thinking['id']}' of type 'reasoning' was provided without its required following item."
    assert "Duplicate item found with id" in refusal(provider, input=[thinking, saying, saying])[3]
    again = [{"type": "item_reference", "id": item["id"]} for item in (thinking, saying)]
    assert client(provider).responses.create(model=MODEL, input=[USER, *again, USER]).status == "completed"


def test_chains_need_stored_responses(provider: Emulator) -> None:
    sdk = client(provider)
    first = sdk.responses.create(model=MODEL, input="fact:one")
    second = sdk.responses.create(model=MODEL, input="fact:two", previous_response_id=first.id)
    assert "2 facts" in second.output_text
    assert second.usage.input_tokens > first.usage.input_tokens
    unstored = sdk.responses.create(model=MODEL, input="x", store=False)
    assert refusal(provider, input="y", previous_response_id=unstored.id)[1] == "previous_response_not_found"
    with pytest.raises(openai.BadRequestError) as caught:
        client(provider, key=provider.other_key).responses.create(model=MODEL, input="y", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


def test_compact_returns_the_next_window(provider: Emulator) -> None:
    sdk = client(provider)
    talk = [
        item
        for n in range(40)
        for item in ({"role": "user", "content": f"fact:n{n}"}, {"role": "assistant", "content": "yes " * 60})
    ]
    compacted = sdk.responses.compact(model=MODEL, input=talk)
    assert compacted.object == "response.compaction"
    window = json.loads(sdk.responses.with_raw_response.compact(model=MODEL, input=talk).text)["output"]
    assert [item["type"] for item in window] == ["message"] * 40 + ["compaction"]
    answer = sdk.responses.create(model=MODEL, input=[*window, USER], store=False)
    assert "I know 40 facts" in answer.output_text
    only = sdk.responses.create(model=MODEL, input=[window[-1], USER])
    assert "I know 40 facts" in only.output_text
    assert refusal(provider, input="x", previous_response_id=compacted.id)[1] == "previous_response_not_found"


def test_compact_takes_its_listed_fields_only(provider: Emulator) -> None:
    for name, value in (("stream", True), ("store", False), ("tools", TOOLS), ("include", [])):
        assert refusal(provider, "compact", input="x", extra_body={name: value})[:3] == (400, "unknown_parameter", name)
    assert refusal(provider, "compact")[1] == "missing_required_parameter"
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    assert refusal(provider, "compact", input=[USER, update])[0] == 400
    managed = [{"type": "compaction", "compact_threshold": 1000}]
    assert refusal(provider, input=[USER, update], context_management=managed)[0] == 400


@pytest.mark.parametrize("change", ["case", "trim", "pad", "foreign", "kind", "base"])
def test_payloads_are_bound_and_whole(provider: Emulator, change: str) -> None:
    sdk = client(provider)
    item = json.loads(sdk.responses.with_raw_response.compact(model=MODEL, input="x").text)["output"][-1]
    payload = item["encrypted_content"]
    changed = {"case": payload.swapcase(), "trim": payload.rstrip("="), "pad": payload + "="}.get(change, payload)
    sent = {**item, "encrypted_content": changed}
    if change == "kind":
        sent = {"type": "reasoning", "summary": [], "encrypted_content": payload}
    key = provider.other_key if change == "foreign" else provider.key
    more = {"stream": True, "store": False, "instructions": "be"} if change == "base" else {}
    with pytest.raises(openai.BadRequestError) as caught:
        client(provider, key=key, codex=change == "base").responses.create(model=MODEL, input=[sent, USER], **more)
    if change == "base":
        assert "could not be verified" in caught.value.response.json()["detail"]
    else:
        assert caught.value.code == "invalid_encrypted_content"
        assert caught.value.param is None


def test_the_trigger_item(provider: Emulator) -> None:
    sdk = client(provider)
    assert refusal(provider, input=[TRIGGER, USER])[3] == "The 'compaction_trigger' item must be the final input item."
    answer = sdk.responses.create(model=MODEL, input=[USER, TRIGGER], store=False)
    assert [item.type for item in answer.output] == ["compaction"]
    with sdk.responses.create(model=MODEL, input=[USER, TRIGGER], store=False, stream=True) as stream:
        events = list(stream)
    assert "response.compaction.compacting" in [event.type for event in events]
    added = next(event for event in events if event.type == "response.output_item.added").item
    done = next(event for event in events if event.type == "response.output_item.done").item
    assert len(added.encrypted_content) < len(done.encrypted_content)
    provider.trigger = "ignored"
    answer = sdk.responses.create(model=MODEL, input=[USER, TRIGGER], store=False)
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    provider.trigger = "refused"
    assert refusal(provider, input=[USER, TRIGGER])[1] == "invalid_value"


def test_server_side_compaction(provider: Emulator) -> None:
    sdk = client(provider)
    managed: list[Any] = [{"type": "compaction", "compact_threshold": 1000}]
    long = {"role": "user", "content": "fact:long " + "word " * 1500}
    small = sdk.responses.create(model=MODEL, input="x", context_management=managed)
    assert "compaction" not in [item.type for item in small.output]
    first = sdk.responses.create(model=MODEL, input=[long], context_management=managed)
    assert [item.type for item in first.output].count("compaction") == 1
    second = sdk.responses.create(model=MODEL, input="y", previous_response_id=first.id, context_management=managed)
    assert second.usage.input_tokens < 800
    assert "1 facts" in second.output_text
    provider.server_skips_tool_turns = True
    provider.model = worker(1)
    third = sdk.responses.create(model=MODEL, input=[long], context_management=managed, tools=TOOLS)
    assert "compaction" not in [item.type for item in third.output]


def test_the_context_is_limited(provider: Emulator) -> None:
    provider.context = 500
    long = "word " * 800
    assert refusal(provider, input=long)[:3] == (400, "context_length_exceeded", "input")
    assert refusal(provider, "compact", input=long)[1] == "context_length_exceeded"
    with client(provider).responses.create(model=MODEL, input=long, stream=True) as stream:
        last = list(stream)[-1]
    assert last.type == "response.failed"
    assert last.response.error.code == "context_length_exceeded"
    provider.context = 100_000
    provider.faults["create"] = [Overflow()]
    assert refusal(provider, input="short")[1] == "context_length_exceeded"


def test_the_other_base_has_its_own_ways(provider: Emulator) -> None:
    sdk = client(provider, codex=True)
    good: dict[str, Any] = {"model": MODEL, "input": [USER], "stream": True, "store": False, "instructions": "be good"}
    for change in ({"stream": False}, {"store": True}, {"instructions": ""}, {"max_output_tokens": 50}):
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(**{**good, **change})
        assert list(caught.value.response.json()) == ["detail"]
    with pytest.raises(openai.BadRequestError):
        sdk.responses.create(**good, previous_response_id="resp_1")
    with sdk.responses.create(**good) as stream:
        events = list(stream)
    assert events[-1].response.output == []
    assert [event.item.type for event in events if event.type == "response.output_item.done"] == [
        "reasoning",
        "message",
    ]
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.responses.compact(model=MODEL, input=[USER])
    assert missing.value.response.json() == NOT_FOUND


def test_the_prompt_cache_counts_prefixes(provider: Emulator) -> None:
    sdk = client(provider)
    provider.model = lambda turn: [message("fine")]
    items: list[Any] = [{"role": "user", "content": "word " * 2000}]
    first = sdk.responses.create(model=MODEL, input=items, prompt_cache_key="k")
    assert first.usage.input_tokens_details.cached_tokens == 0
    items += [{"role": "assistant", "content": "fine"}, USER]
    second = sdk.responses.create(model=MODEL, input=items, prompt_cache_key="k")
    assert second.usage.input_tokens_details.cached_tokens >= 1900
    options: Any = {"comparison_response_id": second.id}
    third = sdk.responses.create(model=MODEL, input=items, prompt_cache_key="other", prompt_cache_options=options)
    assert third.usage.input_tokens_details.cached_tokens == 0
    assert third.prompt_cache_diagnostics.reason == "prompt_cache_key_changed"
    options = {"comparison_response_id": "resp_none"}
    fourth = sdk.responses.create(model=MODEL, input=items, prompt_cache_options=options)
    assert fourth.prompt_cache_diagnostics.type == "comparison_response_not_found"


def test_counting_and_reading_back(provider: Emulator) -> None:
    sdk = client(provider)
    counted = sdk.responses.input_tokens.count(model=MODEL, input="hello there").input_tokens
    answer = sdk.responses.create(model=MODEL, input="hello there")
    assert counted == answer.usage.input_tokens
    assert sdk.responses.retrieve(answer.id).id == answer.id
    sdk.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(answer.id)
    with pytest.raises(openai.AuthenticationError):
        client(provider, key="wrong").responses.create(model=MODEL, input="x")


def test_faults_come_when_asked_for(provider: Emulator) -> None:
    sdk = client(provider, timeout=60)
    provider.faults["create"] = [Fail(500), Fail(405, "nope"), Raw("{not json"), Drop(), Cut(), Drop(answered=True)]
    with pytest.raises(openai.InternalServerError):
        sdk.responses.create(model=MODEL, input="x")
    with pytest.raises(openai.APIStatusError):
        sdk.responses.create(model=MODEL, input="x")
    with pytest.raises(json.JSONDecodeError):
        sdk.responses.create(model=MODEL, input="x")
    for _ in range(3):
        with pytest.raises(openai.APIConnectionError):
            sdk.responses.create(model=MODEL, input="x")
    assert provider.turns == 2
    provider.faults["compact"] = [Twist(empty_output)]
    assert sdk.responses.compact(model=MODEL, input="x").output == []


def test_streams_break_when_asked_to(provider: Emulator) -> None:
    patient, hasty = client(provider), client(provider, timeout=6)
    provider.faults["create"] = [Cut(4), Stall(3), Bare()]
    for sdk in (patient, hasty):
        got: list[str] = []
        with (
            pytest.raises((httpx2.HTTPError, openai.APIConnectionError)),
            sdk.responses.create(model=MODEL, input="x", stream=True) as stream,
        ):
            got.extend(event.type for event in stream)
        assert 3 <= len(got) <= 4
    with patient.responses.create(model=MODEL, input="x", stream=True) as stream:
        assert list(stream)[-1].response.output == []


def test_the_model_is_a_plain_function(provider: Emulator) -> None:
    def odd(turn: Turn) -> list[dict[str, Any]]:
        return [thought(9), call("step", '{ "a" :1}'), message("by the way", phase="commentary")]

    provider.model = odd
    answer = client(provider).responses.create(model=MODEL, input="x", tools=TOOLS)
    assert [item.type for item in answer.output] == ["reasoning", "function_call", "message"]
    assert answer.output[1].arguments == '{ "a" :1}'
    assert answer.output[2].to_dict()["phase"] == "commentary"
