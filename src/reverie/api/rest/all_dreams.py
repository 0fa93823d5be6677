"""Dreams of the whole tenant, without naming their memory: list, show, compare, undo."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from reverie.api.rest import dream_wire
from reverie.api.rest.call import api, once
from reverie.api.views import report_document
from reverie.core.actor import Right
from reverie.http.call import Call, needs
from reverie.http.reply import Reply
from reverie.http.routes import Query, Segment
from reverie.http.threads import Lane

router = api("dreams")


@router.get(
    "/dreams", id="list_all_dreams", summary="Reports of dreams of every memory, newest first", out=dream_wire.DreamsOut
)
def page(call: Call, asked: Annotated[dream_wire.AllDreamsQuery, Query()]) -> Response:
    found = call.host.lineage.reports(call.actor, ref=asked.ref, limit=asked.limit)
    return Reply({"dreams": [report_document(report) for report in found]})


@router.get(
    "/dreams/{id}", id="get_any_dream", summary="The report of a dream, by its id alone", out=dream_wire.DreamOut
)
def get(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(report_document(call.host.lineage.report(call.actor, id)))


@router.post(
    "/dreams/{id}/undo",
    id="undo_any_dream",
    summary="Put the sources of a dream back, by its id alone",
    out=dream_wire.DreamOut,
)
@once("undo_dream")
@needs(Right.DREAM, lane=Lane.HEAVY)
def undo(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(report_document(call.host.lineage.undo(call.actor, id)))


@router.get(
    "/dreams/{id}/diff",
    id="diff_any_dream",
    summary="Fate of every entry a dream took, by the dream's id alone",
    out=dream_wire.DiffOut,
)
def diff(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(msgspec.to_builtins(call.host.lineage.diff(call.actor, id)))


@router.get(
    "/dreams/{id}/verify",
    id="verify_any_dream",
    summary="Dream again from the same sources and compare bytes, by its id alone",
    out=dream_wire.VerifiedOut,
)
@needs(Right.READ, lane=Lane.HEAVY)
def verify(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(msgspec.to_builtins(call.host.lineage.verify(call.actor, id)))


@router.get("/index", id="tenant_index", summary="MEMORY-INDEX.json of every memory", out=dream_wire.IndexOut)
def index(call: Call, asked: Annotated[dream_wire.IndexQuery, Query()]) -> Response:
    return Reply(call.host.archives.index(call.actor, ref=asked.ref))
