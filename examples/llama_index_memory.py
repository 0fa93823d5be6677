"""LlamaIndex with Reverie as a memory block: what was said in one session is known in the next. The scripted model
answers with the memory that the block puts into the prompt.

    python examples/llama_index_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from typing import Any

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.memory import Memory

import reverie
from reverie.integrations.llama_index import ReverieMemoryBlock


class Scripted(CustomLLM):
    """In place of a model."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponse:
        known = re.search(r"^1 user> (.*)$", prompt, re.MULTILINE)
        return CompletionResponse(text=known[1] if known else "I will remember that.")

    def stream_complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponseGen:
        yield self.complete(prompt)


async def talk(target: str) -> str:
    with reverie.open(target) as memory:
        block = ReverieMemoryBlock(memory, "ann")

        def session(name: str) -> SimpleChatEngine:
            # a short-term memory of few tokens, so that messages move to the block at once
            short = Memory.from_defaults(session_id=name, token_limit=40, token_flush_size=20, memory_blocks=[block])
            return SimpleChatEngine(llm=Scripted(), memory=short, prefix_messages=[])

        first = session("monday")
        await first.achat("I drink Darjeeling tea in the morning.")
        await first.achat("Thank you, that was all for today. " * 8)
        return str(await session("tuesday").achat("Which tea do I drink?"))


def main(target: str) -> str:
    return asyncio.run(talk(target))


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
