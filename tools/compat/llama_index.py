"""The memory block of LlamaIndex, with its own messages and its own memory."""

from __future__ import annotations

import asyncio
import tempfile

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

import reverie
from reverie.integrations.llama_index import ReverieMemoryBlock


def test_what_leaves_the_short_term_memory_is_kept_and_answers() -> None:
    async def go() -> None:
        store = reverie.open(tempfile.mkdtemp())
        block = ReverieMemoryBlock(store, "ann")
        short = Memory.from_defaults(session_id="s1", token_limit=60, token_flush_size=20, memory_blocks=[block])
        await short.aput(ChatMessage("Ann drinks Darjeeling tea.", role="user"))
        await short.aput(ChatMessage("Noted. " * 60, role="assistant"))
        await short.aput(ChatMessage("Which tea does Ann drink?", role="user"))
        (entry, *_) = [one for one in store.ref("ann").entries() if "Darjeeling" in one.content]
        assert (entry.source.actor, entry.source.session) == ("user", "s1")
        assert any("Darjeeling" in (message.content or "") for message in await short.aget())

    asyncio.run(go())


def test_nothing_is_known_without_a_question_and_nothing_is_kept_of_tools() -> None:
    async def go() -> None:
        store = reverie.open(tempfile.mkdtemp())
        block = ReverieMemoryBlock(store, "ann")
        await block.aput([ChatMessage("Ann drinks Darjeeling tea.", role="tool"), ChatMessage("  ", role="user")])
        assert list(store.ref("ann").entries()) == []
        store.ref("ann").put("Ann drinks Darjeeling tea.")
        assert await block.aget() == ""
        assert await block.aget([ChatMessage("Darjeeling tea?", role="assistant")]) == ""
        assert "Darjeeling" in await block.aget([ChatMessage("Which tea does Ann drink?", role="user")])
        await ReverieMemoryBlock(store, "ann", remember=False).aput([ChatMessage("Hello.", role="user")])
        assert len(list(store.ref("ann").entries())) == 1

    asyncio.run(go())


def test_a_block_that_is_too_long_keeps_its_best_lines() -> None:
    async def go() -> None:
        store = reverie.open(tempfile.mkdtemp())
        store.ref("ann").put_many([f"Ann drank tea number {number} with honey and lemon." for number in range(40)])
        block = ReverieMemoryBlock(store, "ann", budget=400)
        whole = await block.aget([ChatMessage("Which tea did Ann drink?", role="user")])
        less = await block.atruncate(whole, 200)
        assert less
        assert 0 < less.count("Ann drank") < whole.count("Ann drank")
        assert less.endswith("</memory>")
        assert await block.atruncate(less, 10_000) is None
        assert await block.atruncate("another text", 10) is None

    asyncio.run(go())


def test_context_that_was_recalled_into_a_message_is_not_stored_again() -> None:
    async def go() -> None:
        store = reverie.open(tempfile.mkdtemp())
        store.ref("ann").put("Ann drinks Darjeeling tea.")
        block = ReverieMemoryBlock(store, "ann")
        recalled = await block.aget([ChatMessage("Which tea does Ann drink?", role="user")])
        assert "Darjeeling" in recalled
        said = [f"{recalled}\nBook the tasting for Friday.", recalled]
        await block.aput([ChatMessage(text, role="user") for text in said])
        assert sorted(entry.content for entry in store.ref("ann").entries()) == [
            "Ann drinks Darjeeling tea.",
            "Book the tasting for Friday.",
        ]

    asyncio.run(go())
