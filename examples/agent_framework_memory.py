"""Microsoft Agent Framework with Reverie: the history of a session, and memories before a run. No model is called.

python examples/agent_framework_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

from agent_framework import AgentSession, Message, SessionContext

import reverie
from reverie.integrations.agent_framework import ReverieContextProvider, ReverieHistoryProvider


async def prepare(target: str) -> str:
    with reverie.open(target) as memory:
        # Agent(client=..., context_providers=[ReverieHistoryProvider(memory), ReverieContextProvider(memory, "ann")])
        memory.ref("ann").put("Ann drinks Darjeeling tea.")
        session = AgentSession()
        history = ReverieHistoryProvider(memory)
        await history.save_messages(session.session_id, [Message("user", ["Good morning."])])
        asked = [Message("user", ["Which tea does Ann drink?"])]
        context = SessionContext(session_id=session.session_id, input_messages=asked)
        await ReverieContextProvider(memory, "ann").before_run(agent=None, session=session, context=context, state={})
        messages = [*await history.get_messages(session.session_id), *context.get_messages()]
        return "\n".join(message.text for message in messages)


def main(target: str) -> str:
    return asyncio.run(prepare(target))


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
