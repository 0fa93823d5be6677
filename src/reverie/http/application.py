"""The HTTP application: doors on one host, behind one edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from reverie.core.actor import Actor
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.http.admission import Admission
from reverie.http.call import Call
from reverie.http.door import Door, door_of
from reverie.http.edge import Edge
from reverie.http.limits import BodyLimit, Limits
from reverie.http.openapi import document, operations
from reverie.http.origin import OriginCheck, OriginPolicy
from reverie.http.paths import RawPaths
from reverie.http.problems import answer, problem, status_of
from reverie.http.routes import Operation, Router
from reverie.http.tail import Tail
from reverie.http.threads import Lane, Threads
from reverie.ops.health import Health
from reverie.ops.metrics import CONTENT_TYPE, Metrics
from reverie.ops.observe import observed
from reverie.ops.traces import Traces
from reverie.redact import KnownSecrets
from reverie.settings import Settings

OPENAPI_PATH = "/v1/openapi.json"
DESCRIPTION = """\
Send `Authorization: Bearer KEY`; the key decides the tenant, and nothing else does.

* **Names.** A `ref` names a memory. Percent-encode it, slashes as `%2F`; every parameter is decoded exactly once.
* **Errors** are `{"error": code, "message": text, "details"?: object}`. Codes are stable; `details.pointer` names the
  field, `details.next` says what to do, `details.correlationId` finds a fault of the host in its log.
* **Retries.** With an `Idempotency-Key`, storing again what was stored answers the first receipt and stores nothing.
* **Versions.** An entry's ETag is its version. A stale `If-Match` is a 409 `version_conflict`.
* **Pages.** Follow `cursor` until it is null. A cursor works for the tenant and the question it came from, only.
* **Times** are RFC 3339 with a zone, and UTC in every answer.
* **Secrets** in anything stored are replaced before they are stored; `findings` counts them by kind.
"""


class Application(Starlette):
    """Doors on one host, and the document that describes them."""

    def __init__(self, doors: Sequence[Door], *, version: str) -> None:
        super().__init__(
            routes=[route for routes in (_operations().routes, *(d.routes for d in doors)) for route in routes]
        )
        self.router.redirect_slashes = False
        self.version = version
        self._doors = doors
        self._described = b""
        self._operations: list[Operation] = []

    def describe(self, operations: Iterable[Operation]) -> None:
        """Add operations of routes that belong to no door."""
        self._operations += operations

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document: every operation of every door."""
        described = [one for door in self._doors for one in operations(door)]
        described += [(operation, None) for operation in self._operations]
        return document(described, version=self.version, description=DESCRIPTION)

    def described(self) -> bytes:
        """The same, encoded once."""
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
    """Every door that speaks HTTP, and health and metrics.

    `app.state` holds what the process around it needs: `tail` and `health` to stop, `metrics` to count into; and what
    handlers need: `host`, `settings`, `threads` and `limits`.
    """
    metrics, health = Metrics(version), Health(settings, host)
    threads, limits = Threads(), Limits.of(settings)
    tail = Tail(host, threads)
    traces = traces or Traces()
    pool = getattr(host.parts.store, "pool", None)
    if pool is not None:
        metrics.watch("reverie_pool", "Connections to the database and who waits for them.", "state", pool)
    counts = getattr(host.parts.jobs, "counts", None)
    if counts is not None:
        metrics.watch("reverie_queue", "Jobs that wait, run or failed for good.", "status", counts)
    app = Application(doors, version=version)
    app.state.settings, app.state.host = settings, observed(host, metrics, traces)
    app.state.metrics, app.state.tail, app.state.health = metrics, tail, health
    app.state.threads, app.state.limits = threads, limits
    refuse = Refusal(settings, host, doors, threads)
    app.add_exception_handler(ReverieError, refuse.error)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, refuse.http)  # type: ignore[arg-type]
    admission = partial(Admission, host=host, doors=doors, refuse=refuse.error, metrics=metrics)
    # added innermost first
    app.add_middleware(BodyLimit, most=settings.max_request_bytes, limits=limits, doors=doors)
    app.add_middleware(admission, limits=limits, threads=threads)
    app.add_middleware(RawPaths)
    pages = OriginPolicy.of(settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins)
    app.add_middleware(OriginCheck, policy=pages, doors=doors, metrics=metrics)
    app.add_middleware(Edge, metrics=metrics, traces=traces, tail=tail)
    return app


class Refusal:
    """Every way to say no, in the one error body."""

    def __init__(self, settings: Settings, host: Host, doors: Sequence[Door], threads: Threads) -> None:
        self._settings = settings
        self._threads = threads
        self._host = host
        self._doors = doors

    async def error(self, request: Request, error: ReverieError) -> Response:
        """What the core refused."""
        door = door_of(self._doors, request.scope["path"])
        actor: Actor | None = request.scope["state"].get("actor")
        render = partial(
            self._answer,
            actor,
            error,
            door.status_of(error) if door else status_of(error),
            code=door.code_of(error) if door and door.code_of else error.reason,
            redactor=self._host.parts.redactor,
            correlation=request.scope["state"].get("request_id"),
            quota_seconds=max(self._settings.sweep_seconds, 1),
            shape=door.shape(request.scope["path"]) if door else None,
        )
        return await self._threads.run(Lane.LOOK, actor.tenant if actor else "", render)

    def _answer(self, actor: Actor | None, error: ReverieError, status: int, **options: Any) -> Response:
        return answer(error, status, known=self._known(actor), **options)

    async def http(self, request: Request, fault: HTTPException) -> Response:
        """What no route answers."""
        path = request.scope["path"]
        door = door_of(self._doors, path)
        shape = door.shape(path) if door else None
        if fault.status_code == 405 and (door is None or door.names_methods):
            routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
            allowed = ", ".join(sorted({method for route in routes for method in getattr(route, "methods", ())}))
            said = f"This path answers {allowed}."
            return problem(405, "method_not_allowed", said, headers={"Allow": allowed}, shape=shape)
        if fault.status_code in (404, 405):
            return problem(404, "not_found", "There is nothing at this path. See /v1/openapi.json.", shape=shape)
        said = "The request cannot be read."
        return problem(fault.status_code, "validation_error", said, headers=fault.headers, shape=shape)

    def _known(self, actor: Actor | None) -> KnownSecrets:
        if actor is None:
            return KnownSecrets.EMPTY
        try:
            return self._host.rules.current(actor.tenant).known
        except ReverieError:
            return KnownSecrets.EMPTY


def _operations() -> Router:
    """What an operator's tools ask for. None of it needs a key, and none of it tells one tenant from another."""
    router = Router()

    @router.route("/healthz", ["GET", "HEAD"])
    async def live() -> Response:
        return _json({"status": "ok"})

    @router.route("/readyz", ["GET", "HEAD"])
    async def ready(call: Call) -> Response:
        readiness = await call.run(Lane.LOOK, call.app.state.health.ready)
        return _json(readiness.document(), 503 if readiness.status == "unavailable" else 200)

    @router.get("/metrics")
    async def metrics(call: Call) -> Response:
        rendered = await call.run(Lane.LOOK, call.app.state.metrics.render)
        return Response(rendered, headers={"content-type": CONTENT_TYPE})

    @router.get(OPENAPI_PATH)
    async def openapi(call: Call) -> Response:
        return Response(call.app.described(), media_type="application/json")

    return router


def _json(document: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(document), status, media_type="application/json")
