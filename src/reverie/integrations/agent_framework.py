"""Microsoft Agent Framework: relevant memory before each run, and the history of a session.

from reverie.integrations.agent_framework import ReverieContextProvider, ReverieHistoryProvider

memory = reverie.open("./memory")
agent = Agent(client=client, context_providers=[ReverieHistoryProvider(memory), ReverieContextProvider(memory, "ann")])
"""

# ruff: noqa: ARG002

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reverie.core.extras import require_release
from reverie.core.names import segment
from reverie.core.query import Filter
from reverie.integrations.transcript import documents, drafts, oldest_first
from reverie.search.context import without_blocks

require_release("agent-framework-core", "1.0", extra="agent-framework", purpose="This provider")

from agent_framework import ContextProvider, HistoryProvider, Message  # noqa: E402

if TYPE_CHECKING:
    from reverie.library import Memory, Ref

_KIND = "message"


class ReverieContextProvider(ContextProvider):
    """Adds the best memory for the user's input before a run, within `budget` tokens, as quoted data. Stores the words
    of both sides after it, unless `remember=False`.

    `ref`: the memory, for example one of a user. The store redacts, ranks and dreams; no model is called here.
    """

    def __init__(
        self, memory: Memory, ref: str, *, source_id: str = "reverie", budget: int = 1000, remember: bool = True
    ) -> None:
        super().__init__(source_id)
        self._ref = memory.ref(ref)
        self._budget = budget
        self._remember = remember

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add the memory relevant to the input."""
        question = "\n".join(message.text for message in context.input_messages if message.text).strip()[:4096]
        if question:
            known = await asyncio.to_thread(self._ref.context, question, budget=self._budget)
            if known.text:
                context.extend_messages(self, [Message("user", [known.text])])

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Store the messages of both sides."""
        if not self._remember:
            return
        answered = context.response.messages if context.response else []
        made = [
            {
                "content": text,
                "source": {"actor": message.author_name or str(message.role), "session": session.session_id},
            }
            for message in [*context.input_messages, *answered]
            if (text := without_blocks(message.text or "")).strip()
        ]
        if made:
            await asyncio.to_thread(self._ref.put_many, made)


class ReverieHistoryProvider(HistoryProvider):
    """The messages of a session, `agent-framework/SESSION`, whole and in order. Without a session: `default`.

    `skip_excluded`: leave out messages that a compaction has marked as excluded. Other options are the framework's.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        root: str = "agent-framework",
        source_id: str = "reverie_history",
        skip_excluded: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self.memory = memory
        self.skip_excluded = skip_excluded
        self._root = root

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        **_: Any,
    ) -> list[Message]:
        """Every message of the session."""
        found = await asyncio.to_thread(oldest_first, self._ref(session_id), Filter(kinds=(_KIND,)))
        messages = [Message.from_dict(document) for _, document in documents(found)]
        return [one for one in messages if not (self.skip_excluded and one.additional_properties.get("_excluded"))]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Add messages, in one transaction."""
        made = [
            draft
            for message in messages
            for draft in drafts(
                message.to_dict(),
                message.text or "",
                kind=_KIND,
                source={"role": str(message.role), "session": session_id},
            )
        ]
        if made:
            await asyncio.to_thread(self._ref(session_id).put_many, made)

    def _ref(self, session_id: str | None) -> Ref:
        return self.memory.ref(f"{self._root}/{segment(session_id or 'default')}")
