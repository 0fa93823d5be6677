"""Common input and output of all handlers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
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
carry_out = Once(status_of, lambda error: error.reason)


def api() -> Router:
    """A router of the API."""
    return Router(PREFIX)


def once(operation: str, *, now: Callable[..., Response] | None = None) -> Callable[[Handler], Handler]:
    """Carry out requests with an `Idempotency-Key` once. A handler that answers with a TextReply names `now`, which
    takes the same arguments and answers a retry.

    A handler with an argument `work_id` gets an id for what it makes; None when the request has no key.
    """

    def mark(handler: Any) -> Any:
        needs: Needs = handler.needs
        named = "work_id" in signature(handler).parameters

        @wraps(handler)
        async def answered(**values: Any) -> Response:
            def work(work_id: str | None) -> Response:
                made: Response = handler(**values, **({"work_id": work_id} if named else {}))
                return made

            again = None if now is None else partial(now, **values)
            return await carry_out(values["call"], f"rest.{operation}", needs.lane, work, now=again)

        return answered

    return mark
