"""Akashik over HTTP: the envelope in, the bare answer out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from reverie.core.actor import Actor
from reverie.core.errors import Invalid, ReverieError, TooLarge
from reverie.http.call import SMALL_BODY
from reverie.http.limits import key_of
from reverie.http.parsing import parse
from reverie.http.paths import decode_segment
from reverie.http.reply import Reply
from reverie.http.threads import Lane
from reverie.ops.logs import Action, log, where
from reverie.protocols.akashik import push
from reverie.protocols.akashik.envelope import stored_units
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.field import Field
from reverie.protocols.akashik.http.errors import status_of
from reverie.protocols.akashik.http.wire import ADDRESSES, PREFIX
from reverie.settings import Settings

Answer = Callable[[Field, Actor, Request], dict[str, Any]]


def routes(settings: Settings) -> list[BaseRoute]:
    """Every address of the door. The seam for faults is there only when it was switched on."""
    made: list[BaseRoute] = [
        Route(PREFIX + path, _message(path, operation), methods=["POST"]) for path, operation in ADDRESSES.items()
    ]
    made += [
        Route(PREFIX + path, _question(path, answer), methods=["GET"])
        for path, answer in (
            ("/v1/field/status", lambda field, actor, _: field.status(actor)),
            ("/v1/field/log", _log),
            ("/v1/agents", lambda field, actor, _: field.agents(actor)),
            ("/v1/conflicts", _conflicts),
            ("/v1/units/{id}", _unit),
        )
    ]
    made += push.routes()
    if settings.akashik_faults:
        made.append(Route(f"{PREFIX}/v1/test/faults", _faults, methods=["POST"]))
    return made


def _message(path: str, operation: str) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        request.state.route = PREFIX + path
        actor: Actor = request.state.actor
        field: Field = request.app.state.host.use(Field)
        field.check_right(actor, operation)
        try:
            read = await body(request)
        except Invalid as fault:
            raise _unreadable(fault, operation) from None

        def work() -> dict[str, Any]:
            try:
                document = read()
            except Invalid as fault:
                raise _unreadable(fault, operation) from None
            payload = document.get("payload") if isinstance(document, dict) else None
            request.app.state.limits.entries.take(key_of(actor), stored_units(operation, payload))
            answer = field.perform(actor, document, operation=operation)
            return push.addresses(request, document, answer) if operation == "SUBSCRIBE" else answer

        if operation != "COMPACT":
            return await answered(request, work, operation)
        with request.app.state.limits.heavy.one(key_of(actor)):
            return await answered(request, work, operation, lane=Lane.HEAVY)

    return handle


def _question(path: str, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        request.state.route = PREFIX + path
        field: Field = request.app.state.host.use(Field)
        return await answered(request, lambda: answer(field, request.state.actor, request), lane=Lane.READ)

    return handle


def _unreadable(fault: Invalid, operation: str) -> FieldError:
    code = "INVALID_REQUEST" if isinstance(fault, TooLarge) else "INVALID_ENVELOPE"
    return FieldError(code, fault.message, operation=operation)


async def body(request: Request) -> Callable[[], Any]:
    """Reads the JSON of a request strictly; to be called in a thread. A large body has been read there already."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Invalid("Send JSON: Content-Type: application/json.")
    sent = await request.body()
    if not sent:
        raise Invalid("The body is empty. Send a JSON object.")
    state = request.app.state
    read = partial(parse, sent, most=state.settings.max_request_values)
    if len(sent) <= SMALL_BODY:
        return read
    document = await state.threads.run(Lane.PARSE, request.state.actor.tenant, read)
    return lambda: document


async def answered(
    request: Request, work: Callable[[], dict[str, Any]], operation: str | None = None, *, lane: Lane = Lane.WRITE
) -> Response:
    """Run host work in a thread; the answer, or the protocol's error object."""
    request_id = request.scope["state"].get("request_id")
    try:
        return _json(await request.app.state.threads.run(lane, request.state.actor.tenant, work))
    except FieldError as error:
        return _json(error.body(), status_of(error))
    except ReverieError:
        raise  # the application answers it, with the protocol's code and body
    except Exception as fault:
        log(Action.REQUEST_FAILED, level=logging.ERROR, request=request_id, fault=where(fault))
        return _json(FieldError("INTERNAL_ERROR", "Something went wrong here.", operation=operation).body(), 500)


def _json(document: Any, status: int = 200) -> Response:
    headers = {"Retry-After": "5"} if status == 503 else None
    return Reply(document, status, headers)


def _log(field: Field, actor: Actor, request: Request) -> dict[str, Any]:
    asked = request.query_params
    return field.log(
        actor,
        after_seq=_number(asked.get("after_seq"), 0),
        limit=_number(asked.get("limit"), 1000),
        session_id=asked.get("session_id"),
        agent_id=asked.get("agent_id"),
    )


def _conflicts(field: Field, actor: Actor, request: Request) -> dict[str, Any]:
    asked = request.query_params
    return field.conflicts(actor, agent_id=asked.get("agent_id"), session_id=asked.get("session_id"))


def _unit(field: Field, actor: Actor, request: Request) -> dict[str, Any]:
    return field.unit(actor, decode_segment(request.path_params["id"]), agent_id=request.query_params.get("agent_id"))


async def _faults(request: Request) -> Response:
    request.state.route = f"{PREFIX}/v1/test/faults"
    field: Field = request.app.state.host.use(Field)
    try:
        asked = (await body(request))()
    except Invalid as fault:
        raise FieldError("INVALID_REQUEST", fault.message) from None

    def work() -> dict[str, Any]:
        if not isinstance(asked, dict):
            raise FieldError("INVALID_REQUEST", "Send kind and on.")
        field.switch_fault(request.state.actor, asked.get("kind"), asked.get("on"))
        return {"status": "ok", "kind": asked["kind"], "on": asked["on"]}

    return await answered(request, work)


def _number(text: str | None, default: int) -> int:
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17):
        raise FieldError("INVALID_REQUEST", "after_seq and limit are whole numbers.")
    return int(text)
