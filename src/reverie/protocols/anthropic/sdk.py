"""The memory tool as classes of the `anthropic` package, for `client.beta.messages.tool_runner`.

tool = MemoryTool(reverie.open("./memory"), store="assistant")  # or reverie.open("http://HOST:8484", key=KEY)
runner = client.beta.messages.tool_runner(model=..., max_tokens=1024, tools=[tool], messages=[...])
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from reverie.client import RemoteHost
from reverie.core.errors import Invalid
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import STORE
from reverie.protocols.anthropic.stores import Stores
from reverie.protocols.anthropic.tool import ROOT, MemoryCommands, ToolFault

try:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError:  # pragma: no cover
    raise Invalid("The memory tool needs the client of Anthropic: pip install 'reverie[anthropic]'") from None

if TYPE_CHECKING:
    from reverie.core.actor import Actor
    from reverie.host import Host


class OpenMemory(Protocol):
    """The object returned by `reverie.open`."""

    @property
    def host(self) -> Host:
        """The host."""

    @property
    def actor(self) -> Actor:
        """The caller."""


class Commands(Protocol):
    """The memory tool on one store, in this process or on a host."""

    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out a command. Raises ToolFault."""

    def handle(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a tool use."""

    def clear_all(self) -> str:
        """Delete everything."""


class RemoteCommands:
    """The commands on a store of a running host, through the client of Anthropic."""

    def __init__(self, client: Anthropic, store: str, options: Mapping[str, Any]) -> None:
        self._client = client
        self._options = {name: value for name, value in options.items() if value is not None}
        if not store.startswith(STORE):
            found = next((one for one in client.beta.memory_stores.list(limit=100) if one.name == store), None)
            store = (found or client.beta.memory_stores.create(name=store)).id
        self._store = store

    def handle(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the host."""
        body = {**command, "reverie": self._options}
        path = f"/v1/memory_stores/{self._store}/reverie/tool"
        edits = command.get("command") != "view"  # the client repeats a request whose answer is lost
        options: Any = {"headers": {"Idempotency-Key": uuid4().hex}} if edits else {}
        answer: Any = self._client.post(path, cast_to=object, body=body, options=options)
        return dict(answer)

    def run(self, command: Mapping[str, Any]) -> str:
        """The text of the answer. Raises ToolFault."""
        answer = self.handle(command)
        if answer["is_error"]:
            raise ToolFault(answer["content"])
        return str(answer["content"])

    def clear_all(self) -> str:
        """Delete everything, folder by folder."""
        for item in self._client.beta.memory_stores.memories.list(self._store, depth=1, limit=100):
            self.handle({"command": "delete", "path": ROOT + str(item.path).rstrip("/")})
        return "All memory cleared"


def commands(
    memory: OpenMemory | Anthropic | AsyncAnthropic,
    store: str | None,
    *,
    session: str | None = None,
    on_exists: str = "error",
    view_limit: int | None = None,
) -> Commands:
    """The commands on a store, by its id or by its name. A name that no store has gets a new store. The memory of a
    window names both store and session."""
    store = store or getattr(memory, "store", None)
    session = session or getattr(memory, "session", None)
    if not isinstance(store, str):
        raise Invalid("Name the memory store: MemoryTool(memory, store='assistant').", pointer="/store")
    client = _client(memory)
    if client is not None:
        options = {"session": session, "on_exists": on_exists, "view_limit": view_limit}
        return RemoteCommands(client, store, options)
    assert not isinstance(memory, Anthropic | AsyncAnthropic)
    host, actor = memory.host, memory.actor
    if store.startswith(STORE):
        store_id = host.use(Stores).get(actor, store).id
    else:
        found = host.use(Stores).named(actor, store)
        store_id = (found or host.use(Stores).create(actor, store)).id
    return MemoryCommands(
        host.use(Memories), actor, STORE + store_id, session=session, on_exists=on_exists, view_limit=view_limit
    )


def _client(memory: OpenMemory | Anthropic | AsyncAnthropic) -> Anthropic | None:
    """The client of a running host; None for a memory in this process.

    An asynchronous client gets a synchronous twin: work runs in threads.
    """
    if isinstance(memory, Anthropic):
        return memory
    if isinstance(memory, AsyncAnthropic):
        return Anthropic(
            base_url=memory.base_url,
            api_key=memory.api_key,
            auth_token=memory.auth_token,
            max_retries=memory.max_retries,
            timeout=memory.timeout,
        )
    host: Any = getattr(memory, "host", None)
    if host is None:
        raise Invalid(
            "The memory tool takes what reverie.open(...) returns, or a client of Anthropic whose base_url is a host."
        )
    if not isinstance(host, RemoteHost):
        return None
    connection = host.connection
    return Anthropic(base_url=f"{connection.url}/anthropic", api_key=connection.key)


class _Tool:
    """The constructor of both tools."""

    def __init__(
        self,
        memory: OpenMemory | Anthropic | AsyncAnthropic,
        store: str | None = None,
        *,
        session: str | None = None,
        on_exists: str = "error",
        view_limit: int | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]
        self.commands = commands(memory, store, session=session, on_exists=on_exists, view_limit=view_limit)


class MemoryTool(_Tool, BetaAbstractMemoryTool):
    """Claude's memory tool over a memory store of Reverie. Safe to share between threads."""

    def handle(self, tool_use: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to the `input` of a tool use: `{"content": text, "is_error": bool}`. For loops of your own."""
        return self.commands.handle(tool_use)

    def _run(self, command: Any) -> str:
        return _run(self.commands, command)

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        return self.commands.clear_all()


class AsyncMemoryTool(_Tool, BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`. Work runs in threads."""

    async def handle(self, tool_use: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to the `input` of a tool use."""
        return await asyncio.to_thread(self.commands.handle, tool_use)

    async def _run(self, command: Any) -> str:
        return await asyncio.to_thread(_run, self.commands, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self.commands.clear_all)


def _run(commands: Commands, command: Any) -> str:
    """Carry out a command object of the SDK. A refusal becomes the SDK's error, which the runner hands to the model."""
    try:
        return commands.run(command.to_dict() if hasattr(command, "to_dict") else dict(command))
    except ToolFault as fault:
        raise ToolError(str(fault)) from None
