"""The memory store of Strands Agents, with its own manager."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

import pytest
from strands.memory import MemoryManager
from strands.memory.types import AddMessagesContext

import reverie
from reverie.integrations.strands import ReverieMemoryStore


def _message(role: Any, text: str) -> Any:
    return {"role": role, "content": [{"text": text}]}


def test_the_manager_adds_and_finds() -> None:
    async def go() -> None:
        store = ReverieMemoryStore(reverie.open(tempfile.mkdtemp()), "ann", name="notes")
        manager = MemoryManager(stores=[store], add_tool_config=True)
        await manager.add("Ann drinks Darjeeling tea.", {"metadata": {"from": "a form"}})
        await manager.add("The office is in Nantes.")
        (found, *_) = await manager.search("Which tea does Ann drink?")
        assert found.content == "Ann drinks Darjeeling tea."
        assert found.store_name == "notes"
        assert found.metadata is not None
        assert found.metadata["from"] == "a form"
        assert 0 < found.metadata["_relevanceScore"] <= 1
        assert await manager.search("volcano") == []

    asyncio.run(go())


def test_a_text_and_a_batch_are_stored_once() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        store, ref = ReverieMemoryStore(memory, "ann"), memory.ref("ann")
        first = await store.add("Ann drinks Darjeeling tea.")
        assert await store.add("Ann drinks Darjeeling tea. ") == first
        batch = [_message("user", "I live in Basel."), _message("assistant", "Noted."), _message("user", " ")]
        for _ in range(2):
            await store.add_messages(batch, AddMessagesContext(sequence_numbers=[0, 1, 2]))
        assert [(one.content, one.source.actor) for one in ref.list(limit=2).items] == [
            ("Noted.", "assistant"),
            ("I live in Basel.", "user"),
        ]
        assert len(list(ref.entries())) == 3
        ref.delete(first.id)
        again = await store.add("Ann drinks Darjeeling tea.")
        assert again != first
        assert ref.get(again.id).content == "Ann drinks Darjeeling tea."

    asyncio.run(go())


def test_a_store_that_only_reads_refuses() -> None:
    async def go() -> None:
        store = ReverieMemoryStore(reverie.open(tempfile.mkdtemp()), "ann", writable=False)
        for write in (store.add("Hello."), store.add_messages([_message("user", "Hello.")])):
            with pytest.raises(ValueError, match="not writable"):
                await write

    asyncio.run(go())


def test_context_that_was_recalled_into_a_message_is_not_stored_again() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        store, ref = ReverieMemoryStore(memory, "ann"), memory.ref("ann")
        await store.add("Ann drinks Darjeeling tea.")
        recalled = ref.context("Which tea does Ann drink?").text
        assert "Darjeeling" in recalled
        await store.add_messages([_message("user", recalled)])
        await store.add_messages([_message("user", f"{recalled}\nBook the tasting for Friday.")])
        assert sorted(entry.content for entry in ref.entries()) == [
            "Ann drinks Darjeeling tea.",
            "Book the tasting for Friday.",
        ]

    asyncio.run(go())
