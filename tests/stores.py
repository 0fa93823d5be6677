"""Opening a store by what names it: the path of a file, or the URL of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reverie.store.contract import Store


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
