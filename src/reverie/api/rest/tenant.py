"""A tenant's memory as a whole: its refs, forgetting, statistics, policy, secrets, proof, bundles, re-scan."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import msgspec
from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from reverie.api.rest import wire
from reverie.api.rest.call import api, reply
from reverie.api.rest.errors import documented
from reverie.api.rest.mapping import chunks
from reverie.core.actor import Right
from reverie.core.errors import Invalid
from reverie.http.call import Call, needs
from reverie.http.limits import key_of
from reverie.http.parsing import UnsupportedMedia
from reverie.http.sse import Stream
from reverie.http.threads import Lane
from reverie.memory.export import Imported

router = api()
BUNDLE = "application/x-ndjson"


@router.get(
    "/memory",
    operation_id="list_memories",
    summary="The tenant's memories with the number of their entries",
    tags=["tenant"],
    responses={200: {"model": wire.RefsOut}, **documented()},
)
def refs(call: Call) -> Response:
    return reply({"refs": [{"ref": ref, "entries": count} for ref, count in call.host.reading.refs(call.actor)]})


@router.post(
    "/memory/forget",
    operation_id="forget",
    summary="Destroy everything about a subject",
    tags=["tenant"],
    responses={200: {"model": wire.ForgottenOut}, **documented(body=True, writes=True)},
)
@needs(Right.WRITE, Right.READ)
def forget(call: Call, body: wire.ForgetIn) -> Response:
    if body.ref is not None and body.memoryRef is not None and body.ref != body.memoryRef:
        raise Invalid("ref and memoryRef name two memories. Give one of them.", pointer="/ref")
    ref = body.ref if body.ref is not None else body.memoryRef
    done = call.host.forgetting.forget(call.actor, body.subject, ref=ref, mentions=body.mentions, preview=body.preview)
    return reply(msgspec.to_builtins(done))


@router.get(
    "/stats",
    operation_id="stats",
    summary="Counts and sizes",
    tags=["tenant"],
    responses={200: {"model": wire.StatsOut}, **documented()},
)
def stats(call: Call) -> Response:
    return reply(dict(call.host.reading.stats(call.actor)))


@router.get(
    "/policy",
    operation_id="get_policy",
    summary="Limits, retention and quotas",
    tags=["tenant"],
    responses={200: {"model": wire.PolicyOut}, **documented()},
)
def policy(call: Call) -> Response:
    return reply(call.host.rules.policy(call.actor).document())


@router.patch(
    "/policy",
    operation_id="change_policy",
    summary="Change limits, retention or quotas",
    tags=["tenant"],
    responses={200: {"model": wire.PolicyOut}, **documented(body=True, writes=True)},
)
@needs(Right.ADMIN)
def change_policy(call: Call, body: wire.PolicyIn) -> Response:
    return reply(call.host.rules.set_policy(call.actor, body.model_dump(exclude_unset=True)).document())


@router.get(
    "/secrets",
    operation_id="list_secrets",
    summary="The ids of registered secrets",
    tags=["secrets"],
    responses={200: {"model": wire.SecretsOut}, **documented()},
)
def secrets(call: Call) -> Response:
    return reply({"secrets": call.host.rules.secret_ids(call.actor)})


@router.post(
    "/secrets",
    operation_id="register_secret",
    summary="Register a secret: its value is replaced in everything stored from now on",
    tags=["secrets"],
    status_code=201,
    responses={201: {"model": wire.SecretOut}, **documented(body=True, writes=True)},
)
@needs(Right.ADMIN)
def register(call: Call, body: wire.SecretIn) -> Response:
    return reply({"id": body.id, "seq": call.host.rules.register(call.actor, body.id, body.value)}, 201)


@router.delete(
    "/secrets/{id}",
    operation_id="remove_secret",
    summary="Remove a secret from the registry; what was redacted stays redacted",
    tags=["secrets"],
    responses={200: {"model": wire.SecretOut}, **documented(writes=True)},
)
@needs(Right.ADMIN)
def remove(call: Call, id: wire.Segment) -> Response:  # noqa: A002
    return reply({"id": id, "seq": call.host.rules.remove(call.actor, id)})


@router.get(
    "/audit/verify",
    operation_id="verify_audit",
    summary="Prove the log, and that every stored text is the one that was written",
    tags=["log"],
    responses={200: {"model": wire.VerdictOut}, **documented()},
)
@needs(Right.READ, lane=Lane.HEAVY)
def verify(call: Call) -> Response:
    return reply(msgspec.to_builtins(call.host.audit.verify(call.actor)))


@router.get(
    "/export",
    operation_id="export_bundle",
    summary="The tenant's memory as a bundle of JSON lines",
    tags=["bundles"],
    response_class=StreamingResponse,
    responses={200: {"content": {BUNDLE: {"schema": {"type": "string"}}}}, **documented()},
)
@needs(Right.READ, lane=Lane.HEAVY)
def export(call: Call, asked: Annotated[wire.ExportAsked, Query()]) -> Response:
    lines = call.host.bundles.export(call.actor, ref=asked.ref, events=asked.events)
    first = next(lines)  # what can be refused is refused here, before the answer begins
    pieces = call.app.state.threads.each(Lane.HEAVY, call.actor.tenant, chunks(chain([first], lines)))
    return Stream(pieces, slot=call.limits.heavy.one(key_of(call.actor)), media_type=BUNDLE)


@router.post(
    "/import",
    operation_id="import_bundle",
    summary="Store a bundle; entries whose id is known already are left alone",
    description="A damaged bundle stores nothing. One larger than a request may be goes in with `reverie import`.",
    tags=["bundles"],
    responses={200: {"model": wire.ImportedOut}, **documented(body=True, writes=True)},
    openapi_extra={"requestBody": {"required": True, "content": {BUNDLE: {"schema": {"type": "string"}}}}},
)
@needs(Right.WRITE, lane=Lane.HEAVY)
async def load(call: Call, asked: Annotated[wire.ImportAsked, Query()]) -> Response:
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != BUNDLE:
        raise UnsupportedMedia(f"Send a bundle: `Content-Type: {BUNDLE}`.")
    body = await call.body()

    def work() -> Imported:
        lines = body.splitlines(keepends=True)
        call.charge(len(lines))
        return call.host.bundles.take(call.actor, lines, ref=asked.ref)

    return reply(msgspec.to_builtins(await call.run(Lane.HEAVY, work)))


@router.post(
    "/scan",
    operation_id="scan",
    summary="Look again for secrets in what is stored, with today's rules",
    tags=["secrets"],
    responses={200: {"model": wire.ScanOut}, **documented(body=True, writes=True)},
)
@needs(Right.ADMIN, Right.READ, lane=Lane.HEAVY)
def scan(call: Call, body: wire.ScanIn) -> Response:
    return reply(msgspec.to_builtins(call.host.scanning.scan(call.actor, dry_run=body.dry_run)))
