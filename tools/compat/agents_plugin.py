"""pytest plugin: the OpenAI Agents SDK's own session tests get Reverie's session wherever they make one of theirs."""

from __future__ import annotations

import tempfile
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
from openai import AsyncOpenAI

import reverie
from reverie.protocols.responses.agents_sdk import WindowSession
from reverie.protocols.responses.sdk import AsyncWindow, window_keeper
from reverie.window import WindowPolicy

_OPEN: dict[str, reverie.Memory] = {}
"""Memories by the path of the database that their tests name."""


def _memory(path: str) -> reverie.Memory:
    folder = tempfile.mkdtemp() if path == ":memory:" else f"{path}.reverie"
    if folder not in _OPEN:
        _OPEN[folder] = reverie.open(folder)
    return _OPEN[folder]


class Session(WindowSession):
    """Made with the arguments of theirs. No provider is asked: what is tested is the history."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *_: Any, session_settings: Any = None) -> None:
        memory = _memory(str(db_path))
        client = AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9/v1")
        policy = WindowPolicy(mode="off")
        window = AsyncWindow(client, window_keeper(memory.host, memory.actor, client, session_id, policy=policy))
        window._begin()
        super().__init__(window, session_settings=session_settings)

    def close(self) -> None:
        """Close it as their tests do."""
        self.window._close()


def pytest_configure(config: Any) -> None:
    """Before any of their test modules is imported."""
    config.addinivalue_line("markers", "allow_call_model_methods: theirs")
    config.addinivalue_line("markers", "serial: theirs")
    config.addinivalue_line("markers", "review_flaky: theirs")
    agents.SQLiteSession = Session  # type: ignore[misc,assignment]
    agents.memory.SQLiteSession = Session  # type: ignore[misc,assignment]
    agents.memory.sqlite_session.SQLiteSession = Session  # type: ignore[misc,assignment]
