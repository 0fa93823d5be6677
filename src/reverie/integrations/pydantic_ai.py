"""Pydantic AI: conversations kept in Reverie, and a history processor that adds relevant memory.

from reverie.integrations.pydantic_ai import ReverieConversationStore, recall

memory = reverie.open("./memory")
store = ReverieConversationStore(memory)
agent = Agent(model, capabilities=[ProcessHistory(recall(memory.ref("ann")))])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from reverie.core.errors import Conflict, NotFound
from reverie.core.extras import require_release
from reverie.core.names import digest
from reverie.core.query import Filter
from reverie.integrations.transcript import drafts, joined, part_id

require_release("pydantic-ai-slim", "2.66", extra="pydantic-ai", purpose="The conversation store")

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai.conversation_store import (  # noqa: E402
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart  # noqa: E402

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.library import Memory, Ref

_RECORD: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)
_ENTRY: TypeAdapter[ConversationEntry] = TypeAdapter(ConversationEntry)
_RECORDS = "conversation"
_GONE = "conversation-end"

Processor = Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]


class ReverieConversationStore(ConversationStore):
    """Pydantic AI's conversation store. A record and its new messages are one transaction.

    The successor of a record has an id made from the revision it replaces, so of two writers that saw the same revision
    one gets `ConversationConflict`. Messages of a deleted conversation are kept: another may have been forked from it.
    """

    def __init__(self, memory: Memory, *, ref: str = "pydantic-ai") -> None:
        self._ref = memory.ref(ref)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation."""
        entry = await asyncio.to_thread(self._find, conversation_id)
        return None if entry is None else _RECORD.validate_python(_document(self._ref, entry))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Records, last saved first."""

        def read() -> list[Any]:
            tags = () if scope is None else (f"~scope:{digest(scope)}",)
            found = self._ref.entries(Filter(kinds=(_RECORDS,), tags=tags))
            return [_document(self._ref, entry) for entry in found if "number" not in entry.attributes]

        records = [_RECORD.validate_python(document) for document in await asyncio.to_thread(read)]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new messages, if the stored revision is the expected one."""
        await asyncio.to_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a record; its messages are kept."""
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """One message. Raises KeyError."""

        def read() -> Any:
            return _document(self._ref, self._ref.get(entry_id))

        try:
            return _ENTRY.validate_python(await asyncio.to_thread(read))
        except NotFound:
            raise KeyError(entry_id) from None

    def _find(self, conversation_id: str) -> Entry | None:
        found = self._ref.list(Filter(tags=(_mark(conversation_id),), kinds=(_RECORDS,)), limit=1).items
        return found[0] if found else None

    def _write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected_revision: str | None
    ) -> None:
        conversation_id, mark = record.conversation_id, _mark(record.conversation_id)
        made: list[dict[str, Any]] = []
        for entry in new:
            made += drafts(_ENTRY.dump_python(entry, mode="json"), _text_of(entry.message), id=entry.id, kind="message")
        tags = [mark] if record.scope is None else [mark, f"~scope:{digest(record.scope)}"]
        document = _RECORD.dump_python(record, mode="json")
        for attempt in range(1000):
            stored = self._find(conversation_id)
            revision = None if stored is None else _document(self._ref, stored)["revision"]
            if revision != expected_revision or not self._has_head(record, new):
                raise ConversationConflict(conversation_id)
            own = _successor(conversation_id, expected_revision or f"new-{attempt}")
            last = drafts(document, f"Conversation {conversation_id}", id=own, kind=_RECORDS, tags=tags, replaces=mark)
            try:
                self._ref.put_many([*made, *last])
            except Conflict:
                if expected_revision is not None:
                    raise ConversationConflict(conversation_id) from None
                continue  # begun by another just now, or begun and deleted before
            return
        raise ConversationConflict(conversation_id)

    def _has_head(self, record: ConversationRecord, new: Sequence[ConversationEntry]) -> bool:
        if record.head_id is None or any(entry.id == record.head_id for entry in new):
            return True
        try:
            self._ref.get(record.head_id)
        except NotFound:
            return False
        return True

    def _delete(self, conversation_id: str, expected_revision: str) -> None:
        stored, mark = self._find(conversation_id), _mark(conversation_id)
        if stored is None or _document(self._ref, stored)["revision"] != expected_revision:
            raise ConversationConflict(conversation_id)
        own = _successor(conversation_id, expected_revision)
        try:
            self._ref.put("Conversation deleted.", id=own, kind=_GONE, tags=[mark], replaces=mark)
        except Conflict:
            raise ConversationConflict(conversation_id) from None
        self._ref.delete(own)


def recall(ref: Ref, *, budget: int = 1000) -> Processor:
    """Return a history processor that puts the best memory for the newest question before it, as quoted data."""

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        question = _text_of(messages[-1]).strip()[:4096] if messages else ""
        if not question:
            return messages
        known = await asyncio.to_thread(ref.context, question, budget=budget)
        if not known.text:
            return messages
        return [*messages[:-1], ModelRequest(parts=[UserPromptPart(known.text)]), messages[-1]]

    return process


def _mark(conversation_id: str) -> str:
    return f"~conversation:{digest(conversation_id)}"


def _successor(conversation_id: str, revision: str) -> str:
    return f"record:{digest(f'{conversation_id}/{revision}')}"


def _document(ref: Ref, entry: Entry) -> Any:
    attributes = entry.attributes
    if "document" in attributes:
        return attributes["document"]
    rest = (ref.get(part_id(entry.id, number)).attributes["part"] for number in range(1, attributes["parts"]))
    return joined([attributes["part"], *rest])


def _text_of(message: ModelMessage) -> str:
    """The words of the user or of the model in a message."""
    texts = []
    for part in message.parts:
        content = getattr(part, "content", None)
        if part.part_kind in ("user-prompt", "text"):
            pieces = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
            texts += [piece for piece in pieces if isinstance(piece, str)]
    return "\n".join(texts)
