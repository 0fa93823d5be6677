"""What every handler starts from and ends with."""

from __future__ import annotations

from reverie.http.routes import Router

PREFIX = "/v1/host/reverie"
SCOPES = dict.fromkeys(
    (f"{PREFIX}/memory", f"{PREFIX}/archives", f"{PREFIX}/dreams", f"{PREFIX}/index"), "x-host-reverie-memory-query"
)


def api() -> Router:
    """A router of the API."""
    return Router(PREFIX)
