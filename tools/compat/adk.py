"""Google ADK's memory service, with its own sessions and events."""

from __future__ import annotations

import asyncio
import tempfile

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

import reverie
from reverie.integrations.adk import ReverieMemoryService

WHO = {"app_name": "app", "user_id": "ann@example.com"}


def _content(text: str) -> types.Content:
    return types.Content(parts=[types.Part(text=text)], role="user")


def test_sessions_are_stored_once_and_what_was_deleted_stays_deleted() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        service = ReverieMemoryService(memory)
        events = [
            Event(id="1", author="user", content=_content("I live in Basel and work as a surgeon.")),
            Event(id="2", author="helper", content=_content("The appointment is on Friday.")),
            Event(id="3", author="helper"),
        ]
        session = Session(id="s1", app_name="app", user_id="ann@example.com", events=events)
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        assert [count for _, count in memory.refs()] == [2]
        (found,) = (await service.search_memory(**WHO, query="Where do I live?")).memories
        assert (found.id, found.author) == ("1", "user")
        assert (await service.search_memory(app_name="app", user_id="ben", query="Where do I live?")).memories == []
        assert (await service.search_memory(**WHO, query=" ")).memories == []
        await service.delete_memory(**WHO, memory_id="1")
        await service.add_session_to_memory(session)
        assert (await service.search_memory(**WHO, query="Where do I live?")).memories == []

    asyncio.run(go())


def test_explicit_memories_and_forget() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        service = ReverieMemoryService(memory)
        given = MemoryEntry(content=_content("Ann prefers aisle seats."), author="ann", custom_metadata={"k": "v"})
        await service.add_memory(**WHO, memories=[given])
        (found,) = (await service.search_memory(**WHO, query="Which seat does Ann prefer?")).memories
        assert found.custom_metadata == {"k": "v"}
        memory.forget("ann@example.com")
        assert memory.refs() == []

    asyncio.run(go())


def test_context_that_was_recalled_into_a_message_is_not_stored_again() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        service = ReverieMemoryService(memory)
        notes = memory.ref("notes")
        notes.put("Ann drinks Darjeeling tea.")
        recalled = notes.context("Which tea does Ann drink?").text
        assert "Darjeeling" in recalled
        events = [
            Event(id="1", author="user", content=_content(f"{recalled}\nBook the tasting for Friday.")),
            Event(id="2", author="user", content=_content(recalled)),
        ]
        await service.add_session_to_memory(Session(id="s1", app_name="app", user_id="ann@example.com", events=events))
        (ref,) = [ref for ref, _ in memory.refs() if ref != "notes"]
        assert [entry.content for entry in memory.ref(ref).entries()] == ["Book the tasting for Friday."]

    asyncio.run(go())
