"""Every route of the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from reverie.doors.rest import entries, events, recall, tenant


def routes() -> list[BaseRoute]:
    """In the order they are tried: `memory/forget` stands before `memory/{ref}`."""
    return [route for part in (tenant, recall, events, entries) for route in part.router.routes]
