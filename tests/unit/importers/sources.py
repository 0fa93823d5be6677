"""Files in the shapes that other programs write, made up here."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def mcp_memory(folder: Path) -> Path:
    lines = [
        {
            "type": "entity",
            "name": "Ana Ruiz",
            "entityType": "person",
            "observations": ["Prefers e-mail", "Works from Lyon"],
        },
        {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
        {"type": "relation", "from": "Ana Ruiz", "to": "Acme", "relationType": "works_at"},
    ]
    return write(folder / "memory.json", "\n".join(map(json.dumps, lines)) + "\n")


def mem0(folder: Path) -> Path:
    return write(
        folder / "mem0.json",
        {
            "results": [
                {
                    "id": "0b1c7a7e-0001",
                    "memory": "Prefers oat milk",
                    "hash": "x",
                    "metadata": {"source": "chat"},
                    "user_id": "ana",
                    "agent_id": "barista",
                    "run_id": "r-1",
                    "categories": ["food"],
                    "created_at": "2026-01-05T10:00:00Z",
                    "updated_at": "2026-02-05T10:00:00Z",
                    "history": [
                        {"event": "ADD", "old_memory": None, "new_memory": "Likes milk", "created_at": "2026-01-05"},
                        {
                            "event": "UPDATE",
                            "old_memory": "Likes milk",
                            "new_memory": "Prefers oat milk",
                            "created_at": "2026-02-05",
                        },
                    ],
                },
                {"id": "0b1c7a7e-0002", "memory": "Lives in Lyon", "user_id": "ana"},
                {"id": "0b1c7a7e-0003", "memory": " "},
            ]
        },
    )


def chatgpt(folder: Path) -> Path:
    def node(name: str, parent: str | None, children: list[str], role: str, text: str, **more: Any) -> dict[str, Any]:
        message = {
            "id": f"m-{name}",
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "create_time": 1767600000.25,
            **more,
        }
        return {"id": name, "parent": parent, "children": children, "message": message}

    mapping = {
        "root": {"id": "root", "parent": None, "children": ["s"], "message": None},
        "s": node("s", "root", ["u"], "system", "You are helpful.", weight=0),
        "u": node("u", "s", ["a", "b"], "user", "Where do we moor the boat?"),
        "a": node("a", "u", [], "assistant", "An abandoned answer."),
        "b": node("b", "u", ["t"], "assistant", "At pier 4."),
        "t": node("t", "b", ["u2"], "tool", "a search result"),
        "u2": node("u2", "t", [], "user", "Thanks, pier 4 it is."),
    }
    conversation = {"title": "Moorings", "conversation_id": "c-1", "mapping": mapping, "current_node": "u2"}
    return write(folder / "conversations.json", [conversation])


def claude(folder: Path) -> Path:
    messages = [
        {
            "uuid": "m1",
            "sender": "human",
            "text": "What is in the plan?",
            "content": [{"type": "text", "text": "What is in the plan?"}],
            "created_at": "2026-01-05T10:00:00.000000Z",
            "attachments": [{"file_name": "plan.txt", "extracted_content": "Step one. Step two."}],
        },
        {"uuid": "m2", "sender": "assistant", "text": "Two steps.", "content": [], "attachments": []},
    ]
    return write(folder / "claude" / "conversations.json", [{"uuid": "c1", "name": "Plan", "chat_messages": messages}])


def letta(folder: Path, secret: str) -> Path:
    return write(
        folder / "agent.af",
        {
            "agents": [
                {
                    "name": "helper",
                    "secrets": {"WEATHER": secret},
                    "tool_exec_environment_variables": [{"key": "REGION", "value": "north-sea"}],
                    "messages": [
                        {"id": "x1", "role": "user", "content": [{"type": "text", "text": f"My pass is {secret}"}]},
                        {"id": "x2", "role": "tool", "content": "ignored"},
                    ],
                }
            ],
            "blocks": [
                {"id": "b1", "label": "human", "value": "The human is Ana, a sailor.", "limit": 5000},
                {"id": "b2", "label": "persona", "value": "", "limit": 5000},
            ],
        },
    )


def langgraph(folder: Path) -> Path:
    path = folder / "store.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE store (prefix text, key text, value text, created_at timestamp, updated_at timestamp,"
            " expires_at timestamp, ttl_minutes real, PRIMARY KEY (prefix, key))"
        )
        rows = [
            ("users.ann", "likes", json.dumps({"text": "Ann likes tea"}), "2026-01-05 10:00:00", None, None, None),
            ("users.bob", "mood", json.dumps({"a": 1, "b": ["x", "y"]}), None, None, "2020-01-01 00:00:00", 5),
        ]
        database.executemany("INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?)", [(*row,) for row in rows])
    database.close()
    return path


def claude_folder(folder: Path) -> Path:
    root = folder / "project"
    write(
        root / "CLAUDE.md",
        "# Commands\n\n- Run `make test` before a commit\n- Deploy on Thursdays\n  only before noon\n\n"
        "See @docs/style.md and @/etc/passwd.md\n\n## Notes\n\nThe API listens on port 8600.\n",
    )
    write(root / "docs" / "style.md", "- Names are nouns\n- See @../CLAUDE.md\n")
    lines = [
        {"type": "summary", "summary": "x"},
        {
            "type": "user",
            "uuid": "u1",
            "sessionId": "s1",
            "timestamp": "2026-01-05T10:00:00Z",
            "message": {"role": "user", "content": "Please fix the pier."},
        },
        {
            "type": "assistant",
            "uuid": "u2",
            "sessionId": "s1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Fixed."}, {"type": "tool_use"}]},
        },
    ]
    write(root / "session.jsonl", "\n".join(map(json.dumps, lines)))
    return root


def vault(folder: Path) -> Path:
    root = folder / "vault"
    write(
        root / "coffee.md",
        "---\ntitle: Coffee\ntype: note\npermalink: notes/coffee\ntags:\n- drink\ncreated: 2026-01-05\n---\n"
        "# Coffee\n\nSome text about it.\n\n## Observations\n- [method] Brew at 94 degrees #brewing (from the manual)\n"
        "- [ ] buy beans\n\n## Relations\n- pairs_with [[Chocolate]]\n",
    )
    return root
