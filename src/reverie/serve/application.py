"""The HTTP application: doors on one host, behind one edge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson
from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from reverie.core.actor import Actor
from reverie.core.errors import Invalid, ReverieError
from reverie.host import Host
from reverie.ops.health import Health
from reverie.ops.metrics import CONTENT_TYPE, Metrics
from reverie.ops.observe import observed
from reverie.ops.traces import Traces
from reverie.redact import KnownSecrets
from reverie.serve.admission import Admission
from reverie.serve.call import StrictRoute
from reverie.serve.door import Door, door_of
from reverie.serve.edge import Edge
from reverie.serve.limits import BodyLimit, RateLimit
from reverie.serve.origin import OriginCheck, OriginPolicy
from reverie.serve.paths import RawPaths
from reverie.serve.problems import answer, problem
from reverie.serve.tail import Tail
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


def make_application(
    settings: Settings,
    host: Host,
    *,
    doors: Sequence[Door],
    version: str = "",
    traces: Traces | None = None,
) -> FastAPI:
    """Every door that speaks HTTP, with health and metrics beside them.

    `app.state` holds what the process around it needs: `tail` and `health` to stop, `metrics` to count into.
    """
    metrics, tail, health = Metrics(version), Tail(), Health(settings, host)
    traces = traces or Traces()
    pool = getattr(host.parts.store, "pool", None)
    if pool is not None:
        metrics.watch("reverie_pool", "Connections to the database and who waits for them.", "state", pool)
    counts = getattr(host.parts.jobs, "counts", None)
    if counts is not None:
        metrics.watch("reverie_queue", "Jobs that wait, run or failed for good.", "status", counts)
    app = FastAPI(
        title="Reverie",
        version=version,
        summary="A memory host for AI agents.",
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.router.route_class = StrictRoute
    app.state.settings, app.state.host = settings, observed(host, metrics, traces)
    app.state.metrics, app.state.tail, app.state.health = metrics, tail, health
    _operations(app)
    for door in doors:
        app.router.routes.extend(door.routes)
    refusal = Refusal(settings, host, doors)
    app.add_exception_handler(ReverieError, refusal.error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, refusal.validation)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, refusal.http)  # type: ignore[arg-type]
    rate = RateLimit(settings.rate_per_second, settings.rate_burst)
    # added innermost first
    app.add_middleware(BodyLimit, most=settings.max_request_bytes, doors=doors)
    app.add_middleware(Admission, host=host, doors=doors, rate=rate, refuse=refusal.error, metrics=metrics)
    app.add_middleware(RawPaths)
    pages = OriginPolicy.of(settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins)
    app.add_middleware(OriginCheck, policy=pages, doors=doors, metrics=metrics)
    app.add_middleware(Edge, metrics=metrics, traces=traces, tail=tail)
    return app


class Refusal:
    """Every way to say no, in the one error body."""

    def __init__(self, settings: Settings, host: Host, doors: Sequence[Door]) -> None:
        self._settings = settings
        self._host = host
        self._doors = doors

    async def error(self, request: Request, error: ReverieError) -> Response:
        """What the core refused."""
        door = door_of(self._doors, request.scope["path"])
        render = partial(
            answer,
            error,
            door.status_of(error) if door else 500,
            code=door.code_of(error) if door and door.code_of else error.reason,
            redactor=self._host.parts.redactor,
            known=await self._known(request),
            correlation=request.scope["state"].get("request_id"),
            quota_seconds=max(self._settings.sweep_seconds, 1),
            shape=door.shape(request.scope["path"]) if door else None,
        )
        return await to_thread.run_sync(render)

    async def validation(self, request: Request, fault: RequestValidationError) -> Response:
        """What does not fit the documented shape: the first fault, with a pointer to the field."""
        first: dict[str, Any] = dict(fault.errors()[0])
        steps = [str(step) for step in first["loc"][1:] if step not in ("one", "many")]
        pointer = "".join("/" + step[:64].replace("~", "~0").replace("/", "~1") for step in steps)
        said = str(first["msg"]).removeprefix("Value error, ")
        return await self.error(request, Invalid(f"{pointer or 'The body'}: {said}.", pointer=pointer))

    async def http(self, request: Request, fault: HTTPException) -> Response:
        """What no route answers."""
        path = request.scope["path"]
        door = door_of(self._doors, path)
        shape = door.shape(path) if door else None
        if fault.status_code == 405:
            routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
            allowed = ", ".join(sorted({method for route in routes for method in getattr(route, "methods", ())}))
            said = f"This path answers {allowed}."
            return problem(405, "method_not_allowed", said, headers={"Allow": allowed}, shape=shape)
        if fault.status_code == 404:
            return problem(404, "not_found", "There is nothing at this path. See /v1/openapi.json.", shape=shape)
        said = "The request cannot be read."
        return problem(fault.status_code, "validation_error", said, headers=fault.headers, shape=shape)

    async def _known(self, request: Request) -> KnownSecrets:
        actor: Actor | None = request.scope["state"].get("actor")
        if actor is None:
            return KnownSecrets.EMPTY
        try:
            rules = await to_thread.run_sync(self._host.rules.current, actor.tenant)
        except ReverieError:
            return KnownSecrets.EMPTY
        return rules.known


def _operations(app: FastAPI) -> None:
    """What an operator's tools ask for. None of it needs a key, and none of it tells one tenant from another."""
    described: dict[str, bytes] = {}

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        links = {"openapi": OPENAPI_PATH, "health": "/healthz", "readiness": "/readyz", "metrics": "/metrics"}
        return _json({"name": "reverie", "version": app.version, "links": links})

    @app.api_route("/healthz", methods=["GET", "HEAD"], include_in_schema=False)
    async def live() -> Response:
        return _json({"status": "ok"})

    @app.api_route("/readyz", methods=["GET", "HEAD"], include_in_schema=False)
    def ready() -> Response:
        readiness = app.state.health.ready()
        return _json(readiness.document(), 503 if readiness.status == "unavailable" else 200)

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return Response(app.state.metrics.render(), headers={"content-type": CONTENT_TYPE})

    @app.get(OPENAPI_PATH, include_in_schema=False)
    async def openapi() -> Response:
        if "document" not in described:
            described["document"] = orjson.dumps(app.openapi())
        return Response(described["document"], media_type="application/json")


def _json(document: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(document), status, media_type="application/json")
