"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from reverie.http.routes import Router

PREFIX = "/v1"
PUBLIC = frozenset({"/v1/openapi.json", "/v1/interrupts/"})
"""The token of an interrupt is its caller's key. No run of this host waits for one, so there is nothing to find."""
WELL_KNOWN = "/.well-known/openwop"
EVENT_LOG_VERSION = 2
"""The shape of run events, as discovery and every run document give it."""


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, encoded once."""
    return Response(orjson.dumps(document), status, headers, "application/json")


def api(prefix: str = PREFIX) -> Router:
    """A router of the door."""
    return Router(prefix, tags=["openwop"])
