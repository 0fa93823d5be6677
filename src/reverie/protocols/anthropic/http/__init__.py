"""Anthropic over HTTP: memory stores and dreams, under /anthropic/v1 and, where nothing else lives, under /v1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door

PREFIX = "/anthropic"
ROOTS = ("/v1/memory_stores", "/v1/dreams")
"""Paths of the protocol at the root of the host."""


def doors() -> list[Door]:
    """The doors of the protocol: one set of handlers at three prefixes."""
    from reverie.http.door import Door
    from reverie.protocols.anthropic.http.described import operations
    from reverie.protocols.anthropic.http.errors import status_of
    from reverie.protocols.anthropic.http.routes import routes, scope_of
    from reverie.protocols.anthropic.names import DOOR

    def make(prefix: str, base: str) -> Door:
        own = [route for route in routes(base) if route.path.startswith(prefix)]
        return Door(
            name=DOOR,
            prefix=prefix,
            routes=own,
            operations=operations(own, prefix="anthropic_" if base else "root_anthropic_"),
            status_of=status_of,
            scope_of=scope_of,
            names_methods=False,
        )

    return [make(PREFIX, PREFIX), *(make(root, "") for root in ROOTS)]
