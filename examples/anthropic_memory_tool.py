"""Claude's memory tool on Reverie: what one conversation learns, the next one knows.

    python examples/anthropic_memory_tool.py

It runs without a network: a scripted model answers instead of Claude. For the real model, make the client with
`Anthropic()` and an API key.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
from anthropic import Anthropic

import reverie
from reverie.anthropic import MemoryTool

FIRST = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/mira.md", "file_text": "Mira drinks oolong tea.\n"},
    {"command": "insert", "path": "/memories/mira.md", "insert_line": 1, "insert_text": "Mira lives in Porto."},
    "I will remember that, Mira.",
]
SECOND = [
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/mira.md"},
    {"command": "str_replace", "path": "/memories/mira.md", "old_str": "Porto", "new_str": "Lisbon"},
    "Oolong it is. And I noted that you live in Lisbon now.",
]


def scripted_model(script: Sequence[Any]) -> httpx2.MockTransport:
    """A model that plays a script: memory commands first, then a sentence."""
    steps: Iterator[tuple[int, Any]] = iter(enumerate(script))

    def answer(_: httpx2.Request) -> httpx2.Response:
        number, step = next(steps)
        block = {"type": "text", "text": step}
        if isinstance(step, dict):
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": step}
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [block],
            "stop_reason": "tool_use" if isinstance(step, dict) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, content=json.dumps(message), headers={"content-type": "application/json"})

    return httpx2.MockTransport(answer)


def converse(memory: reverie.Memory, script: Sequence[Any], said: str) -> str:
    """One conversation; the last words of the model."""
    client = Anthropic(api_key="scripted", http_client=httpx2.Client(transport=scripted_model(script)))
    tool = MemoryTool(memory, store="assistant", session="example")
    runner = client.beta.messages.tool_runner(
        model="scripted", max_tokens=1024, tools=[tool], messages=[{"role": "user", "content": said}]
    )
    last = runner.until_done().content[-1]
    return last.text if last.type == "text" else ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        print(converse(memory, FIRST, "I am Mira. I drink oolong tea and live in Porto."))
        print(converse(memory, SECOND, "What do I drink? I moved to Lisbon."))
        print(MemoryTool(memory, store="assistant").handle({"command": "view", "path": "/memories/mira.md"})["content"])


if __name__ == "__main__":
    main()
