"""The outermost layer: every request gets an id, a line in the log, a place in the metrics and some answer."""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.core.ids import TimeIds
from reverie.http.problems import problem
from reverie.http.tail import Tail
from reverie.ops.logs import Action, log, where
from reverie.ops.metrics import Metrics
from reverie.ops.traces import Traces

_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CLIENT_GONE = 499


class Edge:
    """Nothing gets past it: a fault becomes a 500 with a correlation id, and its message stays inside."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, traces: Traces, tail: Tail) -> None:
        self.app = app
        self._metrics = metrics
        self._traces = traces
        self._tail = tail
        self._ids = TimeIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        # A caller's own id takes its place once the caller is known (`Admission`): it could be anything.
        scope = {**scope, "state": {**scope.get("state", {}), "request_id": self._ids.new()}}
        status, started = 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [
                    *message.get("headers", ()),
                    (b"x-request-id", _id(scope).encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        self._metrics.in_flight.inc()
        try:
            with self._traces.span("request", {}) as span:
                try:
                    await self.app(scope, receive, sending)
                except ClientDisconnect:
                    status = status or _CLIENT_GONE
                except Exception as fault:
                    log(Action.REQUEST_FAILED, level=logging.ERROR, request=_id(scope), fault=where(fault))
                    if status:
                        raise  # the answer has begun: all that is left is to break it off
                    details = {"correlationId": _id(scope)}
                    answer = problem(500, "internal_error", "Something went wrong here.", details=details)
                    await answer(scope, receive, sending)
                if span is not None:
                    span.set_attribute("request.id", _id(scope))
                    span.set_attribute("http.route", route_of(scope))
                    span.set_attribute("http.response.status_code", status)
        finally:
            self._metrics.in_flight.dec()
            seconds = time.perf_counter() - started
            self._done(scope, status or _CLIENT_GONE, seconds)

    def _done(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = route_of(scope), scope["method"]
        self._metrics.request(route, method, status, seconds)
        actor: Any = scope["state"].get("actor")
        if actor is not None and method not in _SAFE and status < 400:
            self._tail.ring(actor.tenant)
        log(
            Action.REQUEST,
            level=logging.DEBUG if route in _QUIET else logging.INFO,
            request=_id(scope),
            method=method if method.isalpha() and len(method) < 10 else "OTHER",
            route=route,
            status=status,
            ms=round(seconds * 1000, 2),
            key=actor.key_id if actor else None,
        )


def _id(scope: Scope) -> str:
    return str(scope["state"]["request_id"])


def route_of(scope: Scope) -> str:
    """The template of the matched route, such as `/v1/host/reverie/memory/{ref}/entries`; never the path."""
    return str(scope["state"].get("route", "unmatched"))
