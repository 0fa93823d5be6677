"""A Pydantic AI agent that recalls memories, with a scripted model; its conversation is stored and loaded again.

python examples/pydantic_ai_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import reverie
from reverie.integrations.pydantic_ai import ReverieConversationStore, recall


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Answers from the memory it was given."""
    known = str(messages[0].parts[0].content)  # type: ignore[union-attr]
    return ModelResponse(parts=[TextPart("Darjeeling." if "Darjeeling" in known else "I do not know.")])


async def talk(target: str) -> tuple[str, int]:
    with reverie.open(target) as memory:
        notes = memory.ref("ann")
        notes.put("Ann drinks Darjeeling tea without milk.", subject="ann")
        agent = Agent(FunctionModel(model), capabilities=[ProcessHistory(recall(notes))])
        result = await agent.run("Which tea does Ann drink?")
        store, entries, parent = ReverieConversationStore(memory), [], None
        for message in result.new_messages():
            entries.append(ConversationEntry(parent_id=parent, message=message))
            parent = entries[-1].id
        record = ConversationRecord(conversation_id="tea", head_id=parent)
        await store.write_record(record, new_entries=entries, expected_revision=None)
        return result.output, len(await store.read_history(record.head_id))


def main(target: str) -> tuple[str, int]:
    return asyncio.run(talk(target))


if __name__ == "__main__":
    print(*main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
