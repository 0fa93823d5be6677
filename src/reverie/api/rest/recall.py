"""Finding: search, and context for a prompt."""

from __future__ import annotations

import msgspec
from fastapi import Response

from reverie.api.rest import wire
from reverie.api.rest.call import api, reply
from reverie.api.rest.errors import documented
from reverie.api.rest.mapping import search_document, to_filter
from reverie.core.actor import Right
from reverie.http.call import Call, needs
from reverie.http.threads import Lane

router = api()


@router.post(
    "/memory/{ref}/search",
    tags=["recall"],
    operation_id="search",
    summary="The entries that best answer a query",
    responses={200: {"model": wire.SearchOut}, **documented(body=True)},
)
@needs(Right.READ, lane=Lane.READ)
def search(call: Call, ref: wire.Segment, body: wire.SearchIn) -> Response:
    result = call.host.recall.search(
        call.actor,
        ref,
        body.query,
        where=to_filter(body.filter),
        limit=body.limit,
        mode=body.mode,
        explain=body.explain,
        include=body.include,
        zone=body.zone,
    )
    return reply(search_document(result))


@router.post(
    "/memory/{ref}/context",
    tags=["recall"],
    operation_id="context",
    summary="The best memory for a purpose, packed under a token budget",
    responses={200: {"model": wire.ContextOut}, **documented(body=True)},
)
@needs(Right.READ, lane=Lane.READ)
def context(call: Call, ref: wire.Segment, body: wire.ContextIn) -> Response:
    packed = call.host.recall.context(
        call.actor, ref, body.purpose, budget=body.budget, where=to_filter(body.filter), limit=body.limit
    )
    return reply(msgspec.to_builtins(packed))
