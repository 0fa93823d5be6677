"""One story: memories from three other programs are imported into a running host, dreamt, found from everywhere, and
taken back."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anthropic import Anthropic
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.acceptance.test_server import PATIENCE, Child
from tests.commands import invoke
from tests.unit.importers.sources import write

import reverie
from reverie.anthropic import MemoryTool
from reverie.integrations.langgraph import ReverieStore

REF = "langgraph/users/ana"
NAMESPACE = ("users", "ana")
QUESTIONS = {
    "Where does Ana keep the spare key of the boathouse?": "behind the blue kayak",
    "Which milk does Ana take in her coffee?": "oat milk",
    "When does the ferry to Lyon leave?": "06:40",
}
"""One of each source, with the words of its answer."""


def claude_folder(folder: Path) -> Path:
    write(
        folder / "CLAUDE.md",
        "# Boathouse\n\n- Ana keeps the spare key of the boathouse behind the blue kayak.\n"
        "- The boathouse is locked at nine in the evening.\n- Ana has painted the jetty twice.\n",
    )
    return folder


def mem0_export(folder: Path) -> Path:
    texts = ["Ana takes oat milk in her coffee.", "Ana is allergic to walnuts.", "Ana plays the viola on Sundays."]
    rows = [{"id": f"0b1c-{at}", "memory": text, "user_id": "ana"} for at, text in enumerate(texts)]
    return write(folder / "mem0.json", {"results": rows})


def langgraph_store(folder: Path) -> Path:
    path = folder / "store.db"
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE store (prefix text, key text, value text, created_at text, updated_at text, "
        "expires_at text, ttl_minutes real, PRIMARY KEY (prefix, key))"
    )
    rows = {"ferry": "The ferry to Lyon leaves at 06:40.", "seat": "Ana sits by the window on the ferry."}
    for key, text in rows.items():
        row = ("users.ana", key, json.dumps({"text": text}), "2026-01-05T10:00:00Z", "2026-01-05T10:00:00Z")
        database.execute("INSERT INTO store VALUES (?, ?, ?, ?, ?, NULL, NULL)", row)
    database.commit()
    database.close()
    return path


class World:
    """A running host, and every way of asking it."""

    def __init__(self, target: str, data: Path) -> None:
        chosen = ["--database-url", target] if target.startswith("postgresql:") else []
        self.child = Child(Path(data if chosen else target), *chosen)
        assert self.child.key is not None
        self.url, self.key = self.child.url, self.child.key
        self.memory = reverie.open(self.url, key=self.key)
        headers = {"Authorization": f"Bearer {self.key}"}
        self.http = httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)
        self.claude = Anthropic(base_url=f"{self.url}/anthropic", api_key=self.key)

    def close(self) -> None:
        self.http.close()
        self.memory.close()
        self.child.kill()

    def command(self, *arguments: str) -> Any:
        """What a command prints as JSON, run on the host over HTTP."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
        env |= {"REVERIE_URL": self.url, "REVERIE_KEY": self.key, "NO_PROXY": "*"}
        done = invoke(*arguments, "--json", environment=env)
        assert done.code == 0, done.err
        return done.json

    # ways of asking: each gives the texts that were found, best first

    def by_langgraph(self, question: str) -> list[str]:
        found = ReverieStore(self.memory).search(NAMESPACE, query=question, limit=3)
        return [json.dumps(item.value, ensure_ascii=False) for item in found if item.score is not None]

    def by_client(self, question: str) -> list[str]:
        return [hit.entry.content for hit in self.memory.ref(REF).search(question, limit=3)]

    def by_mcp(self, question: str) -> list[str]:
        async def go() -> list[str]:
            headers = {"Authorization": f"Bearer {self.key}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
                Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client,
            ):
                result = await client.call_tool("recall", {"query": question, "ref": REF})
                answer = json.loads(result.content[0].text)  # type: ignore[union-attr]
                return [memory["content"] for memory in answer["memories"]]

        return anyio.run(go)

    def by_console(self, question: str) -> list[str]:
        answer = self.http.get("/memories.json", params={"ref": REF, "q": question})
        assert answer.status_code == 200, answer.text
        return [hit["entry"]["content"] for hit in answer.json()["hits"]]

    def by_claude(self, store: str) -> str:
        """Everything that Claude's memory tool shows of the memory."""
        tool = MemoryTool(self.memory, store=store)
        listed = tool.handle({"command": "view", "path": "/memories/entries"})
        if listed["is_error"]:
            return ""
        paths = [line.split("\t")[1] for line in listed["content"].splitlines()[1:]]
        shown = [tool.handle({"command": "view", "path": path}) for path in paths if path.endswith(".md")]
        return "\n".join(one["content"] for one in shown)


@pytest.fixture
def world(make_target: Callable[..., str], tmp_path: Path) -> Iterator[World]:
    made = World(str(make_target("host")), tmp_path / "keys")
    yield made
    made.close()


def test_three_memories_become_one_and_go_again(world: World, tmp_path: Path) -> None:
    sources = [
        ("claude-code", claude_folder(tmp_path / "claude"), ["--ref", REF]),
        ("mem0", mem0_export(tmp_path), ["--ref", REF]),
        ("langgraph", langgraph_store(tmp_path), []),
    ]
    imports: list[str] = []
    for name, path, more in sources:
        looked = world.command("import", name, str(path), "--dry-run", *more)["found"]
        stored = world.command("import", name, str(path), "--yes", *more)["stored"]
        assert stored["entries"] == looked["entries"] > 1
        assert world.command("import", name, str(path), "--yes", *more)["stored"]["entries"] == 0
        imports.append(stored["id"])
    store = world.claude.beta.memory_stores.create(name="ana", metadata={"reverie.ref": REF}).id

    def found_from_everywhere() -> None:
        for question, answer in QUESTIONS.items():
            for ask in (world.by_langgraph, world.by_client, world.by_mcp, world.by_console):
                texts = ask(question)
                assert texts, (ask.__name__, question)
                assert any(answer in text for text in texts[:2]), (ask.__name__, question, texts)
            assert answer in world.by_claude(store)

    found_from_everywhere()

    # dreamt: the notes become one text, LangGraph's own items are pinned and stay; every answer is still found
    before = {entry.id for entry in world.memory.ref(REF).entries()}
    report = world.memory.ref(REF).dream(budget=2000)
    assert report.output_id is not None
    after = {entry.id for entry in world.memory.ref(REF).entries()}
    assert len(after) < len(before)
    assert report.output_id in after
    found_from_everywhere()

    # undone: the very entries are back
    world.memory.dreams.undo(report.id)
    assert {entry.id for entry in world.memory.ref(REF).entries()} == before
    found_from_everywhere()

    # taken back, one import after the other
    for number, import_id in enumerate(imports):
        taken = world.command("import", "undo", import_id)
        assert taken["entries"] > 1
        question, answer = list(QUESTIONS.items())[number]
        for ask in (world.by_langgraph, world.by_client, world.by_mcp, world.by_console):
            assert not [text for text in ask(question) if answer in text], ask.__name__
        assert answer not in world.by_claude(store)
    assert list(world.memory.ref(REF).entries()) == []
    assert world.command("audit", "verify")["ok"] is True
