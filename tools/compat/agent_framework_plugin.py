"""pytest plugin: Agent Framework's own tests of providers get Reverie's wherever they make one of theirs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import agent_framework
import agent_framework._sessions as theirs
import pytest

import reverie
from reverie.integrations.agent_framework import ReverieContextProvider, ReverieHistoryProvider


class InMemory(ReverieHistoryProvider):
    """In place of the provider that keeps messages in the session's state."""

    def __init__(self, source_id: str = "in_memory", **options: Any) -> None:
        super().__init__(reverie.open(tempfile.mkdtemp()), source_id=source_id, **options)


class File(ReverieHistoryProvider):
    """In place of the provider that keeps messages in a file; the folder is ours then."""

    def __init__(self, storage_path: Any, *, source_id: str = "file_history", **options: Any) -> None:
        super().__init__(reverie.open(storage_path), source_id=source_id, **options)


class Concrete(ReverieHistoryProvider):
    """In place of the provider that their tests of the base class define."""

    def __init__(self, source_id: str, stored_messages: Sequence[Any] = (), **options: Any) -> None:
        super().__init__(reverie.open(tempfile.mkdtemp()), source_id=source_id, **options)
        if stored_messages:
            _wait(self.save_messages("s1", stored_messages))

    @property
    def stored(self) -> list[Any]:
        """What has been saved."""
        return _wait(self.get_messages("s1"))  # type: ignore[no-any-return]


class Context(ReverieContextProvider):
    """In place of the provider that does nothing: with an empty memory and nothing said ours must do the same."""

    def __init__(self, source_id: str) -> None:
        super().__init__(reverie.open(tempfile.mkdtemp()), "ann", source_id=source_id)


def _wait(work: Any) -> Any:
    """The result of a coroutine, from inside or outside an event loop."""

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def pytest_configure() -> None:
    """Before any of their test modules is imported."""
    for module in (agent_framework, theirs):
        module.InMemoryHistoryProvider = InMemory  # type: ignore[attr-defined]
        module.FileHistoryProvider = File  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The class that a test module defines is looked up when a test runs."""
    for item in items:
        module = getattr(item, "module", None)
        if hasattr(module, "ConcreteHistoryProvider"):
            module.ConcreteHistoryProvider = Concrete  # type: ignore[union-attr]
            module.ContextProvider = Context  # type: ignore[union-attr]
