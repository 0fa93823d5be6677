"""Stores of tests: opening one by what names it, and which of them a test runs on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reverie.store.contract import Store

on_one_store = pytest.mark.parametrize(
    "engine", ["sqlite", "postgres"] if os.environ.get("REVERIE_SOAK") else ["sqlite"], indirect=True
)
"""For tests of what a request may say or of text alone, with many cases: where entries are kept makes no difference.

The conformance suite and the stories of the same interface run on both stores. REVERIE_SOAK=1 runs these there too.
"""


def open_store(target: str | Path, **options: Any) -> Store:
    """The store there; a folder has it in `reverie.db`."""
    if str(target).startswith("postgresql://"):
        from reverie.store.postgres import PostgresStore

        return PostgresStore(str(target), **options)
    from reverie.store.sqlite import SqliteStore

    if str(target) == ":memory:":
        return SqliteStore(":memory:", **options)
    path = Path(target)
    return SqliteStore(path / "reverie.db" if path.is_dir() else path, **options)
