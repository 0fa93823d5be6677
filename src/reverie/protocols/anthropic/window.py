"""`client.beta.messages` inside a window. What comes back, and what is raised, is the SDK's.

The rounds are those of every window (`window/engine.py`), and so are the two drivers; only the resource and the wire
are the `anthropic` package's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from anthropic._types import NotGiven, Omit
from anthropic.resources.beta.messages import AsyncMessages, Messages

from reverie.protocols.anthropic import wire
from reverie.window.calls import SdkCall, WindowResource
from reverie.window.driver import AsyncDriver, SyncDriver
from reverie.window.turn import InputIs

if TYPE_CHECKING:
    from reverie.core.actor import Actor
    from reverie.host import Host

_GIVEN: ContextVar[InputIs] = ContextVar("given", default="items")
"""Whether the messages of the call under way are what is new, or all there is."""


@dataclass(frozen=True, slots=True)
class WindowMemory:
    """The memory of a window, for `MemoryTool(window.memory)`: its store and its session are those of the scope."""

    host: Host
    actor: Actor
    store: str
    session: str


@contextmanager
def _as(input_is: InputIs) -> Iterator[None]:
    token = _GIVEN.set(input_is)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def _request(body: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """(messages, the other parameters, options) of a request that the SDK made."""
    params = {name: value for name, value in dict(body or {}).items() if not isinstance(value, Omit | NotGiven)}
    params.pop("stream", None)
    extra = dict(cast("Mapping[str, Any]", options.get("extra_json") or {}))
    messages = params.pop("messages", None)
    if "messages" in extra:
        messages = extra.pop("messages")
    kept = {name: part for name, part in options.items() if name != "extra_json"}
    given = list(messages) if isinstance(messages, Iterable) and not isinstance(messages, str) else messages
    return given, {**params, **extra}, kept


class _Resource(WindowResource):
    """`messages` of either SDK client."""

    create_path = "/v1/messages"

    def _ask(self, body: Any, call: SdkCall, *, stream: bool) -> Any:
        messages, params, call.options = _request(body, call.options)
        self._window.last_call = call
        return self._window.ask(messages, _GIVEN.get(), params, call, stream=stream)


class WindowMessages(_Resource, Messages):
    """`client.beta.messages` inside a window."""

    def create(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.create` inside the window. `messages` is what is new, or with `input_is="history"`
        everything that the caller knows."""
        with _as(input_is):
            return super().create(**arguments)

    def parse(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.parse` inside the window."""
        with _as(input_is):
            return super().parse(**arguments)

    def stream(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.stream` inside the window."""
        manager = super().stream(**arguments)
        return _Manager(manager, input_is)


class _Manager:
    """The SDK's stream manager, which asks when it is entered."""

    def __init__(self, manager: Any, input_is: InputIs) -> None:
        self._manager, self._input_is = manager, input_is

    def __enter__(self) -> Any:
        with _as(self._input_is):
            return self._manager.__enter__()

    def __exit__(self, *ended: Any) -> None:
        self._manager.__exit__(*ended)


class AsyncWindowMessages(_Resource, AsyncMessages):
    """`client.beta.messages` inside a window."""

    async def create(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.create` inside the window. `messages` is what is new, or with `input_is="history"`
        everything that the caller knows."""
        with _as(input_is):
            return await super().create(**arguments)

    async def parse(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.parse` inside the window."""
        with _as(input_is):
            return await super().parse(**arguments)

    def stream(self, *, input_is: InputIs = "items", **arguments: Any) -> Any:
        """`client.beta.messages.stream` inside the window."""
        with _as(input_is):
            return super().stream(**arguments)


class _Shared:
    """Additions of both windows to their base classes."""

    wire: ClassVar[Any] = wire
    memory: WindowMemory


class MessagesSyncWindow(_Shared, SyncDriver):
    """A window around an `anthropic.Anthropic` client. Safe to share between threads; turns of one scope take turns.

    `messages` has the SDK's methods, and `create`, `parse` and `stream` are the same ones. Close it, or use it as a
    context manager: a memory that was opened for it is then closed, the client is left open.
    """

    def _offer(self) -> None:
        self.messages = WindowMessages(self, self._client)
        self.create = self.messages.create
        self.parse = self.messages.parse
        self.stream = self.messages.stream


class MessagesAsyncWindow(_Shared, AsyncDriver):
    """The same around an `anthropic.AsyncAnthropic` client. Close it with `aclose`, or use it as a context manager."""

    def _offer(self) -> None:
        self.messages = AsyncWindowMessages(self, self._client)
        self.create = self.messages.create
        self.parse = self.messages.parse
        self.stream = self.messages.stream
