"""Scenes: a prepared memory of each engine, made once for a process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from tests.postgres import PostgresServer
from tests.simulate.world import Scene, scratch, simulated_time


@pytest.fixture(scope="session")
def sqlite_scene() -> Iterator[Scene]:
    folder = scratch()
    yield Scene(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_scene(postgres: PostgresServer) -> Iterator[Scene]:
    folder = scratch()
    yield Scene(folder, postgres)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _simulated_time() -> Iterator[None]:
    """Where the product polls, it sleeps simulated time."""
    back = simulated_time()
    yield
    back()
