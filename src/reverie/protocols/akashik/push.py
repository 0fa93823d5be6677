"""Push: notifications of a subscription over WebSocket or server-sent events, by following the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from reverie.core.actor import Actor
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.http.admission import bearer
from reverie.http.door import MEMORY_QUERY, require_scope
from reverie.http.limits import key_of
from reverie.http.reply import Reply
from reverie.http.sse import ALIVE, event_stream, message, open_stream
from reverie.http.threads import Lane, Threads
from reverie.ops.logs import Action, log, where
from reverie.protocols.akashik.errors import translated
from reverie.protocols.akashik.field import Field
from reverie.protocols.akashik.http.errors import status_of
from reverie.protocols.akashik.http.wire import PREFIX
from reverie.protocols.akashik.notify import FOLLOWED, Feed
from reverie.protocols.akashik.operations.subscriptions import Subscription, find
from reverie.protocols.akashik.tickets import issue, redeem

SSE_PATH = f"{PREFIX}/v1/subscriptions/stream"
SOCKET_PATH = f"{PREFIX}/v1/subscriptions/socket"
_GOING_AWAY = 1001


def routes() -> list[BaseRoute]:
    """Return the routes for notifications. Both check the ticket or the key themselves."""
    return [Route(SSE_PATH, _stream, methods=["GET"]), WebSocketRoute(SOCKET_PATH, _socket)]


def addresses(connection: HTTPConnection, document: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to SUBSCRIBE with the addresses of its notifications."""
    if document["payload"]["action"] != "subscribe":
        return answer
    actor: Actor = connection.state.actor
    field: Field = connection.app.state.host.use(Field)
    agent_id = field.name(actor, document["agent_id"])
    ticket = issue(field.services, actor.tenant, actor.key_id, agent_id, answer["subscription"]["id"])
    url, asked = connection.url, urlencode({"ticket": ticket})
    secure = url.scheme in ("https", "wss")
    return answer | {
        "websocket_url": f"{'wss' if secure else 'ws'}://{url.netloc}{SOCKET_PATH}?{asked}",
        "sse_url": f"{'https' if secure else 'http'}://{url.netloc}{SSE_PATH}?{asked}",
    }


async def _opened(connection: HTTPConnection) -> tuple[Feed, int]:
    """The subscription behind a one-time ticket, or behind a key and the names of agent and subscription."""
    state = connection.app.state
    threads: Threads = state.threads
    host: Host = state.host
    services = host.use(Field).services
    asked = connection.query_params
    if "ticket" in asked:
        ticket = asked["ticket"]
        work = partial(redeem, services, ticket)
        tenant, subscription, key = await threads.run(Lane.WRITE, ticket[:16], work)
        return Feed(services, tenant, subscription, key), subscription.seq
    token = bearer(connection.scope)
    check = partial(host.keys.authenticate, token, door="akashik")
    actor = await threads.run(Lane.LOOK, (token or "")[:16], check)
    require_scope(actor, MEMORY_QUERY)
    state.limits.requests.take(key_of(actor))
    last = connection.headers.get("last-event-id") or asked.get("after_seq") or ""

    def look() -> tuple[Subscription, int]:
        found = find(services, actor, asked.get("agent_id", ""), asked.get("subscription_id", ""))
        known = last.isascii() and last.isdigit() and len(last) < 17
        return found, int(last) if known else host.reader.snapshot(actor)

    subscription, after = await threads.run(Lane.READ, actor.tenant, look)
    return Feed(services, actor.tenant, subscription, actor.key_id), max(after, subscription.seq)


async def _notifications(
    connection: HTTPConnection, feed: Feed, after: int
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The notifications of a subscription, each once and in order; None when a keep-alive is due."""
    state = connection.app.state
    host: Host = state.host
    actor = replace(host.system_actor(feed.tenant), key_id=feed.key_id)
    async for page in state.tail.follow(actor, after=after, types=FOLLOWED):
        notifications, goes_on = await state.threads.run(
            Lane.READ, feed.tenant, partial(feed.tell, page.events if page else ())
        )
        for notification in notifications:
            yield notification
        if not goes_on:
            return
        if page is None:
            yield None


async def _stream(request: Request) -> Response:
    request.state.route = SSE_PATH
    try:
        feed, after = await _opened(request)
    except ReverieError as error:
        return _refusal(error)

    async def messages() -> AsyncGenerator[bytes, None]:
        yield b": open\n\n"
        async for item in _notifications(request, feed, after):
            yield ALIVE if item is None else message(item["event"], orjson.dumps(item), number=item["seq"])

    return event_stream(request, feed.key_id or feed.tenant, messages())


def _refusal(error: ReverieError) -> Response:
    made = translated(error, "SUBSCRIBE")
    status = status_of(made)
    wait = error.details.get("retry_after_seconds", 1)
    headers = {"Retry-After": str(wait)} if status == 429 else {}
    return Reply(made.body(), status, headers)


async def _socket(socket: WebSocket) -> None:
    with ExitStack() as stack:
        try:
            feed, after = await _opened(socket)
            stack.enter_context(open_stream(socket, feed.key_id or feed.tenant))
        except ReverieError as error:
            await socket.send_denial_response(_refusal(error))
            return
        await _talk(socket, feed, after)


async def _talk(socket: WebSocket, feed: Feed, after: int) -> None:
    """Send notifications until one side leaves."""
    await socket.accept()
    sending = asyncio.ensure_future(_send(socket, feed, after))
    listening = asyncio.ensure_future(_until_closed(socket))
    _, left = await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await task
    if not listening.done() or listening.cancelled():
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(_GOING_AWAY if socket.app.state.tail.stopping else 1000)


async def _send(socket: WebSocket, feed: Feed, after: int) -> None:
    try:
        async for notification in _notifications(socket, feed, after):
            if notification is not None:
                await socket.send_text(orjson.dumps(notification).decode())
    except WebSocketDisconnect:
        return
    except Exception as fault:  # its message may hold text of units
        log(Action.REQUEST_FAILED, level=logging.ERROR, fault=where(fault))


async def _until_closed(socket: WebSocket) -> None:
    """Discard incoming messages until the peer disconnects."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
