"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Request, Response

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.serve.parsing import StrictRoute
from reverie.settings import Settings

PREFIX = "/v1"
PUBLIC = frozenset({"/v1/openapi.json"})
WELL_KNOWN = "/.well-known/openwop"


@dataclass(frozen=True, slots=True)
class _Call:
    host: Host
    actor: Actor
    settings: Settings


async def _call(request: Request) -> _Call:
    return _Call(request.app.state.host, request.state.actor, request.app.state.settings)


Call = Annotated[_Call, Depends(_call)]
"""The host, and who is calling it: already authenticated, or the handler would not run."""


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, encoded once."""
    return Response(orjson.dumps(document), status, headers, "application/json")


def api(prefix: str = PREFIX) -> APIRouter:
    """A router of the door. The protocol describes itself; the OpenAPI document is of the native API."""
    return APIRouter(prefix=prefix, route_class=StrictRoute, include_in_schema=False)
