"""What the application needs to know of a door: where it stands, what it is called, how it says no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from reverie.core.errors import ReverieError


@dataclass(frozen=True, slots=True)
class Door:
    """A protocol served over HTTP. Everything under `prefix` needs a key; there is no list of exceptions."""

    name: str
    prefix: str
    routes: Sequence[BaseRoute]
    status_of: Callable[[ReverieError], int]

    def covers(self, path: str) -> bool:
        """Whether a raw path belongs to this door."""
        return path == self.prefix or path.startswith(self.prefix + "/")


def door_of(doors: Sequence[Door], path: str) -> Door | None:
    """The door with the longest prefix that covers the path."""
    return max((door for door in doors if door.covers(path)), key=lambda door: len(door.prefix), default=None)
