"""Answers to errors of the core and to requests that no route serves, in the one error body."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from reverie.core.actor import Actor
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.http.door import Doors
from reverie.http.problems import answer, problem, status_of
from reverie.http.threads import Lane, Threads
from reverie.redact import KnownSecrets
from reverie.settings import Settings


class Refusal:
    """Makes the answers to refused requests."""

    def __init__(self, settings: Settings, host: Host, doors: Doors, threads: Threads) -> None:
        self._settings = settings
        self._threads = threads
        self._host = host
        self._doors = doors

    async def error(self, scope: Scope, error: ReverieError) -> Response:
        """Answer an error of the core."""
        path, state = scope["path"], scope["state"]
        door = self._doors.at(path)
        actor: Actor | None = state.get("actor")
        render = partial(
            self._answer,
            scope,
            actor,
            error,
            door.status_of(error) if door else status_of(error),
            code=door.code_of(error) if door and door.code_of else error.reason,
            redactor=self._host.parts.redactor,
            correlation=state.get("request_id"),
            quota_seconds=max(self._settings.sweep_seconds, 1),
            shape=door.shape(path) if door else None,
        )
        return await self._threads.run(Lane.LOOK, actor.tenant if actor else "", render)

    def _answer(self, scope: Scope, actor: Actor | None, error: ReverieError, status: int, **options: Any) -> Response:
        known = self._known(actor)
        message = self._host.parts.redactor.text(error.message, known).text.replace("`", "")
        return self.page(scope, status, error.reason, message) or answer(error, status, known=known, **options)

    def http(self, scope: Scope, fault: HTTPException) -> Response:
        """Answer a request that no route serves."""
        path = scope["path"]
        door = self._doors.at(path)
        shape = door.shape(path) if door else None
        if fault.status_code == 405 and (door is None or door.names_methods):
            routes = [route for route in scope["app"].routes if route.matches(scope)[0] is not Match.NONE]
            allowed = ", ".join(sorted({method for route in routes for method in getattr(route, "methods", ())}))
            said = f"This path answers {allowed}."
            return problem(405, "method_not_allowed", said, headers={"Allow": allowed}, shape=shape)
        if fault.status_code in (404, 405):
            page = self.page(scope, 404, "not_found", "No page has this address.") if door is None else None
            said = "There is nothing at this path. See /v1/openapi.json."
            return page or problem(404, "not_found", said, shape=shape)
        said = "The request cannot be read."
        return problem(fault.status_code, "validation_error", said, headers=fault.headers, shape=shape)

    def page(self, scope: Scope, status: int, code: str, message: str) -> Response | None:
        """An error page for a browser that asks for a page, where the application has pages; None otherwise."""
        render: Callable[..., Response] | None = getattr(scope["app"].state, "error_page", None)
        wants = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        if render is None or scope["method"] != "GET" or b"text/html" not in wants or self._doors.at(scope["path"]):
            return None
        return render(scope, status=status, code=code, message=message)

    def _known(self, actor: Actor | None) -> KnownSecrets:
        if actor is None:
            return KnownSecrets.EMPTY
        try:
            return self._host.rules.current(actor.tenant).known
        except ReverieError:
            return KnownSecrets.EMPTY
