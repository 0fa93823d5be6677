"""LangGraph's SqliteStore with its vector index (sqlite-vec), on a connection set to WAL and synchronous=FULL.

The driver is pysqlite3, because many Pythons are built without the loadable extensions that sqlite-vec needs. The
store searches by meaning only.
"""

from __future__ import annotations

import platform
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import pysqlite3
import pysqlite3.dbapi2 as sqlite

sys.modules["sqlite3"] = pysqlite3  # the asyncio form takes the driver from there

import aiosqlite  # noqa: E402
from langgraph.store.base import PutOp  # noqa: E402
from langgraph.store.sqlite import SqliteStore  # noqa: E402
from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: E402

from bench.peers.protocol import DIMENSIONS, embed, serve  # noqa: E402

_SPACE = ("notes",)
_INDEX = {"dims": DIMENSIONS, "embed": lambda texts: [embed(text) for text in texts], "fields": ["text"]}


class LangGraph:
    settings: tuple[str, ...] = ("journal_mode = WAL", "synchronous = FULL")

    def __init__(self, folder: Path) -> None:
        self._db = sqlite.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        for setting in self.settings:
            self._db.execute(f"PRAGMA {setting}").fetchall()
        self._store = SqliteStore(self._db, index=_INDEX)
        self._store.setup()

    def put(self, text: str) -> str:
        key = uuid.uuid4().hex
        self._store.put(_SPACE, key, {"text": text})
        return key

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Callable[[str], Awaitable[object]]]:
        async with aiosqlite.connect(str(folder / "tasks.db"), isolation_level=None) as db:
            for setting in self.settings:
                await db.execute_fetchall(f"PRAGMA {setting}")
            store = AsyncSqliteStore(db, index=_INDEX)
            await store.setup()
            yield lambda text: store.aput(_SPACE, uuid.uuid4().hex, {"text": text})

    def put_many(self, texts: list[str]) -> list[str]:
        keys = [uuid.uuid4().hex for _ in texts]
        self._store.batch([PutOp(_SPACE, key, {"text": text}) for key, text in zip(keys, texts, strict=True)])
        return keys

    def get(self, entry_id: str) -> str:
        return str(self._store.get(_SPACE, entry_id).value["text"])

    def newest(self, count: int) -> int:
        return len(self._store.search(_SPACE, limit=count))

    def search(self, query: str) -> list[str]:
        return [str(item.value["text"]) for item in self._store.search(_SPACE, query=query, limit=10)]

    def close(self) -> None:
        self._db.close()


def versions() -> dict[str, str]:
    """What is measured."""
    names = ("langgraph-checkpoint-sqlite", "sqlite-vec")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


if __name__ == "__main__":
    serve(LangGraph, versions())
