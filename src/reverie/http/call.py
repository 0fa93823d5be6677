"""The request that the handlers of a door receive, and the requirements checked before its body is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from reverie.core.actor import Actor, Right
from reverie.host import Host
from reverie.http.limits import Limits, key_of
from reverie.http.parsing import parse
from reverie.http.threads import Lane, Threads
from reverie.settings import Settings

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Any])
SMALL_BODY = 16_384
"""A body up to this many bytes is parsed where the work is done, a larger one in a lane of its own."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a handler, checked before the body is read: one of these rights, and a slot in a lane."""

    rights: tuple[Right, ...] = ()
    lane: Lane = Lane.WRITE

    def check(self, actor: Actor) -> None:
        """Raise Forbidden when the caller has none of the rights. The host checks again, and more closely."""
        if self.rights and actor.rights.isdisjoint(self.rights):
            actor.require(self.rights[0])


def needs(*rights: Right, lane: Lane = Lane.WRITE) -> Callable[[Handler], Handler]:
    """Declare the rights and the lane of a handler."""

    def mark(handler: Handler) -> Handler:
        handler.needs = Needs(rights, lane)  # type: ignore[attr-defined]
        return handler

    return mark


class Call(Request):
    """A request with its host and its authenticated caller. JSON is parsed strictly."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        shared = scope["app"].state
        self.host: Host = shared.host
        """The host, with its calls timed and counted."""
        self.settings: Settings = shared.settings
        self.limits: Limits = shared.limits
        self.threads: Threads = shared.threads
        self.actor: Actor = scope["state"].get("actor")
        """The caller; None on public paths, whose handlers do not ask for it."""
        self.tenant = self.actor.tenant if self.actor else ""
        """The tenant in whose line work waits; empty on public paths."""

    async def run(self, lane: Lane, work: Callable[[], T]) -> T:
        """The result of `work`, from a thread. Heavy work counts against the key while it waits and runs."""
        heavy = self.limits.heavy.one(key_of(self.actor)) if lane is Lane.HEAVY else nullcontext()
        with heavy:
            return await self.threads.run(lane, self.tenant, work)

    def charge(self, entries: int) -> None:
        """Count entries about to be stored. Raises RateLimited."""
        self.limits.entries.take(key_of(self.actor), entries)

    def header(self, wanted: bytes) -> bytes:
        """The first header of a name in lower case, as sent; empty when there is none."""
        for name, value in self.scope["headers"]:
            if name == wanted:
                sent: bytes = value
                return sent
        return b""

    async def body(self) -> bytes:
        """The whole body. Raises ClientDisconnect."""
        if not hasattr(self, "_body"):
            pieces: list[bytes] = []
            more = True
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect()
                pieces.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._body

    async def json(self) -> Any:
        """The body, read by `parse`: a large one in a thread."""
        if not hasattr(self, "_json"):
            body = await self.body()
            if len(body) <= SMALL_BODY:
                self._json = self.parse_body(body)
            else:
                self._json = await self.run(Lane.PARSE, lambda: self.parse_body(body))
        return self._json

    def parse_body(self, body: bytes) -> Any:
        """A JSON body, read strictly."""
        return parse(body, most=self.settings.max_request_values)
