"""A window that was lost, refused or hard to replay: the conversation goes on, and the diagnostics name the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from tests.responses_emulator import MODEL, Emulator, Turn, message, thought

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy

SCOPE = "agent-1/task-9"


def recall(turn: Turn) -> list[dict[str, Any]]:
    return [thought(), message(f"I know {len(turn.facts)}: {' '.join(turn.facts)}")]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[reverie.Memory]:
    with reverie.open(tmp_path / "memory") as opened:
        yield opened


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
