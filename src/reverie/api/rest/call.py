"""The router of the API, and its idempotent requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from reverie.api.rest.errors import documented, status_of
from reverie.core.actor import Right
from reverie.http.call import Handler
from reverie.http.door import MEMORY_QUERY
from reverie.http.once import Once
from reverie.http.routes import DocumentedAnswer, Form, Router

PREFIX = "/v1/host/reverie"
SCOPES = {f"{PREFIX}/{path}": MEMORY_QUERY for path in ("memory", "archives", "dreams", "index", "export", "import")}
ONCE = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": "Makes a retry safe: the same key does nothing twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
carry_out = Once(status_of, lambda error: error.reason)


class ApiRouter(Router):
    """Routes of the API. The documented errors, and the header `Idempotency-Key`, follow from the handler."""

    def route(
        self, path: str, methods: Sequence[str], *, out: Form | None = None, status: int = 200, **said: Any
    ) -> Callable[[Handler], Handler]:
        """`out`: the shape of the successful answer, with `status`; other answers are named by `answers`."""
        said.setdefault("answers", {status: DocumentedAnswer(body=out)})
        add = super().route(path, methods, **said)

        def describe(handler: Handler) -> Handler:
            add(handler)
            route = self.routes[-1]
            if route.operation is not None:
                writes = any(right is not Right.READ for right in route.needs.rights)
                errors = documented(body=bool(route.body or route.operation.body), writes=writes)
                header = [ONCE] if getattr(handler, "once", False) else []
                route.operation = replace(
                    route.operation,
                    answers={**route.operation.answers, **errors},
                    parameters=[*route.operation.parameters, *header],
                )
            return handler

        return describe


def api(tag: str) -> ApiRouter:
    """A router of the API, whose operations are listed under `tag`."""
    return ApiRouter(PREFIX, tags=[tag])


def once(operation: str, *, now: Callable[..., Response] | None = None) -> Callable[[Handler], Handler]:
    """Carry out requests with an `Idempotency-Key` once; see `Once.handler`."""
    return carry_out.handler(f"rest.{operation}", now=now)
