"""Reverie through its Python library: redaction, event, word index and vector in every write."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

import reverie
import reverie.aio
from bench.peers.protocol import serve


class Reverie:
    def __init__(self, folder: Path) -> None:
        self._memory = reverie.open(folder)
        self._notes = self._memory.ref("notes")

    def put(self, text: str) -> str:
        return self._notes.put(text).id

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Callable[[str], Awaitable[object]]]:
        async with await reverie.aio.open(folder) as memory:
            yield memory.ref("notes").put

    def put_many(self, texts: list[str]) -> list[str]:
        return [receipt.id for receipt in self._notes.put_many(texts)]

    def get(self, entry_id: str) -> str:
        return self._notes.get(entry_id).content

    def newest(self, count: int) -> int:
        return len(self._notes.list(limit=count).items)

    def search(self, query: str) -> list[str]:
        return [hit.entry.content for hit in self._notes.search(query).hits]

    def close(self) -> None:
        self._memory.close()


if __name__ == "__main__":
    serve(Reverie, {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()})
