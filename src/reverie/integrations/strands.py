"""Strands Agents: Reverie as a memory store.

from reverie.integrations.strands import ReverieMemoryStore

store = ReverieMemoryStore(reverie.open("./memory"), "ann", extraction=True)
agent = Agent(model=model, memory_manager={"stores": [store]})
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reverie.core.errors import Conflict, NotFound
from reverie.core.extras import require_release
from reverie.core.names import digest
from reverie.search.context import without_blocks

require_release("strands-agents", "1.60", extra="strands", purpose="The memory store")

from strands.memory.types import MemoryEntry, MemoryStore  # noqa: E402

if TYPE_CHECKING:
    from reverie.library import Memory, Ref
    from reverie.memory.hits import Hit

SCORE = "_relevanceScore"
"""The key of a result's metadata with its confidence, 0 to 1."""


@dataclass(frozen=True)
class Added:
    """Result of `add`: the id of the entry."""

    id: str


class ReverieMemoryStore(MemoryStore):
    """A memory store over the memory `ref`, for example one of an agent, a user or a team.

    With `extraction` the words of both sides are stored as they were said, and dreams distil them: no model is called
    to extract facts. The same text is stored once by `add`; the same batch of messages once by `add_messages`.
    """

    def __init__(
        self,
        memory: Memory,
        ref: str,
        *,
        name: str = "reverie",
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: Any = None,
    ) -> None:
        if not name.strip():
            raise ValueError("The name must not be empty.")
        self.name = name
        self.description = description
        self.max_search_results = None if max_search_results is None else _at_least_one(max_search_results)
        self.writable = writable
        self.extraction = extraction
        self._ref = memory.ref(ref)

    async def search(self, query: str, options: Any = None) -> list[MemoryEntry]:
        """Return the entries that answer a query or share its words, best first; empty when there are none."""
        limit = _at_least_one((options or {}).get("max_search_results", self.max_search_results or 10))
        if not any(letter.isalnum() for letter in query):
            return []
        found = await asyncio.to_thread(lambda: self._ref.search(query.strip()[:4096], limit=limit))
        return [_entry(hit) for hit in found if not hit.weak or hit.signals.get("words", 0) > 0]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Added:
        """Store one text, unless it is stored already."""
        self._check(content)
        return Added(await asyncio.to_thread(_add, self._ref, content, metadata))

    async def add_messages(self, messages: list[Any], context: Any = None) -> None:
        """Store the words of a batch of messages, in one transaction."""
        made = [
            {"content": text, "source": {"actor": message["role"]}}
            for message in messages
            if (text := without_blocks(_text(message)).strip())
        ]
        if not made:
            return
        self._check("\n".join(map(_text, messages)))
        numbers = getattr(context, "sequence_numbers", None)
        key = None if numbers is None else f"strands:{digest(repr((numbers, made)))}"
        await asyncio.to_thread(lambda: self._ref.put_many(made, idempotency_key=key))

    def _check(self, content: str) -> None:
        if not self.writable:
            raise ValueError(f"{self.name}: the store is not writable. Make it with writable=True.")
        if not content.strip():
            raise ValueError("The content must not be empty.")


def _add(ref: Ref, content: str, metadata: dict[str, Any] | None) -> str:
    own = f"strands:{digest(content.strip())}"
    attributes = {"strands": metadata} if metadata else None
    try:
        return ref.put(content, id=own, attributes=attributes).id
    except Conflict:
        try:
            return ref.get(own).id
        except NotFound:  # deleted, or distilled by a dream: said again
            return ref.put(content, attributes=attributes).id


def _entry(hit: Hit) -> MemoryEntry:
    metadata = dict(hit.entry.attributes.get("strands") or {})
    return MemoryEntry(content=hit.text, metadata={**metadata, "id": hit.entry.id, SCORE: hit.confidence})


def _text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))


def _at_least_one(results: int) -> int:
    if results < 1:
        raise ValueError("max_search_results must be at least 1.")
    return results
