"""The routes of this protocol in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from starlette.routing import Route

from reverie.http.routes import Answer, Operation
from reverie.protocols.anthropic.http.errors import STATUS, TYPES
from reverie.protocols.anthropic.http.wire import MemoryIn, MemoryPatch, SearchIn, StoreIn, StorePatch, ToolIn

BODIES: Mapping[str, type[Struct]] = {
    "create_store": StoreIn,
    "update_store": StorePatch,
    "create_memory": MemoryIn,
    "update_memory": MemoryPatch,
    "search": SearchIn,
    "tool": ToolIn,
}
"""The body that a handler reads, by the handler's name."""
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "create_store": {"name": "support", "description": "What the support agent has learned."},
    "update_store": {"description": "What the support agents have learned."},
    "create_memory": {"path": "/customers/42.md", "content": "Prefers e-mail to phone calls."},
    "update_memory": {"content": "Prefers phone calls in the morning."},
    "search": {"query": "how to reach the customer", "limit": 5},
    "tool": {"command": "view", "path": "/memories"},
}
ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["type", "error"],
    "properties": {
        "type": {"const": "error"},
        "error": {
            "type": "object",
            "required": ["type", "message"],
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
        },
        "request_id": {"type": ["string", "null"]},
    },
}


def operations(routes: Iterable[Route], *, prefix: str) -> list[Operation]:
    """One for each route; `prefix` tells those of the same handler apart."""
    asked = [(route, method) for route in routes for method in sorted(route.methods or ()) if method != "HEAD"]
    return [_operation(route, method, prefix) for route, method in asked]


def _operation(route: Route, method: str, prefix: str) -> Operation:
    name = route.name
    refused = {status: Answer(TYPES.get(status, "api_error"), ERROR) for status in sorted({*STATUS.values()})}
    example = EXAMPLES.get(name)
    return Operation(
        prefix + name,
        name.replace("_", " ").capitalize(),
        method,
        route.path,
        tags=("anthropic",),
        body=BODIES.get(name) if method != "GET" else None,
        examples=[example] if example is not None else [],
        answers={200: Answer(body={"type": "object"}), **refused},
    )
