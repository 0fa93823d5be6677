"""A request as the handlers of a door get it, and the route that brings it to them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, get_type_hints

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from pydantic import TypeAdapter, ValidationError
from starlette.routing import Match
from starlette.types import Scope

from reverie.core.actor import Actor, Right
from reverie.core.errors import Invalid
from reverie.host import Host
from reverie.http.faults import invalid
from reverie.http.limits import Limits, key_of
from reverie.http.parsing import UnsupportedMedia, parse
from reverie.http.threads import Lane, Threads
from reverie.settings import Settings

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Any])
SMALL_BODY = 16_384
"""Bytes. A body up to this size is parsed by the thread that does the work, a larger one in a lane of its own."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a handler needs before a byte of the body is read: one of these rights, and a slot in a lane."""

    rights: tuple[Right, ...] = ()
    lane: Lane = Lane.WRITE

    def check(self, actor: Actor) -> None:
        """Raise Forbidden when the caller has none of the rights. The host checks again, and more closely."""
        if self.rights and not any(right in actor.rights for right in self.rights):
            actor.require(self.rights[0])


def needs(*rights: Right, lane: Lane = Lane.WRITE) -> Callable[[Handler], Handler]:
    """Declare the rights and the lane of a handler."""

    def mark(handler: Handler) -> Handler:
        handler.needs = Needs(rights, lane)  # type: ignore[attr-defined]
        return handler

    return mark


class Call(Request):
    """The host, and who is calling it: already authenticated, or the handler would not run. JSON is read strictly."""

    @property
    def host(self) -> Host:
        """The host, watched."""
        host: Host = self.app.state.host
        return host

    @property
    def actor(self) -> Actor:
        """Who is calling."""
        actor: Actor = self.state.actor
        return actor

    @property
    def settings(self) -> Settings:
        """How this process runs."""
        settings: Settings = self.app.state.settings
        return settings

    @property
    def limits(self) -> Limits:
        """The limits of keys."""
        limits: Limits = self.app.state.limits
        return limits

    @property
    def tenant(self) -> str:
        """In whose name work waits; nobody's on the paths that are open to all."""
        actor: Actor | None = self.scope["state"].get("actor")
        return actor.tenant if actor else ""

    async def run(self, lane: Lane, work: Callable[[], T]) -> T:
        """The result of `work`, from a thread. Heavy work counts against the key while it waits and runs."""
        threads: Threads = self.app.state.threads
        heavy = self.limits.heavy.one(key_of(self.actor)) if lane is Lane.HEAVY else nullcontext()
        with heavy:
            return await threads.run(lane, self.tenant, work)

    def charge(self, entries: int) -> None:
        """Count entries about to be stored. Raises RateLimited."""
        self.limits.entries.take(key_of(self.actor), entries)

    async def json(self) -> Any:
        """The body, read by `parse`."""
        if not hasattr(self, "_json"):
            self._json = self.parsed(await self.body())
        return self._json

    def parsed(self, body: bytes) -> Any:
        """A JSON body, read strictly."""
        return parse(body, most=self.settings.max_request_values)


