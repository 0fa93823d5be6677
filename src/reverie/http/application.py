"""The HTTP application: doors on one host, behind one edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.responses import Response
from starlette.types import ASGIApp

from reverie.host import Host
from reverie.http.admission import Admission
from reverie.http.body import BodyLimit
from reverie.http.call import Call
from reverie.http.door import Door, Doors
from reverie.http.edge import Edge
from reverie.http.limits import Limits
from reverie.http.openapi import document, operations
from reverie.http.origin import OriginCheck, OriginPolicy
from reverie.http.refusal import Refusal
from reverie.http.reply import Reply
from reverie.http.routes import Dispatch, Operation, Router
from reverie.http.tail import Tail
from reverie.http.threads import Lane, Threads
from reverie.ops.health import Health
from reverie.ops.metrics import CONTENT_TYPE, Metrics
from reverie.ops.observe import observed
from reverie.ops.traces import Traces
from reverie.settings import Settings

OPENAPI_PATH = "/v1/openapi.json"
DESCRIPTION = """\
Send `Authorization: Bearer KEY`. The key alone decides the tenant.

* **Names.** A `ref` names a memory. Percent-encode it, slashes as `%2F`; every parameter is decoded exactly once.
* **Errors** are `{"error": code, "message": text, "details"?: object}`. Codes are stable; `details.pointer` names the
  field, `details.next` says what to do, `details.correlationId` finds a fault of the host in its log.
* **Retries.** Send an `Idempotency-Key` with a change. A retry with the same key and body changes nothing and gets the
  first answer again; the same key with another body is a 409 `idempotency_key_reused`.
* **Versions.** An entry's ETag is its version. A stale `If-Match` is a 409 `version_conflict`.
* **Pages.** Follow `cursor` until it is null. A cursor is valid only for the tenant and the query that it came from.
* **Times** are RFC 3339 with a zone, and UTC in every answer.
* **Secrets** are replaced before anything is stored; `findings` counts them by kind.
"""


class Shared(State):
    """State that handlers share, as plain attributes: each request reads six of them."""

    def __setattr__(self, key: Any, value: Any) -> None:
        object.__setattr__(self, key, value)


class Application(Starlette):
    """Doors on one host, and the document that describes them."""

    def __init__(self, doors: Sequence[Door], *, version: str) -> None:
        super().__init__(
            routes=[route for routes in (_operations().routes, *(d.routes for d in doors)) for route in routes]
        )
        self.state = Shared()
        self.router.redirect_slashes = False
        self.version = version
        self._doors = doors
        self._described = b""
        self._operations: list[Operation] = []

    def build_middleware_stack(self) -> ASGIApp:
        """The layers around the routes, without Starlette's two for errors: `Edge` does their work."""
        app: ASGIApp = Dispatch(self.router)
        for layer, arguments, named in reversed(self.user_middleware):
            app = layer(app, *arguments, **named)
        return app

    def describe(self, operations: Iterable[Operation]) -> None:
        """Document operations whose routes belong to no door."""
        self._operations += operations

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document: the operations of every door, the shortest prefix first."""
        root_first = sorted(self._doors, key=lambda door: len(door.prefix))
        described = [one for door in root_first for one in operations(door)]
        described += [(operation, None, ()) for operation in self._operations]
        return document(described, version=self.version, description=DESCRIPTION)

    def described(self) -> bytes:
        """The OpenAPI document as JSON, encoded once."""
        if not self._described:
            self._described = orjson.dumps(self.openapi())
        return self._described


def make_application(
    settings: Settings,
    host: Host,
    *,
    doors: Sequence[Door],
    version: str = "",
    traces: Traces | None = None,
) -> Application:
    """An application that serves the doors, health and metrics.

    `app.state` holds `tail`, `health` and `metrics` for the process that runs it, and `host`, `settings`, `threads` and
    `limits` for handlers.
    """
    metrics, health = Metrics(version), Health(settings, host)
    threads, limits = Threads(), Limits.of(settings)
    tail = Tail(host, threads)
    traces = traces or Traces()
    pool = getattr(host.parts.store, "pool", None)
    if pool is not None:
        metrics.watch("reverie_pool", "Database connections, and requests that wait for one.", "state", pool)
    counts = getattr(host.parts.jobs, "counts", None)
    if counts is not None:
        metrics.watch("reverie_queue", "Jobs that wait, run or failed for good.", "status", counts)
    app = Application(doors, version=version)
    app.state.settings, app.state.host = settings, observed(host, metrics, traces)
    app.state.metrics, app.state.tail, app.state.health = metrics, tail, health
    app.state.threads, app.state.limits = threads, limits
    found = Doors(doors)
    pages = OriginPolicy.of(settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins)
    app.add_middleware(
        Edge,
        origins=OriginCheck(pages, doors=found, metrics=metrics),
        admission=Admission(host=host, doors=found, limits=limits, threads=threads, metrics=metrics),
        size=BodyLimit(settings.max_request_bytes, limits=limits, doors=found),
        refuse=Refusal(settings, host, found, threads),
        metrics=metrics,
        traces=traces,
        tail=tail,
    )
    return app


def _operations() -> Router:
    """The routes for operators' tools. They need no key, and answer the same for every tenant."""
    router = Router()

    @router.route("/healthz", ["GET", "HEAD"])
    async def live() -> Response:
        return Reply({"status": "ok"})

    @router.route("/readyz", ["GET", "HEAD"])
    async def ready(call: Call) -> Response:
        readiness = await call.run(Lane.LOOK, call.app.state.health.ready)
        return Reply(readiness.document(), 503 if readiness.status == "unavailable" else 200)

    @router.get("/metrics")
    async def metrics(call: Call) -> Response:
        rendered = await call.run(Lane.LOOK, call.app.state.metrics.render)
        return Response(rendered, headers={"content-type": CONTENT_TYPE})

    @router.get(OPENAPI_PATH)
    async def openapi(call: Call) -> Response:
        return Response(call.app.described(), media_type="application/json")

    return router
