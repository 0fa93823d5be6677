"""pytest plugin: CrewAI's own memory tests get Reverie's storage wherever they make one of theirs."""

from __future__ import annotations

from typing import Any

import crewai.memory.storage.lancedb_storage as theirs
from crewai.memory.storage.factory import set_memory_storage_factory

import reverie
from reverie.integrations.crewai import ReverieStorage

_OPEN: dict[str, reverie.Memory] = {}
"""Memories by the path of the database that their tests name."""


class Storage(ReverieStorage):
    """Made with the arguments of theirs; the database is a folder of ours."""

    def __init__(self, path: Any, **_: Any) -> None:
        folder = f"{path}.reverie"
        if folder not in _OPEN:
            _OPEN[folder] = reverie.open(folder)
        super().__init__(_OPEN[folder])


def pytest_configure(config: Any) -> None:
    """Before any of their test modules is imported."""
    for mark in ("vcr", "telemetry"):
        config.addinivalue_line("markers", f"{mark}: theirs")
    theirs.LanceDBStorage = Storage  # type: ignore[misc,assignment]
    set_memory_storage_factory(Storage)
