"""The window as a session of the OpenAI Agents SDK, and as the filter that keeps a long tool loop small.

    session = window.session(model="gpt-5.6-sol")
    config = RunConfig(call_model_input_filter=session.input_filter)
    await Runner.run(agent, "Go on.", session=session, run_config=config)

The runner reads a session once per run and then keeps the history itself; only the filter sees every model call. Both
use one window: the session holds it, the filter puts it in the place of the history that the runner repeats.
Nothing here raises because of a compaction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from reverie.core.errors import ReverieError
from reverie.window.compaction import pressure
from reverie.window.continuation import ExpectedItem, align, matches
from reverie.window.cost import carry
from reverie.window.estimate import estimate
from reverie.window.items import Item
from reverie.window.strip import strip_for_compact

if TYPE_CHECKING:
    from reverie.protocols.responses.sdk import AsyncWindow

_VIEWS = 4
_SAID_BY_MODEL = ("reasoning", "function_call", "custom_tool_call")


class WindowSession:
    """`agents.memory.Session` over a window. Stateless for the provider: no id of it is replayed."""

    session_settings: Any = None
    _ignore_ids_for_matching = True  # the runner compares what it saved with what it reads, and ids are not replayed

    def __init__(self, window: AsyncWindow, *, model: str | None = None, session_settings: Any = None) -> None:
        self.window = window
        self.session_settings = _settings(session_settings)
        self.session_id = window.scope
        self.model = model
        self._views: deque[list[ExpectedItem]] = deque(maxlen=_VIEWS)
        """Histories that runners may be repeating: the one each was given, and everything added since."""
        self._keeps = False
        """Whether a runner stores its items here; otherwise the filter does."""

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the window: the result of the last compaction, and everything since. With `limit` (else that of
        `session_settings`) the latest items up to that number, oldest first.
        """
        self._keeps = True
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        items = self._sendable(await self.window.items())
        if limit is not None:
            return items[max(0, len(items) - limit) :] if limit > 0 else []
        self._views.append(matches([Item.of(item) for item in items], returned=False))
        return items

    async def add_items(self, items: list[Any]) -> None:
        """Append items to the window, durably."""
        self._keeps = True
        self.window.check_open()
        if items:
            await self._append([Item.of(item) for item in items])

    async def pop_item(self) -> Any:
        """Remove and return the newest item; past a compaction, from the generation before it."""
        item = await self.window.pop()
        for view in self._views:
            if view:
                view.pop()
        return item

    async def clear_session(self) -> None:
        """Start over. Earlier turns stay in the memory."""
        await self.window.clear()
        self._views.clear()

    async def run_compaction(self, args: Any = None) -> None:
        """Compact when it is due, or when `force` says so. Never raises: the answer of the run exists already."""
        force = bool((args or {}).get("force"))
        await self._maybe_compact([], force=force)

    # the filter

    async def input_filter(self, data: Any) -> Any:
        """For `RunConfig(call_model_input_filter=...)`: replace the whole history by the window.

        A history that is not the window's (another agent's, a rewritten one) is sent as it is.
        """
        given = data.model_data
        try:
            made = await self._shorten(list(given.input), self._shape(data))
        except (ReverieError, ValueError, TypeError, RecursionError):
            made = None
        return given if made is None else type(given)(input=made, instructions=given.instructions)

    async def _shorten(self, history: list[Any], shape: dict[str, Any]) -> list[Any] | None:
        given = [Item.of(item) for item in history]
        await self.window.items()  # as it is now, with changes by others
        state = self.window.engine.state
        state.shape = {**state.shape, **shape}
        increment = self._increment(given)
        if increment is None:
            if self._keeps:
                return None
            if not state.empty:
                await self.window.clear("not_append_only")
            self._views.clear()
            increment = given
        if not self._keeps:
            if not self._views:
                self._views.append([])
            await self._append(increment)
            new, increment = increment, []
        else:
            new = increment
        state = self.window.engine.state
        carry(state, pressure(state, increment)[0], new=estimate(new), cached=None)
        await self._maybe_compact(increment)
        return self._sendable([item.value for item in self.window.engine.state.items] + [i.value for i in increment])

    def _increment(self, given: list[Item]) -> list[Item] | None:
        """Return the items that the runner has beyond the window; None when it repeats another history."""
        if not self._keeps and not self._views:
            self._views.append(list(self.window.engine.state.match))
        for view in reversed(self._views):
            if not view and self.window.engine.state.items:
                continue  # taken back to nothing by someone else: it says nothing about this history
            found = align(view, given)
            if found.whole:
                return given[found.used :]
        return None

    def _shape(self, data: Any) -> dict[str, Any]:
        """Return the known parameters of the requests, which the runner makes."""
        agent = data.agent
        named = self.model or (agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None))
        shape = {"model": named, "instructions": data.model_data.instructions}
        return {name: value for name, value in shape.items() if isinstance(value, str) and value}

    async def _append(self, items: list[Item]) -> None:
        if not items:
            return
        await self.window.append([item.value for item in items])
        added = matches(items, returned=False)
        for view in self._views:
            view.extend(added)
        state = self.window.engine.state
        if any(item.type in _SAID_BY_MODEL or item.value.get("role") == "assistant" for item in items):
            state.awaiting_usage = False  # an answer came; its usage is not shown to sessions

    async def _maybe_compact(self, increment: list[Item], *, force: bool = False) -> None:
        state = self.window.engine.state
        if self.model and "model" not in state.shape:
            state.shape = {**state.shape, "model": self.model}
        if "model" not in state.shape:
            return
        try:
            if force:
                await self.window.compact()
            else:
                await self.window.compact_if_due(increment)
        except asyncio.CancelledError:
            raise
        except Exception as fault:  # a run never fails because of a pass
            self.window.diagnostics["compaction_error"] = type(fault).__name__

    def _sendable(self, items: list[Any]) -> list[Any]:
        return strip_for_compact(items, store=False)


def _settings(given: Any) -> Any:
    """Convert accepted forms into the SDK's session settings."""
    from agents.memory.session_settings import SessionSettings, coerce_session_settings

    return SessionSettings() if given is None else coerce_session_settings(given)
