"""Runs: start, look at, follow, cancel, fork."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.entry import Entry
from reverie.core.errors import ReverieError
from reverie.core.run import Run
from reverie.doors.openwop.call import PREFIX, api, reply
from reverie.doors.openwop.run_events import Asked, asked, ends, run_event, sse
from reverie.doors.openwop.wire import Open, Segment, memory_entry
from reverie.host import Host
from reverie.serve.admission import bearer
from reverie.serve.call import Call

router = api()
STREAM = "text/event-stream"
HEARTBEAT_SECONDS = 10.0
_POLL_SECONDS = 0.25
_PAGE = 1000


class RunIn(Open):
    """A `tenantId` may stand here as well; only the credential says who is calling."""

    workflow_id: str = Field(alias="workflowId", min_length=1, max_length=256)
    inputs: dict[str, Any] | None = None
    configurable: dict[str, Any] | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class ForkIn(Open):
    mode: str
    from_seq: int | None = Field(default=None, alias="fromSeq")
    overlay: dict[str, Any] | None = Field(default=None, alias="runOptionsOverlay")


@router.post("/runs")
def start(call: Call, body: RunIn) -> Response:
    run = call.host.runs.start(
        call.actor,
        body.workflow_id,
        inputs=body.inputs,
        configurable=body.configurable,
        tags=body.tags or (),
        metadata=body.metadata,
        fixtures=call.settings.openwop_seams,
    )
    return reply({"runId": run.id, "status": run.status.value, **_urls(run)}, 201)


@router.get("/runs/{run_id}")
def get(call: Call, run_id: Segment) -> Response:
    run = call.host.runs.get(call.actor, run_id)
    return reply(document(run, call.host.runs.variables(call.actor, run), call.actor.tenant))


@router.get("/runs/{run_id}/events")
def events(call: Call, run_id: Segment) -> Response:
    want = asked(call)
    run = call.host.runs.get(call.actor, run_id)
    if STREAM not in call.headers.get("accept", ""):
        return reply(page(call.host, call.actor, run, want))
    call.actor.require(Right.READ)
    return StreamingResponse(_stream(call, run.id, want), media_type=STREAM)


@router.get("/runs/{run_id}/events/poll")
async def poll(call: Call, run_id: Segment) -> Response:
    want = asked(call)
    loop = asyncio.get_running_loop()
    until = loop.time() + want.wait_seconds
    while True:
        run = await to_thread.run_sync(call.host.runs.get, call.actor, run_id)
        found = await to_thread.run_sync(page, call.host, call.actor, run, want)
        left = until - loop.time()
        if found["events"] or found["isTerminal"] or left <= 0 or call.app.state.tail.stopping:
            return reply(found)
        await call.app.state.tail.wait(min(left, _POLL_SECONDS))


@router.post("/runs/{run_id}/cancel")
def cancel(call: Call, run_id: Segment) -> Response:
    before = call.host.runs.get(call.actor, run_id)
    run = before if before.ended else call.host.runs.cancel(call.actor, run_id)
    answer = {"runId": run.id, "status": run.status.value}
    return reply(answer | ({"alreadyTerminal": True} if before.ended else {}))


@router.post("/runs/{run_id}:fork")
def fork(call: Call, run_id: Segment, body: ForkIn) -> Response:
    run = call.host.forks.fork(
        call.actor,
        run_id,
        body.mode,
        from_seq=body.from_seq,
        overlay=body.overlay,
        fixtures=call.settings.openwop_seams,
    )
    forked = {
        "runId": run.id,
        "sourceRunId": run_id,
        "fromSeq": body.from_seq or 0,
        "mode": body.mode,
        "status": run.status.value,
    }
    return reply({**forked, **_urls(run)}, 201)


def document(run: Run, variables: Mapping[str, Any], tenant: str) -> dict[str, Any]:
    """A run as it stands. What it does not have is left out."""
    shown: dict[str, Any] = {
        "runId": run.id,
        "workflowId": run.workflow,
        "status": run.status.value,
        "owner": {"tenant": tenant, "principal": run.actor},
        "startedAt": to_iso(run.started_at),
        "variables": {name: _wire(value) for name, value in variables.items()},
        "inputs": run.inputs,
        "configurable": run.configurable,
        "tags": list(run.tags),
        "metadata": run.metadata,
        "workspace": [{"path": path, "version": version} for path, version in run.files],
        "memorySnapshotSeq": run.snapshot,
    }
    if run.completed_at is not None:
        shown["completedAt"] = to_iso(run.completed_at)
    if run.fault is not None:
        details = {"details": run.fault.details} if run.fault.details else {}
        shown["error"] = {"code": run.fault.code, "message": run.fault.message, **details}
    if run.fork is not None:
        shown["forkedFrom"] = {"runId": run.fork.source, "fromSeq": run.fork.from_seq, "mode": run.fork.mode}
    return shown


def page(host: Host, actor: Actor, run: Run, want: Asked) -> dict[str, Any]:
    """The poll shape: every name that clients look for."""
    found = read(host, actor, run, want.after)
    return {
        "runId": run.id,
        "events": [event for event in found if want.wants(event)],
        "lastEventSeq": found[-1]["sequence"] if found else want.after,
        "isComplete": run.ended,
        "runStatus": run.status.value,
        "isTerminal": run.ended,
    }


def read(host: Host, actor: Actor, run: Run, after: int) -> list[dict[str, Any]]:
    """Events of a run after a sequence."""
    found = host.runs.events(actor, run, after=after, limit=_PAGE)
    return [run_event(run.id, sequence, event) for sequence, event in found]


async def _stream(call: Call, run_id: str, want: Asked) -> AsyncIterator[bytes]:
    state, loop, after = call.app.state, asyncio.get_running_loop(), want.after
    alive_at = checked_at = loop.time()
    yield b"retry: 1000\n\n"
    while not state.tail.stopping:
        # the record first: a run that has ended has all its events
        run = await to_thread.run_sync(call.host.runs.get, call.actor, run_id)
        found = await to_thread.run_sync(read, call.host, call.actor, run, after)
        if found and want.buffer_seconds and not ends(found):
            await asyncio.sleep(want.buffer_seconds)
            found = await to_thread.run_sync(read, call.host, call.actor, run, after)
        if found:
            after, alive_at = found[-1]["sequence"], loop.time()
            yield b"".join(sse(event) for event in found if want.wants(event))
        if ends(found) or (run.ended and not found):
            return
        if loop.time() - checked_at >= HEARTBEAT_SECONDS:
            if not await _still_allowed(call):
                return
            checked_at = loop.time()
        if loop.time() - alive_at >= HEARTBEAT_SECONDS:
            yield b": alive\n\n"
            alive_at = loop.time()
        if len(found) < _PAGE:
            await state.tail.wait(_POLL_SECONDS)


async def _still_allowed(call: Call) -> bool:
    check = partial(call.host.keys.authenticate, bearer(call.scope), door="openwop")
    try:
        await to_thread.run_sync(check)
    except ReverieError:
        return False
    return True


def _wire(value: Any) -> Any:
    if isinstance(value, Entry):
        return memory_entry(value)
    return [_wire(item) for item in value] if isinstance(value, list) else value


def _urls(run: Run) -> dict[str, str]:
    return {"eventsUrl": f"{PREFIX}/runs/{run.id}/events", "statusUrl": f"{PREFIX}/runs/{run.id}"}
