"""A request as the handlers of a door get it, and the route that brings it to them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from starlette.routing import Match
from starlette.types import Scope

from reverie.core.actor import Actor
from reverie.core.errors import Invalid
from reverie.host import Host
from reverie.serve.parsing import UnsupportedMedia, parse
from reverie.serve.threads import in_thread
from reverie.settings import Settings


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

    async def json(self) -> Any:
        """The body, read by `parse`."""
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


class StrictRoute(APIRoute):
    """A route that checks the media type and reads the body strictly, before anything else looks at it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
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
            if wants_json:
                media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
                if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
                    raise UnsupportedMedia()
                if not await call.body():
                    raise Invalid("The body is empty. Send a JSON object.", pointer="")
                await call.json()
            if quick is not None and (values := await quick.values(call)) is not None:
                return await quick.run(values)
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
    own fields validate the same values, and whatever does not fit is left to FastAPI, which says so.
    """

    def __init__(self, route: APIRoute) -> None:
        wanted = route.dependant
        self._endpoint = route.endpoint
        self._call = wanted.request_param_name
        self._path = tuple(wanted.path_params)
        self._headers = tuple(wanted.header_params)
        self._body = tuple(wanted.body_params)

    @classmethod
    def of(cls, route: APIRoute) -> Quick | None:
        """The quick way to a route's handler, if there is one."""
        wanted = route.dependant
        more = wanted.query_params or wanted.cookie_params or _work(wanted) or wanted.background_tasks_param_name
        several = len(wanted.body_params) > 1 or wanted.response_param_name or wanted.http_connection_param_name
        answers = get_type_hints(route.endpoint).get("return") is Response
        waits = iscoroutinefunction(route.endpoint)
        return None if more or several or waits or not answers else cls(route)

    async def values(self, call: Call) -> dict[str, Any] | None:
        """The arguments of the handler; None when they are not as they should be."""
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
        for field in self._body:
            values[field.name], errors = field.validate(await call.json())
            if errors:
                return None
        return values

    async def run(self, values: dict[str, Any]) -> Response:
        """What the handler answers, from a thread of its own."""
        return await in_thread(partial(self._endpoint, **values))


def _work(wanted: Dependant) -> list[Dependant]:
    """The dependencies that do something: a security scheme only documents what the edge has checked."""
    return [one for one in wanted.dependencies if not isinstance(one.call, SecurityBase)]
