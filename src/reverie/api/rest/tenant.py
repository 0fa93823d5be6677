"""A tenant's memory as a whole: its refs, forgetting, statistics, policy, secrets, proof, bundles, re-scan."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from reverie.api.rest import log_wire, outward, wire
from reverie.api.rest.call import ONCE, api, carry_out, once
from reverie.core.actor import Right
from reverie.core.errors import Invalid
from reverie.http.call import Call, needs
from reverie.http.parsing import UnsupportedMedia
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Query, Segment
from reverie.http.sse import LINES, line_stream
from reverie.http.threads import Lane

router = api("tenant")
BUNDLE = LINES


@router.get(
    "/memory", id="list_memories", summary="The tenant's memories with the number of their entries", out=outward.RefsOut
)
def refs(call: Call, asked: Annotated[wire.RefsQuery, Query()]) -> Response:
    found = call.host.reader.refs(call.actor, asked.prefix)
    return Reply({"refs": [{"ref": ref, "entries": count} for ref, count in found]})


@router.post("/memory/forget", id="forget", summary="Destroy everything about a subject", out=outward.ForgottenOut)
@once("forget")
@needs(Right.WRITE, Right.READ)
def forget(call: Call, body: wire.ForgetIn) -> Response:
    if body.ref is not None and body.memoryRef is not None and body.ref != body.memoryRef:
        raise Invalid("ref and memoryRef name two memories. Give one of them.", pointer="/ref")
    ref = body.ref if body.ref is not None else body.memoryRef
    done = call.host.forget.forget(call.actor, body.subject, ref=ref, mentions=body.mentions, preview=body.preview)
    return Reply(msgspec.to_builtins(done))


@router.get("/me", id="me", summary="Identity of the key: its tenant, rights, authority and scopes", out=outward.MeOut)
def me(call: Call) -> Response:
    actor = call.actor
    document = {"tenant": actor.tenant, "id": actor.id, "authority": actor.authority, "version": call.app.version}
    return Reply({**document, "rights": sorted(actor.rights), "scopes": sorted(actor.scopes)})


@router.post("/sweep", id="sweep", summary="Destroy what has expired or outlived the undo window", out=outward.SweptOut)
@once("sweep")
@needs(Right.WRITE, lane=Lane.HEAVY)
def sweep(call: Call) -> Response:
    return Reply({"destroyed": call.host.lifecycle.sweep(call.actor)})


@router.get("/stats", id="stats", summary="Counts and sizes", out=outward.StatsOut)
def stats(call: Call) -> Response:
    return Reply(dict(call.host.reader.stats(call.actor)))


@router.get("/policy", id="get_policy", summary="Limits, retention and quotas", out=wire.PolicyOut)
def policy(call: Call) -> Response:
    return Reply(call.host.rules.policy(call.actor).document())


@router.patch("/policy", id="change_policy", summary="Change limits, retention or quotas", out=wire.PolicyOut)
@once("change_policy")
@needs(Right.ADMIN)
def change_policy(call: Call, body: wire.PolicyIn) -> Response:
    return Reply(call.host.rules.set_policy(call.actor, msgspec.to_builtins(body)).document())


@router.get(
    "/secrets", id="list_secrets", summary="The ids of registered secrets", tags=["secrets"], out=outward.SecretsOut
)
def secrets(call: Call) -> Response:
    return Reply({"secrets": call.host.rules.secret_ids(call.actor)})


@router.post(
    "/secrets",
    id="register_secret",
    summary="Register a secret: its value is replaced in everything stored from now on",
    tags=["secrets"],
    out=outward.SecretOut,
    status=201,
)
@once("register_secret")
@needs(Right.ADMIN)
def register(call: Call, body: wire.SecretIn) -> Response:
    return Reply({"id": body.id, "seq": call.host.rules.register(call.actor, body.id, body.value)}, 201)


@router.delete(
    "/secrets/{id}",
    id="remove_secret",
    summary="Remove a secret from the registry; what was redacted stays redacted",
    tags=["secrets"],
    out=outward.SecretOut,
)
@once("remove_secret")
@needs(Right.ADMIN)
def remove(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply({"id": id, "seq": call.host.rules.remove(call.actor, id)})


@router.get(
    "/audit/verify",
    id="verify_audit",
    summary="Verify the log, and that every stored text is the one that was written",
    tags=["log"],
    out=log_wire.VerdictOut,
)
@needs(Right.READ, lane=Lane.HEAVY)
def verify(call: Call) -> Response:
    return Reply(msgspec.to_builtins(call.host.audit.verify(call.actor)))


@router.get(
    "/export",
    id="export_bundle",
    summary="The tenant's memory as a bundle of JSON lines",
    tags=["bundles"],
    answers={200: DocumentedAnswer(media={BUNDLE: {"type": "string"}})},
)
@needs(Right.READ, lane=Lane.HEAVY)
def export(call: Call, asked: Annotated[wire.ExportQuery, Query()]) -> Response:
    lines = call.host.bundles.export(call.actor, ref=asked.ref, events=asked.events)
    return line_stream(call.app.state, call.actor, lines)


@router.post(
    "/import",
    id="import_bundle",
    summary="Store a bundle; entries that exist already are left as they are",
    tags=["bundles"],
    description="A damaged bundle stores nothing. For one above the limit of a request, use `reverie import`.",
    parameters=[ONCE],
    body={"type": "string"},
    body_media=BUNDLE,
    out=outward.ImportedOut,
)
@needs(Right.WRITE, lane=Lane.HEAVY)
async def load(call: Call, asked: Annotated[wire.ImportQuery, Query()]) -> Response:
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != BUNDLE:
        raise UnsupportedMedia(f"Send a bundle: `Content-Type: {BUNDLE}`.")
    body = await call.body()

    def work(_: str | None) -> Response:
        lines = body.splitlines(keepends=True)
        call.charge(len(lines))
        return Reply(msgspec.to_builtins(call.host.bundles.take(call.actor, lines, ref=asked.ref)))

    return await carry_out(call, "rest.import_bundle", Lane.HEAVY, work)


@router.post(
    "/scan",
    id="scan",
    summary="Apply the current redaction rules to stored text",
    tags=["secrets"],
    out=outward.ScanOut,
)
@once("scan")
@needs(Right.ADMIN, Right.READ, lane=Lane.HEAVY)
def scan(call: Call, body: wire.ScanIn) -> Response:
    return Reply(msgspec.to_builtins(call.host.rescan.scan(call.actor, dry_run=body.dry_run)))
