"""mem0 with `infer=False` on its default local vector store (Qdrant's embedded mode) and a stand-in embedder.

Its durability is its own: the embedded store commits every point to SQLite with that library's defaults, the history
goes to a second SQLite file, and the two are not one transaction. No setting offers more.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("OPENAI_API_KEY", "unused")  # asked for at construction; with infer=False nothing is sent

from mem0 import Memory

from bench.peers.protocol import DIMENSIONS, embed, serve

_WHO = {"user_id": "notes"}


class _Embedder:
    """What mem0 asks of an embedder."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        return embed(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002
        return [embed(text) for text in texts]


class Mem0:
    def __init__(self, folder: Path) -> None:
        store = {"path": str(folder / "vectors"), "embedding_model_dims": DIMENSIONS, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Embedder()

    def put(self, text: str) -> str:
        return str(self._memory.add(text, infer=False, **_WHO)["results"][0]["id"])

    def put_many(self, texts: list[str]) -> list[str]:
        messages = [{"role": "user", "content": text} for text in texts]
        return [str(made["id"]) for made in self._memory.add(messages, infer=False, **_WHO)["results"]]

    def get(self, entry_id: str) -> str:
        return str(self._memory.get(entry_id)["memory"])

    def newest(self, count: int) -> int:
        return len(self._memory.get_all(filters=_WHO, top_k=count)["results"])

    def search(self, query: str) -> list[str]:
        return [str(hit["memory"]) for hit in self._memory.search(query, filters=_WHO, top_k=10)["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()


if __name__ == "__main__":
    serve(
        Mem0,
        {"python": platform.python_version(), "mem0ai": version("mem0ai"), "qdrant-client": version("qdrant-client")},
    )
