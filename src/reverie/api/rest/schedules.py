"""Schedules of dreams."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from reverie.api.rest import dream_wire
from reverie.api.rest.call import api, once
from reverie.api.views import due_document, outcome_document
from reverie.core.actor import Right
from reverie.http.call import Call, needs
from reverie.http.reply import Reply
from reverie.http.routes import Segment
from reverie.http.threads import Lane

router = api("schedules")


@router.get(
    "/schedules",
    id="list_schedules",
    summary="Every schedule, with its last run, next run and status",
    out=dream_wire.SchedulesOut,
)
def page(call: Call) -> Response:
    return Reply({"schedules": [due_document(due) for due in call.host.schedules.all(call.actor)]})


@router.post(
    "/schedules", id="add_schedule", summary="Add a schedule of dreams", out=dream_wire.ScheduleOut, status=201
)
@once("add_schedule")
@needs(Right.DREAM)
def add(call: Call, body: dream_wire.ScheduleIn) -> Response:
    saved = call.host.schedules.save(call.actor, msgspec.to_builtins(body))
    return Reply(due_document(call.host.schedules.due(saved)), 201)


@router.patch(
    "/schedules/{id}",
    id="change_schedule",
    summary="Change a schedule: pause it, resume it, or anything else",
    out=dream_wire.ScheduleOut,
)
@once("change_schedule")
@needs(Right.DREAM)
def change(call: Call, id: Segment, body: dream_wire.ScheduleChangeIn) -> Response:  # noqa: A002
    fields = {**msgspec.to_builtins(body), "id": id}
    return Reply(due_document(call.host.schedules.due(call.host.schedules.save(call.actor, fields, existing=True))))


@router.delete("/schedules/{id}", id="remove_schedule", summary="Remove a schedule", out=dream_wire.RemovedOut)
@once("remove_schedule")
@needs(Right.DREAM)
def remove(call: Call, id: Segment) -> Response:  # noqa: A002
    call.host.schedules.drop(call.actor, id)
    return Reply({"id": id})


@router.post(
    "/schedules/{id}/run",
    id="run_schedule",
    summary="Run a schedule now; its next tick stays as it is",
    out=dream_wire.OutcomeOut,
)
@once("run_schedule")
@needs(Right.DREAM, lane=Lane.HEAVY)
def run(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(outcome_document(call.host.schedules.run_now(call.actor, id)))
