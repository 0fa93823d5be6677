"""`cli(...)` runs one command line in this process, exactly as the entry point would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import Answer, invoke

Cli = Callable[..., Answer]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of this test's commands."""
    return tmp_path / "data"


@pytest.fixture
def cli(data: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in ("REVERIE_DATABASE_URL", "REVERIE_DEBUG", "REVERIE_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REVERIE_DATA", str(data))

    return invoke
