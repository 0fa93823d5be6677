"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from reverie.http.routes import Router

PREFIX = "/v1/host/reverie"
SCOPES = dict.fromkeys(
    (f"{PREFIX}/memory", f"{PREFIX}/archives", f"{PREFIX}/dreams", f"{PREFIX}/index"), "x-host-reverie-memory-query"
)


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, encoded once."""
    return Response(orjson.dumps(document), status, headers, "application/json")


def api() -> Router:
    """A router of the API."""
    return Router(PREFIX)
