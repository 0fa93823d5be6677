"""These tests look inside the SQLite store."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def engine() -> str:
    """SQLite only."""
    return "sqlite"
