"""Common input and output of all handlers."""

from __future__ import annotations

from reverie.http.once import Once
from reverie.http.routes import Router
from reverie.protocols.openwop.http.errors import code_of, status_of

PREFIX = "/v1"
WELL_KNOWN = "/.well-known/openwop"
PUBLIC = frozenset({WELL_KNOWN, "/v1/openapi.json", "/v1/interrupts/"})
"""The token of an interrupt is its caller's key. No run of this host waits for one, so there is nothing to find."""
EVENT_LOG_VERSION = 2
"""The shape of run events, as discovery and every run document give it."""
once = Once(status_of, code_of).handler
"""Carries out requests with an `Idempotency-Key` once."""


def api(prefix: str = PREFIX) -> Router:
    """A router of the door."""
    return Router(prefix, tags=["openwop"])
