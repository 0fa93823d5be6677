"""What a window costs: exact counts before a pass is bought, the cause of a cache loss, and shortening without a provider's help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI
from tests.responses_emulator import MODEL, Emulator, Fail, Turn, call, message, thought

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy

SCOPE = "agent-1/task-3"


def recall(turn: Turn) -> list[dict[str, Any]]:
    return [thought(), message(f"I know {len(turn.facts)}: {' '.join(turn.facts)}")]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=20_000, model=recall) as emulator:
        yield emulator


def opened(provider: Emulator, memory: reverie.Memory, **policy: Any) -> Any:
    client = OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
    given = WindowPolicy(**{"trigger_input_tokens": 3000, **policy})
    return ResponsesWindow.open(client, store=memory, scope=SCOPE, policy=given)


def say(window: Any, text: str, **more: Any) -> str:
    return str(window.create(model=MODEL, input=[{"role": "user", "content": text}], **more).output_text)


# counting


def test_an_estimate_above_the_trigger_is_counted_before_a_pass_is_bought(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.model = lambda turn: [message("        " * 1800)]  # many bytes, few tokens
    window = opened(provider, memory)
    say(window, "fact:one")
    assert len(provider.requests("count")) == 1
    assert not provider.requests("compact")
    report = window.diagnostics["remote_compaction"]
    assert report["status"] == "skipped_below_counted"
    assert report["counted_input_tokens"] == provider.requests("count")[0].tokens
    assert report["trigger_reason"] == "estimated_window_pressure"
    assert window.state.cooldown_until_tokens is None


def test_a_count_that_reaches_the_trigger_buys_the_pass(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = lambda turn: [message("fact:told " + "word " * 2500)]
    window = opened(provider, memory)
    say(window, "fact:one")
    say(window, "fact:two " + "word " * 600)
    report = window.diagnostics["remote_compaction"]
    assert (report["status"], report["trigger_reason"]) == ("compacted", "estimated_window_pressure")
    assert report["counted_input_tokens"] >= 3000
    asked = provider.requests("count")[0].body
    assert set(asked) <= {"model", "input", "instructions", "tools"}


@pytest.mark.parametrize("status", [404, 500])
def test_a_failed_count_never_fails_a_turn(provider: Emulator, memory: reverie.Memory, status: int) -> None:
    provider.fault = lambda route, number: Fail(status, "<html>") if route == "count" else None
    provider.model = lambda turn: [message("word " * 2500)]
    window = opened(provider, memory)
    for number in range(6):
        say(window, f"fact:n{number} " + "word " * 700)
    assert memory.host.windows.passes(memory.actor, SCOPE)
    assert (len(provider.requests("count")) == 1) == (status == 404)


def test_counting_can_be_switched_off(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = lambda turn: [message("        " * 1800)]
    window = opened(provider, memory, count_tokens="off")
    say(window, "fact:one")
    assert not provider.requests("count")
    assert provider.requests("compact")


# cache


def asked_about(provider: Emulator) -> list[str | None]:
    return [
        (seen.body.get("prompt_cache_options") or {}).get("comparison_response_id")
        for seen in provider.requests("create")
    ]


def test_the_turn_that_loses_the_cache_asks_about_the_one_before(provider: Emulator, memory: reverie.Memory) -> None:
    provider.cache_least = 0
    window = opened(provider, memory, trigger_input_tokens=100_000)
    for number in range(3):
        say(window, f"fact:n{number} " + "word " * 200)
    assert asked_about(provider) == [None, None, None]
    before = window.state.last_response_id
    assert window.compact()["status"] in ("compacted", "rejected_no_reduction")
    say(window, "and now?", instructions="Be brief.")
    assert asked_about(provider)[-1] == before
    cache = window.diagnostics["cache"]
    assert cache["cache_loss"] in ("compaction", "shape_drift")
    assert cache["prompt_cache_diagnostics"]["type"] == "cache_miss"
    say(window, "on", instructions="Be brief.")
    assert asked_about(provider)[-1] is None


def test_a_loss_seen_afterwards_is_asked_about_once_against_the_turn_before_it(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.cache_least = 0
    window = opened(provider, memory, trigger_input_tokens=100_000)
    for number in range(3):
        say(window, f"fact:n{number} " + "word " * 200)
    before = window.state.last_response_id
    provider.vault.prefixes.clear()
    say(window, "go on")
    assert window.diagnostics["cache"]["cache_loss"] == "expired_or_evicted"
    say(window, "go on")
    say(window, "go on")
    assert asked_about(provider)[-3:] == [None, before, None]


# no method of compaction


def test_without_any_method_the_window_is_shortened_from_what_can_be_read(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.compact_route = False
    provider.trigger = "ignored"

    def work(turn: Turn) -> list[dict[str, Any]]:
        if turn.last.get("role") == "user":
            return [thought(), call("step", {"n": turn.number})]
        return recall(turn)

    provider.model = work
    window = opened(provider, memory, trigger_input_tokens=2500)
    for number in range(30):
        asked = f"Take step {number}." if number else "fact:birthday of Ada is on 4 July; keep it in mind."
        answer = window.create(model=MODEL, input=[{"role": "user", "content": asked}])
        (made,) = (item for item in answer.output if item.type == "function_call")
        words = f"Step {number} wrote file-{number}.txt with {number * 7} rows. " + "More detail follows here. " * 20
        window.create(model=MODEL, input=[{"type": "function_call_output", "call_id": made.call_id, "output": words}])
    turns = [seen for seen in provider.requests("create") if seen.status == 200]
    assert max(seen.tokens for seen in turns) < 3500
    assert len(memory.events(types=["remote_compaction_unavailable"])) == 1
    reasons = [event.data["reason"] for event in memory.events(types=["provider_window_reset"])]
    assert len(reasons) >= 2
    assert set(reasons) == {"semantic_rebuild"}
    sent = provider.requests("create")[-1].input
    assert "fact:birthday" in str(sent)  # said once by the user, long ago
    note = str(sent[0]["content"])
    assert sent[0]["role"] == "developer"
    assert "Before that, in short:" in note
    assert "earlier turns are left out here" in note
    assert "file-29.txt" in str(sent)
