"""Google ADK: Reverie as the memory service of agents.

    from reverie.integrations.adk import ReverieMemoryService

    runner = Runner(agent=agent, memory_service=ReverieMemoryService(reverie.open("./memory")), ...)

Each user of an app has a memory of their own, `adk/APP/USER`. An event is an entry: its author, time and session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reverie.core.errors import Conflict, NotFound
from reverie.core.extras import require_release
from reverie.core.names import digest, segment
from reverie.core.query import Filter
from reverie.search.context import without_blocks

require_release("google-adk", "2.0", extra="adk", purpose="The memory service")

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse  # noqa: E402
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.genai import types  # noqa: E402

if TYPE_CHECKING:
    from reverie.library import Memory, Ref
    from reverie.memory.hits import Hit


class ReverieMemoryService(BaseMemoryService):
    """ADK's memory service: stores sessions, events and explicit memories, and searches them.

    Sessions may be added again and again: an event is stored once, and one that was deleted stays deleted. `subject`:
    entries are about the user, so that `memory.forget(user_id)` reaches them.
    """

    def __init__(self, memory: Memory, *, root: str = "adk", limit: int = 10) -> None:
        self.memory = memory
        self._root = root
        self._limit = limit

    async def add_session_to_memory(self, session: Any) -> None:
        """Store the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet; those without text are left out."""
        made = []
        for event in events:
            text = without_blocks(_text(event.content))
            if text:
                made.append(
                    {
                        "id": f"event:{digest(event.id)}",
                        "content": text,
                        "kind": "event",
                        "subject": user_id,
                        "source": {"actor": event.author or "", "session": session_id},
                        "created_at": int(event.timestamp * 1000) if event.timestamp else None,
                        "attributes": {"adk": {"id": event.id, "metadata": dict(custom_metadata or {})}},
                    }
                )
        if made:
            await asyncio.to_thread(_put_new, self._ref(app_name, user_id), made, session_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[Any],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store explicit memories. One with an id that is stored already is left out."""
        made = []
        for memory in memories:
            text = _text(memory.content)
            if text:
                metadata = {**dict(custom_metadata or {}), **memory.custom_metadata}
                made.append(
                    {
                        "id": f"event:{digest(memory.id)}" if memory.id else None,
                        "content": text,
                        "subject": user_id,
                        "source": {"actor": memory.author or ""},
                        "created_at": memory.timestamp,
                        "attributes": {"adk": {"id": memory.id, "metadata": metadata}},
                    }
                )
        if made:
            await asyncio.to_thread(_put_new, self._ref(app_name, user_id), made, None)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories that answer a query or share its words, best first; none when nothing does."""
        if not query.strip():
            return SearchMemoryResponse()
        ref = self._ref(app_name, user_id)
        found = await asyncio.to_thread(lambda: ref.search(query[:4096], limit=self._limit))
        return SearchMemoryResponse(
            memories=[_entry(hit) for hit in found.hits if not hit.weak or hit.signals.get("words", 0) > 0]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete one memory by the id that a search gave."""
        if memory_id:
            await asyncio.to_thread(_delete, self._ref(app_name, user_id), memory_id)

    def _ref(self, app_name: str, user_id: str) -> Ref:
        return self.memory.ref("/".join([self._root, segment(app_name), segment(user_id)]))


def _put_new(ref: Ref, made: list[dict[str, Any]], session_id: str | None) -> None:
    """Store entries with a new id. The ids of deleted entries are never free again."""
    if session_id:
        stored = {entry.id for entry in ref.entries(Filter(session=session_id))}
        made = [draft for draft in made if draft["id"] not in stored]
    if not made:
        return
    try:
        ref.put_many(made)
    except Conflict:
        for draft in made:
            try:
                ref.put_many([draft])
            except Conflict:
                continue


def _delete(ref: Ref, memory_id: str) -> None:
    for entry_id in (f"event:{digest(memory_id)}", memory_id):
        try:
            ref.delete(entry_id)
        except NotFound:
            continue
        return


def _entry(hit: Hit) -> MemoryEntry:
    entry = hit.entry
    about = entry.attributes.get("adk") or {}
    author = entry.source.actor
    return MemoryEntry(
        id=about.get("id") or entry.id,
        content=types.Content(parts=[types.Part(text=hit.text)], role="user" if author == "user" else "model"),
        author=None if author.startswith(("local:", "key:", "host:")) else author,
        timestamp=datetime.fromtimestamp(entry.created_at / 1000, UTC).isoformat(),
        custom_metadata=dict(about.get("metadata") or {}),
    )


def _text(content: Any) -> str:
    parts = (content.parts or []) if content is not None else []
    return "\n".join(part.text for part in parts if part.text).strip()
