"""`window.responses` around the caller's own client. What comes back, and what is raised, is the SDK's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.protocols.responses import wire
from reverie.protocols.responses.agents_sdk import WindowSession
from reverie.window.calls import SdkCall
from reverie.window.driver import AsyncDriver, SyncDriver, session_of, text_of
from reverie.window.items import Item
from reverie.window.policy import WindowPolicy
from reverie.window.steps import Send
from reverie.window.storage import WindowStore
from reverie.window.streams import await_value, now


def _waiting(path: str) -> str:
    """The id of the response in a path."""
    parts = path.strip("/").split("/")
    return parts[1] if len(parts) > 1 else ""


async def _count_body(window: SyncDriver | AsyncDriver, body: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in body.items() if name != "input"}
    async with window._lock:
        window.check_open()
        results: dict[str, Any] = await window._keep(lambda: window.engine.counted(body.get("input"), rest))
        return results


async def _look(
    window: SyncDriver | AsyncDriver, method: Literal["get", "post"], path: str, call: SdkCall, *, stream: bool
) -> Any:
    window.check_open()
    given = wire.request_of(Send(path, {}, stream=stream), call)
    del given["body"]
    raw = await await_value((window._client.get if method == "get" else window._client.post)(**given))
    waiting = _waiting(path)
    if stream:
        return await window._wrap_stream(raw, call, answers=waiting)
    if await window._run(window.engine.resolved(waiting, await text_of(raw)), call):
        await window._run(window.engine.after_turn(), call)
    return raw if call.raw else await await_value(raw.parse())


class SyncWindow(SyncDriver):
    """A window around an `openai.OpenAI` client. Safe to share between threads; turns of one scope take turns.

    `responses` has the SDK's methods, and `create`, `parse` and `stream` are the same ones. Close it, or use it as a
    context manager: a memory that was opened for it is then closed, the client is left open.
    """

    wire: ClassVar[Any] = wire

    def _offer(self) -> None:
        from reverie.protocols.responses.resource import WindowResponses

        self.responses = WindowResponses(self, self._client)
        self.create = self.responses.create
        self.parse = self.responses.parse
        self.stream = self.responses.stream

    def counted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body that asks for the exact tokens of a turn, with the window in it."""
        return now(_count_body(self, body))

    def look(self, method: Literal["get", "post"], path: str, call: SdkCall, *, stream: bool = False) -> Any:
        """Fetch or cancel a response; the window takes it when it waits for it."""
        return now(_look(self, method, path, call, stream=stream))


class AsyncWindow(AsyncDriver):
    """A window around an `openai.AsyncOpenAI` client. Turns of one scope take turns.

    `responses` has the SDK's methods, and `create`, `parse` and `stream` are the same ones. Close it with `aclose`, or
    use it as a context manager: a memory that was opened for it is then closed, the client is left open.
    """

    wire: ClassVar[Any] = wire
    _session: WindowSession | None = None

    def _offer(self) -> None:
        from reverie.protocols.responses.resource import AsyncWindowResponses

        self.responses = AsyncWindowResponses(self, self._client)
        self.create = self.responses.create
        self.parse = self.responses.parse
        self.stream = self.responses.stream

    async def counted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body that asks for the exact tokens of a turn, with the window in it."""
        return await _count_body(self, body)

    async def look(self, method: Literal["get", "post"], path: str, call: SdkCall, *, stream: bool = False) -> Any:
        """Fetch or cancel a response; the window takes it when it waits for it."""
        return await _look(self, method, path, call, stream=stream)

    async def compact_if_due(self, more: Sequence[Item] = ()) -> dict[str, Any] | None:
        """Compact if a request with `more` items would call for it; returns the diagnostics of the pass."""
        report: dict[str, Any] | None = await self.run(self.engine.compact_if_due(more), None)
        return report

    def session(self, *, model: str | None = None, session_settings: Any = None) -> WindowSession:
        """The window as a session of the OpenAI Agents SDK, always the same one. `model` names who compacts;
        `session_settings` are the SDK's."""
        if self._session is None:
            self._session = WindowSession(self, model=model, session_settings=session_settings)
        self._session.model = model or self._session.model
        return self._session

    @property
    def input_filter(self) -> Callable[[Any], Awaitable[Any]]:
        """For `RunConfig(call_model_input_filter=...)`: keeps the input of every model call of a run bounded."""
        return self.session().input_filter


def window_keeper(
    host: Host,
    actor: Actor,
    client: Any,
    scope: str,
    *,
    policy: WindowPolicy | None = None,
    ref: str | None = None,
    subject: str | None = None,
) -> WindowStore:
    """The keeper of a scope's window for a client."""
    return host.windows.keeper(actor, scope, policy=policy, negative=session_of(client), ref=ref, subject=subject)
