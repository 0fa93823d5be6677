"""LlamaIndex: Reverie as a block of an agent's memory.

    from reverie.integrations.llama_index import ReverieMemoryBlock

    block = ReverieMemoryBlock(reverie.open("./memory"), "ann")
    memory = Memory.from_defaults(memory_blocks=[block])

Messages that leave the short-term memory are stored; entries that answer the newest message go into the prompt.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from reverie.core.extras import require_release
from reverie.search.context import without_blocks

require_release("llama-index-core", "0.14", extra="llama-index", purpose="The memory block")

from llama_index.core.base.llms.types import ChatMessage  # noqa: E402
from llama_index.core.memory import BaseMemoryBlock  # noqa: E402
from pydantic import PrivateAttr  # noqa: E402

if TYPE_CHECKING:
    from reverie.library import Memory, Ref

_LEAST = 40
"""Tokens of a packed memory without its lines."""


class ReverieMemoryBlock(BaseMemoryBlock[str]):
    """Memory block with the entries relevant to the newest message, within `budget` tokens, as quoted data; also stores
    the words of both sides.

    `ref`: the memory, for example one of a user. `remember=False` only reads. When the agent's memory is too long,
    the block is packed again for the tokens that are left, so that the best lines stay. No model is called here.
    """

    budget: int
    remember: bool
    _ref: Ref = PrivateAttr()
    _packed: tuple[str, str, int] = PrivateAttr(default=("", "", 0))
    """The text given last, the purpose it was packed for, and its tokens."""

    def __init__(
        self, memory: Memory, ref: str, *, budget: int = 1000, remember: bool = True, name: str = "reverie", **more: Any
    ) -> None:
        super().__init__(name=name, budget=budget, remember=remember, **more)
        self._ref = memory.ref(ref)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        """Return the entries relevant to the newest message of the user."""
        said = [one for one in messages or [] if one.role == "user" and one.content]
        purpose = (said[-1].content or "").strip()[:4096] if said else ""
        return await self._pack(purpose, self.budget) if purpose else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Remember what user and assistant said."""
        made = [
            {
                "content": text,
                "source": {"actor": message.role.value, "session": message.additional_kwargs.get("session_id")},
            }
            for message in messages
            if message.role in ("user", "assistant") and (text := without_blocks(message.content or "")).strip()
        ]
        if made and self.remember:
            await asyncio.to_thread(self._ref.put_many, made)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The same memory in fewer tokens; None when nothing fits."""
        text, purpose, tokens = self._packed
        left = tokens - tokens_to_truncate
        return (await self._pack(purpose, left) or None) if content == text and left > _LEAST else None

    async def _pack(self, purpose: str, budget: int) -> str:
        known = await asyncio.to_thread(self._ref.context, purpose, budget=budget)
        self._packed = (known.text, purpose, known.tokens)
        return known.text
