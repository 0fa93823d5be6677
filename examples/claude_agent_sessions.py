"""A session of the Claude Agent SDK in Reverie: mirrored as it grows, loaded again anywhere. No model is called.

python examples/claude_agent_sessions.py [FOLDER or URL]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

import reverie
from reverie.integrations.claude_agent import ReverieSessionStore


async def mirror(target: str) -> list[str]:
    with reverie.open(target) as memory:
        store = ReverieSessionStore(memory)  # ClaudeAgentOptions(session_store=store)
        key = {"project_key": "shop", "session_id": "0f8fad5b-d9cb-469f-a165-70867728950e"}
        said = [("user", "Use tabs."), ("assistant", "Understood.")]
        for number, (role, text) in enumerate(said):
            line = {"type": role, "uuid": f"line-{number}", "message": {"role": role, "content": text}}
            await store.append(key, [line])
        return [line["message"]["content"] for line in await store.load(key) or []]


def main(target: str) -> list[str]:
    return asyncio.run(mirror(target))


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
