"""Schedules: when a memory is dreamt, and why it was not."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from reverie.api.rest import dream_wire
from reverie.api.rest.call import ONCE, api, once
from reverie.api.rest.errors import documented
from reverie.api.views import due_document, outcome_document
from reverie.core.actor import Right
from reverie.http.call import Call, needs
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Segment
from reverie.http.threads import Lane

router = api()


@router.get(
    "/schedules",
    tags=["schedules"],
    id="list_schedules",
    summary="Every schedule: last ran, next due, why not",
    answers={200: DocumentedAnswer(body=dream_wire.SchedulesOut), **documented()},
)
def page(call: Call) -> Response:
    return Reply({"schedules": [due_document(due) for due in call.host.schedules.all(call.actor)]})


@router.post(
    "/schedules",
    tags=["schedules"],
    id="add_schedule",
    parameters=[ONCE],
    summary="Add a schedule of dreams",
    answers={201: DocumentedAnswer(body=dream_wire.ScheduleOut), **documented(body=True, writes=True)},
)
@once("add_schedule")
@needs(Right.DREAM)
def add(call: Call, body: dream_wire.ScheduleIn) -> Response:
    saved = call.host.schedules.save(call.actor, msgspec.to_builtins(body))
    return Reply(due_document(call.host.schedules.due(saved)), 201)


@router.patch(
    "/schedules/{id}",
    tags=["schedules"],
    id="change_schedule",
    parameters=[ONCE],
    summary="Change a schedule: pause it, resume it, or anything else",
    answers={200: DocumentedAnswer(body=dream_wire.ScheduleOut), **documented(body=True, writes=True)},
)
@once("change_schedule")
@needs(Right.DREAM)
def change(call: Call, id: Segment, body: dream_wire.ScheduleChangeIn) -> Response:  # noqa: A002
    fields = {**msgspec.to_builtins(body), "id": id}
    return Reply(due_document(call.host.schedules.due(call.host.schedules.save(call.actor, fields, existing=True))))


@router.delete(
    "/schedules/{id}",
    tags=["schedules"],
    id="remove_schedule",
    parameters=[ONCE],
    summary="Remove a schedule",
    answers={200: DocumentedAnswer(body=dream_wire.RemovedOut), **documented(writes=True)},
)
@once("remove_schedule")
@needs(Right.DREAM)
def remove(call: Call, id: Segment) -> Response:  # noqa: A002
    call.host.schedules.drop(call.actor, id)
    return Reply({"id": id})


@router.post(
    "/schedules/{id}/run",
    tags=["schedules"],
    id="run_schedule",
    parameters=[ONCE],
    summary="Run a schedule now; its next tick stays as it is",
    answers={200: DocumentedAnswer(body=dream_wire.OutcomeOut), **documented(writes=True)},
)
@once("run_schedule")
@needs(Right.DREAM, lane=Lane.HEAVY)
def run(call: Call, id: Segment) -> Response:  # noqa: A002
    return Reply(outcome_document(call.host.schedules.run_now(call.actor, id)))
