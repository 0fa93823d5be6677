"""OpenWOP: discovery, runs, workspace files and agents, under /v1 and /.well-known/openwop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door
    from reverie.settings import Settings


def door(settings: Settings) -> Door:
    """The door, ready to be mounted."""
    from reverie.http.door import Door
    from reverie.protocols.openwop.http.call import PREFIX, PUBLIC
    from reverie.protocols.openwop.http.errors import code_of, status_of
    from reverie.protocols.openwop.http.routes import routes, scope_of

    return Door(
        name="openwop",
        prefix=PREFIX,
        routes=routes(settings),
        status_of=status_of,
        scope_of=scope_of,
        code_of=code_of,
        public=PUBLIC,
        names_methods=False,
    )
