"""Dreams of one memory: plan, run, show, undo; archives, index, lineage and consolidation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec
import orjson
from starlette.responses import Response

from reverie.api.rest import dream_wire
from reverie.api.rest.call import api, once
from reverie.api.rest.errors import status_of
from reverie.api.views import estimate_document, nothing_document, report_document, why_document
from reverie.core.actor import Right
from reverie.core.clock import parse_duration
from reverie.core.dream import After, DreamPlan, DreamReport, Nothing, Selector
from reverie.core.errors import NotFound, ReverieError
from reverie.http.call import Call, needs
from reverie.http.limits import key_of
from reverie.http.problems import answer, problem
from reverie.http.reply import Reply, TextReply
from reverie.http.routes import DocumentedAnswer, Query, Segment
from reverie.http.sse import MEDIA_TYPE, accepts_stream, event_stream, message
from reverie.http.threads import Lane

router = api("dreams")
MARKDOWN = "text/markdown"
_END = object()
_UNDER_WAY: set[asyncio.Task[None]] = set()
"""Dreams that are being streamed: a task without a reference may be garbage-collected."""


def _planned(call: Call, ref: str, body: dream_wire.DreamIn) -> Response:
    return TextReply(estimate_document(call.host.dreams.plan(call.actor, _plan(ref, body))))


@router.post(
    "/memory/{ref}/dreams",
    id="dream",
    summary="Distil many entries into one, or (`plan`) only estimate the result",
    description=(
        "With `Accept: text/event-stream` the steps come as events `step`, and the last event is `report`, `nothing` "
        "or `error`. A dream continues when the caller disconnects; its report is stored. With an `Idempotency-Key` "
        "the answer is the report alone."
    ),
    answers={
        200: DocumentedAnswer(
            "The plan; or the reason why there was nothing to do; or a stream of steps.",
            (dream_wire.EstimateOut, dream_wire.NothingOut),
            {MEDIA_TYPE: {"type": "string"}},
        ),
        201: DocumentedAnswer("The dream was committed.", dream_wire.DreamOut),
    },
)
@once("dream", now=_planned)
@needs(Right.DREAM, Right.READ, lane=Lane.HEAVY)
def dream(call: Call, ref: Segment, body: dream_wire.DreamIn, work_id: str | None = None) -> Response:
    plan = _plan(ref, body)
    if body.plan:
        return _planned(call, ref, body)
    if accepts_stream(call) and work_id is None:
        return event_stream(call, key_of(call.actor), _stream(call, plan))
    made = _before(call, work_id) or call.host.dreams.attempt(call.actor, plan, dream_id=work_id)
    return Reply(nothing_document(made)) if isinstance(made, Nothing) else Reply(report_document(made), 201)


@router.get(
    "/memory/{ref}/dreams", id="list_dreams", summary="Reports of dreams, newest first", out=dream_wire.DreamsOut
)
def page(call: Call, ref: Segment, asked: Annotated[dream_wire.DreamsQuery, Query()]) -> Response:
    found = call.host.lineage.reports(call.actor, ref=ref, limit=asked.limit)
    return Reply({"dreams": [report_document(report) for report in found]})


@router.get("/memory/{ref}/dreams/{id}", id="get_dream", summary="The report of a dream", out=dream_wire.DreamOut)
def get(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply(report_document(call.host.lineage.report(call.actor, id, ref=ref)))


@router.post(
    "/memory/{ref}/dreams/{id}/undo",
    id="undo_dream",
    summary="Put the sources back exactly as they were, while the sources exist",
    out=dream_wire.DreamOut,
)
@once("undo_dream")
@needs(Right.DREAM, lane=Lane.HEAVY)
def undo(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply(report_document(call.host.lineage.undo(call.actor, id, ref=ref)))


@router.get(
    "/memory/{ref}/dreams/{id}/diff",
    id="diff_dream",
    summary="Fate of every entry a dream took",
    out=dream_wire.DiffOut,
)
def diff(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply(msgspec.to_builtins(call.host.lineage.diff(call.actor, id, ref=ref)))


@router.get(
    "/memory/{ref}/dreams/{id}/verify",
    id="verify_dream",
    summary="Dream again from the same sources and compare bytes",
    out=dream_wire.VerifiedOut,
)
@needs(Right.READ, lane=Lane.HEAVY)
def verify(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply(msgspec.to_builtins(call.host.lineage.verify(call.actor, id, ref=ref)))


@router.get(
    "/memory/{ref}/index",
    id="memory_index",
    summary="Context for the start of the next session; with `Accept: text/markdown` for people",
    answers={200: DocumentedAnswer("", dream_wire.IndexOut, {MARKDOWN: {"type": "string"}})},
)
def index(call: Call, ref: Segment) -> Response:
    if MARKDOWN in call.headers.get("accept", ""):
        return Response(call.host.archives.index_page(call.actor, ref=ref), media_type=f"{MARKDOWN}; charset=utf-8")
    return Reply(call.host.archives.index(call.actor, ref=ref))


@router.get(
    "/archives/{checksum}",
    id="get_archive",
    summary="The archive of a dream, byte for byte: its SHA-256 is its name",
    out=dream_wire.ArchiveOut,
)
def archive(call: Call, checksum: Segment) -> Response:
    return Response(call.host.archives.get(call.actor, checksum), media_type="application/json")


@router.get(
    "/memory/{ref}/entries/{id}/why",
    id="why",
    summary="Sources of an entry, down to the original words",
    out=dream_wire.WhyOut,
)
def why(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply(why_document(call.host.lineage.why(call.actor, ref, id)))


@router.get(
    "/memory/{ref}/entries/{id}/derived",
    id="derived",
    summary="Everything that was made from an entry",
    out=dream_wire.DerivedOut,
)
def derived(call: Call, ref: Segment, id: Segment) -> Response:  # noqa: A002
    return Reply({"derived": call.host.lineage.derived(call.actor, ref, id)})


@router.post(
    "/memory/{ref}/consolidate",
    id="consolidate",
    summary="Merge duplicates and supersede outdated statements",
    out=dream_wire.ConsolidatedOut,
)
@once("consolidate")
@needs(Right.DREAM, lane=Lane.HEAVY)
def consolidate(call: Call, ref: Segment) -> Response:
    return Reply(msgspec.to_builtins(call.host.consolidator.run(call.actor, ref)))


def _before(call: Call, work_id: str | None) -> DreamReport | None:
    """The report of this request's dream, when an earlier attempt had committed it; else None.

    A caller who may dream but not read gets the report of a dream in the first answer too.
    """
    reader = replace(call.actor, rights=call.actor.rights | {Right.READ})
    try:
        return None if work_id is None else call.host.lineage.report(reader, work_id)
    except NotFound:
        return None


def _plan(ref: str, body: dream_wire.DreamIn) -> DreamPlan:
    return DreamPlan(
        ref=ref,
        selector=Selector(
            kinds=None if body.kinds is None else tuple(body.kinds),
            tags=tuple(body.tags),
            session=body.session,
            older_than_ms=0 if body.older_than is None else parse_duration(body.older_than, pointer="/older_than"),
        ),
        budget=body.budget,
        distiller=body.distiller,
        after=After(body.after),
        fit=body.fit,
        instructions=body.instructions,
    )


async def _stream(call: Call, plan: DreamPlan) -> AsyncGenerator[bytes, None]:
    """The messages of a running dream. A refusal before the first step is raised, so that it gets its status."""
    loop, said = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def say(item: Any) -> None:
        loop.call_soon_threadsafe(said.put_nowait, item)

    async def run() -> None:
        work = partial(call.host.dreams.attempt, call.actor, plan, progress=lambda *step: say(step))
        try:
            said.put_nowait(await call.run(Lane.HEAVY, work))
        except Exception as fault:
            said.put_nowait(fault)
        said.put_nowait(_END)

    task = asyncio.ensure_future(run())  # continues when the caller disconnects
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)
    item = await said.get()
    if isinstance(item, Exception):
        raise item
    while item is not _END:
        yield await call.run(Lane.READ, partial(_message, call, item))
        item = await said.get()


def _message(call: Call, item: Any) -> bytes:
    if isinstance(item, tuple):
        step, done, total = item
        return message("step", orjson.dumps({"step": step, "done": done, "total": total}))
    if isinstance(item, DreamReport):
        return message("report", orjson.dumps(report_document(item)))
    if isinstance(item, Nothing):
        return message("nothing", orjson.dumps(nothing_document(item)))
    correlation = call.scope["state"].get("request_id")
    if isinstance(item, ReverieError):
        refusal = answer(item, status_of(item), redactor=call.host.parts.redactor, correlation=correlation)
    else:
        refusal = problem(500, "internal_error", "Something went wrong here.", details={"correlationId": correlation})
    return message("error", bytes(refusal.body))
