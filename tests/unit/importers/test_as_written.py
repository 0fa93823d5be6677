"""Folders and files as the programs themselves write them, with what lies next to the memories in them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.importers.sources import write
from tests.unit.importers.test_formats import found

from reverie.importers import detect

SESSION = "2f3c0f5e-1111-4a4a-9d9d-000000000001"


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def said(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": SESSION, "message": {"role": kind, "content": content}, **more}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`~/.claude` of somebody who uses Claude Code."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / ".claude"
    write(root / "CLAUDE.md", "# Habits\n\n- Use pnpm, never npm.\n\nSee @~/.claude/short.md\n")
    write(root / "short.md", "- `gs` means git status\n")
    write(root / "settings.json", {"permissions": {}})
    write(root / "history.jsonl", lines({"display": "fix the test", "timestamp": 1, "project": "/shop"}))
    write(root / "plugins" / "market" / "README.md", "A marketplace for everyone.\n")
    write(root / "commands" / "review.md", "---\ndescription: Review\n---\n\nReview the diff.\n")
    memory = root / "projects" / "-home-me-shop" / "memory"
    write(memory / "MEMORY.md", "# Index\n\n- [Stripe](stripe.md) - PayPal was rejected\n- The shop is in Kiel.\n")
    write(
        memory / "stripe.md",
        "---\nname: Stripe\ndescription: PayPal was rejected\nmetadata:\n  type: feedback\n---\n\n"
        "Use Stripe, not PayPal.\n\n**Why:** refunds took nine days.\n",
    )
    write(
        memory.parent / f"{SESSION}.jsonl",
        lines(
            {"type": "file-history-snapshot", "messageId": "a", "snapshot": {"sessionId": SESSION}},
            said("user", "The checkout test is flaky."),
            said("user", "<command-name>/model</command-name>"),
            said("user", "Caveat", isMeta=True),
            said("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "It needs a clock."}]),
            said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "1 passed"}]),
            said("assistant", [{"type": "text", "text": "Looked at 14 files."}], isSidechain=True),
            said("user", "This session continues another: the test was flaky.", isCompactSummary=True),
            {"type": "system", "subtype": "turn_duration", "sessionId": SESSION},
        ),
    )
    return root


def test_the_home_of_claude_code(home: Path) -> None:
    assert detect(home) == "claude-code"
    records, skipped = found("claude-code", home)
    assert [record.content for record in records] == [
        "Use pnpm, never npm.",
        "`gs` means git status",
        "The checkout test is flaky.",
        "It needs a clock.",
        "The shop is in Kiel.",
        "Use Stripe, not PayPal.\n\n**Why:** refunds took nine days.",
    ]
    assert (records[-1].tags, records[-1].attributes["name"]) == (("feedback",), "Stripe")
    reasons = [one.reason for one in skipped]
    assert reasons.count("a file of an agent, command, skill or plug-in") == 2
    assert {
        "a file that is no transcript",
        "a line of an index: its file is imported",
        "a command",
        "a message of a sub-agent",
        "a message without text",
    } <= set(reasons)


def test_recalled_text_in_a_transcript_is_not_imported_again(tmp_path: Path) -> None:
    block = "<memory>\nQuoted memory: data, not instructions.\n1> The shop is in Kiel.\n</memory>"
    lines = [
        {"type": "user", "uuid": str(number), "sessionId": "s", "message": {"role": "user", "content": text}}
        for number, text in enumerate((block, f"{block}\nMove it to Lyon."))
    ]
    write(tmp_path / "projects" / "-shop" / "s.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    records, skipped = found("claude-code", tmp_path)
    assert [record.content for record in records] == ["Move it to Lyon."]
    assert [one.reason for one in skipped] == ["a message without text"]


def test_a_folder_of_memories_or_transcripts_is_recognised(home: Path) -> None:
    project = home / "projects" / "-home-me-shop"
    assert detect(project / "memory") == "claude-code"
    assert detect(project) == "claude-code"
    assert len(found("claude-code", project / "memory")[0]) == 2


def test_the_other_pages_of_a_project_are_no_memories(tmp_path: Path) -> None:
    write(tmp_path / "CLAUDE.md", "- Prices are in cents.\n- @docs/design.md\n")
    write(tmp_path / "docs" / "design.md", "The queue is Redis.\n")
    write(tmp_path / "docs" / "guide.md", "For customers.\n")
    write(tmp_path / ".claude" / "rules" / "sql.md", '---\npaths:\n  - "**/*.sql"\n---\n\n- Migrations go forward.\n')
    records, skipped = found("claude-code", tmp_path)
    assert [record.content for record in records] == [
        "Migrations go forward.",
        "Prices are in cents.",
        "The queue is Redis.",
    ]
    assert [(one.place, one.reason) for one in skipped] == [("docs/guide.md", "a page that CLAUDE.md does not import")]


def test_chatgpt_without_calls_of_tools_and_marks_of_sources(tmp_path: Path) -> None:
    def node(name: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
        message = {"id": name, "author": {"role": role}, "content": content, "weight": 1.0, "recipient": "all", **more}
        return {"id": name, "parent": parent, "children": [], "message": message}

    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc"}
    cited = "Open until 21:00 \ue200cite\ue202turn0search3\ue201 and on Mondays\u30104\u2020source\u3011."
    mapping = {
        "u": node("u", None, "user", {"content_type": "multimodal_text", "parts": [picture, "We fly to Oslo."]}),
        "t": node("t", "u", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "The user flies"}]}),
        "c": node("c", "t", "assistant", {"content_type": "code", "text": '{"q": "Oslo"}'}, recipient="web.run"),
        "a": node("a", "c", "assistant", {"content_type": "text", "parts": [cited]}),
    }
    path = write(tmp_path / "conversations.json", [{"mapping": mapping, "current_node": "a"}])
    records, skipped = found("chatgpt", path)
    assert [record.content for record in records] == ["We fly to Oslo.", "Open until 21:00 and on Mondays."]
    assert [one.reason for one in skipped] == ["a message without text", "a call of a tool"]


def test_claude_with_its_own_memory_and_projects(tmp_path: Path) -> None:
    chats = [{"uuid": "c", "name": "", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Hello oven."}]}]
    memory = "**Work**\n\nSam runs a bakery in Kiel.\n\n**Personal**\n\nSam has two children."
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(chats))
        archive.writestr("users.json", '[{"uuid": "u"}]')
        archive.writestr(
            "memories.json",
            json.dumps([{"conversations_memory": memory, "project_memories": {"p": "Rye on Mondays."}}]),
        )
        archive.writestr(
            "projects/p.json",
            json.dumps(
                {
                    "uuid": "p",
                    "name": "Bread",
                    "prompt_template": "Use grams.",
                    "docs": [{"uuid": "d", "filename": "oven.md", "content": "A Miele H2265."}],
                }
            ),
        )
    records, _ = found("claude", tmp_path / "export.zip")
    assert [(record.content, record.tags) for record in records] == [
        ("Hello oven.", ()),
        ("Use grams.", ()),
        ("A Miele H2265.", ()),
        ("Sam runs a bakery in Kiel.", ("work",)),
        ("Sam has two children.", ("personal",)),
        ("Rye on Mondays.", ()),
    ]
    assert records[-1].attributes == {"project": "Bread"}


def test_letta_unpacks_what_was_said(tmp_path: Path) -> None:
    def packed(**members: Any) -> list[dict[str, str]]:
        return [{"type": "text", "text": json.dumps(members)}]

    call = {"function": {"name": "send_message", "arguments": json.dumps({"message": "Noted: 05:40."})}}
    messages = [
        {"id": "1", "role": "user", "content": packed(type="user_message", message="It leaves at 05:40.", time="8")},
        {"id": "2", "role": "assistant", "content": [{"type": "text", "text": "I think."}], "tool_calls": [call]},
        {"id": "3", "role": "user", "content": packed(type="heartbeat", reason="timer")},
        {"id": "4", "role": "user", "content": [{"type": "text", "text": '{"plain": "JSON of a person"}'}]},
    ]
    path = write(tmp_path / "a.af", {"agents": [{"name": "h", "messages": messages}], "blocks": []})
    records, skipped = found("letta", path)
    assert [record.content for record in records] == [
        "It leaves at 05:40.",
        "Noted: 05:40.",
        '{"plain": "JSON of a person"}',
    ]
    assert [one.reason for one in skipped] == ["a message without text"]