class StrictRoute(APIRoute):
    """A route that checks rights and the media type before it reads the body, and works in a thread."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **named: Any) -> None:
        self.needs: Needs = getattr(endpoint, "needs", Needs(lane=Lane.READ if _reads(named) else Lane.WRITE))
        self.handler = endpoint
        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else _in_thread(endpoint, self.needs), **named)
        # A parameter never holds a slash, but for one that says it is a path.
        self._slashes = None if ":path}" in self.path else self.path.count("/")
        self._ending = self.path.rpartition("}")[2]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Most routes are told from a path by their length and their end, at a tenth of the cost of their pattern."""
        path: str = scope["path"]
        if self._slashes is not None and (path.count("/") != self._slashes or not path.endswith(self._ending)):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        inner = self._checked_handler()
        quick = Quick.of(self)
        wants_json = self.body_field is not None

        async def handler(request: Request) -> Response:
            request.state.route = self.path_format  # for logs and metrics: the template, never the path
            call = Call(request.scope, request.receive)
            if "actor" in call.scope["state"]:
                self.needs.check(call.actor)
            if wants_json:
                media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
                if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
                    raise UnsupportedMedia()
                if not await call.body():
                    raise Invalid("The body is empty. Send a JSON object.", pointer="")
            if quick is not None and (values := quick.values(call)) is not None:
                return await quick.run(call, values, self.needs.lane)
            return await inner(call)

        return handler

    def _checked_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, without the security schemes: they document what the edge has checked already."""
        documented = self.dependant
        self.dependant = replace(documented, dependencies=_work(documented))
        try:
            return super().get_route_handler()
        finally:
            self.dependant = documented


class Quick:
    """A handler that takes no more than segments of the path, headers and one JSON body, called without detours.

    FastAPI finds out again at every request what a handler wants, which costs as much as storing an entry. Here its
    own fields validate the segments and headers, and what does not fit is left to FastAPI, which says so. The body
    is parsed and validated in a thread: never on the event loop.
    """

    def __init__(self, route: StrictRoute) -> None:
        wanted = route.dependant
        self._handler = route.handler
        self._call = wanted.request_param_name
        self._path = tuple(wanted.path_params)
        self._headers = tuple(wanted.header_params)
        hints = get_type_hints(route.handler, include_extras=True)
        self._body = {field.name: TypeAdapter(hints[field.name]) for field in wanted.body_params}

    @classmethod
    def of(cls, route: StrictRoute) -> Quick | None:
        """The quick way to a route's handler, if there is one."""
        wanted = route.dependant
        more = wanted.query_params or wanted.cookie_params or _work(wanted) or wanted.background_tasks_param_name
        several = len(wanted.body_params) > 1 or wanted.response_param_name or wanted.http_connection_param_name
        answers = get_type_hints(route.handler).get("return") is Response
        waits = iscoroutinefunction(route.handler)
        return None if more or several or waits or not answers else cls(route)

    def values(self, call: Call) -> dict[str, Any] | None:
        """The arguments of the handler but for the body; None when they are not as they should be."""
        values: dict[str, Any] = {} if self._call is None else {self._call: call}
        for fields, sent in ((self._path, call.path_params), (self._headers, call.headers)):
            for field in fields:
                value = sent.get(field.alias)
                if value is not None:
                    value, errors = field.validate(value)
                    if errors:
                        return None
                elif field.field_info.is_required() or field.default is not None:
                    return None
                values[field.name] = value
        return values

    async def run(self, call: Call, values: dict[str, Any], lane: Lane) -> Response:
        """What the handler answers, from a thread."""
        if not self._body:
            return await call.run(lane, partial(self._handler, **values))
        body = await call.body()
        if len(body) <= SMALL_BODY:
            return await call.run(lane, lambda: self._handler(**values, **self._read(call, body)))
        read = await call.run(Lane.PARSE, lambda: self._read(call, body))
        return await call.run(lane, partial(self._handler, **values, **read))

    def _read(self, call: Call, body: bytes) -> dict[str, Any]:
        """The argument made from the body."""
        document = call.parsed(body)
        try:
            return {name: wanted.validate_python(document) for name, wanted in self._body.items()}
        except ValidationError as fault:
            raise invalid(fault) from None


def _reads(named: dict[str, Any]) -> bool:
    return set(named.get("methods") or ("GET",)) <= {"GET", "HEAD"}


def _in_thread(handler: Callable[..., T], wanted: Needs) -> Callable[..., Coroutine[Any, Any, T]]:
    """The handler as a coroutine that works in a thread of its lane."""

    @wraps(handler)
    async def run(**values: Any) -> T:
        call = next(value for value in values.values() if isinstance(value, Call))
        return await call.run(wanted.lane, partial(handler, **values))

    return run


def _work(wanted: Dependant) -> list[Dependant]:
    """The dependencies that do something: a security scheme only documents what the edge has checked."""
    return [one for one in wanted.dependencies if not isinstance(one.call, SecurityBase)]
