"""Search, and context for a prompt."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from reverie.api.rest import outward, wire
from reverie.api.rest.call import api
from reverie.api.rest.mapping import to_filter
from reverie.api.views import search_document
from reverie.core.actor import Right
from reverie.http.call import Call, needs
from reverie.http.reply import Reply
from reverie.http.routes import Segment
from reverie.http.threads import Lane

router = api("recall")


@router.post("/memory/{ref}/search", id="search", summary="The entries that best answer a query", out=outward.SearchOut)
@needs(Right.READ, lane=Lane.READ)
def search(call: Call, ref: Segment, body: wire.SearchIn) -> Response:
    result = call.host.search.search(
        call.actor,
        ref,
        body.query,
        where=to_filter(body.filter),
        limit=body.limit,
        mode=body.mode,
        explain=body.explain,
        include=body.include,
        zone=body.zone,
        deep=body.deep,
        since=body.filter.since,
        until=body.filter.until,
    )
    return Reply(search_document(result))


@router.post(
    "/memory/{ref}/context",
    id="context",
    summary="The best memory for a purpose, packed under a token budget",
    out=outward.ContextOut,
)
@needs(Right.READ, lane=Lane.READ)
def context(call: Call, ref: Segment, body: wire.ContextIn) -> Response:
    packed = call.host.search.context(
        call.actor,
        ref,
        body.purpose,
        budget=body.budget,
        where=to_filter(body.filter),
        limit=body.limit,
        zone=body.zone,
        since=body.filter.since,
        until=body.filter.until,
    )
    return Reply(msgspec.to_builtins(packed))
