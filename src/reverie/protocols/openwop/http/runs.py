"""Runs: start, look at, follow, cancel, pause, fork."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.entry import Entry
from reverie.core.errors import Conflict, Forbidden, Invalid, NotFound
from reverie.core.run import END_EVENTS, Run, RunStatus
from reverie.host import Host
from reverie.http.call import Call, needs
from reverie.http.limits import key_of
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Segment
from reverie.http.sse import ALIVE, RETRY, accepts_stream, event_stream, open_stream
from reverie.http.threads import Lane
from reverie.protocols.openwop.capabilities import MAX_RUN_IDS
from reverie.protocols.openwop.dispatch import agent_of
from reverie.protocols.openwop.forks import Forks
from reverie.protocols.openwop.http import described
from reverie.protocols.openwop.http.call import EVENT_LOG_VERSION, PREFIX, api, once
from reverie.protocols.openwop.http.run_events import (
    EventsRequest,
    batch,
    ends,
    events_request,
    fault_document,
    run_event,
    sse,
)
from reverie.protocols.openwop.http.wire import Open, memory_entry
from reverie.protocols.openwop.runs import Runs

router = api()
HEARTBEAT_SECONDS = 10.0
_POLL_SECONDS = 0.25
_PAGE = 1000


class RunIn(Open):
    """A `tenantId` is accepted and ignored; only the credential identifies the caller."""

    workflow_id: Annotated[str, Meta(min_length=1, max_length=256)]
    inputs: dict[str, Any] | None = None
    configurable: dict[str, Any] | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class BulkIn(Open):
    run_ids: Annotated[list[Annotated[str, Meta(max_length=1500)]], Meta(min_length=1)]
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class PauseIn(Open):
    drain_policy: Literal["drain-current-node", "immediate"] = "drain-current-node"
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class ResumeIn(Open):
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class ForkIn(Open):
    mode: str
    from_seq: int | None = None
    overlay: dict[str, Any] | None = msgspec.field(name="runOptionsOverlay", default=None)


@router.post(
    "/runs",
    id="start_run",
    summary="Start a run of a workflow",
    parameters=[described.ONCE],
    answers={201: DocumentedAnswer("Started; it may have ended.", described.RunStarted), **described.refusals(501)},
)
@once("runs.create")
@needs(Right.WRITE, Right.DREAM, lane=Lane.HEAVY)
def start(call: Call, body: RunIn, work_id: str | None) -> Response:
    run = call.host.use(Runs).start(
        call.actor,
        body.workflow_id,
        inputs=body.inputs,
        configurable=body.configurable,
        tags=body.tags or (),
        metadata=body.metadata,
        fixtures=call.settings.openwop_seams,
        run_id=work_id,
    )
    return Reply({"runId": run.id, "status": run.status.value, **_urls(run)}, 201)


@router.get(
    "/runs/{run_id}",
    id="get_run",
    summary="A run as it is now",
    answers={200: DocumentedAnswer(body=described.RunOut), **described.refusals()},
)
def get(call: Call, run_id: Segment) -> Response:
    run = call.host.use(Runs).get(call.actor, run_id)
    return Reply(document(run, call.host.use(Runs).variables(call.actor, run), call.actor.tenant))


@router.get(
    "/runs/{run_id}/events",
    id="list_run_events",
    summary="Events of a run: a page, or with `Accept: text/event-stream` a stream until it ends",
    parameters=described.EVENTS,
    answers={200: DocumentedAnswer("", described.RunEvents, described.EVENT_STREAM), **described.refusals()},
)
def events(call: Call, run_id: Segment) -> Response:
    want = events_request(call)
    run = call.host.use(Runs).get(call.actor, run_id)
    if not accepts_stream(call):
        return Reply(page(call.host, call.actor, run, want))
    call.actor.require(Right.READ)
    return event_stream(call, key_of(call.actor), _stream(call, run.id, want))


@router.get(
    "/runs/{run_id}/events/poll",
    id="poll_run_events",
    summary="Events of a run, after waiting for the first one",
    parameters=[
        *described.EVENTS,
        described.parameter("timeout", "Seconds to wait.", type="integer", minimum=0, maximum=30),
    ],
    answers={200: DocumentedAnswer(body=described.RunEvents), **described.refusals()},
)
async def poll(call: Call, run_id: Segment) -> Response:
    want, key = events_request(call), call.actor.key_id
    loop = asyncio.get_running_loop()
    until = loop.time() + want.wait_seconds

    def look() -> dict[str, Any]:
        return page(call.host, call.actor, call.host.use(Runs).get(call.actor, run_id), want)

    found = await call.run(Lane.READ, look)
    if want.wait_seconds <= 0:
        return Reply(found)
    with open_stream(call, key_of(call.actor)):
        async with call.app.state.tail.watch(call.actor.tenant, key) as watch:
            while not (found["events"] or found["isTerminal"] or watch.over(key)):
                left = until - loop.time()
                if left <= 0:
                    break
                await watch.wait(min(left, _POLL_SECONDS))
                found = await call.run(Lane.READ, look)
    return Reply(found)


@router.post(
    "/runs/{run_id}/cancel",
    id="cancel_run",
    summary="Cancel a run",
    parameters=[described.ONCE],
    answers={200: DocumentedAnswer(body=described.RunCancelled), **described.refusals()},
)
@once("runs.cancel")
@needs(Right.WRITE)
def cancel(call: Call, run_id: Segment) -> Response:
    run, over = call.host.use(Runs).ask_to_stop(call.actor, run_id)
    answer = {"runId": run.id, "status": run.status.value}
    return Reply(answer | ({"alreadyTerminal": True} if over else {}))


@router.post(
    "/runs:bulk-cancel",
    id="cancel_runs",
    summary="Cancel several runs, each by itself",
    parameters=[described.ONCE],
    answers={200: DocumentedAnswer(body=described.RunsCancelled), **described.refusals()},
)
@once("runs.bulk-cancel")
@needs(Right.WRITE)
def bulk_cancel(call: Call, body: BulkIn) -> Response:
    """Each run by itself, in the order asked; one that cannot be cancelled stops no other."""
    if len(body.run_ids) > MAX_RUN_IDS:
        message = f"Cancel at most {MAX_RUN_IDS} runs at once."
        raise Invalid(message, pointer="/runIds", details={"maxRunIds": MAX_RUN_IDS})

    return Reply({"results": [_cancel_one(call, run_id) for run_id in body.run_ids]})


def _cancel_one(call: Call, run_id: str) -> dict[str, Any]:
    try:
        run = call.host.use(Runs).cancel(call.actor, run_id)
    except (NotFound, Forbidden, Conflict) as fault:
        return {"runId": run_id, "ok": False, "error": {"code": fault.reason, "message": fault.message}}
    if run.status in (RunStatus.COMPLETED, RunStatus.FAILED):
        message = f"This run has ended: it is {run.status.value}."
        return {"runId": run_id, "ok": False, "error": {"code": "run_terminal", "message": message}}
    return {"runId": run_id, "ok": True, "status": run.status.value}


@router.post(
    "/runs/{run_id}:pause",
    id="pause_run",
    summary="Pause a run, after its current step or inside it",
    parameters=[described.ONCE],
    body_required=False,
    answers={202: DocumentedAnswer(body=described.RunPaused), **described.refusals()},
)
@once("runs.pause")
@needs(Right.WRITE)
def pause(call: Call, run_id: Segment, body: PauseIn) -> Response:
    run = call.host.use(Runs).pause(call.actor, run_id, body.drain_policy)
    assert run.pause is not None
    return Reply({"runId": run.id, "status": run.status.value, "pausedAt": to_iso(run.pause.at)}, 202)


@router.post(
    "/runs/{run_id}:resume",
    id="resume_run",
    summary="Continue a paused run",
    parameters=[described.ONCE],
    body_required=False,
    answers={202: DocumentedAnswer(body=described.RunResumed), **described.refusals()},
)
@once("runs.resume")
@needs(Right.WRITE)
def resume(call: Call, run_id: Segment, body: ResumeIn) -> Response:
    del body  # a reason is accepted; events hold no text

    run, at = call.host.use(Runs).resume(call.actor, run_id), call.host.parts.clock.now()
    return Reply({"runId": run.id, "status": run.status.value, "resumedAt": to_iso(at)}, 202)


@router.post(
    "/runs/{run_id}:fork",
    id="fork_run",
    summary="Replay a run, or branch off it",
    parameters=[described.ONCE],
    answers={201: DocumentedAnswer(body=described.RunForked), **described.refusals(501)},
)
@once("runs.fork")
@needs(Right.WRITE, lane=Lane.HEAVY)
def fork(call: Call, run_id: Segment, body: ForkIn, work_id: str | None) -> Response:
    run = call.host.use(Forks).fork(
        call.actor,
        run_id,
        body.mode,
        from_seq=body.from_seq,
        overlay=body.overlay,
        fixtures=call.settings.openwop_seams,
        new_id=work_id,
    )
    forked = {
        "runId": run.id,
        "sourceRunId": run_id,
        "fromSeq": body.from_seq or 0,
        "mode": body.mode,
        "status": run.status.value,
    }
    return Reply({**forked, **_urls(run)}, 201)


def document(run: Run, variables: Mapping[str, Any], tenant: str) -> dict[str, Any]:
    """A run as it is now. Fields without a value are left out."""
    shown: dict[str, Any] = {
        "runId": run.id,
        "workflowId": run.workflow,
        "status": run.observed.value,
        "owner": {"tenant": tenant, "principal": run.actor},
        "startedAt": to_iso(run.started_at),
        "variables": {name: _wire(value) for name, value in variables.items()},
        "inputs": run.inputs,
        "configurable": run.configurable,
        "tags": list(run.tags),
        "metadata": run.metadata,
        "workspace": [{"path": path, "version": version} for path, version in run.files],
        "memorySnapshotSeq": run.snapshot,
        "eventLogSchemaVersion": EVENT_LOG_VERSION,
        "engineVersion": run.engine,
    }
    if agent := agent_of(run):
        shown["agent"] = {"agentId": agent}
    if run.completed_at is not None:
        shown["completedAt"] = to_iso(run.completed_at)
    if run.fault is not None:
        shown["error"] = fault_document(run.fault)
    if run.fork is not None:
        shown["forkedFrom"] = {"runId": run.fork.source, "fromSeq": run.fork.from_seq, "mode": run.fork.mode}
    return shown


def page(host: Host, actor: Actor, run: Run, want: EventsRequest) -> dict[str, Any]:
    """The answer to a poll, with every member name that clients look for."""
    found = read(host, actor, run, want.after)
    return {
        "runId": run.id,
        "events": [event for event in found if want.wants(event)],
        "lastEventSeq": found[-1]["sequence"] if found else want.after,
        "isComplete": run.ended,
        "runStatus": run.observed.value,
        "isTerminal": run.ended,
    }


def read(host: Host, actor: Actor, run: Run, after: int) -> list[dict[str, Any]]:
    """Events of a run after a sequence."""
    found = host.use(Runs).events(actor, run, after=after, limit=_PAGE)
    if not run.ended and any(event.type in END_EVENTS for _, event in found):
        run = host.use(Runs).get(actor, run.id)  # it ended after it was looked at
    return [run_event(run, sequence, event) for sequence, event in found]


async def _stream(call: Call, run_id: str, want: EventsRequest) -> AsyncGenerator[bytes, None]:
    loop, after, key = asyncio.get_running_loop(), want.after, call.actor.key_id
    alive_at = loop.time()
    waiting: list[dict[str, Any]] = []  # events of the batch that is being filled, and when it must go
    due = 0.0
    yield RETRY
    async with call.app.state.tail.watch(call.actor.tenant, key) as watch:
        while not watch.over(key):
            run, found = await call.run(Lane.READ, partial(_look, call, run_id, after))
            over = ends(found) or (run.ended and not found)
            wished = [event for event in found if want.wants(event)]
            if found:
                after = found[-1]["sequence"]
            if wished and not want.buffer_seconds:
                alive_at = loop.time()
                yield b"".join(map(sse, wished))
            elif wished:
                due = due if waiting else loop.time() + want.buffer_seconds
                waiting += wished
            if waiting and (over or loop.time() >= due):
                alive_at = loop.time()
                yield batch(waiting)
                waiting = []
            if over:
                return
            if loop.time() - alive_at >= HEARTBEAT_SECONDS:
                yield ALIVE
                alive_at = loop.time()
            if len(found) < _PAGE:
                left = due - loop.time() if waiting else _POLL_SECONDS
                await watch.wait(max(0.0, min(left, _POLL_SECONDS)))
    if waiting:
        yield batch(waiting)


def _look(call: Call, run_id: str, after: int) -> tuple[Run, list[dict[str, Any]]]:
    """Read the record before the events: a run that has ended has all its events."""
    run = call.host.use(Runs).get(call.actor, run_id)
    return run, read(call.host, call.actor, run, after)


def _wire(value: Any) -> Any:
    if isinstance(value, Entry):
        return memory_entry(value)
    return [_wire(item) for item in value] if isinstance(value, list) else value


def _urls(run: Run) -> dict[str, str]:
    return {"eventsUrl": f"{PREFIX}/runs/{run.id}/events", "statusUrl": f"{PREFIX}/runs/{run.id}"}
