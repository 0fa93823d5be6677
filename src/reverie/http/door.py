"""A door: prefix, routes, scopes, error mapping, and its part of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute

from reverie.core.actor import Actor
from reverie.core.errors import Forbidden, ReverieError
from reverie.http.problems import Shape

if TYPE_CHECKING:
    from reverie.http.routes import Operation

MEMORY_QUERY = "x-host-reverie-memory-query"
"""The scope for the text of memory: on some paths of the API, and on every path of a door that names no scopes."""


@dataclass(frozen=True, slots=True)
class Door:
    """A protocol served over HTTP. Everything under `prefix` needs a key, but for the paths in `public`."""

    name: str
    prefix: str
    routes: Sequence[BaseRoute]
    status_of: Callable[[ReverieError], int]
    scopes: Mapping[str, str] = field(default_factory=dict)
    """The scope needed at and below each path prefix. A key without scopes is not limited by them."""
    scope_of: Callable[[str, str], str | None] | None = None
    """Function that returns the scope a method on a raw path needs, where scopes differ by method."""
    code_of: Callable[[ReverieError], str] | None = None
    """Function that returns the protocol's code for an error; None: the core's code."""
    body_of: Callable[[str, str, str, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Function that makes the protocol's error body from path, code, message and details; None: the host's own body."""
    public: frozenset[str] = frozenset()
    """Paths that need no key, under the prefix or elsewhere; with a slash at the end, all paths below it."""

    operations: Sequence[Operation] = ()
    """OpenAPI operations of routes that were not made by `Router`; those describe themselves."""

    scheme: str = "bearer"
    """The scheme of the `Authorization` header that callers may use besides Bearer."""

    names_methods: bool = True
    """Whether a path refuses a method it does not have with 405; otherwise such an operation is not found."""

    _below: str = field(init=False, repr=False)
    _open: tuple[str, ...] = field(init=False, repr=False)
    """Prefixes of the paths that need no key."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_below", self.prefix + "/")
        object.__setattr__(self, "_open", tuple(path for path in self.public if path.endswith("/")))

    def shape(self, path: str) -> Shape | None:
        """Return the form of errors at a path, when the protocol has a body of its own."""
        return partial(self.body_of, path) if self.body_of is not None else None

    def covers(self, path: str) -> bool:
        """Whether a raw path belongs to this door."""
        return path.startswith(self._below) or path == self.prefix or path in self.public

    def needs_key(self, path: str) -> bool:
        """Whether a raw path of this door is for callers with a key only."""
        return path not in self.public and not path.startswith(self._open)

    def admit(self, actor: Actor, method: str, path: str) -> None:
        """Raise Forbidden when the key is limited to scopes and lacks one that this path needs."""
        if not actor.scopes:
            return
        for scope in self.scopes_for(method, path):
            require_scope(actor, scope)

    def scopes_for(self, method: str, path: str) -> list[str]:
        """The scopes that a method needs on a raw path, or on a path of the OpenAPI document."""
        if not self.scopes and self.scope_of is None:
            return [MEMORY_QUERY]
        found = [scope for prefix, scope in self.scopes.items() if path == prefix or path.startswith(prefix + "/")]
        scope = self.scope_of(method, path) if self.scope_of is not None else None
        return found if scope is None else [*found, scope]


def require_scope(actor: Actor, scope: str) -> None:
    """Raise Forbidden when the key has scopes, and this is none of them."""
    if actor.scopes and scope not in actor.scopes:
        raise Forbidden(f"This needs the scope '{scope}'.", details={"scope": scope, "scopeRequired": scope})


class Doors:
    """The doors of an application, found by path."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self._longest_first = sorted(doors, key=lambda door: len(door.prefix), reverse=True)

    def at(self, path: str) -> Door | None:
        """The door with the longest prefix that covers a raw path."""
        for door in self._longest_first:
            if door.covers(path):
                return door
        return None

    def shape(self, path: str) -> Shape | None:
        """Return the form of errors at a path, when its protocol has a body of its own."""
        door = self.at(path)
        return door.shape(path) if door else None
