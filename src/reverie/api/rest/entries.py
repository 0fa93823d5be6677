"""Entries of one memory: put, list, get, change, delete, restore."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.responses import Response

from reverie.api.rest import outward, wire
from reverie.api.rest.call import api, once
from reverie.api.rest.mapping import (
    etag,
    expected_version,
    question,
    receipt_document,
    the_change,
    to_drafts,
    to_list_filter,
    unchanged,
)
from reverie.core.actor import Right
from reverie.core.entry import Entry
from reverie.http.call import Call, needs
from reverie.http.reply import Reply, TextReply
from reverie.http.routes import DocumentedAnswer, Header, Query, Segment
from reverie.http.threads import Lane
from reverie.memory.export import entry_document, entry_documents

router = api("entries")
IdempotencyKey = Annotated[
    Annotated[str, Meta(min_length=1, max_length=255)] | None,
    Header("Makes a retry safe: the same key does nothing twice."),
]
_REPLAYED = {"Idempotent-Replayed": "true"}
IfMatch = Annotated[str | None, Header("The ETag last read; a newer version is a 409.")]


@router.post(
    "/memory/{ref}/entries",
    id="put_entries",
    summary="Store one entry, or many in one transaction",
    answers={201: DocumentedAnswer("Durable.", (outward.ReceiptOut, outward.ReceiptsOut))},
)
@needs(Right.WRITE)
async def put(
    call: Call,
    ref: Segment,
    body: wire.EntryIn | wire.EntriesIn,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    if isinstance(body, wire.EntriesIn):
        work = call.threads.pausing(call.tenant, partial(_put_many, call, ref, body, idempotency_key))
        return await call.run(Lane.WRITE, work)
    drafts = to_drafts(body)
    call.charge(1)
    entries, actor, threads = call.host.entries, call.actor, call.threads
    pool, here = threads.executor(Lane.WRITE, actor.tenant), partial(threads.alone, actor.tenant)
    with threads.asking(actor.tenant):
        (receipt,) = await entries.put_soon(pool, actor, ref, drafts, idempotency_key=idempotency_key, here=here)
    headers = {"ETag": etag(receipt.version), "Location": f"{call.scope['path']}/{quote(receipt.id, safe='')}"}
    if receipt.replayed:
        headers |= _REPLAYED
    return Reply(receipt_document(receipt), 201, headers)


def _put_many(call: Call, ref: str, body: wire.EntriesIn, idempotency_key: str | None) -> Response:
    drafts = to_drafts(body)
    call.charge(len(drafts))
    receipts = call.host.entries.put(call.actor, ref, drafts, idempotency_key=idempotency_key)
    document = {"receipts": [receipt_document(receipt) for receipt in receipts]}
    return Reply(document, 201, _REPLAYED if receipts[0].replayed else None)


@router.get("/memory/{ref}/entries", id="list_entries", summary="Entries, newest first", out=outward.PageOut)
def page(call: Call, ref: Segment, asked: Annotated[wire.ListQuery, Query()]) -> Response:
    belongs = question(ref, asked)
    found = call.host.reader.page(
        call.actor,
        ref,
        to_list_filter(asked),
        limit=asked.limit,
        cursor=None if asked.cursor is None else call.host.cursors.open(call.actor, belongs, asked.cursor),
        as_of=asked.as_of,
        oldest_first=asked.order == "oldest",
        since=asked.since,
        until=asked.until,
        zone=asked.zone,
    )
    cursor = None if found.cursor is None else call.host.cursors.seal(call.actor, belongs, found.cursor)
    return Reply({"entries": entry_documents(found.items), "cursor": cursor})


@router.get(
    "/memory/{ref}/entries/{id}",
    id="get_entry",
    summary="One entry",
    answers={200: DocumentedAnswer(body=outward.EntryOut), 304: DocumentedAnswer("The caller has this version.")},
)
def get(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    asked: Annotated[wire.GetQuery, Query()],
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    entry = call.host.reader.get(call.actor, ref, id, as_of=asked.as_of, cold=asked.cold)
    headers = {"ETag": etag(entry.version)}
    return (
        Response(None, 304, headers) if unchanged(if_none_match, entry) else Reply(entry_document(entry), 200, headers)
    )


def _entry_reply(entry: Entry) -> Response:
    return TextReply(entry_document(entry), 200, {"ETag": etag(entry.version)})


def _now(call: Call, ref: str, id: str, **_: object) -> Response:  # noqa: A002
    """The present entry, for a retry. The caller, who may change it, saw it in the first answer."""
    reader = replace(call.actor, rights=call.actor.rights | {Right.READ})
    return _entry_reply(call.host.reader.get(reader, ref, id, cold=True))


@router.patch(
    "/memory/{ref}/entries/{id}",
    id="change_entry",
    summary="Pin, archive, hold or retract an entry, undo one of these, or change its expiry",
    out=outward.EntryOut,
)
@once("change_entry", now=_now)
@needs(Right.WRITE, Right.ADMIN)
def change(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    body: wire.ChangeIn,
    if_match: IfMatch = None,
) -> Response:
    lifecycle = call.host.lifecycle
    name, value = the_change(body)
    expected = expected_version(if_match)
    if name == "expires_at":
        entry = lifecycle.renew(call.actor, ref, id, int(value), expected=expected)
        return _entry_reply(entry)
    verb = {
        ("pinned", True): lifecycle.pin,
        ("pinned", False): lifecycle.unpin,
        ("archived", True): lifecycle.archive,
        ("archived", False): lifecycle.restore,
        ("held", True): lifecycle.hold,
        ("held", False): lifecycle.release,
        ("state", "retracted"): lifecycle.retract,
        ("state", "active"): lifecycle.restore,
    }[name, value]
    entry = verb(call.actor, ref, id, expected=expected)
    return _entry_reply(entry)


@router.delete(
    "/memory/{ref}/entries/{id}",
    id="delete_entry",
    summary="Take an entry out of every read, or destroy it now",
    out=(outward.EntryOut, outward.ErasedOut),
)
@once("delete_entry", now=_now)
@needs(Right.WRITE)
def delete(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    asked: Annotated[wire.DeleteQuery, Query()],
    if_match: IfMatch = None,
) -> Response:
    expected = expected_version(if_match)
    if asked.erase:
        return Reply({"id": id, "erased_bytes": call.host.lifecycle.erase(call.actor, ref, id, expected=expected)})
    entry = call.host.lifecycle.delete(call.actor, ref, id, expected=expected)
    return _entry_reply(entry)


@router.post(
    "/memory/{ref}/entries/{id}/restore",
    id="restore_entry",
    summary="Make an archived, retracted or deleted entry readable again",
    out=outward.EntryOut,
)
@once("restore_entry", now=_now)
@needs(Right.WRITE)
def restore(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    if_match: IfMatch = None,
) -> Response:
    entry = call.host.lifecycle.restore(call.actor, ref, id, expected=expected_version(if_match))
    return _entry_reply(entry)


@router.post(
    "/memory/{ref}/entries/{id}/supersede",
    id="supersede_entry",
    summary="Store an entry in place of a readable one, in one transaction",
    answers={201: DocumentedAnswer("Durable.", outward.ReceiptOut)},
)
@needs(Right.WRITE)
def supersede(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    body: wire.EntryIn,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    call.charge(1)
    receipt = call.host.entries.supersede(
        call.actor,
        ref,
        id,
        to_drafts(body)[0],
        expected=expected_version(if_match),
        idempotency_key=idempotency_key,
    )
    return Reply(receipt_document(receipt), 201, {"ETag": etag(receipt.version)})


@router.post(
    "/memory/{ref}/states",
    id="entry_states",
    summary="State and version of many entries, readable or not",
    out=outward.StatesOut,
)
@needs(Right.READ, lane=Lane.READ)
def states(call: Call, ref: Segment, body: wire.StatesIn) -> Response:
    found = call.host.reader.states(call.actor, ref, body.ids)
    return Reply({"states": [{"id": name, "state": state, "version": seen} for name, (state, seen) in found.items()]})


@router.post(
    "/memory/{ref}/changes",
    id="change_entries",
    summary="Pin, archive, retract or restore many entries in one transaction, each at the version seen",
    out=outward.ChangedOut,
)
@once("change_entries")
@needs(Right.WRITE)
def change_many(call: Call, ref: Segment, body: wire.ChangesIn) -> Response:
    call.charge(len(body.entries))
    left = dict(
        call.host.lifecycle.change_many(call.actor, ref, body.change, [(one.id, one.version) for one in body.entries])
    )
    return Reply({"changed": left.pop("done", 0), "left": left})


@router.get(
    "/memory/{ref}/ids",
    id="list_ids",
    summary="Ids that begin with a prefix, to complete a short one",
    out=outward.IdsOut,
)
def ids(call: Call, ref: Segment, asked: Annotated[wire.IdsQuery, Query()]) -> Response:
    return Reply({"ids": call.host.reader.ids(call.actor, ref, asked.prefix, limit=asked.limit)})


@router.get(
    "/memory/{ref}/entries/{id}/links",
    id="list_links",
    summary="The links from an entry, or to it",
    out=outward.LinksOut,
)
def links(
    call: Call,
    ref: Segment,
    id: Segment,  # noqa: A002
    asked: Annotated[wire.LinksQuery, Query()],
) -> Response:
    found = call.host.reader.links(call.actor, ref, id, incoming=asked.incoming)
    rows = [{"from_id": row.from_id, "to_id": row.to_id, "type": row.type, "note": row.note} for row in found]
    return Reply({"links": rows})
