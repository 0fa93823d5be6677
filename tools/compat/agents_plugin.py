"""pytest plugin: the OpenAI Agents SDK's own session tests get Reverie's session wherever they make one of theirs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest
from openai import AsyncOpenAI
from tools.compat.report import LEFT_OUT

import reverie
from reverie.protocols.responses.agents_sdk import WindowSession
from reverie.protocols.responses.sdk import AsyncWindow, window_keeper
from reverie.window import WindowPolicy

_OPEN: dict[str, reverie.Memory] = {}
"""Memories by the path of the database that their tests name."""

_MADE: list[WindowSession] = []
"""Sessions that the present test has made."""

_NOT_OURS = "uses no session, or a mock: nothing of ours is called"


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
        _MADE.append(self)

    def close(self) -> None:
        """Close it as their tests do."""
        self.window._close()


class ListSession(Session):
    """In the place of the list that their compaction tests wrap: the given history is stored before the first call."""

    def __init__(self, session_id: str = "test", history: list[Any] | None = None) -> None:
        super().__init__(session_id)
        self._history = list(history or [])

    async def _given(self) -> None:
        history, self._history = self._history, []
        if history:
            await Session.add_items(self, history)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        await self._given()
        return await super().get_items(limit)

    async def add_items(self, items: list[Any]) -> None:
        await self._given()
        await super().add_items(items)

    async def pop_item(self) -> Any:
        await self._given()
        return await super().pop_item()

    async def clear_session(self) -> None:
        await self._given()
        await super().clear_session()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """A test that passes without a session of ours is left out: it says nothing about us."""
    report = yield
    if report.when == "call" and report.passed and not _MADE:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, _NOT_OURS)
        item.user_properties.append((LEFT_OUT, _NOT_OURS))
    if report.when == "teardown":
        _MADE.clear()
    return report


def pytest_configure(config: Any) -> None:
    """Before any of their test modules is imported."""
    config.addinivalue_line("markers", "allow_call_model_methods: theirs")
    config.addinivalue_line("markers", "serial: theirs")
    config.addinivalue_line("markers", "review_flaky: theirs")
    agents.SQLiteSession = Session  # type: ignore[misc,assignment]
    agents.memory.SQLiteSession = Session  # type: ignore[misc,assignment]
    agents.memory.sqlite_session.SQLiteSession = Session  # type: ignore[misc,assignment]
    sys.path.insert(0, str(Path.cwd()))  # their helpers, which live beside their tests
    import tests.utils.simple_session as lists

    lists.SimpleListSession = ListSession  # type: ignore[attr-defined]
