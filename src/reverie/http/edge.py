"""The outermost layer: every request gets an id, a line in the log, a count in the metrics and an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.core.errors import ReverieError
from reverie.core.ids import TimeIds
from reverie.http.admission import Admission
from reverie.http.body import BodyLimit, length_of
from reverie.http.origin import READABLE, Header, OriginCheck
from reverie.http.paths import use_raw_path
from reverie.http.problems import problem
from reverie.http.refusal import Refusal
from reverie.http.tail import Tail
from reverie.ops.logs import Action, log, where
from reverie.ops.metrics import Metrics
from reverie.ops.traces import Traces

_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CLIENT_GONE = 499
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_NOT_STORED = (b"cache-control", b"no-store")


class Edge:
    """Checks origin, path, key and size, in this order, then routes. An unexpected exception becomes a 500 with a
    correlation id; its message is not sent."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: OriginCheck,
        admission: Admission,
        size: BodyLimit,
        refuse: Refusal,
        metrics: Metrics,
        traces: Traces,
        tail: Tail,
    ) -> None:
        self._app = app
        self._origins = origins
        self._admission = admission
        self._size = size
        self._refuse = refuse
        self._metrics = metrics
        self._span = partial(traces.span, "request") if traces.on else nullcontext
        self._tail = tail
        self._ids = TimeIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] != "websocket" or await self._origins.upgrades(scope, receive, send):
                await self._app(scope, receive, send)
            return
        # The caller's own id replaces this one only once the caller is known (`Admission`): it could be anything.
        state = scope.setdefault("state", {})  # of this request alone; outer layers see who called, too
        state["request_id"] = self._ids.new()
        status, started = 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _headers(message.get("headers", ()), state)
            await send(message)

        self._metrics.begin_request()
        try:
            with self._span() as span:
                try:
                    await self._serve(scope, receive, sending, begun=lambda: bool(status))
                except ClientDisconnect:
                    status = status or _CLIENT_GONE
                except Exception as fault:
                    log(Action.REQUEST_FAILED, level=logging.ERROR, request=_id(scope), fault=where(fault))
                    if status:
                        raise  # the answer has begun: all that is left is to break it off
                    details = {"correlationId": _id(scope)}
                    answer = problem(500, "internal_error", "Something went wrong here.", details=details)
                    text = f"The host had a fault. Its log names it under {_id(scope)}."
                    answer = self._refuse.page(scope, 500, "internal_error", text) or answer
                    await answer(scope, receive, sending)
                if span is not None:
                    span.set_attribute("request.id", _id(scope))
                    span.set_attribute("http.route", route_of(scope))
                    span.set_attribute("http.response.status_code", status)
        finally:
            seconds = time.perf_counter() - started
            self._done(scope, status or _CLIENT_GONE, seconds)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, *, begun: Callable[[], bool]) -> None:
        answer = self._origins.answer(scope) or use_raw_path(scope)
        try:
            if answer is None:
                length = length_of(scope)
                await self._admission.admit(scope, self._size.expected(length))
                answer = self._size.refuse(scope, length)
            if answer is None:
                return await self._app(scope, self._size.count(scope, length, receive), send)
        except ReverieError as error:
            if begun():
                raise  # a stream that fails can only be broken off
            answer = await self._refuse.error(scope, error)
        except HTTPException as fault:
            answer = self._refuse.http(scope, fault)
        return await answer(scope, receive, send)

    def _done(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = route_of(scope), scope["method"]
        self._metrics.end_request(route, method, status, seconds)
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


def _headers(sent: Iterable[Header], state: Mapping[str, Any]) -> list[Header]:
    """The headers of an answer, with those that every answer has."""
    headers = [*sent, *state.get(READABLE, ()), (b"x-request-id", state["request_id"].encode()), _NO_SNIFFING]
    if b"cache-control" not in [name for name, _ in headers]:
        headers.append(_NOT_STORED)
    return headers


def _id(scope: Scope) -> str:
    return str(scope["state"]["request_id"])


def route_of(scope: Scope) -> str:
    """The template of the matched route, such as `/v1/host/reverie/memory/{ref}/entries`; never the path."""
    return str(scope["state"].get("route", "unmatched"))
