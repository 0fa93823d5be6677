"""Conversations with OpenAI-style models that go on for ever inside the context window.

from openai import OpenAI
from reverie.responses import ResponsesWindow, WindowPolicy

window = ResponsesWindow.open(OpenAI(), store="./memory", scope="agent-1/task-7", policy=WindowPolicy())
response = window.create(model="gpt-5.6-sol", input="Go on.")

With an `AsyncOpenAI` client, await both.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from reverie.core.errors import Invalid
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

    @staticmethod
    def open(
        client: Any,
        *,
        store: Any,
        scope: str,
        policy: WindowPolicy | None = None,
        ref: str | None = None,
        subject: str | None = None,
        tenant: str = "default",
        provider: str = "openai",
        base_kind: str | None = None,
    ) -> Any:
        """The window of a scope around a client: to be awaited for an `AsyncOpenAI`, at once for an `OpenAI`.

        `store`: a memory that `reverie.open` gave, or a folder or URL to open. `ref`: the memory that gets checkpoints
        and turns; the scope by default. `subject`: whom the conversation is about, so that a forget reaches it.
        """
        memory = _memory(store, tenant)
        keeper = window_keeper(memory.host, memory.actor, client, scope, policy=policy, ref=ref, subject=subject)
        if inspect.iscoroutinefunction(client.responses.create):
            return AsyncWindow(client, keeper, provider=provider, kind=base_kind).begin()
        return SyncWindow(client, keeper, provider=provider, kind=base_kind)


SyncResponsesWindow = ResponsesWindow
"""The same: the client decides."""


def _memory(store: Any, tenant: str) -> Any:
    if isinstance(store, str | Path):
        from reverie.library import open as open_memory

        return open_memory(store, tenant=tenant)
    inner = getattr(store, "memory", store)  # a ref, or an async memory around one
    for candidate in (store, inner, getattr(store, "_memory", None)):
        if candidate is not None and hasattr(candidate, "host") and hasattr(candidate, "actor"):
            return candidate
    raise Invalid("store is a memory that reverie.open gave, or a folder or URL.", pointer="/store")
