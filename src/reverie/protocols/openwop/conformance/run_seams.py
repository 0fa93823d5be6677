"""Test seams over runs, files, schedules and reads; they exist only behind their switches."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from msgspec import Meta
from starlette.responses import Response

from reverie.core.canonical import canonical
from reverie.core.clock import from_iso
from reverie.core.errors import Invalid, ReverieError
from reverie.core.run import DISPATCH
from reverie.http.call import Call
from reverie.http.reply import Reply
from reverie.http.routes import Query, Router, Segment
from reverie.protocols.openwop.conformance import described
from reverie.protocols.openwop.conformance.described import seam
from reverie.protocols.openwop.conformance.seams import Seams
from reverie.protocols.openwop.http.call import api
from reverie.protocols.openwop.http.described import WorkspaceFile, WorkspaceFiles
from reverie.protocols.openwop.http.run_events import events_request
from reverie.protocols.openwop.http.runs import read
from reverie.protocols.openwop.http.wire import Open, memory_entry
from reverie.protocols.openwop.http.workspace import answer, file_document
from reverie.protocols.openwop.injection import Injection
from reverie.protocols.openwop.runs import Runs
from reverie.protocols.openwop.workspace import Workspace

memory = api()
others = api("/v1/host/sample")
_PATIENCE_SECONDS = 5.0


def routers(seams: Seams) -> list[Router]:
    """Return the routes of the enabled seams."""
    return [router for on, router in ((seams.memory, memory), (seams.others, others)) if on]


# memory


@memory.get("/memory/{memory_ref}", **seam("entries", "The entries of a memory, newest first", described.SeamEntries))
def entries(
    call: Call,
    memory_ref: Segment,
    limit: Annotated[str | None, Query()] = None,
    tag: Annotated[Annotated[str, Meta(min_length=1, max_length=256)] | None, Query()] = None,
    id: Annotated[Annotated[str, Meta(max_length=1500)] | None, Query()] = None,  # noqa: A002
    as_of: Annotated[str | None, Query(alias="asOf")] = None,
    token_budget: Annotated[str | None, Query(alias="tokenBudget")] = None,
    rank: Annotated[Literal["recency", "relevance"], Query()] = "recency",
    query: Annotated[Annotated[str, Meta(max_length=8192)] | None, Query()] = None,
) -> Response:
    at = None if as_of is None else from_iso(as_of, pointer="/asOf")
    if rank == "relevance":
        if not query or at is not None or id is not None:
            raise Invalid("Rank by relevance takes a query, and neither asOf nor id.", pointer="/query")
        found = call.host.use(Injection).relevant(call.actor, memory_ref, query, tag=tag, limit=_limit(limit))
    else:
        found = call.host.history.list(call.actor, memory_ref, limit=_limit(limit), tag=tag, entry_id=id, at=at)
    if token_budget is not None:
        found = call.host.use(Injection).within(found, _limit(token_budget, "tokenBudget"))
    document: dict[str, Any] = {"memoryRef": memory_ref, "entries": [memory_entry(entry) for entry in found]}
    return Reply(document | ({"asOf": as_of} if as_of is not None else {}))


# workspace files of an owner that the body names


class FileOp(Open, kw_only=True):
    tenant: Annotated[str, Meta(min_length=1, max_length=256)]
    workspace: Annotated[str, Meta(max_length=256)] | None = None
    op: Literal["list", "get", "put", "delete"]
    path: str = ""
    content: str | None = None
    content_type: str | None = None
    if_match: str | None = None
    prefix: str = ""
    version: Annotated[int, Meta(ge=1)] | None = None


@others.post(
    "/workspace/op",
    **seam(
        "workspace",
        "A workspace file of an owner that the body names",
        (WorkspaceFile, WorkspaceFiles),
        nothing="Deleted.",
    ),
)
def file_op(call: Call, body: FileOp) -> Response:
    """The named owner's files live inside the caller's own tenant: no key reaches another tenant, not even here."""
    files, owner = call.host.use(Workspace), _owner(call.actor.tenant, body)
    if body.op == "list":
        found = files.files(call.actor, prefix=body.prefix, owner=owner)
        return Reply({"files": [file_document(file) for file in found]})
    if body.op == "get":
        return answer(files.get(call.actor, body.path, version=body.version, owner=owner))
    if body.op == "delete":
        files.delete(call.actor, body.path, if_match=body.if_match, owner=owner)
        return Response(None, 204)
    if body.content is None:
        raise Invalid("A put has content.", pointer="/content")
    file = files.put(
        call.actor,
        body.path,
        body.content,
        content_type=body.content_type,
        if_match=body.if_match,
        owner=owner,
    )
    return answer(file)


def _owner(tenant: str, body: FileOp) -> list[str | None] | None:
    own = body.tenant == tenant and body.workspace in (None, "", "default")
    return None if own else [body.tenant, body.workspace]


# schedules


class TickIn(Open):
    scenario: Literal["single-tick", "missed-window"]
    missed_ticks: Annotated[int, Meta(ge=0, le=100_000)] = 1


@others.post(
    "/scheduling/tick",
    **seam(
        "tick",
        "A schedule whose ticks have passed",
        described.SeamTicked,
    ),
)
def tick(call: Call, body: TickIn) -> Response:
    """Run a schedule whose ticks have passed on the real scheduler, and count the runs it fires."""
    host, actor = call.host, call.actor
    missed = 1 if body.scenario == "single-tick" else body.missed_ticks
    before = host.reader.snapshot(actor)
    fields = {"cron": "* * * * *", "zone": "UTC", "ref": "conformance/scheduling", "least_entries": 2}
    made = host.parts.clock.now() - missed * 60_000
    schedule = host.schedules.save(actor, {**fields, "created_at": made})
    until = time.monotonic() + _PATIENCE_SECONDS
    try:
        while True:
            host.schedules.tick(actor)
            started = host.reader.events(actor, after=before, types=("run.started",))
            runs = [host.use(Runs).get(actor, str(event.data["run"])) for event in started]
            fired = [run for run in runs if run.metadata.get("schedule") == schedule.id]
            # a worker of this host may have taken the tick: its run is on its way
            if not missed or (fired and all(run.ended for run in fired)) or time.monotonic() > until:
                return Reply({"runsFired": len(fired), "runIds": [run.id for run in fired]})
            time.sleep(0.02)
    finally:
        host.schedules.drop(actor, schedule.id)


# agents


class DispatchIn(Open):
    task: Any = None
    validate_handoff: bool = False
    available_tools: list[str] | None = None


@others.post(
    "/agents/{agent_id}/dispatch",
    **seam("dispatch", "A run of an agent", described.SeamDispatched),
)
def dispatch(call: Call, agent_id: Segment, body: DispatchIn) -> Response:
    """A run of the agent, through the same workflow as any other dispatch."""
    task = body.task if isinstance(body.task, str) else canonical(body.task or "anything").decode()
    inputs = {"agentId": agent_id, "task": task, "availableTools": body.available_tools or []}
    run = call.host.use(Runs).start(call.actor, DISPATCH, inputs=inputs)
    if run.fault is not None:
        raise ReverieError(run.fault.message, code=run.fault.code)
    events = [event for event in read(call.host, call.actor, run, -1) if event["type"].startswith("agent.")]
    rows = [{"type": event["type"], **event["payload"]} for event in events]
    return Reply({"agentId": agent_id, "status": run.variables["outcome"], "events": rows, "runId": run.id})


# the durable log


@others.get("/test/runs/{run_id}/events", **seam("events", "The durable events of a run", described.SeamEvents))
def events(call: Call, run_id: Segment) -> Response:
    want = events_request(call)
    run = call.host.use(Runs).get(call.actor, run_id)
    return Reply({"events": [event for event in read(call.host, call.actor, run, want.after) if want.wants(event)]})


def _limit(text: str | None, name: str = "limit") -> int:
    if text is None or text == "":
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid(f"{name} is a whole number of at least 0.", pointer=f"/{name}")
    return int(text)
