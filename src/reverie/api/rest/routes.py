"""Every route of the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from reverie.api.rest import dreams, entries, events, recall, schedules, tenant


def routes() -> list[BaseRoute]:
    """In the order they are tried: `memory/forget` stands before `memory/{ref}`."""
    return [route for part in (tenant, schedules, recall, events, dreams, entries) for route in part.router.routes]
