"""What every handler starts from and ends with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from starlette.responses import Response

from reverie.api.rest.errors import status_of
from reverie.http.call import Handler, Needs
from reverie.http.once import Once
from reverie.http.routes import Router

PREFIX = "/v1/host/reverie"
SCOPES = dict.fromkeys(
    (f"{PREFIX}/memory", f"{PREFIX}/archives", f"{PREFIX}/dreams", f"{PREFIX}/index"), "x-host-reverie-memory-query"
)
ONCE = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": "Makes a retry safe: the same key does nothing twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_once = Once(status_of, lambda error: error.reason)


def api() -> Router:
    """A router of the API."""
    return Router(PREFIX)


def once(operation: str) -> Callable[[Handler], Handler]:
    """Carry out requests with an `Idempotency-Key` once. For handlers whose answers hold no text of a memory: an answer
    is kept for a day, and a forget does not look there."""

    def mark(handler: Any) -> Any:
        needs: Needs = handler.needs

        @wraps(handler)
        async def answered(**values: Any) -> Response:
            return await _once(values["call"], f"rest.{operation}", needs.lane, lambda _: handler(**values))

        return answered

    return mark
