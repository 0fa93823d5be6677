"""A Strands agent with Reverie as its memory store: what it is told in one session it knows in the next. The scripted
model answers with the memory that is put before the question.

    python examples/strands_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.models import Model

import reverie
from reverie.integrations.strands import ReverieMemoryStore


class Scripted(Model):
    """In place of a model."""

    def update_config(self, **_: Any) -> None:
        return

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        known = re.search(r"<entry[^>]*>(.*?)</entry>", str(messages[-1]["content"]))
        answer = known[1] if known else "I will remember that."
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def main(target: str) -> str:
    with reverie.open(target) as memory:
        store = ReverieMemoryStore(memory, "ann", extraction=True)

        def agent() -> Agent:
            return Agent(model=Scripted(), memory_manager={"stores": [store]}, callback_handler=None)

        monday = agent()
        for said in ("I drink Darjeeling tea in the morning.", "Thank you.", "Yes.", "Right.", "That was all."):
            monday(said)  # messages are stored every five turns
        return str(agent()("Which tea do I drink?")).strip()


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
