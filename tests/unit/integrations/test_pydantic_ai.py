"""The conversation store of Pydantic AI, and its history processor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import reverie
from reverie.integrations.pydantic_ai import ReverieConversationStore, recall
from reverie.library import Memory


@pytest.fixture
def memory(make_target: Callable[..., str]) -> Iterator[Memory]:
    with reverie.open(make_target()) as opened:
        yield opened


@pytest.fixture
def store(memory: Memory) -> ReverieConversationStore:
    return ReverieConversationStore(memory)


def entry(text: str, parent: str | None = None) -> ConversationEntry:
    return ConversationEntry(parent_id=parent, message=ModelRequest(parts=[UserPromptPart(text)]))


def test_records_and_messages_come_back(store: ReverieConversationStore) -> None:
    async def go() -> None:
        first = entry("What is the plan?")
        second = entry("x" * 100_000, first.id)
        record = ConversationRecord(conversation_id="c1", head_id=second.id, scope="ann")
        await store.write_record(record, new_entries=[first, second], expected_revision=None)
        assert await store.read_record("c1") == record
        assert await store.read_record("c2") is None
        assert [one.id for one in await store.read_history(second.id)] == [first.id, second.id]
        assert (await store.read_entry(second.id)).message == second.message
        with pytest.raises(KeyError):
            await store.read_entry("no-such-entry")

    asyncio.run(go())


def test_a_writer_that_saw_an_older_revision_gets_a_conflict(store: ReverieConversationStore) -> None:
    async def go() -> None:
        one = entry("one")
        first = ConversationRecord(conversation_id="c1", head_id=one.id)
        await store.write_record(first, new_entries=[one], expected_revision=None)
        with pytest.raises(ConversationConflict):
            await store.write_record(ConversationRecord(conversation_id="c1", head_id=None), expected_revision=None)
        racers = [
            store.write_record(
                ConversationRecord(conversation_id="c1", head_id=one.id), expected_revision=first.revision
            )
            for _ in range(6)
        ]
        ended = await asyncio.gather(*racers, return_exceptions=True)
        assert sorted(type(end).__name__ for end in ended) == ["ConversationConflict"] * 5 + ["NoneType"]
        with pytest.raises(ConversationConflict):
            await store.delete_record("c1", expected_revision=first.revision)
        current = await store.read_record("c1")
        assert current is not None
        missing = ConversationRecord(conversation_id="c1", head_id="nowhere")
        with pytest.raises(ConversationConflict):
            await store.write_record(missing, expected_revision=current.revision)
        await store.delete_record("c1", expected_revision=current.revision)
        assert await store.read_record("c1") is None
        with pytest.raises(ConversationConflict):
            await store.write_record(current, expected_revision=current.revision)
        again = ConversationRecord(conversation_id="c1", head_id=None)
        await store.write_record(again, expected_revision=None)
        assert await store.read_record("c1") == again

    asyncio.run(go())


def test_racing_creators_leave_one(store: ReverieConversationStore) -> None:
    async def go() -> None:
        made = [
            store.write_record(ConversationRecord(conversation_id="c1", head_id=None), expected_revision=None)
            for _ in range(6)
        ]
        ended = await asyncio.gather(*made, return_exceptions=True)
        assert sum(end is None for end in ended) == 1

    asyncio.run(go())


def test_records_are_listed_by_scope_last_saved_first(store: ReverieConversationStore) -> None:
    async def go() -> None:
        for number, scope in enumerate(["ann", "ben", "ann"]):
            record = ConversationRecord(conversation_id=f"c{number}", head_id=None, scope=scope)
            await store.write_record(record, expected_revision=None)
        assert [one.conversation_id for one in await store.read_records(scope="ann")] == ["c2", "c0"]
        assert [one.conversation_id for one in await store.read_records(limit=2)] == ["c2", "c1"]

    asyncio.run(go())


def test_an_agent_recalls_what_is_known(memory: Memory) -> None:
    notes = memory.ref("ann")
    notes.put("Ann drinks Darjeeling tea without milk.")
    seen: list[Any] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.extend(part.content for message in messages for part in message.parts if part.part_kind == "user-prompt")
        return ModelResponse(parts=[TextPart("Darjeeling.")])

    agent: Any = Agent(FunctionModel(model), capabilities=[ProcessHistory(recall(notes))])
    assert agent.run_sync("Which tea does Ann drink?").output == "Darjeeling."
    assert "Darjeeling" in seen[0]
    assert seen[-1] == "Which tea does Ann drink?"
    seen.clear()
    agent.run_sync("What is the capital of Peru?")
    assert seen == ["What is the capital of Peru?"]
