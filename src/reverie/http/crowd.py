"""Idle connections: the one idle longest is closed when a new one arrives and file descriptors run short.

A client needs no key to open connections and leave them idle. Without a limit they take every file descriptor of the
process: then no one else gets a connection, and a search that opens a file fails.
"""

from __future__ import annotations

import sys
from asyncio import Transport
from typing import ClassVar
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

SHARE = 3 / 4
"""The share of the process's file descriptors that connections may take; the rest is for the store."""


def most_connections() -> float:
    """The number of connections that this process may hold."""
    if sys.platform == "win32":
        return float("inf")
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if files == resource.RLIM_INFINITY else files * SHARE


class Crowd:
    """The idle connections of one server, the one idle longest first."""

    _of: ClassVar[WeakKeyDictionary[ServerState, Crowd]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._most = most_connections()
        self._waiting: dict[Transport, None] = {}

    @classmethod
    def of(cls, server: ServerState) -> Crowd:
        """The idle connections of a server."""
        if (found := cls._of.get(server)) is None:
            found = cls._of[server] = Crowd()
        return found

    def enter(self, transport: Transport, connections: int) -> None:
        """Add a new connection. Above the limit, close the one idle longest: this one when all others are busy."""
        self._waiting[transport] = None
        if connections > self._most:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.close()

    def wait(self, transport: Transport) -> None:
        """Add a connection whose request was answered."""
        self._waiting[transport] = None

    def leave(self, transport: Transport) -> None:
        """Remove a connection that has a request under way, or was lost."""
        self._waiting.pop(transport, None)
