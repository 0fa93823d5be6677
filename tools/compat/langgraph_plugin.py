"""pytest plugin: LangGraph's own store tests get Reverie's store wherever they make one of theirs."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.memory
import pytest

import reverie
from reverie.integrations.langgraph import ReverieStore


class Store(ReverieStore):
    """Made in a folder of its own; takes the arguments that their tests pass, and does by itself what they ask for."""

    MIGRATIONS: tuple[str, ...] = ()
    VECTOR_MIGRATIONS: tuple[str, ...] = ()

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        config = dict(index or {})
        fields = config.get("fields") or config.get("text_fields")
        super().__init__(reverie.open(self._folder.name), fields=fields, ttl=ttl)
        self.index_config = config or None
        self.embeddings = config.get("embed")

    def setup(self) -> None:
        """Nothing to set up."""

    def _cursor(self, **_: object) -> _NoDatabase:
        return _NoDatabase()

    def sweep_ttl(self) -> int:
        """Reads leave expired items out by themselves; this destroys them."""
        return self.memory.sweep()

    def start_ttl_sweeper(self) -> None:
        """The host sweeps."""

    def stop_ttl_sweeper(self) -> None:
        """The host sweeps."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, _: str = "", **options: Any) -> Iterator[Store]:
        store = cls(index=options.get("index"), ttl=options.get("ttl"))
        try:
            yield store
        finally:
            store.memory.close()


class AsyncStore(Store):
    """The same with the few awaitable methods of their asynchronous stores."""

    async def setup(self) -> None:  # type: ignore[override]
        """Nothing to set up."""

    def _cursor(self, **_: object) -> _NoAsyncDatabase:  # type: ignore[override]
        return _NoAsyncDatabase()

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return self.memory.sweep()

    async def start_ttl_sweeper(self) -> None:  # type: ignore[override]
        """The host sweeps."""

    async def stop_ttl_sweeper(self) -> None:  # type: ignore[override]
        """The host sweeps."""

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.memory.close()

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, _: str = "", **options: Any) -> AsyncIterator[AsyncStore]:  # type: ignore[override]
        store = cls(index=options.get("index"), ttl=options.get("ttl"))
        try:
            yield store
        finally:
            store.memory.close()


def _no_rows(query: object) -> None:
    """Refuse what a test asks of the rows themselves; else it would pass for nothing."""
    if "UPDATE store SET" in str(query) or "FROM store WHERE" in str(query):
        raise NotImplementedError("There are no tables here.")


class _NoDatabase:
    """Their PostgreSQL tests create a database first; none is needed."""

    def execute(self, query: object, *_: object) -> None:
        _no_rows(query)

    def __enter__(self) -> _NoDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _NoAsyncDatabase:
    async def execute(self, query: object, *_: object) -> None:
        _no_rows(query)

    async def __aenter__(self) -> _NoAsyncDatabase:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


async def _no_async_database(*_: object, **__: object) -> _NoAsyncDatabase:
    return _NoAsyncDatabase()


def pytest_configure(config: pytest.Config) -> None:
    """Before any of their test modules is imported."""
    config.addinivalue_line("markers", "flaky: their mark for tests that are tried again")
    langgraph.store.memory.InMemoryStore = Store  # type: ignore[misc,assignment]
    for package, sync, other in (
        ("langgraph.store.sqlite", "SqliteStore", "AsyncSqliteStore"),
        ("langgraph.store.postgres", "PostgresStore", "AsyncPostgresStore"),
    ):
        try:
            base = __import__(package, fromlist=[sync])
            aio = __import__(f"{package}.aio", fromlist=[other])
        except ImportError:
            continue
        setattr(base, sync, Store)
        for module in (base, aio):
            setattr(module, other, AsyncStore)
        if package.endswith("postgres"):
            import psycopg

            psycopg.Connection.connect = lambda *_, **__: _NoDatabase()  # type: ignore[method-assign,assignment]
            psycopg.AsyncConnection.connect = _no_async_database  # type: ignore[method-assign,assignment]
