"""The native REST API, under /v1/host/reverie/."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door


def door() -> Door:
    """The door, ready to be mounted."""
    from reverie.api.rest.call import PREFIX, SCOPES
    from reverie.api.rest.errors import status_of
    from reverie.api.rest.routes import routes
    from reverie.http.door import Door

    return Door(name="rest", prefix=PREFIX, routes=routes(), status_of=status_of, scopes=SCOPES)
