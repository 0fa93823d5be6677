"""The native REST API, under /v1/host/reverie/."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.serve.door import Door


def door() -> Door:
    """The door, ready to be mounted."""
    from reverie.doors.rest.call import PREFIX, SCOPES
    from reverie.doors.rest.errors import status_of
    from reverie.doors.rest.routes import routes
    from reverie.serve.door import Door

    return Door(name="rest", prefix=PREFIX, routes=routes(), status_of=status_of, scopes=SCOPES)
