"""pytest plugin: Google ADK's own memory tests get Reverie's service wherever they make one in memory."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import google.adk.memory
import google.adk.memory.in_memory_memory_service as theirs

import reverie
from reverie.integrations.adk import ReverieMemoryService
from reverie.integrations.transcript import oldest_first

_NO_SESSION = "__unknown_session_id__"


class Service(ReverieMemoryService):
    """Made in a folder of its own. Their tests look into a dictionary of sessions: here it is read from the store."""

    def __init__(self) -> None:
        super().__init__(reverie.open(tempfile.mkdtemp()))
        self._added: set[tuple[str, str, str]] = set()

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Any], session_id: str | None = None, **options: Any
    ) -> None:
        self._added.add((app_name, user_id, session_id or _NO_SESSION))
        await super().add_events_to_memory(
            app_name=app_name, user_id=user_id, events=events, session_id=session_id, **options
        )

    @property
    def _session_events(self) -> dict[tuple[str, str], dict[str, list[Any]]]:
        found: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(dict)
        for app_name, user_id, session_id in self._added:
            found[app_name, user_id][session_id] = [
                SimpleNamespace(id=entry.attributes["adk"]["id"])
                for entry in oldest_first(self._ref(app_name, user_id))
                if (entry.source.session or _NO_SESSION) == session_id
            ]
        return found


def pytest_configure() -> None:
    """Before any of their test modules is imported."""
    theirs.InMemoryMemoryService = Service  # type: ignore[misc,assignment]
    google.adk.memory.InMemoryMemoryService = Service  # type: ignore[misc,assignment]
