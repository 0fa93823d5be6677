"""COORDINATE: tasks, who has them, and the states they go through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from reverie.protocols.akashik import documents
from reverie.protocols.akashik.call import Operation, OperationCall
from reverie.protocols.akashik.envelope import LIMIT_EPOCH, MAX_NAME
from reverie.protocols.akashik.operations.agents import change_agent, load_agent
from reverie.protocols.akashik.operations.sessions import MAX_TEXT, check_session, load_session
from reverie.protocols.akashik.units import find_unit
from reverie.store.contract import ReadTx

TASKS = "akashik.task"
STATES: Mapping[str, Mapping[str, str]] = {
    "pending": {"assign": "assigned", "claim": "assigned", "cancel": "cancelled"},
    "assigned": {"assign": "assigned", "release": "pending", "start": "in_progress", "cancel": "cancelled"},
    "in_progress": {"block": "blocked", "complete": "completed", "fail": "failed", "cancel": "cancelled"},
    "blocked": {"unblock": "in_progress", "fail": "failed", "cancel": "cancelled"},
    "failed": {"retry": "pending"},
    "completed": {},
    "cancelled": {},
}
"""Each state: the actions it allows, and where they lead."""
CHANGES = ("assign", "claim", "release", "start", "block", "unblock", "complete", "fail", "cancel", "retry")
OPEN = ("assigned", "in_progress", "blocked")
"""States in which someone has the task."""
TEXTS = ("title", "description", "reason")
"""Members of a task that are text."""
_BY_ASSIGNEE = frozenset({"claim", "release", "start", "block", "unblock", "complete", "fail"})
_STATUS = {"in_progress": "working", "blocked": "waiting"}


class Task(Struct, frozen=True):
    """Something to be done."""

    id: str
    title: str
    description: str | None = None
    state: str = "pending"
    assignee: str | None = None
    creator_id: str = ""
    session_id: str | None = None
    depends_on: list[str] = []
    priority: int | float | str | None = None
    result_unit_id: str | None = None
    reason: str | None = None
    created_epoch: int = 0
    updated_epoch: int = 0

    def document(self) -> dict[str, Any]:
        """The task on the wire."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def load_task(tx: ReadTx, task_id: str) -> Task | None:
    """A task."""
    found = documents.load(tx, TASKS, task_id)
    return msgspec.convert(found[0], Task) if found else None


def each_task(tx: ReadTx) -> Iterator[Task]:
    """Every task, by id."""
    for _, body, _ in documents.each(tx, TASKS):
        yield msgspec.convert(body, Task)


def _execute(call: OperationCall) -> dict[str, Any]:
    action, given = call.payload.get("action"), call.payload.get("task")
    given = {} if given is None else given
    if action not in ("create", "get", "list", *CHANGES) or not isinstance(given, dict):
        known = ", ".join(("create", *CHANGES, "get", "list"))
        raise call.error("INVALID_REQUEST", f"action is one of {known}; task is an object.")
    _check(call, given)
    if action == "list":
        call.require(2, "COORDINATE list")
        state, assignee = given.get("state"), given.get("assignee")
        found = [
            _bare(task)
            for task in each_task(call.tx)
            if task.session_id == call.session_id
            and (state is None or task.state == state)
            and (assignee is None or task.assignee == assignee)
        ]
        return {"status": "ok", "tasks": found}
    if action == "create":
        return {"status": "ok", "task": _bare(_create(call, given))}
    task_id = given.get("id")
    if not isinstance(task_id, str) or not task_id:
        raise call.error("INVALID_REQUEST", "task.id is missing.")
    task = load_task(call.tx, task_id)
    if task is None or not call.view.enters(task.session_id):
        raise call.error("NOT_FOUND", "There is no such task.")
    if action == "get":
        call.require(2, "COORDINATE get")
        return {"status": "ok", "task": _bare(task)}
    return {"status": "ok", "task": _bare(_change(call, task, action, given))}


