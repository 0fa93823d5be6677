"""reverie window ...: what an operator sees of a provider window, and what nobody sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.api.cli.session import DEFAULT_TENANT
from reverie.window import Base, WindowPolicy
from reverie.window.engine import Engine
from reverie.window.steps import Keep, RequestOutcome

SCOPE = "agent-1/task-7"
PAYLOAD = "gAAAA" + "x" * 300 + "=="


def drive(steps: Any, *answers: RequestOutcome) -> Any:
    """Run an engine's steps with these answers."""
    waiting = list(answers)
    try:
        step = next(steps)
        while True:
            step = steps.send(step.call() if isinstance(step, Keep) else waiting.pop(0))
    except StopIteration as done:
        return done.value


def response(text: str) -> RequestOutcome:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    message["content"] = [{"type": "output_text", "text": text}]  # type: ignore[assignment]
    usage = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920}
    return RequestOutcome(200, json.dumps({"id": "resp_1", "status": "completed", "output": [message], "usage": usage}))


@pytest.fixture
def window(data: Path) -> str:
    """A window of three turns, compacted, and one turn more."""
    with reverie.open(data, tenant=DEFAULT_TENANT) as memory:
        keeper = memory.host.windows.keeper(memory.actor, SCOPE, policy=WindowPolicy(trigger_input_tokens=10_000))
        base = Base.of("https://api.example.test/v1")
        engine = Engine(keeper, keeper.open(provider="openai", base=base, account="a"), clock=lambda: 0)
        for number in range(3):
            asked = [{"role": "user", "content": f"question {number}"}]
            drive(engine.turn(asked, "items", {"model": "gpt-5.4"}), response(f"answer {number} " + "word " * 200))
        compacted = {"output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": PAYLOAD}]}
        compacted["usage"] = {"input_tokens": 900, "output_tokens": 60, "total_tokens": 960}  # type: ignore[assignment]
        report = drive(engine.compact(), RequestOutcome(200, json.dumps(compacted)))
        assert report["status"] == "compacted"
        drive(engine.turn([{"role": "user", "content": "after"}], "items", {"model": "gpt-5.4"}), response("yes"))
    return SCOPE


def test_list_and_show(cli: Any, window: str) -> None:
    listed = cli("window", "list", "--json").json
    assert [item["scope"] for item in listed["items"]] == [window]
    assert listed["items"][0]["compaction_items"] == 1
    assert window in cli("window", "list").out
    shown = cli("window", "show", window, "--json").json
    assert [item["type"] for item in shown["items"]] == ["compaction", "message", "message"]
    assert shown["compactions"][0]["trigger_reason"] == "manual"
    assert shown["compactions"][0]["encrypted_bytes"] == [len(PAYLOAD)]
    assert shown["attempts"][0]["state"] == "committed"
    plain = cli("window", "show", window).out
    for text in (json.dumps(shown), plain):
        assert PAYLOAD not in text
        assert "question" not in text


def test_diff_shows_what_the_last_change_did(cli: Any, window: str) -> None:
    found = cli("window", "diff", window, "--json").json
    assert (found["items_before"], found["items_after"]) == (1, 3)
    assert [change["change"] for change in found["changes"]] == ["new", "new"]
    assert PAYLOAD not in json.dumps(found)
    assert "after" in cli("window", "diff", window).out
    cli("window", "diff", window, "--from", "1", "--to", "99").failed()


def test_rebuild_reads_the_memory_not_the_payload(cli: Any, window: str) -> None:
    items = cli("window", "rebuild", window, "--json").json
    text = json.dumps(items)
    assert all(f"question {number}" in text for number in range(3))
    assert "encrypted_content" not in text
    assert {item["type"] for item in items} == {"message"}
    short = cli("window", "rebuild", window, "--tokens", "150", "--json").json
    assert len(short) < len(items)
    assert "question 2" in cli("window", "rebuild", window).out


def test_drop_leaves_the_memory(cli: Any, window: str) -> None:
    assert cli("window", "drop", window, "--json").json == {"scope": window, "dropped": True}
    cli("window", "show", window, "--json").failed("no window")
    assert cli("window", "drop", window, "--json").json["dropped"] is False
    assert cli("window", "list", "--json").json["items"] == []
    assert "question 1" in json.dumps(cli("window", "rebuild", window, "--json").json)


def test_nothing_of_a_window_is_found_in_the_memory(cli: Any, window: str) -> None:
    for command in (
        ("search", "compaction", "-r", window, "--json"),
        ("list", "-r", window, "--json", "--limit", "100"),
        ("export",),
    ):
        answer = cli(*command)
        assert answer.code == 0
        assert PAYLOAD not in answer.out
        assert "encrypted" not in answer.out


def test_unknown_and_hostile_scopes(cli: Any, window: str) -> None:
    cli("window", "show", "none").failed("no window")
    cli("window", "show", "x" * 600).failed("scope")
    cli("window", "rebuild", "none").failed()
    cli("window", "show", window, "--tenant", "other").failed("no tenant")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--upstream", "ftp://x"), "upstream"),
        (("--upstream", "https://user:word@x/v1"), "credentials"),
        (("--upstream", "https://x/v1", "--listen", "0.0.0.0:1"), "listen"),
        (("--upstream", "https://x/v1", "--kind", "other"), "kind"),
        (("--upstream", "https://x/v1", "--mode", "other"), "mode"),
    ],
)
def test_the_proxy_says_what_is_wrong(cli: Any, options: tuple[str, ...], word: str) -> None:
    cli("proxy", *options).failed(word)
