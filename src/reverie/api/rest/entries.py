"""Entries of one memory: put, list, get, change, delete, restore."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Query, Response

from reverie.api.rest import wire
from reverie.api.rest.call import api, reply
from reverie.api.rest.errors import documented
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
from reverie.http.call import Call, needs
from reverie.memory.export import entry_document

router = api()
IfMatch = Annotated[str | None, Header(description="The ETag last read; a newer version is a 409.")]


@router.post(
    "/memory/{ref}/entries",
    tags=["entries"],
    operation_id="put_entries",
    summary="Store one entry, or many in one transaction",
    status_code=201,
    responses={
        201: {"model": wire.ReceiptOut | wire.ReceiptsOut, "description": "Durable."},
        **documented(body=True, writes=True),
    },
)
@needs(Right.WRITE)
def put(
    call: Call,
    ref: wire.Segment,
    body: wire.PutIn,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=255, description="Makes a retry safe: the same key does nothing twice."),
    ] = None,
) -> Response:
    drafts = to_drafts(body)
    call.charge(len(drafts))
    receipts = call.host.writing.put(call.actor, ref, drafts, idempotency_key=idempotency_key)
    headers = {"Idempotent-Replayed": "true"} if receipts[0].replayed else {}
    if isinstance(body, wire.EntriesIn):
        return reply({"receipts": [receipt_document(receipt) for receipt in receipts]}, 201, headers)
    receipt = receipts[0]
    where = f"/v1/host/reverie/memory/{quote(ref, safe='')}/entries/{quote(receipt.id, safe='')}"
    return reply(receipt_document(receipt), 201, {**headers, "ETag": etag(receipt.version), "Location": where})


@router.get(
    "/memory/{ref}/entries",
    tags=["entries"],
    operation_id="list_entries",
    summary="Entries, newest first",
    responses={200: {"model": wire.PageOut}, **documented()},
)
def page(call: Call, ref: wire.Segment, asked: Annotated[wire.ListAsked, Query()]) -> Response:
    belongs = question(ref, asked)
    found = call.host.reading.page(
        call.actor,
        ref,
        to_list_filter(asked),
        limit=asked.limit,
        cursor=None if asked.cursor is None else call.host.cursors.open(call.actor, belongs, asked.cursor),
        as_of=asked.as_of,
        oldest_first=asked.order == "oldest",
    )
    cursor = None if found.cursor is None else call.host.cursors.seal(call.actor, belongs, found.cursor)
    return reply({"entries": [entry_document(entry) for entry in found.items], "cursor": cursor})


@router.get(
    "/memory/{ref}/entries/{id}",
    tags=["entries"],
    operation_id="get_entry",
    summary="One entry",
    responses={200: {"model": wire.EntryOut}, 304: {"description": "The caller has this version."}, **documented()},
)
def get(
    call: Call,
    ref: wire.Segment,
    id: wire.Segment,  # noqa: A002
    asked: Annotated[wire.GetAsked, Query()],
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    entry = call.host.reading.get(call.actor, ref, id, as_of=asked.as_of, cold=asked.cold)
    headers = {"ETag": etag(entry.version)}
    return (
        Response(None, 304, headers) if unchanged(if_none_match, entry) else reply(entry_document(entry), 200, headers)
    )


@router.patch(
    "/memory/{ref}/entries/{id}",
    tags=["entries"],
    operation_id="change_entry",
    summary="Pin, archive, hold or retract an entry, or take it back",
    responses={200: {"model": wire.EntryOut}, **documented(body=True, writes=True)},
)
@needs(Right.WRITE, Right.ADMIN)
def change(
    call: Call,
    ref: wire.Segment,
    id: wire.Segment,  # noqa: A002
    body: wire.ChangeIn,
    if_match: IfMatch = None,
) -> Response:
    lifecycle = call.host.lifecycle
    verb = {
        ("pinned", True): lifecycle.pin,
        ("pinned", False): lifecycle.unpin,
        ("archived", True): lifecycle.archive,
        ("archived", False): lifecycle.restore,
        ("held", True): lifecycle.hold,
        ("held", False): lifecycle.release,
        ("state", "retracted"): lifecycle.retract,
        ("state", "active"): lifecycle.restore,
    }[the_change(body)]
    entry = verb(call.actor, ref, id, expected=expected_version(if_match))
    return reply(entry_document(entry), 200, {"ETag": etag(entry.version)})


@router.delete(
    "/memory/{ref}/entries/{id}",
    tags=["entries"],
    operation_id="delete_entry",
    summary="Take an entry out of every read, or destroy it now",
    responses={200: {"model": wire.EntryOut | wire.ErasedOut}, **documented(writes=True)},
)
@needs(Right.WRITE)
def delete(
    call: Call,
    ref: wire.Segment,
    id: wire.Segment,  # noqa: A002
    asked: Annotated[wire.DeleteAsked, Query()],
    if_match: IfMatch = None,
) -> Response:
    expected = expected_version(if_match)
    if asked.erase:
        return reply({"id": id, "erased_bytes": call.host.lifecycle.erase(call.actor, ref, id, expected=expected)})
    entry = call.host.lifecycle.delete(call.actor, ref, id, expected=expected)
    return reply(entry_document(entry), 200, {"ETag": etag(entry.version)})


@router.post(
    "/memory/{ref}/entries/{id}/restore",
    tags=["entries"],
    operation_id="restore_entry",
    summary="Make an archived, retracted or deleted entry readable again",
    responses={200: {"model": wire.EntryOut}, **documented(writes=True)},
)
@needs(Right.WRITE)
def restore(
    call: Call,
    ref: wire.Segment,
    id: wire.Segment,  # noqa: A002
    if_match: IfMatch = None,
) -> Response:
    entry = call.host.lifecycle.restore(call.actor, ref, id, expected=expected_version(if_match))
    return reply(entry_document(entry), 200, {"ETag": etag(entry.version)})


@router.get(
    "/memory/{ref}/entries/{id}/links",
    tags=["entries"],
    operation_id="list_links",
    summary="The arrows from an entry, or to it",
    responses={200: {"model": wire.LinksOut}, **documented()},
)
def links(
    call: Call,
    ref: wire.Segment,
    id: wire.Segment,  # noqa: A002
    asked: Annotated[wire.LinksAsked, Query()],
) -> Response:
    found = call.host.reading.links(call.actor, ref, id, incoming=asked.incoming)
    rows = [{"from_id": row.from_id, "to_id": row.to_id, "type": row.type, "note": row.note} for row in found]
    return reply({"links": rows})
