"""Memory in one SQLite file."""

from reverie.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
