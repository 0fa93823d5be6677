"""The log, as pages or as a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from starlette.responses import Response

from reverie.api.rest import log_wire, wire
from reverie.api.rest.call import api
from reverie.api.rest.mapping import sse
from reverie.core.actor import Right
from reverie.core.errors import Invalid
from reverie.http.call import Call
from reverie.http.limits import key_of
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Header, Query
from reverie.http.sse import ALIVE, MEDIA_TYPE, RETRY, accepts_stream, event_stream
from reverie.search.dates import when

router = api("log")
_LARGEST = 2**53 - 1


@router.get(
    "/events",
    id="list_events",
    summary="Events, without text: a page, or with `Accept: text/event-stream` a live stream",
    answers={
        200: DocumentedAnswer(
            "A page; or a stream with the log position as id, which never repeats or skips an event.",
            log_wire.EventsOut,
            {MEDIA_TYPE: {"type": "string"}},
        )
    },
)
def events(
    call: Call,
    asked: Annotated[wire.EventsQuery, Query()],
    last_event_id: Annotated[str | None, Header("Resume a stream after this position.")] = None,
) -> Response:
    after = _start(call, asked, last_event_id)
    types = tuple(name for name in asked.type if name) or None
    if accepts_stream(call):
        call.actor.require(Right.READ)
        return event_stream(call, key_of(call.actor), _stream(call, after, types))
    found = call.host.reader.events(call.actor, after=after, limit=asked.limit, types=types)
    return Reply({"events": [event.document() for event in found], "next": found[-1].seq if found else after})


def _start(call: Call, asked: wire.EventsQuery, last_event_id: str | None) -> int:
    if last_event_id:
        if not (last_event_id.isascii() and last_event_id.isdigit() and int(last_event_id[:17]) <= _LARGEST):
            raise Invalid("Last-Event-ID is the id of an event of this stream.", pointer="/Last-Event-ID")
        return int(last_event_id[:17])
    if asked.after is not None or not asked.since:
        return asked.after or 0
    if asked.since.isascii() and asked.since.isdigit() and len(asked.since) < 17:
        return int(asked.since)
    zone = call.host.rules.current(call.actor.tenant).policy.zone
    since = when(asked.since, call.host.parts.clock.now(), zone=zone, pointer="/since")
    return call.host.history.position(call.actor, since)


async def _stream(call: Call, after: int, types: tuple[str, ...] | None) -> AsyncGenerator[bytes, None]:
    state = call.app.state
    yield RETRY
    async for page in state.tail.follow(call.actor, after=after, types=types, encode=sse):
        if page is None:
            yield ALIVE
        else:
            state.metrics.events.inc(len(page.events))
            yield page.encoded