def _bare(task: Task) -> dict[str, Any]:
    """The task without its texts, as an answer is remembered: a forget reaches texts in tasks, not in answers."""
    return {name: value for name, value in task.document().items() if name not in TEXTS}


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """The answer with the texts that the tasks have now."""
    if "task" in result:
        task = load_task(call.tx, result["task"]["id"])
        return {**result, "task": (task.document() if task else {}) | result["task"]}
    now = {task.id: task.document() for task in each_task(call.tx)}
    return {**result, "tasks": [now.get(shown["id"], {}) | shown for shown in result["tasks"]]}


def _check(call: OperationCall, given: Mapping[str, Any]) -> None:
    def text(name: str, value: Any, most: int) -> None:
        if value is not None and (not isinstance(value, str) or not value.strip() or len(value) > most):
            raise call.error("INVALID_REQUEST", f"task.{name} is a string of 1 to {most} characters.")

    for name, most in (("id", MAX_NAME), ("assignee", MAX_NAME), ("title", MAX_TEXT), ("result_unit_id", MAX_NAME)):
        text(name, given.get(name), most)
    for name, value in (("description", given.get("description")), ("reason", call.payload.get("reason"))):
        if value is not None and (not isinstance(value, str) or len(value) > MAX_TEXT):
            raise call.error("INVALID_REQUEST", f"{name} is a string of at most {MAX_TEXT} characters.")
    needs = given.get("depends_on")
    if needs is not None and not (isinstance(needs, list) and all(isinstance(item, str) and item for item in needs)):
        raise call.error("INVALID_REQUEST", "task.depends_on is a list of task ids.")
    priority = given.get("priority")
    sound = isinstance(priority, str) and len(priority) <= MAX_NAME
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        sound = abs(priority) < LIMIT_EPOCH
    if priority is not None and not sound:
        raise call.error("INVALID_REQUEST", "task.priority is a number or a short string.")


def _create(call: OperationCall, given: Mapping[str, Any]) -> Task:
    title, assignee = given.get("title"), given.get("assignee")
    if title is None:
        raise call.error("INVALID_REQUEST", "task.title is missing.")
    call.require(6 if assignee not in (None, call.speaker.id) else 4, "COORDINATE create")
    _registered(call, assignee)
    task_id = given.get("id") or call.services.parts.ids.new()
    if load_task(call.tx, task_id) is not None:
        raise call.error("INVALID_TRANSITION", "A task with this id exists already.")
    needs = list(dict.fromkeys(given.get("depends_on") or []))
    for other in needs:
        found = load_task(call.tx, other)
        if found is None or not call.view.enters(found.session_id):
            raise call.error("NOT_FOUND", "A task this one depends on does not exist.")
    task = Task(
        id=task_id,
        title=title,
        description=given.get("description"),
        state="assigned" if assignee else "pending",
        assignee=assignee,
        creator_id=call.speaker.id,
        session_id=call.session_id,
        depends_on=needs,
        priority=given.get("priority"),
        reason=call.payload.get("reason"),
        created_epoch=call.epoch,
        updated_epoch=call.epoch,
    )
    seq = call.append("task.created", task_id=task.id, data={"to": task.state})
    if assignee:
        seq = call.append("task.assigned", task_id=task.id, data={"assignee": assignee})
    save_task(call, task, seq, new=True)
    return task


def _change(call: OperationCall, task: Task, action: str, given: Mapping[str, Any]) -> Task:
    me = call.speaker.id
    assignee = given.get("assignee") if action == "assign" else me if action == "claim" else task.assignee
    if action == "assign" and assignee is None:
        raise call.error("INVALID_REQUEST", "task.assignee is missing.")
    _authorise(call, task, action, assignee)
    after = _next_state(call, task, action)
    if action == "assign":
        _registered(call, assignee)
    changed = msgspec.structs.replace(
        task,
        state=after,
        assignee=None if after == "pending" else assignee,
        result_unit_id=(_result(call, given) if action == "complete" else None) or task.result_unit_id,
        reason=call.payload.get("reason") or task.reason,
        updated_epoch=call.epoch,
    )
    seq = _record(call, task, changed, action)
    save_task(call, changed, seq)
    for agent_id in dict.fromkeys((task.assignee, changed.assignee)):
        if agent_id is not None:
            follow(call, agent_id, seq)
    return changed


