"""Google ADK's memory service on Reverie: add a session, then search for what answers a question. No model is called.

python examples/adk_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

import reverie
from reverie.integrations.adk import ReverieMemoryService


async def recall(target: str) -> str:
    with reverie.open(target) as memory:
        service = ReverieMemoryService(memory)  # Runner(..., memory_service=service)
        said = types.Content(role="user", parts=[types.Part(text="I live in Basel and work as a surgeon.")])
        session = Session(
            id="s1", app_name="clinic", user_id="ann", events=[Event(id="1", author="user", content=said)]
        )
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="clinic", user_id="ann", query="Where does Ann live?")
        return str(found.memories[0].content.parts[0].text)


def main(target: str) -> str:
    return asyncio.run(recall(target))


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
