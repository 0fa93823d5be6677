"""Kill a real process at every point of a compaction pass and of a turn; the conversation goes on as if nothing was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.crash import converser
from tests.crash.converser import SCOPE, STEPS, open_window, take_turn
from tests.processes import Child, run
from tests.responses_emulator import Emulator, Slow, Turn, call, message, thought

import reverie


def errand(turn: Turn) -> list[dict[str, Any]]:
    """Two calls, one call, then an answer, for ever."""
    number = turn.outputs % 3
    if turn.last.get("type") == "function_call_output" and number == 0:
        return [thought(), message(f"Answer with {len(turn.facts)} facts.")]
    many = 2 if number == 0 else 1
    return [thought(), *(call("step", {"number": turn.outputs + n + 1}) for n in range(many))]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=8000, model=errand) as emulator:
        yield emulator


def catch_up(items: list[Any], notes: Path) -> None:
    """A caller that lost an answer reads in the window how far the conversation came."""
    books = json.loads(notes.read_text())
    outputs = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
    waiting = [i for i in items if i.get("type") == "function_call" and i["call_id"] not in outputs]
    if {item["call_id"] for item in waiting} == {item.get("call_id") for item in books["said"]}:
        return  # not sent yet
    if books["said"][0].get("role") == "user" and books["said"][0]["content"] not in json.dumps(items):
        return
    books["said"] = []
    for item in waiting:
        books["facts"] += 1
        words = f"fact:out-{books['facts']} " + "detail " * 60
        books["said"].append({"type": "function_call_output", "call_id": item["call_id"], "output": words})
    notes.write_text(json.dumps(books))


SOAK = bool(os.environ.get("REVERIE_SOAK"))
USUAL = [step for step in STEPS if SOAK or step not in ("commit-event", "commit-past", "commit-window", "commit-end")]


@pytest.mark.parametrize("step", USUAL)
def test_killed_at_a_named_step_the_window_is_whole_and_goes_on(
    make_target: Callable[..., str], tmp_path: Path, provider: Emulator, step: str
) -> None:
    target, notes = make_target(), tmp_path / "caller.json"
    if step == "calling":
        provider.faults["compact"] = [Slow(3)]
    assert run(converser.main, target, provider.url, provider.key, step, notes) == -9
    asked = len(provider.requests("compact"))
    during_pass = step in ("begun", "calling", "answered") or step.startswith("commit-")
    with reverie.open(target) as memory:
        window = open_window(memory, provider.url, provider.key)
        assert len(provider.requests("compact")) == asked  # no repeat by itself
        rows = memory.host.windows.show(memory.actor, SCOPE)
        compacted = any(item["type"] == "compaction" for item in rows["items"])
        assert compacted == (step == "committed")
        assert rows["items"]
        states = [row["state"] for row in rows["attempts"]]
        assert states == (["abandoned"] if during_pass else ["committed"] if step == "committed" else [])
        assert len(rows["compactions"]) == int(compacted)
        abandoned = memory.events(types=["remote_compaction_abandoned"])
        assert len(abandoned) == int(during_pass)
        open_window(memory, provider.url, provider.key)
        assert len(memory.events(types=["remote_compaction_abandoned"])) == len(abandoned)  # reported once
        if step in ("begun", "calling", "answered", "committed") or step.startswith("commit-"):
            catch_up(window.items(), notes)
        heard = None
        for _ in range(4):
            heard = take_turn(window, notes) or heard
        facts = json.loads(notes.read_text())["facts"]
        while heard is None or f"{facts} facts" not in heard:
            heard = take_turn(window, notes)
            facts = json.loads(notes.read_text())["facts"]
            assert facts < 120, heard
        assert any(row["state"] == "committed" for row in memory.host.windows.show(memory.actor, SCOPE)["attempts"])
        assert memory.verify().ok


def test_two_processes_on_one_scope_lose_nothing(make_target: Callable[..., str], provider: Emulator) -> None:
    target = make_target()
    provider.model = lambda turn: [thought(), message(f"I know {len(turn.facts)} facts.")]
    with reverie.open(target) as memory:
        window = open_window(memory, provider.url, provider.key)
        window.create(model="gpt-5.6-sol", input="fact:first")
        others = [Child(converser.say, target, provider.url, provider.key, name, 10) for name in ("one", "two")]
        assert [process.end() for process in others] == [0, 0]
        answer = window.create(model="gpt-5.6-sol", input="fact:last")
        assert answer.output_text == "I know 22 facts."
        shown = memory.host.windows.show(memory.actor, SCOPE)
        assert any(row["state"] == "committed" for row in shown["attempts"])
        assert not [row for row in shown["attempts"] if row["state"] == "in_flight"]
        assert memory.verify().ok
