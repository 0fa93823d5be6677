"""Names, router and idempotency that all handlers share."""

from __future__ import annotations

from reverie.http.once import Once
from reverie.http.routes import Router
from reverie.protocols.openwop.http.errors import code_of, status_of

PREFIX = "/v1"
WELL_KNOWN = "/.well-known/openwop"
PUBLIC = frozenset({WELL_KNOWN, "/v1/openapi.json", "/v1/interrupts/"})
"""Paths without a key. The token in the path of an interrupt is its credential; no run waits for one, so it is 404."""
EVENT_LOG_VERSION = 2
"""Version of the shape of run events, in discovery and in every run document."""
once = Once(status_of, code_of).handler
"""Decorator: requests with the same `Idempotency-Key` are carried out once."""


def api(prefix: str = PREFIX) -> Router:
    """A router of the door."""
    return Router(prefix, tags=["openwop"])
