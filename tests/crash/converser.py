"""A process that talks in a window and dies at a named step. Run by test_window_kill.py.

What the caller said and heard is written to a file before each turn, as a runtime would.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from openai import OpenAI
from tests.crash.dreamer import arm_sent, inside
from tests.processes import die

import reverie
from reverie.protocols.responses.sdk import SyncWindow
from reverie.responses import ResponsesWindow, WindowPolicy
from reverie.window.sealed import WINDOW_SPACE
from reverie.window.storage import WindowStore

STEPS = (
    "begun",
    "calling",
    "answered",
    "commit-event",
    "commit-past",
    "commit-window",
    "commit-end",
    "commit-sent",
    "committed",
    "model-answered",
    "turn-window",
)
SCOPE = "agent-1/task-7"
TRIGGER = 1000


def after(owner: type, name: str, when: Any = lambda *_: True) -> None:
    """Die when `owner.name` has returned and `when(arguments)` holds."""
    inner = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = inner(*args, **kwargs)
        if when(*args):
            die()
        return result

    setattr(owner, name, wrapped)


def arm(step: str, store: Any) -> None:
    """Make `step` deadly."""
    transaction, _ = inside(store)
    committing: list[int] = []

    def within_commit(name: str, when: Any) -> None:
        inner = WindowStore.commit_pass

        def commit(*args: Any, **kwargs: Any) -> Any:
            committing.append(1)
            return inner(*args, **kwargs)

        WindowStore.commit_pass = commit  # type: ignore[method-assign]
        after(transaction, name, lambda *args: bool(committing) and when(*args))

    if step == "begun":
        after(WindowStore, "begin_pass")
    elif step == "calling":
        inner = SyncWindow._send

        def send(self: Any, asked: Any, options: Any) -> Any:
            if asked.path.endswith("/compact"):
                threading.Timer(0.3, die).start()
            return inner(self, asked, options)

        SyncWindow._send = send  # type: ignore[method-assign]
    elif step == "answered":
        after(SyncWindow, "_send", lambda _self, asked, _options: asked.path.endswith("/compact"))
    elif step == "commit-event":
        within_commit("append", lambda _tx, event, *_: event.type == "remote_compaction_committed")
    elif step == "commit-past":
        within_commit("save", lambda _tx, space, *_: space == "window_past")
    elif step == "commit-window":
        within_commit("save", lambda _tx, space, *_: space == WINDOW_SPACE)
    elif step == "commit-end":
        within_commit("release", lambda *_: True)
    elif step == "commit-sent":
        inner_commit = WindowStore.commit_pass

        def commit_and_die(*args: Any, **kwargs: Any) -> Any:
            arm_sent(store, 1)
            return inner_commit(*args, **kwargs)

        WindowStore.commit_pass = commit_and_die  # type: ignore[method-assign]
    elif step == "committed":
        after(WindowStore, "commit_pass")
    elif step == "model-answered":
        turns: list[int] = []
        after(SyncWindow, "_send", lambda _self, asked, _options: not asked.is_pass and len(turns) > 4)
        after(SyncWindow, "ask", lambda *_: turns.append(1) or False)
    elif step == "turn-window":
        saves: list[int] = []
        after(transaction, "save", lambda _tx, space, *_: space == WINDOW_SPACE and (saves.append(1) or len(saves) > 5))


def open_window(memory: reverie.Memory, url: str, key: str) -> Any:
    client = OpenAI(api_key=key, base_url=url, max_retries=0)
    return ResponsesWindow.open(
        client, store=memory, scope=SCOPE, policy=WindowPolicy(trigger_input_tokens=TRIGGER, store=False)
    )


def take_turn(window: Any, notes: Path) -> str | None:
    """One turn of a caller that keeps its own books. Returns what the model said, when it said something."""
    books = json.loads(notes.read_text()) if notes.exists() else {"facts": 0, "said": []}
    if not books["said"]:
        books["facts"] += 1
        books["said"] = [{"role": "user", "content": f"fact:ask-{books['facts']} go on"}]
    notes.write_text(json.dumps(books))
    response = window.create(model="gpt-5.6-sol", input=books["said"])
    books["said"], heard = [], None
    for item in response.output:
        if item.type == "function_call":
            books["facts"] += 1
            words = f"fact:out-{books['facts']} " + "detail " * 60
            books["said"].append({"type": "function_call_output", "call_id": item.call_id, "output": words})
        elif item.type == "message":
            heard = item.content[0].text
    notes.write_text(json.dumps(books))
    return heard


def say(target: str, url: str, key: str, name: str, turns: int) -> None:
    """Talk for a while, and live."""
    with reverie.open(target) as memory:
        window = open_window(memory, url, key)
        for number in range(turns):
            window.create(model="gpt-5.6-sol", input=f"fact:{name}-{number} " + "word " * 80)


def main(target: str, url: str, key: str, step: str, notes: Path) -> None:
    with reverie.open(target) as memory:
        window = open_window(memory, url, key)
        arm(step, memory.host.parts.store)
        for _ in range(30):
            take_turn(window, notes)
