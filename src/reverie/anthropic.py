"""Claude on Reverie, for programs that use the `anthropic` package: the memory tool, and conversations of unlimited
length inside the context window.

from anthropic import Anthropic
from reverie.anthropic import MessagesWindow, WindowPolicy

window = MessagesWindow.open(Anthropic(), store="./memory", scope="agent-1/task-7", policy=WindowPolicy())
message = window.create(model="claude-sonnet-5", max_tokens=4096, messages=[{"role": "user", "content": "Go on."}])

With an `AsyncAnthropic` client, await both.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, overload

from anthropic._base_client import AsyncAPIClient

from reverie.library import memory_of
from reverie.protocols.anthropic.sdk import AsyncMemoryTool, MemoryTool
from reverie.protocols.anthropic.window import MessagesAsyncWindow, MessagesSyncWindow, WindowMemory
from reverie.window import WindowPolicy
from reverie.window.driver import session_of

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = [
    "AsyncMemoryTool",
    "MemoryTool",
    "MessagesAsyncWindow",
    "MessagesSyncWindow",
    "MessagesWindow",
    "WindowPolicy",
]


class MessagesWindow:
    """Opens windows."""

    @overload
    @staticmethod
    def open(
        client: Anthropic,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
    ) -> MessagesSyncWindow: ...

    @overload
    @staticmethod
    def open(
        client: AsyncAnthropic,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
    ) -> Coroutine[Any, Any, MessagesAsyncWindow]: ...

    @staticmethod
    def open(
        client: Anthropic | AsyncAnthropic,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
    ) -> MessagesSyncWindow | Coroutine[Any, Any, MessagesAsyncWindow]:
        """The window of a scope around a client: to be awaited for an `AsyncAnthropic`, at once for an `Anthropic`.

        `store`: where the window and its memory are kept, a memory that `reverie.open` gave, or a folder to open.
        `policy`: `mode` is `on_demand`, `server_side` or `off`. `ref`: the memory that gets checkpoints and turns; the
        scope by default. `subject`: whom the conversation is about, so that a forget reaches it.
        """
        (policy or WindowPolicy()).mode_for("messages")  # says what is wrong with it
        memory, owned = memory_of(store, tenant)
        negative = session_of(client)
        keeper = memory.host.windows.keeper(
            memory.actor, scope, policy=policy, negative=negative, ref=ref, subject=subject
        )
        shared = WindowMemory(memory.host, memory.actor, store=keeper.ref, session=keeper.key)
        given: dict[str, Any] = {"provider": "anthropic", "kind": "messages", "owned": owned}
        if isinstance(client, AsyncAPIClient):
            awaited = MessagesAsyncWindow(client, keeper, **given)
            awaited.memory = shared
            return awaited.begin()
        window = MessagesSyncWindow(client, keeper, **given)
        window.memory = shared
        return window
