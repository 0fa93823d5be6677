"""A window that was lost, refused or hard to replay: the conversation goes on, and the diagnostics name the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from openai import BadRequestError, InternalServerError, OpenAI
from tests.responses_emulator import MODEL, Emulator, Fail, Overflow, Turn, Twist, message, thought

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy

SCOPE = "agent-1/task-9"
TEXT = {"type": "output_text", "annotations": []}


def recall(turn: Turn) -> list[dict[str, Any]]:
    return [thought(), message(f"I know {len(turn.facts)}: {' '.join(turn.facts)}")]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=6000, model=recall) as emulator:
        yield emulator


def opened(provider: Emulator, memory: reverie.Memory, **policy: Any) -> Any:
    client = OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
    given = WindowPolicy(**{"trigger_input_tokens": 3000, **policy})
    return ResponsesWindow.open(client, store=memory, scope=SCOPE, policy=given)


def say(window: Any, text: str, **more: Any) -> str:
    return str(window.create(model=MODEL, input=[{"role": "user", "content": text}], **more).output_text)


# status


def test_the_turn_after_a_patch_is_taken_and_its_failure_reaches_the_model(
    provider: Emulator, memory: reverie.Memory
) -> None:
    operation = {"type": "delete_file", "path": "a.txt"}

    def patch(turn: Turn) -> list[dict[str, Any]]:
        if turn.last.get("role") == "user" and "patch" in turn.asked:
            made = {"type": "apply_patch_call", "call_id": "call_1", "status": "completed", "operation": operation}
            return [thought(), made]
        return [message("done")]

    provider.model = patch
    window = opened(provider, memory)
    window.create(model=MODEL, input="patch it")
    output = {"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no such file"}
    window.create(model=MODEL, input=[output])
    assert say(window, "go on") == "done"
    sent = {item.get("type", "message"): item for item in provider.requests("create")[-1].input}
    assert sent["apply_patch_call"]["status"] == "completed"
    assert sent["apply_patch_call_output"]["status"] == "failed"
    assert "status" not in sent["message"]
    assert window.compact()["status"] in ("compacted", "rejected_no_reduction")
    assert all(seen.status == 200 for seen in provider.seen)


# a window that is missing


def test_a_dropped_window_goes_on_from_the_ledger(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    for name in ("one", "two", "three"):
        say(window, f"fact:{name} is so")
    assert memory.host.windows.drop(memory.actor, SCOPE)
    for used in (window, opened(provider, memory)):
        memory.host.windows.drop(memory.actor, SCOPE)
        assert say(used, "what do you know?").startswith("I know 3:")
        found = used.diagnostics["incremental_continuation"]
        assert (found["status"], found["reset_reason"]) == ("reset", "semantic_rebuild")
        assert found["seeded_from"] in ("ledger", "checkpoint+ledger")
        assert found["seeded_items"] >= 6
        assert found["seed_omitted_turns"] == 0
        assert memory.events(types=["provider_window_reset"])[-1].data["reason"] == "semantic_rebuild"
    assert say(window, "and now?").startswith("I know 3:")
    assert window.diagnostics["incremental_continuation"]["status"] == "hit"


def test_a_call_of_a_dropped_window_is_still_answered(provider: Emulator, memory: reverie.Memory) -> None:
    def work(turn: Turn) -> list[dict[str, Any]]:
        if turn.last.get("role") == "user" and turn.outputs == 0:
            return [{"type": "function_call", "name": "step", "arguments": "{}", "call_id": "call_7"}]
        return recall(turn)

    provider.model = work
    window = opened(provider, memory)
    say(window, "fact:one go")
    memory.host.windows.drop(memory.actor, SCOPE)
    output = {"type": "function_call_output", "call_id": "call_7", "output": "fact:two"}
    assert window.create(model=MODEL, input=[output]).output_text.startswith("I know 2:")


def test_a_cleared_conversation_is_never_seeded(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    say(window, "fact:old is so")
    window.clear()
    memory.host.windows.drop(memory.actor, SCOPE)
    assert say(window, "fact:new is so") == "I know 1: fact:new"
    assert window.diagnostics["incremental_continuation"]["status"] == "fallback_full_request"
    memory.host.windows.drop(memory.actor, SCOPE)
    assert say(window, "and?") == "I know 1: fact:new"
    assert "fact:old" not in str(provider.requests("create")[-1].input)


def test_a_history_is_its_own_seed(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    say(window, "fact:one is so")
    memory.host.windows.drop(memory.actor, SCOPE)
    history = [{"role": "user", "content": f"fact:{name}"} for name in ("one", "two")]
    window.create(model=MODEL, input=history, input_is="history")
    found = window.diagnostics["incremental_continuation"]
    assert (found["status"], found["seeded_from"], found["seeded_items"]) == ("reset", "caller", 2)
    assert len(provider.requests("create")[-1].input) == 2


def test_a_session_shows_what_the_ledger_knows_of_a_missing_window(provider: Emulator, memory: reverie.Memory) -> None:
    window = opened(provider, memory)
    window.append([{"role": "user", "content": "fact:one"}, {"role": "assistant", "content": "I see."}])
    memory.host.windows.drop(memory.actor, SCOPE)
    assert [item["role"] for item in window.items()] == ["user", "assistant"]
    window.append([{"role": "user", "content": "fact:two"}])
    assert len(window.items()) == 3
    window.clear()
    window.append([{"role": "user", "content": "fact:three"}])
    memory.host.windows.drop(memory.actor, SCOPE)
    assert [item["content"][0]["text"] for item in window.items()] == ["fact:three"]


def test_a_rebuild_keeps_every_message_of_the_user_in_two_thirds_of_its_room(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.context = 1_000_000
    provider.model = lambda turn: [message("answer " + "word " * 150)]
    window = opened(provider, memory, trigger_input_tokens=1_000_000)
    for number in range(50):
        say(window, f"fact:n{number} is to be kept in mind")
    memory.host.windows.drop(memory.actor, SCOPE)
    provider.model = recall
    window = opened(provider, memory, trigger_input_tokens=6000)
    assert say(window, "what do you know?").startswith("I know 50:")
    found = window.diagnostics["incremental_continuation"]
    assert 0 < found["seed_omitted_turns"] <= 50
    assert provider.requests("create")[-1].tokens <= 3000


# an overflow


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("begun", [False, True], ids=["first turn", "rewritten"])
def test_a_history_that_is_too_long_is_shortened_and_sent_again(
    provider: Emulator, memory: reverie.Memory, stream: bool, begun: bool
) -> None:
    window = opened(provider, memory, trigger_input_tokens=100_000)
    if begun:
        say(window, "something else")
    history: list[Any] = []
    for number in range(12):
        history += [{"role": "user", "content": f"fact:n{number} is so"}]
        history += [{"role": "assistant", "content": "word " * 800}]
    history.append({"role": "user", "content": "what do you know?"})
    answered = window.create(model=MODEL, input=history, input_is="history", stream=stream)
    if stream:
        list(answered)
    refused, *_, sent = provider.requests("create")[1 if begun else 0 :]
    assert refused.code == "context_length_exceeded"
    assert sent.code is None
    assert sent.tokens < refused.tokens
    assert all(f"fact:n{number} " in str(sent.input) for number in range(12))
    assert window.diagnostics["continuation"]["shortened"] is True
    assert window.diagnostics["continuation"]["status"] == ("reset" if begun else "fallback_full_request")
    history += [window.items()[-1], {"role": "user", "content": "and now?"}]
    window.create(model=MODEL, input=history, input_is="history")
    assert window.diagnostics["continuation"]["status"] == "hit"


@pytest.mark.parametrize(
    "policy",
    [
        {"mode": "server_side", "store": True, "server_compact_threshold": 100_000},
        {"mode": "server_side", "server_compact_threshold": 100_000},
        {"mode": "standalone", "store": True},
        {"mode": "standalone", "fallback_methods": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("routes", [True, False], ids=["with a route", "without a route"])
def test_an_overflow_ends_in_a_smaller_request_in_every_mode(
    provider: Emulator, memory: reverie.Memory, policy: dict[str, Any], routes: bool
) -> None:
    provider.context = 2500
    provider.compact_route = routes
    provider.trigger = "supported" if routes else "refused"
    window = opened(provider, memory, trigger_input_tokens=100_000, **policy)
    for number in range(24):
        say(window, f"fact:n{number} " + "word " * 200)
    turns = [seen for seen in provider.requests("create") if (seen.input[-1:] or [{}])[0].get("role") == "user"]
    refused = [at for at, seen in enumerate(turns) if seen.code == "context_length_exceeded"]
    assert refused
    assert all(turns[at + 1].tokens < turns[at].tokens for at in refused)
    assert "fact:n23" in say(window, "what do you know?")
    assert window.state.refused_at_tokens is not None
    disabled = memory.events(types=["server_side_disabled"])
    assert len(disabled) == (1 if policy["mode"] == "server_side" and len(refused) > 1 else 0)


def test_a_provider_without_usage_is_compacted_again_and_again(provider: Emulator, memory: reverie.Memory) -> None:
    provider.fault = lambda route, number: (
        Twist(lambda answer: {**answer, "usage": None}) if route == "create" else None
    )
    provider.model = lambda turn: [message("word " * 300)]
    window = opened(provider, memory, trigger_input_tokens=3000)
    for number in range(40):
        say(window, f"fact:n{number}")
    assert len(memory.host.windows.passes(memory.actor, SCOPE)) >= 3
    assert all(seen.status == 200 for seen in provider.seen)


def test_a_pass_over_a_small_prefix_is_not_bought_for_a_huge_new_item(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory, trigger_input_tokens=1500)
    say(window, "hello")
    window.create(model=MODEL, input=[{"role": "assistant", "content": "fact:huge " + "word " * 2000}])
    (done,) = provider.requests("compact")
    assert done.tokens > 1500  # the one after the answer, over the huge item
    assert window.diagnostics["remote_compaction"]["status"] == "compacted"


def test_a_refused_length_is_unlearned_when_a_longer_request_is_taken(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.faults["create"] = [None, Overflow()]
    window = opened(provider, memory, trigger_input_tokens=100_000)
    say(window, "fact:one")
    say(window, "fact:two")
    assert window.state.refused_at_tokens is not None
    say(window, "fact:three " + "word " * 300)
    say(window, "fact:four")
    assert window.state.refused_at_tokens is None


def test_an_item_beyond_the_window_costs_no_pass_and_the_talk_goes_on(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory, trigger_input_tokens=1500, context_window=6000)
    say(window, "fact:one " + "word " * 1200)
    with pytest.raises(BadRequestError):
        say(window, "word " * 30_000)
    assert window.diagnostics["remote_compaction"]["status"] == "skipped_item_exceeds_window"
    tried = len(provider.requests("compact"))
    assert tried <= 1
    assert say(window, "what do you know?").startswith("I know 1:")


@pytest.mark.parametrize("chained", [False, True])
def test_a_conversation_that_moves_to_a_far_smaller_model_goes_on(
    provider: Emulator, memory: reverie.Memory, chained: bool
) -> None:
    """An eighth of it is still too long there. It was refused for ever, and the short question got the blame."""
    provider.context = 400_000
    window = opened(provider, memory, trigger_input_tokens=None, store=chained)
    for number in range(20):
        say(window, f"fact:{number} " + "word " * 3000)
    provider.context, provider.models = 3000, (*provider.models, "small-local")
    first, *later = (window.create(model="small-local", input=f"fact:new{n} and?").output_text for n in range(3))
    assert "fact:new0" in first
    assert all("fact:new0" in answer for answer in later)
    rebuilt = [seen.tokens for seen in provider.requests("create") if seen.body["model"] == "small-local"]
    assert rebuilt == sorted(rebuilt[:5], reverse=True) + rebuilt[5:]
    assert window.state.refused_at_tokens < 10_000  # the smallest that was refused, so that the next pass comes in time


def test_a_limit_that_the_provider_names_is_learned(provider: Emulator, memory: reverie.Memory) -> None:
    said = "This model's maximum context length is 4,000 tokens, however you requested 9000 tokens."
    error = {"error": {"message": said, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    provider.faults["create"] = [None, Fail(400, error)]
    window = opened(provider, memory, trigger_input_tokens=None)
    say(window, "fact:one " + "word " * 300)
    assert say(window, "what do you know?").startswith("I know 1:")
    say(window, "and now?")
    assert window.state.negative.context_window(window.state.base, MODEL) == 4000


def test_a_failed_pass_after_an_overflow_is_made_by_the_other_method(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.model = lambda turn: [message(f"fact:a{turn.number} " + "word " * 100)]
    window = opened(provider, memory, trigger_input_tokens=100_000)
    for _ in range(6):
        say(window, "go on")
    provider.faults["create"] = [Overflow()]
    provider.faults["compact"] = [Fail(500)]
    provider.model = recall
    assert say(window, "what do you know?").startswith("I know 6:")
    assert window.diagnostics["remote_compaction"]["endpoint_kind"] == "responses_trigger"
    assert window.diagnostics["incremental_continuation"]["status"] != "reset"


def test_a_provider_that_requires_the_id_of_a_hosted_call_gets_it(provider: Emulator, memory: reverie.Memory) -> None:
    def search(turn: Turn) -> list[dict[str, Any]]:
        made = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}
        return [made, message("found")] if turn.number == 1 else recall(turn)

    provider.model = search
    provider.lenient_ids = True
    window = opened(provider, memory)
    say(window, "fact:one")
    missing = {"message": "Missing required parameter: 'input[1].id'.", "type": "invalid_request_error"}
    missing |= {"code": "missing_required_parameter", "param": "input[1].id"}
    provider.faults["create"] = [Fail(400, {"error": missing})]
    assert say(window, "and?").startswith("I know 1:")
    first, second = provider.requests("create")[1:]
    assert "id" not in next(item for item in first.input if item.get("type") == "web_search_call")
    assert next(item for item in second.input if item.get("type") == "web_search_call")["id"]
    say(window, "and now?")
    assert len(provider.requests("create")) == 4  # remembered


def test_a_server_that_never_compacts_and_has_no_route_is_kept_bounded(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.context, provider.compact_route, provider.trigger = 1_000_000, False, "refused"
    provider.server_skips_tool_turns = True
    provider.model = lambda turn: [{"type": "function_call", "name": "step", "arguments": "{}"}]
    window = opened(provider, memory, mode="server_side", server_compact_threshold=2000, trigger_input_tokens=2000)
    answer = window.create(model=MODEL, input="go")
    for _ in range(20):
        (made,) = answer.output
        output = {"type": "function_call_output", "call_id": made.call_id, "output": "word " * 300}
        answer = window.create(model=MODEL, input=[output])
    assert max(seen.tokens for seen in provider.requests("create")) < 4000
    assert memory.events(types=["provider_window_reset"])


# a server that compacts, or should


def test_server_side_is_switched_off_when_a_conversation_begins_with_two_faults(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory, mode="server_side")
    provider.faults["create"] = [Fail(500), Fail(500)]
    for _ in range(2):
        with pytest.raises(InternalServerError):
            say(window, "fact:1")
    assert len(memory.events(types=["server_side_disabled"])) == 1
    say(window, "fact:1")
    assert "context_management" not in provider.requests("create")[-1].body


_LOW = {"mode": "server_side", "server_compact_threshold": 2000, "trigger_input_tokens": 500_000}


def test_a_server_that_compacts_at_a_threshold_far_below_the_trigger_is_left_alone(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.context = 1_000_000
    window = opened(provider, memory, **_LOW)
    for number in range(12):
        say(window, f"fact:{number} " + "word " * 400)
    assert not provider.requests("compact")


def test_a_server_that_ignores_a_threshold_far_below_the_trigger_is_helped(
    provider: Emulator, memory: reverie.Memory
) -> None:
    """Overdue is judged by the server's threshold, and by what the server has seen."""
    provider.context, provider.server_skips_tool_turns = 1_000_000, True
    provider.model = lambda turn: [{"type": "function_call", "name": "step", "arguments": "{}"}]
    window = opened(provider, memory, **_LOW)
    answer = window.create(model=MODEL, input="go")
    for _ in range(12):
        (made,) = answer.output
        output = {"type": "function_call_output", "call_id": made.call_id, "output": "word " * 400}
        answer = window.create(model=MODEL, input=[output])
    assert provider.requests("compact")
    assert max(seen.tokens for seen in provider.requests("create")) < 5000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("usage", {"input_tokens": 10**20, "output_tokens": 1}),
        ("usage", {"input_tokens": 2**60, "output_tokens": 2**62}),
        ("output", [{"type": "message", "role": "a\0b", "content": "hi"}]),
        ("output", [{"type": "a\ud800b", "text": "hi"}]),
        ("output", [None, 5, "x"]),
        ("output", [{"type": "message", "role": "assistant", "content": [{**TEXT, "text": "half a pair: \ud83d"}]}]),
        ("output", [{"type": "compaction", "encrypted_content": "\ud83d"}]),
    ],
    ids=["usage", "large", "role", "type", "values", "half", "payload"],
)
def test_odd_values_in_an_answer_end_no_conversation(
    provider: Emulator, memory: reverie.Memory, field: str, value: Any
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    provider.faults["create"] = [Twist(lambda answer: {**answer, field: value})]
    window.create(model=MODEL, input="fact:two")
    assert window.diagnostics["store_error"] is None
    with suppress(BadRequestError):  # the provider may refuse what it sent itself
        window.create(model=MODEL, input="fact:three")
    assert window.diagnostics["store_error"] is None
    assert memory.host.windows.texts(memory.actor, window.scope)
    assert opened(provider, memory).items() == window.items()


@pytest.mark.parametrize("role", [["user"], {}], ids=["list", "object"])
def test_a_pass_with_an_odd_role_is_rejected(provider: Emulator, memory: reverie.Memory, role: Any) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one " + "lorem ipsum " * 60)
    odd = {"type": "message", "role": role, "content": "x"}
    provider.faults["compact"] = [Twist(lambda answer: {**answer, "output": [*answer["output"], odd]})]
    assert window.compact()["status"] == "rejected_invalid_output"
    assert window.create(model=MODEL, input="fact:two").output_text == "I know 2: fact:one fact:two"


def test_halves_of_pairs_that_the_caller_gives_are_refused_as_its_sdk_does(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory)
    with pytest.raises(UnicodeEncodeError):
        window.create(model=MODEL, input="half a pair: \ud83d")


def test_a_fetched_stream_that_brings_only_the_later_items_loses_none(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.polls = 0
    window = opened(provider, memory)
    asked = window.create(model=MODEL, input="fact:one", background=True)
    seen = list(window.responses.retrieve(asked.id, stream=True, starting_after=4))
    assert [event.item.type for event in seen if event.type == "response.output_item.done"] == ["message"]
    assert [item.get("type") for item in window.items()] == ["message", "reasoning", "message"]
