"""Push: notifications of a subscription over WebSocket or server-sent events, by following the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson
from anyio import to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from reverie.core.errors import ReverieError
from reverie.doors.akashik.errors import status_of
from reverie.doors.akashik.wire import PREFIX
from reverie.host import Host
from reverie.host.field.errors import FieldError, translated
from reverie.host.field.notify import LOGGED, Feed
from reverie.host.field.subscriptions import find, redeem
from reverie.ops.logs import Action, log, where
from reverie.serve.admission import bearer

SSE_PATH = f"{PREFIX}/v1/subscriptions/stream"
SOCKET_PATH = f"{PREFIX}/v1/subscriptions/socket"
_TYPES = (*LOGGED, "field.subscribed", "field.unsubscribed")
_GOING_AWAY, _REFUSED = 1001, 1008


def routes() -> list[BaseRoute]:
    """Where notifications are fetched. Both look at the ticket or the key themselves."""
    return [Route(SSE_PATH, _stream, methods=["GET"]), WebSocketRoute(SOCKET_PATH, _socket)]


def addresses(connection: HTTPConnection, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to SUBSCRIBE with the addresses of its notifications in place of the ticket."""
    ticket = answer.pop("ticket", None)
    if ticket is None:
        return answer
    url, asked = connection.url, urlencode({"ticket": ticket})
    secure = url.scheme in ("https", "wss")
    return answer | {
        "websocket_url": f"{'wss' if secure else 'ws'}://{url.netloc}{SOCKET_PATH}?{asked}",
        "sse_url": f"{'https' if secure else 'http'}://{url.netloc}{SSE_PATH}?{asked}",
    }


async def _opened(connection: HTTPConnection) -> tuple[Feed, int]:
    """The subscription behind a one-time ticket, or behind a key and the names of agent and subscription."""
    host: Host = connection.app.state.host
    services = host.field.services
    asked = connection.query_params
    if "ticket" in asked:
        tenant, subscription, key = await to_thread.run_sync(redeem, services, asked["ticket"])
        return Feed(services, tenant, subscription, key), subscription.seq
    check = partial(host.keys.authenticate, bearer(connection.scope), door="akashik")
    actor = await to_thread.run_sync(check)
    look = partial(find, services, actor, asked.get("agent_id", ""), asked.get("subscription_id", ""))
    subscription = await to_thread.run_sync(look)
    last = connection.headers.get("last-event-id") or asked.get("after_seq") or ""
    if last.isascii() and last.isdigit() and len(last) < 17:
        after = int(last)
    else:
        after = await to_thread.run_sync(host.reading.snapshot, actor)
    return Feed(services, actor.tenant, subscription, actor.key_id), max(after, subscription.seq)


async def _notifications(connection: HTTPConnection, feed: Feed, after: int) -> AsyncIterator[dict[str, Any] | None]:
    """What the subscription is told of, in order and once; None when a sign of life is due."""
    state = connection.app.state
    host: Host = state.host
    actor = host.system_actor(feed.tenant)

    async def still_allowed() -> bool:
        return (await to_thread.run_sync(feed.tell, ()))[1]

    pages = state.tail.follow(host, actor, after=after, types=_TYPES, still_allowed=still_allowed)
    with state.metrics.streams.track_inprogress():
        async for page in pages:
            if page is None:
                yield None
                continue
            told, goes_on = await to_thread.run_sync(feed.tell, page)
            for notification in told:
                yield notification
            if not goes_on:
                return


async def _stream(request: Request) -> Response:
    request.state.route = SSE_PATH
    try:
        feed, after = await _opened(request)
    except ReverieError as error:
        made = translated(error, "SUBSCRIBE")
        return Response(orjson.dumps(made.body()), status_of(made), media_type="application/json")

    async def lines() -> AsyncIterator[bytes]:
        yield b": open\n\n"
        async for notification in _notifications(request, feed, after):
            yield b": alive\n\n" if notification is None else _event(notification)

    return StreamingResponse(lines(), media_type="text/event-stream")


def _event(notification: Mapping[str, Any]) -> bytes:
    head = f"id: {notification['seq']}\nevent: {notification['event']}\ndata: ".encode()
    return head + orjson.dumps(notification) + b"\n\n"


async def _socket(socket: WebSocket) -> None:
    try:
        feed, after = await _opened(socket)
    except ReverieError as error:
        made: FieldError = translated(error, "SUBSCRIBE")
        await socket.close(_REFUSED, made.reason)
        return
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
    """Whatever the other side says is let go; only that it leaves matters."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
