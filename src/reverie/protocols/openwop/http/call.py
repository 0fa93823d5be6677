"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Response

from reverie.http.call import StrictRoute

PREFIX = "/v1"
PUBLIC = frozenset({"/v1/openapi.json"})
WELL_KNOWN = "/.well-known/openwop"
EVENT_LOG_VERSION = 2
"""The shape of run events, as discovery and every run document give it."""


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, encoded once."""
    return Response(orjson.dumps(document), status, headers, "application/json")


def api(prefix: str = PREFIX) -> APIRouter:
    """A router of the door. The protocol describes itself; the OpenAPI document is of the native API."""
    return APIRouter(prefix=prefix, route_class=StrictRoute, include_in_schema=False)
