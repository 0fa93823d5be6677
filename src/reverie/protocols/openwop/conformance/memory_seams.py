"""Test seams over memory; they exist only behind their switches, and need a key like every other route."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import uuid4

import msgspec
from msgspec import Meta
from starlette.responses import Response

from reverie.core.clock import from_iso
from reverie.core.dream import SourceText
from reverie.core.entry import Draft, Entry
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.run import COMMITMENTS, COMPACT, CONSOLIDATE, DISTILL
from reverie.distil.archive import INDEX_PATH
from reverie.http.call import Call
from reverie.http.reply import Reply
from reverie.http.routes import Router
from reverie.protocols.openwop.commitments import Commitments, key_of
from reverie.protocols.openwop.conformance import described
from reverie.protocols.openwop.conformance.described import seam
from reverie.protocols.openwop.conformance.seams import Seams
from reverie.protocols.openwop.conformance.seeding import Seeder
from reverie.protocols.openwop.http.call import api
from reverie.protocols.openwop.http.payloads import flat, payload_of
from reverie.protocols.openwop.http.wire import Open
from reverie.protocols.openwop.http.workspace import file_document
from reverie.protocols.openwop.passes import PassResult, PassRunner, check_budget
from reverie.protocols.openwop.runs import Runs
from reverie.protocols.openwop.workspace import Workspace

compaction = api()
others = api()
memory = api()

CORPUS = (
    SourceText("The team decided to ship the parser on Friday after the review.", "corpus-1"),
    SourceText("Nightly builds take eleven minutes; the slowest step is the link check.", "corpus-2"),
    SourceText("The customer asked for weekly summaries by e-mail, not by phone.", "corpus-3"),
)
"""Texts to distil when a suite names an empty memory."""
DUPLICATES = (
    "The build is green again after the link check was fixed.",
    "The build is green again after the link check was fixed.",
    "Weekly summaries go out by e-mail every Monday.",
    "Weekly summaries go out by e-mail every Monday.",
    "The parser ships on Friday.",
)
_CANARY = re.compile(r"sk-canary-[A-Za-z0-9_-]+")


class SecretIn(Open):
    secret_id: Annotated[str, Meta(min_length=1, max_length=256)]
    value: Annotated[str, Meta(min_length=1, max_length=65_536)]


class SeedEntryIn(Open):
    id: Annotated[str, Meta(min_length=1, max_length=1500)]
    content: str
    tags: list[str] = msgspec.field(default_factory=list)
    created_at: str | None = None
    expires_at: str | None = None


class SeedIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    entries: Annotated[list[SeedEntryIn], Meta(min_length=1)]
    secrets: list[SecretIn] = msgspec.field(default_factory=list)


class CompactIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    max_input_entries: int | None = None
    max_output_bytes: int | None = None
    secrets: list[SecretIn] = msgspec.field(default_factory=list)
    summarizer_output: str | None = None


class ForgetIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    subject: Annotated[str, Meta(min_length=1, max_length=256)]


class GivenIn(Open):
    content: str
    id: Annotated[str, Meta(min_length=1, max_length=1500)] | None = None


class DistillIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    token_budget: Any = None
    sources: list[str | GivenIn] | None = None
    index_emitted: bool = True
    include_secret_canary: bool = False
    secrets: list[SecretIn] = msgspec.field(default_factory=list)
    summarizer_output: str | None = None


class ConsolidateIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    include_secret_canary: bool = False


class CommitmentIn(Open):
    memory_ref: Annotated[str, Meta(min_length=1)]
    condition: str
    include_intention_canary: bool = False


def routers(seams: Seams) -> list[Router]:
    """Return the routes of the enabled seams."""
    chosen = ((seams.memory, memory), (seams.compaction, compaction), (seams.others, others))
    return [router for on, router in chosen if on]


@memory.post(
    "/test/memory/seed",
    **seam(
        "seed",
        "Store entries as they are given",
        described.SeamPlanted,
        status=201,
    ),
)
def seed(call: Call, body: SeedIn) -> Response:
    """Store entries as given; only secrets registered for this write are replaced."""
    drafts = [
        Draft(
            content=entry.content,
            id=entry.id,
            tags=tuple(entry.tags),
            created_at=_instant(entry.created_at, f"/entries/{number}/createdAt"),
            expires_at=_instant(entry.expires_at, f"/entries/{number}/expiresAt"),
        )
        for number, entry in enumerate(body.entries)
    ]
    planted = call.host.use(Seeder).plant(call.actor, body.memory_ref, drafts, secrets=_secrets(body.secrets))
    return Reply({"plantedIds": planted, **_secret_count(body.secrets)}, 201)


@memory.post(
    "/test/memory/forget",
    **seam(
        "forget",
        "Forget a subject in one memory",
        described.SeamForgotten,
    ),
)
def forget(call: Call, body: ForgetIn) -> Response:
    """Forget a subject in one memory, with everything made from its entries."""
    call.host.rules.check_ref(call.actor.tenant, body.memory_ref)
    done = call.host.forget.forget(call.actor, body.subject, ref=body.memory_ref)
    return Reply({"forgotten": done.readable})


@compaction.post(
    "/test/memory/compact",
    **seam(
        "compact",
        "One compaction, now",
        described.SeamCompacted,
        nothing="Fewer than two live entries.",
    ),
)
def compact(call: Call, body: CompactIn) -> Response:
    """Run one compaction now; 204 when there is nothing to collapse."""
    call.host.rules.check_ref(call.actor.tenant, body.memory_ref)
    secrets = _secrets(body.secrets)
    run, done = call.host.use(Runs).around(
        call.actor,
        COMPACT,
        lambda acting: call.host.use(PassRunner).compact(
            acting,
            body.memory_ref,
            run_id=acting.run,
            max_input=body.max_input_entries,
            max_output_bytes=body.max_output_bytes,
            secrets=secrets,
            summarizer_output=body.summarizer_output,
        ),
        ref=body.memory_ref,
        inputs={"memoryRef": body.memory_ref},
        variables=_variables,
    )
    if done is None:
        return Response(None, 204)
    event = _event(call, done.report.seq)
    return Reply(
        {
            "type": event.type,
            "payload": payload_of(event),
            "outputContent": done.content,
            "runId": run.id,
            **_secret_count(body.secrets),
        }
    )


@others.post(
    "/host/sample/memory/distill",
    **seam(
        "distill",
        "One distillation, now",
        described.SeamDistilled,
        nothing="There is nothing to distil.",
    ),
)
def distill(call: Call, body: DistillIn) -> Response:
    """Run one distillation now: of the given sources, else of the memory, else of a fixed corpus."""
    call.host.rules.check_ref(call.actor.tenant, body.memory_ref)
    if body.token_budget is not None:
        check_budget(body.token_budget)
    secrets, index = _secrets(body.secrets), body.index_emitted and call.settings.openwop_workspace
    given = None if body.sources is None else _source_texts(body.sources)
    if given is None and not call.host.reader.page(call.actor, body.memory_ref, limit=1).items:
        given = list(CORPUS)
    if body.include_secret_canary:
        texts: Sequence[SourceText | Entry] = given or _standing(call, body.memory_ref)
        found = sorted({token for text in texts for token in _CANARY.findall(text.content)})
        secrets += [(f"canary-{number}", token) for number, token in enumerate(found, 1)]
    run, done = call.host.use(Runs).around(
        call.actor,
        DISTILL,
        lambda acting: call.host.use(PassRunner).distil(
            acting,
            body.memory_ref,
            run_id=acting.run,
            budget=body.token_budget,
            sources=given,
            index=index,
            secrets=secrets,
            summarizer_output=body.summarizer_output,
        ),
        ref=body.memory_ref,
        inputs={"memoryRef": body.memory_ref},
        variables=_variables,
    )
    if done is None:
        return Response(None, 204)
    answer: dict[str, Any] = {
        "event": flat(_event(call, done.report.seq)),
        "archiveChecksum": done.report.checksum,
        "indexUpdated": index,
        "runId": run.id,
        "archive": done.archive,
        "outputContent": done.content,
        **_secret_count(body.secrets),
    }
    if index:
        answer["indexFile"] = file_document(call.host.use(Workspace).get(call.actor, INDEX_PATH))
    return Reply(answer)


@others.post(
    "/host/sample/memory/consolidate",
    **seam("consolidate", "One consolidation, now", described.SeamConsolidated),
)
def consolidate(call: Call, body: ConsolidateIn) -> Response:
    """Run one pass now; over a small corpus with duplicates when the memory is empty."""
    call.host.rules.check_ref(call.actor.tenant, body.memory_ref)
    if not call.host.reader.page(call.actor, body.memory_ref, limit=1).items:
        canary = f"sk-canary-{uuid4().hex}"
        texts = [*DUPLICATES, *([f"The key is {canary}."] if body.include_secret_canary else [])]
        drafts = [Draft(text, id=f"corpus-{uuid4().hex}") for text in texts]
        call.host.use(Seeder).plant(call.actor, body.memory_ref, drafts, secrets=[("canary", canary)])
    run, done = call.host.use(Runs).around(
        call.actor,
        CONSOLIDATE,
        lambda acting: call.host.use(PassRunner).consolidate(acting, body.memory_ref, run_id=acting.run),
        ref=body.memory_ref,
        inputs={"memoryRef": body.memory_ref},
    )
    answer: dict[str, Any] = {"event": flat(_event(call, done.seq or 0)), "runId": run.id}
    if body.include_secret_canary:
        standing = _standing(call, body.memory_ref)
        answer["secretLeaked"] = any(_CANARY.search(entry.content) for entry in standing)
    return Reply(answer)


@others.post(
    "/host/sample/commitment/fire",
    **seam(
        "fire",
        "A commitment whose condition holds",
        described.SeamFired,
    ),
)
def fire(call: Call, body: CommitmentIn) -> Response:
    """Make a commitment whose condition holds, and check it twice: it fires once, here or in a worker."""
    call.host.rules.check_ref(call.actor.tenant, body.memory_ref)
    if body.condition not in ("time", "predicate"):
        raise Invalid("condition is time or predicate.", pointer="/condition")
    canary = f"intention-canary-{uuid4().hex}"
    host, tag = call.host, f"commitment:{uuid4().hex}"
    before = host.reader.snapshot(call.actor)
    if body.condition == "time":
        made = host.use(Commitments).make(
            call.actor, body.memory_ref, f"Remind them. {canary}", due=host.parts.clock.now()
        )
    else:
        made = host.use(Commitments).make(call.actor, body.memory_ref, f"Tell them. {canary}", tag=tag)
        host.entries.put(call.actor, body.memory_ref, [Draft("The condition holds.", tags=(tag,))])
    key = key_of(made.ref, made.id)
    run, _ = host.use(Runs).around(
        call.actor,
        COMMITMENTS,
        lambda acting: [host.use(Commitments).settle(acting, key) for _ in range(2)],
        ref=body.memory_ref,
    )
    fired = host.reader.events(call.actor, after=before, types=("commitment.fired",))
    events = [event for event in fired if event.entry_id == made.id]
    answer: dict[str, Any] = {"event": flat(events[0]), "fireCount": len(events), "runId": run.id}
    if body.include_intention_canary:
        answer["intentionCanary"] = canary
    return Reply(answer)


def _standing(call: Call, ref: str) -> Sequence[Entry]:
    return call.host.reader.page(call.actor, ref, limit=1000).items


def _event(call: Call, seq: int) -> Event:
    return call.host.reader.events(call.actor, after=seq - 1, limit=1)[0]


def _variables(done: PassResult | None) -> Mapping[str, Any]:
    if done is None:
        return {"sourceCount": 0}
    return {"outputId": done.report.output_id, "byteSize": done.report.byte_size}


def _source_texts(sources: Sequence[str | GivenIn]) -> list[SourceText]:
    """Sources with an id each. One without an id is numbered by its place among the sorted texts."""
    texts = [GivenIn(content=item) if isinstance(item, str) else item for item in sources]
    if not texts:
        raise Invalid("Name at least one source, or leave sources out.", pointer="/sources")
    unnamed = sorted(item.content for item in texts if item.id is None)
    named = [SourceText(item.content, item.id) for item in texts if item.id is not None]
    return named + [SourceText(content, f"source-{number}") for number, content in enumerate(unnamed, 1)]


def _secrets(given: Sequence[SecretIn]) -> list[tuple[str, str]]:
    return [(secret.secret_id, secret.value) for secret in given]


def _secret_count(given: Sequence[SecretIn]) -> dict[str, int]:
    return {"secretsRegistered": len(given)} if given else {}


def _instant(text: str | None, pointer: str) -> int | None:
    return None if text is None else from_iso(text, pointer=pointer)
