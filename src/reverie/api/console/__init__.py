"""The console: pages for people, rendered on the server over the same use cases as every other interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from reverie.host import Host


def mount(app: Starlette, *, version: str) -> None:
    """Add the pages to the application. `app.state` has the host and its settings."""
    from reverie.api.console.access import Links
    from reverie.api.console.facets import Facets
    from reverie.api.console.latency import Recent, TimedHost
    from reverie.api.console.page import error_page
    from reverie.api.console.routes import routes
    from reverie.api.console.running import Running

    app.state.console_version, app.state.console_links = version, Links()
    host: Host = app.state.host
    recent = Recent(host.parts.store, read_only=host.parts.read_only)
    host.at_close.append(recent.save)
    app.state.console_searches, app.state.console_running = recent, Running()
    app.state.console_facets, app.state.console_sample = Facets(), None
    app.state.error_page = error_page
    vars(host)["search"] = TimedHost(host.search, recent)
    app.router.routes.extend(routes(version))
