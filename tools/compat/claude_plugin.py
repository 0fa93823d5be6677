"""pytest plugin: the Claude Agent SDK's session tests, and the kit they run, get Reverie's store for one in memory."""

from __future__ import annotations

import tempfile
from typing import Any

import claude_agent_sdk
import claude_agent_sdk._internal.session_store as theirs

import reverie
from reverie.integrations.claude_agent import ReverieSessionStore


class Store(ReverieSessionStore):
    """Made in a folder of its own, with the three helpers that their store has for tests."""

    def __init__(self) -> None:
        super().__init__(reverie.open(tempfile.mkdtemp()))
        self._mtimes: dict[str, int] = {}
        """Write times that a test sets, by project and session."""

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        found = await super().list_sessions(project_key)
        return [{**one, "mtime": self._mtimes.get(f"{project_key}/{one['session_id']}", one["mtime"])} for one in found]

    def get_entries(self, key: Any) -> list[dict[str, Any]]:
        """The lines of a transcript, none when there is none."""
        return self._load(key) or []

    @property
    def size(self) -> int:
        """How many sessions there are."""
        return sum(name.count("/") == 2 for name, _ in self.memory.refs("claude/"))

    def clear(self) -> None:
        """Delete everything."""
        for name, _ in self.memory.refs(""):
            ref = self.memory.ref(name)
            for entry in list(ref.entries()):
                ref.delete(entry.id)


def pytest_configure(config: Any) -> None:
    """Before any of their test modules is imported."""
    config.addinivalue_line("markers", "anyio: theirs")
    claude_agent_sdk.InMemorySessionStore = Store  # type: ignore[misc,assignment]
    theirs.InMemorySessionStore = Store  # type: ignore[misc,assignment]
