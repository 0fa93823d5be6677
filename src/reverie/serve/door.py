"""What the application needs to know of a door: where it stands, what it is called, how it says no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from reverie.core.actor import Actor
from reverie.core.errors import Forbidden, ReverieError


@dataclass(frozen=True, slots=True)
class Door:
    """A protocol served over HTTP. Everything under `prefix` needs a key; there is no list of exceptions."""

    name: str
    prefix: str
    routes: Sequence[BaseRoute]
    status_of: Callable[[ReverieError], int]
    scopes: Mapping[str, str] = field(default_factory=dict)
    """Path prefix: the scope it needs. A key without a list of scopes is not limited by scopes."""

    def covers(self, path: str) -> bool:
        """Whether a raw path belongs to this door."""
        return path == self.prefix or path.startswith(self.prefix + "/")

    def admit(self, actor: Actor, path: str) -> None:
        """Raise Forbidden when the key has scopes, and not the one this path needs."""
        for prefix, scope in self.scopes.items():
            if actor.scopes and scope not in actor.scopes and (path == prefix or path.startswith(prefix + "/")):
                raise Forbidden(f"This needs the scope '{scope}'.", details={"scope": scope})


def door_of(doors: Sequence[Door], path: str) -> Door | None:
    """The door with the longest prefix that covers the path."""
    return max((door for door in doors if door.covers(path)), key=lambda door: len(door.prefix), default=None)
