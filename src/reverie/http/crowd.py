"""Connections that ask nothing: the one that waits longest gives way when a new one comes and the files run out.

A caller needs no key to open connections and leave them. Without a limit they take every file that the process may
open: then no one else gets a connection, and a search that opens a file fails.
"""

from __future__ import annotations

import sys
from asyncio import Transport
from typing import ClassVar
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

SHARE = 3 / 4
"""The part of the files that a process may open which connections may take; the rest is for the store."""


def most_connections() -> float:
    """Limit of the connections of this process."""
    if sys.platform == "win32":
        return float("inf")
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if files == resource.RLIM_INFINITY else files * SHARE


class Crowd:
    """The connections of one server that have no request under way, the longest waiting first."""

    _of: ClassVar[WeakKeyDictionary[ServerState, Crowd]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._most = most_connections()
        self._waiting: dict[Transport, None] = {}

    @classmethod
    def of(cls, server: ServerState) -> Crowd:
        """The one of a server."""
        if (found := cls._of.get(server)) is None:
            found = cls._of[server] = Crowd()
        return found

    def enter(self, transport: Transport, connections: int) -> None:
        """A connection is made, one of so many. Closes another that waits, or this one where all others are busy."""
        self._waiting[transport] = None
        if connections > self._most:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.close()

    def wait(self, transport: Transport) -> None:
        """A connection has its answer."""
        self._waiting[transport] = None

    def leave(self, transport: Transport) -> None:
        """A connection has a request under way, or is gone."""
        self._waiting.pop(transport, None)
