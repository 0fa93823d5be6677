"""The native REST API, under /v1/host/reverie/."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.http.door import Door


def door() -> Door:
    """The door, ready to be mounted."""
    from reverie.api.rest import all_dreams, dreams, entries, events, recall, schedules, tenant
    from reverie.api.rest.call import PREFIX, SCOPES
    from reverie.api.rest.errors import status_of
    from reverie.http.door import Door

    # In the order they are tried: those asked for most come first. No path fits two of them.
    parts = (entries, recall, tenant, events, dreams, all_dreams, schedules)
    routes = [route for part in parts for route in part.router.routes]
    return Door(name="rest", prefix=PREFIX, routes=routes, status_of=status_of, scopes=SCOPES)
