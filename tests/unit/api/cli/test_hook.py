"""reverie hook: payloads as coding agents send them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until

import reverie
from reverie.api.cli.main import run

SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e"
TRANSCRIPT: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Earlier work", "leafUuid": "x"},
    {"type": "user", "uuid": "u1", "sessionId": SESSION, "message": {"role": "user", "content": "Use tabs, never spaces, in this repository."}},
    {"type": "user", "uuid": "u0", "isMeta": True, "message": {"role": "user", "content": "Caveat: generated."}},
    {"type": "user", "uuid": "uc", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Understood: tabs."}, {"type": "tool_use", "name": "Bash", "input": {}}]}},
    {"type": "user", "uuid": "t1", "message": {"role": "user", "content": [{"type": "tool_result", "content": "ls output"}]}},
    {"type": "assistant", "uuid": "s1", "isSidechain": True, "message": {"role": "assistant", "content": "Of a subagent."}},
    {"type": "user", "uuid": "z1", "isCompactSummary": True, "message": {"role": "user", "content": "Summary of before."}},
    {"type": "user", "uuid": "u2", "message": {"role": "user", "content": [{"type": "text", "text": "Deploys happen on Fridays."}]}},
]  # fmt: skip


class Agent:
    """Calls hooks as an agent does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.data, self.project = folder / "data", folder / "shop"
        (self.project / ".git").mkdir(parents=True)
        (self.project / "src").mkdir()
        self.transcript = folder / "transcript.jsonl"
        self._patch, self._capsys = monkeypatch, capsys

    def call(self, name: str, payload: Any = None, options: Sequence[str] = (), **more: Any) -> tuple[int, str, str]:
        given = {
            "session_id": SESSION,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project / "src"),
            **more,
        }
        raw = payload if isinstance(payload, bytes) else json.dumps(given).encode()
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        code = run(["hook", name, "--data", str(self.data), "--json", *options])
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def write(self, *lines: dict[str, Any]) -> None:
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Agent:
    monkeypatch.delenv("REVERIE_URL", raising=False)
    return Agent(tmp_path, monkeypatch, capsys)


def test_a_session_from_start_to_end(agent: Agent) -> None:
    code, out, _ = agent.call("session-start", hook_event_name="SessionStart", source="startup")
    assert code == 0
    assert "no memory of this project yet" in json.loads(out)["hookSpecificOutput"]["additionalContext"]
    agent.write(*TRANSCRIPT[:5])
    code, out, _ = agent.call("pre-compact", hook_event_name="PreCompact", trigger="auto", custom_instructions="")
    assert (code, json.loads(out)) == (0, {"remembered": 2, "ref": "code/shop"})
    agent.write(*TRANSCRIPT[5:])
    with agent.transcript.open("a") as file:
        file.write('{"type": "assistant", "uuid": "cut')
    code, out, _ = agent.call("session-end", hook_event_name="SessionEnd", reason="exit")
    assert (code, json.loads(out)["remembered"]) == (0, 1)
    assert json.loads(agent.call("session-end", hook_event_name="SessionEnd", reason="exit")[1])["remembered"] == 0
    with reverie.open(agent.data) as memory:
        entries = {entry.content: entry for entry in memory.ref("code/shop").list().items}
        assert set(entries) == {
            "Use tabs, never spaces, in this repository.",
            "Understood: tabs.",
            "Deploys happen on Fridays.",
        }
        assert entries["Understood: tabs."].source.session == SESSION
        memory.ref("code/shop").delete(entries["Understood: tabs."].id)
    assert json.loads(agent.call("session-end", hook_event_name="SessionEnd")[1])["remembered"] == 0
    code, out, _ = agent.call("session-start", hook_event_name="SessionStart", source="resume")
    said = json.loads(out)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    assert "tabs" in said["additionalContext"]
    assert "not instructions" in said["additionalContext"]


def test_cursor_gets_its_own_answer_and_sends_its_own_names(agent: Agent) -> None:
    agent.write({"role": "user", "message": {"content": [{"type": "text", "text": "Prefer small commits."}]}})
    sent = {"hook_event_name": "sessionEnd", "conversation_id": "c1", "workspace_roots": [str(agent.project)]}
    assert json.loads(agent.call("session-end", cwd=None, session_id=None, **sent)[1])["remembered"] == 1
    assert json.loads(agent.call("session-end", cwd=None, session_id=None, **sent)[1])["remembered"] == 0
    sent["hook_event_name"] = "sessionStart"
    answer = json.loads(agent.call("session-start", cwd=None, **sent)[1])
    assert "small commits" in answer["additional_context"]


def test_secrets_of_a_transcript_are_not_kept(agent: Agent) -> None:
    secret = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
    agent.write({"type": "user", "uuid": "u1", "message": {"role": "user", "content": f"The key is {secret}, use it."}})
    agent.call("session-end")
    assert secret not in agent.call("session-start")[1]
    assert secret.encode() not in b"".join(path.read_bytes() for path in agent.data.rglob("*") if path.is_file())


@pytest.mark.parametrize("payload", [b"", b"not json", b"[]", b"7", b"\xff"])
def test_bad_input_is_one_line_and_no_traceback(agent: Agent, payload: bytes) -> None:
    code, out, err = agent.call("session-end", payload)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_session_without_a_word_is_no_error(agent: Agent) -> None:
    for path in ("/no/such/file", None):
        code, out, err = agent.call("session-end", transcript_path=path)
        assert (code, json.loads(out)["remembered"], err) == (0, 0, "")


def test_a_rollout_of_codex_is_read(agent: Agent) -> None:
    def item(role: str, text: str) -> dict[str, Any]:
        payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        return {"timestamp": "2026-11-01T10:00:00Z", "type": "response_item", "payload": payload}

    agent.write({"type": "session_meta", "payload": {"id": SESSION}}, item("developer", "Be brief."))
    agent.write(item("user", "<environment_context>\n</environment_context>"), item("user", "The port is 8123."))
    agent.write({"type": "event_msg", "payload": {"type": "user_message", "message": "The port is 8123."}})
    assert json.loads(agent.call("pre-compact")[1])["remembered"] == 1
    assert "8123" in agent.call("session-start")[1]


def test_recalled_text_is_not_remembered_again(agent: Agent) -> None:
    with reverie.open(agent.data) as memory:
        memory.ref("code/shop").put("Deploys happen on Fridays.")
        block = memory.ref("code/shop").context("when do deploys happen?").text
    assert "Fridays" in block
    said = {"type": "user", "uuid": "u-1", "message": {"role": "user", "content": f"{block}\n\nShip it, then."}}
    only = {"type": "user", "uuid": "u-2", "message": {"role": "user", "content": block}}
    agent.write(said, only)
    assert json.loads(agent.call("session-end")[1])["remembered"] == 1
    with reverie.open(agent.data) as memory:
        kept = [entry.content for entry in memory.ref("code/shop").entries()]
    assert sorted(kept) == ["Deploys happen on Fridays.", "Ship it, then."]


def test_in_the_background_the_words_are_kept_after_the_hook_returned(agent: Agent) -> None:
    """Codex kills the hook of a session's end after three seconds, however busy the machine is."""
    agent.write(*TRANSCRIPT)
    with reverie.open(agent.data) as memory:
        assert agent.call("session-end", options=["--background"]) == (0, "", "")
        until(lambda: len(list(memory.ref("code/shop").entries())) == 3, "storing")
