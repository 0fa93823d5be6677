"""Conversations with OpenAI-style models, of unlimited length inside the context window.

from openai import OpenAI
from reverie.responses import ResponsesWindow, WindowPolicy

window = ResponsesWindow.open(OpenAI(), store="./memory", scope="agent-1/task-7", policy=WindowPolicy())
response = window.create(model="gpt-5.6-sol", input="Go on.")

With an `AsyncOpenAI` client, await both.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, overload

from reverie.library import memory_of
from reverie.protocols.responses.agents_sdk import WindowSession
from reverie.protocols.responses.sdk import AsyncWindow, SyncWindow, window_keeper
from reverie.window import (
    WindowPolicy,
    WindowState,
    classify_error,
    diff_continuation,
    estimate,
    match_form,
    safe_boundary,
    shape_hash,
    strip_for_compact,
    validate_replacement,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = [
    "AsyncWindow",
    "ResponsesWindow",
    "SyncResponsesWindow",
    "SyncWindow",
    "WindowPolicy",
    "WindowSession",
    "WindowState",
    "classify_error",
    "diff_continuation",
    "estimate",
    "match_form",
    "safe_boundary",
    "shape_hash",
    "strip_for_compact",
    "validate_replacement",
]


class ResponsesWindow:
    """Opens windows."""

    @overload
    @staticmethod
    def open(
        client: OpenAI,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | Literal["cost"] | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
        provider: str = "openai",
        base_kind: str | None = None,
    ) -> SyncWindow: ...

    @overload
    @staticmethod
    def open(
        client: AsyncOpenAI,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | Literal["cost"] | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
        provider: str = "openai",
        base_kind: str | None = None,
    ) -> Coroutine[Any, Any, AsyncWindow]: ...

    @staticmethod
    def open(
        client: OpenAI | AsyncOpenAI,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | Literal["cost"] | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
        provider: str = "openai",
        base_kind: str | None = None,
    ) -> SyncWindow | Coroutine[Any, Any, AsyncWindow]:
        """The window of a scope around a client: to be awaited for an `AsyncOpenAI`, at once for an `OpenAI`.

        `store`: where the window and its memory are kept, a memory that `reverie.open` gave, or a folder or URL to
        open; whether the provider keeps responses is `WindowPolicy(store=...)`. `policy`: `"cost"` is
        `WindowPolicy(rule="cost")`. `ref`: the memory that gets checkpoints and turns; the scope by default. `subject`:
        whom the conversation is about, so that a forget reaches it.
        """
        if policy == "cost":
            policy = WindowPolicy(rule="cost")
        memory, owned = memory_of(store, tenant)
        keeper = window_keeper(memory.host, memory.actor, client, scope, policy=policy, ref=ref, subject=subject)
        if inspect.iscoroutinefunction(client.responses.create):
            return AsyncWindow(client, keeper, provider=provider, kind=base_kind, owned=owned).begin()
        return SyncWindow(client, keeper, provider=provider, kind=base_kind, owned=owned)


SyncResponsesWindow = ResponsesWindow
"""The same: the client decides."""
