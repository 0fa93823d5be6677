"""Every route of the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from reverie.api.rest import all_dreams, dreams, entries, events, recall, schedules, tenant


def routes() -> list[BaseRoute]:
    """In the order they are tried: those asked for most come first. No path fits two of them."""
    parts = (entries, recall, tenant, events, dreams, all_dreams, schedules)
    return [route for part in parts for route in part.router.routes]
