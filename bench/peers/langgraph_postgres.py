"""LangGraph's PostgresStore with its vector index (pgvector), on a pool."""

from __future__ import annotations

import platform
import uuid
from importlib.metadata import version
from pathlib import Path

from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from bench.peers.postgres_database import make_database
from bench.peers.protocol import DIMENSIONS, embed, serve

_SPACE = ("notes",)


class LangGraph:
    def __init__(self, folder: Path) -> None:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._pool = ConnectionPool(make_database(folder), max_size=16, kwargs=options, open=True)
        index = {"dims": DIMENSIONS, "embed": lambda texts: [embed(text) for text in texts], "fields": ["text"]}
        self._store = PostgresStore(self._pool, index=index)
        self._store.setup()

    def put(self, text: str) -> str:
        key = uuid.uuid4().hex
        self._store.put(_SPACE, key, {"text": text})
        return key

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
        self._pool.close()


if __name__ == "__main__":
    serve(LangGraph, {"python": platform.python_version(), "store": version("langgraph-checkpoint-postgres")})
