"""The adapters use the public library only: the same on a folder and on a running host."""

from __future__ import annotations

import asyncio

from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelRequest, UserPromptPart

import reverie
from reverie.integrations.langgraph import ReverieStore
from reverie.integrations.pydantic_ai import ReverieConversationStore


def test_a_langgraph_store(memory: reverie.Memory) -> None:
    store = ReverieStore(memory)
    store.put(("users", "ann"), "tea", {"text": "Ann drinks tea.", "n": 1}, ttl=60)
    store.put(("users", "ann"), "tea", {"text": "Ann drinks Darjeeling tea.", "n": 2}, ttl=60)
    store.put(("users", "ben"), "car", {"text": "Ben drives a van."})
    item = store.get(("users", "ann"), "tea")
    assert item is not None
    assert item.value == {"text": "Ann drinks Darjeeling tea.", "n": 2}
    assert item.updated_at > item.created_at
    assert [found.key for found in store.search(("users",), query="Which tea does Ann drink?", limit=1)] == ["tea"]
    assert [found.key for found in store.search((), filter={"n": {"$gte": 2}})] == ["tea"]
    assert store.list_namespaces(prefix=("users",)) == [("users", "ann"), ("users", "ben")]
    store.delete(("users", "ben"), "car")
    assert asyncio.run(store.aget(("users", "ben"), "car")) is None
    assert store.list_namespaces() == [("users", "ann")]


def test_a_conversation_store(memory: reverie.Memory) -> None:
    async def go() -> None:
        store = ReverieConversationStore(memory)
        first = ConversationEntry(parent_id=None, message=ModelRequest(parts=[UserPromptPart("Hello " * 20_000)]))
        record = ConversationRecord(conversation_id="c", head_id=first.id, scope="ann")
        await store.write_record(record, new_entries=[first], expected_revision=None)
        assert await store.read_record("c") == record
        assert (await store.read_entry(first.id)).message == first.message
        await store.delete_record("c", expected_revision=record.revision)
        assert await store.read_records(scope="ann") == []

    asyncio.run(go())
