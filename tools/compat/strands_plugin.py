"""pytest plugin: Strands' own tests of its local memory store get Reverie's wherever they make one of theirs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import strands.vended_memory_stores as stores
import strands.vended_memory_stores.test_memory_store as theirs

import reverie
from reverie.core.entry import Entry
from reverie.integrations.strands import Added, ReverieMemoryStore

_OPEN: dict[str, reverie.Memory] = {}
"""Memories by the path of the file that their tests name."""


class Store(ReverieMemoryStore):
    """Made with the arguments of theirs; the file is a folder of ours."""

    __test__ = False

    def __init__(self, *, name: str, path: str | None = None, persist: bool = True, **config: Any) -> None:
        folder = f"{path}.reverie" if persist and path else tempfile.mkdtemp()
        if folder not in _OPEN:
            _OPEN[folder] = reverie.open(folder)
        super().__init__(_OPEN[folder], "notes", name=name, **config)
        self._file = Path(path) if persist and path else None

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Added:
        """Store it, and write what is stored into the file that their tests read."""
        added = await super().add(content, metadata)
        if self._file is not None:
            self._file.write_text(json.dumps([_shown(entry) for entry in self._ref.entries()], indent=2))
        return added


def _shown(entry: Entry) -> dict[str, Any]:
    about = entry.attributes.get("strands")
    return {"id": entry.id, "content": entry.content, "createdAt": str(entry.created), "metadata": about}


def pytest_configure() -> None:
    """Before any of their test modules is imported."""
    for module in (stores, theirs):
        module.TestMemoryStore = Store  # type: ignore[attr-defined]
