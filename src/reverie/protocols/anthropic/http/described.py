"""The routes of this protocol in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.routing import Route

from reverie.http.routes import DocumentedAnswer, Operation
from reverie.protocols.anthropic.http.dreams import DreamIn
from reverie.protocols.anthropic.http.errors import STATUS, TYPES
from reverie.protocols.anthropic.http.shapes import ANSWERS, Refused
from reverie.protocols.anthropic.http.wire import MemoryIn, MemoryPatch, SearchIn, StoreIn, StorePatch, ToolIn

BODIES: Mapping[str, type[Struct]] = {
    "create_store": StoreIn,
    "update_store": StorePatch,
    "create_memory": MemoryIn,
    "update_memory": MemoryPatch,
    "search": SearchIn,
    "tool": ToolIn,
    "create_dream": DreamIn,
}
"""The body that a handler reads, by the handler's name."""


def _parameter(name: str, **schema: Any) -> Mapping[str, Any]:
    return {"in": "query", "name": name, "required": False, "schema": schema or {"type": "string"}}


_PAGE = (_parameter("page"), _parameter("limit", type="integer", minimum=1))
_VIEW = _parameter("view", type="string", enum=["basic", "full"])
_SINCE, _UNTIL = _parameter("created_at[gte]"), _parameter("created_at[lte]")
_ARCHIVED = _parameter("include_archived", type="boolean")
PARAMETERS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "list_stores": (*_PAGE, _SINCE, _UNTIL, _ARCHIVED),
    "create_memory": (_VIEW,),
    "list_memories": (
        *_PAGE,
        _VIEW,
        _parameter("path_prefix"),
        _parameter("depth", type="integer", minimum=0, maximum=1),
    ),
    "get_memory": (_VIEW,),
    "update_memory": (_VIEW,),
    "delete_memory": (_parameter("expected_content_sha256"),),
    "list_versions": (
        *_PAGE,
        _VIEW,
        _SINCE,
        _UNTIL,
        *map(_parameter, ("memory_id", "operation", "api_key_id", "session_id", "service_account_id")),
    ),
    "get_version": (_VIEW,),
    "list_dreams": (
        *_PAGE,
        _ARCHIVED,
        _parameter("statuses", type="array", items={"type": "string"}),
        _parameter("created_at[gt]"),
        _parameter("created_at[lt]"),
    ),
}
"""The query that a handler reads, by the handler's name."""


def operations(routes: Iterable[Route], *, prefix: str) -> list[Operation]:
    """Describe each route; `prefix` makes the ids of routes that share a handler unique."""
    pairs = [(route, method) for route in routes for method in sorted(route.methods or ()) if method != "HEAD"]
    return [_operation(route, method, prefix) for route, method in pairs]


def _operation(route: Route, method: str, prefix: str) -> Operation:
    name = route.name
    refused = {
        status: DocumentedAnswer(TYPES.get(status, "api_error"), Refused) for status in sorted({*STATUS.values()})
    }
    return Operation(
        prefix + name,
        (route.endpoint.__doc__ or "").removesuffix("."),
        method,
        route.path,
        tags=("anthropic",),
        parameters=PARAMETERS.get(name, ()),
        body=BODIES.get(name) if method != "GET" else None,
        answers={200: DocumentedAnswer(body=ANSWERS[name]), **refused},
    )