def _authorise(call: OperationCall, task: Task, action: str, assignee: str | None) -> None:
    """Refuse a speaker who may not do this with the task, in its session."""
    me = call.speaker.id
    own = me in (task.creator_id, task.assignee)
    if action == "cancel":
        least = 4 if own else 8
    elif action == "assign":
        least = 4 if assignee == me and task.assignee in (None, me) else 6
    else:
        least = 4 if own or action != "retry" else 6
    call.require_in(task.session_id, least, f"COORDINATE {action}")
    if task.session_id != call.session_id and task.session_id is not None:
        check_session(call, load_session(call.tx, task.session_id))


def _next_state(call: OperationCall, task: Task, action: str) -> str:
    """The state that the action leads to, when the task and its assignee allow it."""
    after = STATES[task.state].get(action)
    if after is None:
        raise call.error("INVALID_TRANSITION", f"A task that is {task.state} does not take {action}.")
    me = call.speaker.id
    if action in _BY_ASSIGNEE and task.assignee not in ((None, me) if action == "claim" else (me,)):
        raise call.error("INSUFFICIENT_AUTHORITY", f"Only its assignee takes a task through {action}.")
    if action == "start" and any(_unfinished(call.tx, other) for other in task.depends_on):
        raise call.error("INVALID_TRANSITION", "The task depends on tasks that are not completed.")
    return after


def _result(call: OperationCall, given: Mapping[str, Any]) -> str | None:
    """The unit that holds the result, when one is named."""
    result: str | None = given.get("result_unit_id")
    if result is not None:
        found = find_unit(call.tx, result)
        if found is None or not call.view.sees(found):
            raise call.error("UNIT_NOT_FOUND", "task.result_unit_id names no unit.")
    return result


def _record(call: OperationCall, task: Task, changed: Task, action: str) -> int:
    """The events of the change; the position of the last one."""
    data = {"action": action, "from": task.state, "to": changed.state}
    if changed.assignee:
        data["assignee"] = changed.assignee
    event = {"assigned": "task.assigned", "completed": "task.completed"}.get(changed.state, "task.state_changed")
    seq = call.append(event, task_id=task.id, session=task.session_id, data=data)
    if changed.state == "failed" and task.assignee:
        seq = call.append("agent.failed", task_id=task.id, session=task.session_id, data={"agent": task.assignee})
    return seq


def _unfinished(tx: ReadTx, task_id: str) -> bool:
    task = load_task(tx, task_id)
    return task is None or task.state != "completed"


def _registered(call: OperationCall, agent_id: str | None) -> None:
    if agent_id is not None and load_agent(call.tx, agent_id) is None:
        raise call.error("AGENT_NOT_REGISTERED", "The assignee is not registered.")


def save_task(call: OperationCall, task: Task, seq: int, *, new: bool = False) -> None:
    """The task's next version."""
    found = None if new else documents.load(call.tx, TASKS, task.id)
    documents.save(call.tx, TASKS, task.id, msgspec.to_builtins(task), seq=seq, expected=found[1] if found else 0)


def follow(call: OperationCall, agent_id: str, seq: int) -> None:
    """An agent's status follows its tasks: working, else waiting, else idle."""
    busy = [task for task in each_task(call.tx) if task.assignee == agent_id and task.state in _STATUS]
    busy.sort(key=lambda task: (task.state != "in_progress", -task.updated_epoch, task.id))
    status = _STATUS[busy[0].state] if busy else "idle"
    change_agent(call, agent_id, seq=seq, status=status, current_task_id=busy[0].id if busy else None)


def give_back_tasks(call: OperationCall, agent_id: str) -> int:
    """Return the open tasks of a leaving agent to pending; return their number."""
    held = [task for task in each_task(call.tx) if task.assignee == agent_id and task.state in OPEN]
    for task in held:
        data = {"action": "release", "from": task.state, "to": "pending"}
        seq = call.append("task.state_changed", task_id=task.id, session=task.session_id, data=data)
        changed = msgspec.structs.replace(task, state="pending", assignee=None, updated_epoch=call.epoch)
        save_task(call, changed, seq)
    return len(held)


COORDINATE = Operation("COORDINATE", level=3, execute=_execute, show=_show)
