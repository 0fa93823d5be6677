"""The console: pages for people, rendered on the server over the same use cases as every other interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette


def mount(app: Starlette, *, version: str) -> None:
    """Add the pages to the application. `app.state` has the host and its settings."""
    from reverie.api.console.access import Links
    from reverie.api.console.facets import Facets
    from reverie.api.console.latency import Noted, Recent
    from reverie.api.console.routes import routes
    from reverie.api.console.running import Running

    app.state.console_version, app.state.console_links = version, Links()
    app.state.console_searches, app.state.console_running = Recent(), Running()
    app.state.console_facets = Facets()
    app.state.host.search = Noted(app.state.host.search, app.state.console_searches)
    app.router.routes.extend(routes(version))
