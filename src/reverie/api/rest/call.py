"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPBearer

from reverie.http.call import StrictRoute

PREFIX = "/v1/host/reverie"
SCOPES = dict.fromkeys((f"{PREFIX}/memory", f"{PREFIX}/archives"), "x-host-reverie-memory-query")
_KEY = HTTPBearer(auto_error=False, scheme_name="key", description="A key: `reverie keys create` makes one.")


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, encoded once."""
    return Response(orjson.dumps(document), status, headers, "application/json")


def api() -> APIRouter:
    """A router of the API. Its security scheme documents what the edge has checked before a handler runs."""
    return APIRouter(prefix=PREFIX, route_class=StrictRoute, dependencies=[Depends(_KEY)])
