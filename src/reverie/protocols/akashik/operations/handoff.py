"""HANDOFF: a task passes to another agent, with the context it needs.

A handoff stores ids, not units: its package is assembled for each reader from the units that this agent may see and
that still exist. So a purged unit is in no package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import READABLE, Entry, Scope
from reverie.core.query import Filter
from reverie.protocols.akashik import conflicts, documents
from reverie.protocols.akashik.budget import counting, cut, fit
from reverie.protocols.akashik.call import Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.candidates import each_unit, touched
from reverie.protocols.akashik.envelope import MAX_NAME
from reverie.protocols.akashik.operations.agents import FieldAgent, load_agent
from reverie.protocols.akashik.operations.sessions import MAX_TEXT, check_session, load_session
from reverie.protocols.akashik.operations.tasks import OPEN, Task, follow, load_task, save_task
from reverie.protocols.akashik.relevance import Meaning, RelevanceQuery, meaning_of, rank_units, vector_of, words_of
from reverie.protocols.akashik.units import relations_of, task_of, unit
from reverie.protocols.akashik.visibility import View
from reverie.store.contract import ReadTx

HANDOFFS = "akashik.handoff"
EXPIRES_MS = 7 * MS_PER_DAY
ACTIONS = ("initiate", "accept", "reject", "get", "list")


class Handoff(Struct, frozen=True):
    """An offer of a task."""

    id: str
    task_id: str
    from_agent: str
    to_agent: str
    status: str = "pending"
    reason: str | None = None
    session_id: str | None = None
    summary: str | None = None
    open_questions: list[str] = []
    units: list[tuple[str, int | None]] = []
    """Unit ids, best first, each with the length it was cut to, if it was."""
    generated_epoch: int = 0
    created_at: int = 0


class _TaskUnits(Struct, frozen=True):
    """Units of the task as of a snapshot, and how close they are to the summary."""

    units: list[Entry] = []
    meaning: Meaning | None = None
    snapshot: int = 0


def _prepare(ready: Ready) -> _TaskUnits | None:
    """Look for the task's units on a snapshot: no writer waits for it."""
    task_id = ready.payload.get("task_id")
    if ready.payload.get("action") != "initiate" or not isinstance(task_id, str):
        return None
    context = _context(ready)
    named = list(dict.fromkeys(context.get("unit_ids") or []))
    summary = context.get("summary") or ""
    vector = vector_of(summary, ready.services.parts.embedder)

    def look(tx: ReadTx) -> _TaskUnits:
        view = view_of(tx, ready)
        where = view.narrow(Filter(states=READABLE, task=task_id))
        found = [entry for entry in each_unit(tx, where) if view.sees(entry)]
        wished = [entry for unit_id in named if (entry := tx.get(unit_id)) is not None]
        return _TaskUnits(found, meaning_of(tx, [*wished, *found], summary, vector), tx.head().seq)

    return ready.services.parts.store.read(Scope(ready.actor.tenant, ready.services.ref), look)


def _execute(call: OperationCall) -> dict[str, Any]:
    action = call.payload.get("action")
    if action not in ACTIONS:
        raise call.error("INVALID_REQUEST", f"action is one of {', '.join(ACTIONS)}.")
    if action == "initiate":
        return _initiate(call)
    if action == "list":
        call.require(4, "HANDOFF list")
        found = [handoff for handoff in _each(call.tx) if _concerns(call, handoff)]
        return {"status": "ok", "list": [[handoff.id, _status(call, handoff)] for handoff in found]}
    name = call.payload.get("handoff_id")
    if not isinstance(name, str) or not name:
        raise call.error("INVALID_REQUEST", "handoff_id is missing.")
    handoff = _load(call.tx, name)
    if handoff is None or not (_concerns(call, handoff) or handoff.session_id == call.session_id):
        raise call.error("NOT_FOUND", "There is no such handoff.")
    call.require(4, f"HANDOFF {action}")
    if action == "get":
        if not _concerns(call, handoff):
            raise call.error("NOT_FOUND", "There is no such handoff.")
        return {"status": "ok", "one": [handoff.id, _status(call, handoff)]}
    return _answer(call, handoff, action)


def _initiate(call: OperationCall) -> dict[str, Any]:
    payload = call.payload
    task_id, to_agent, reason = payload.get("task_id"), payload.get("to_agent"), payload.get("reason")
    for name, value in (("task_id", task_id), ("to_agent", to_agent)):
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME:
            raise call.error("INVALID_REQUEST", f"{name} is a string of 1 to {MAX_NAME} characters.")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_TEXT):
        raise call.error("INVALID_REQUEST", f"reason is a string of at most {MAX_TEXT} characters.")
    context = _context(call)
    call.require(4)
    assert isinstance(task_id, str)
    assert isinstance(to_agent, str)
    receiver = load_agent(call.tx, to_agent)
    if receiver is None:
        raise call.error("AGENT_NOT_REGISTERED", "The receiver is not registered.")
    if receiver.id == call.speaker.id:
        raise call.error("INVALID_REQUEST", "to_agent is another agent.")
    task = load_task(call.tx, task_id)
    if task is not None and call.view.enters(task.session_id):
        if task.state in ("completed", "cancelled"):
            raise call.error("INVALID_TRANSITION", f"The task is {task.state}.")
        if call.speaker.id not in (task.assignee, task.creator_id):
            call.require_in(task.session_id, 6, "HANDOFF of another's task")
    handoff = Handoff(
        id=call.services.parts.ids.new(),
        task_id=task_id,
        from_agent=call.speaker.id,
        to_agent=receiver.id,
        reason=reason,
        session_id=call.session_id,
        generated_epoch=call.epoch,
        created_at=call.tx.now,
    )
    handoff = _packed(call, handoff, receiver, context)
    data = {"to_agent": receiver.id, "handoff": handoff.id, "units": [name for name, _ in handoff.units[:100]]}
    seq = call.append("handoff.initiated", task_id=task_id, data=data)
    documents.save(call.tx, HANDOFFS, handoff.id, msgspec.to_builtins(handoff), seq=seq, expected=0)
    return {"status": "initiated", "one": [handoff.id, "pending"]}


def _context(call: Ready) -> Mapping[str, Any]:
    context = call.payload.get("context")
    context = {} if context is None else context
    sound = (
        isinstance(context, dict)
        and (context.get("summary") is None or isinstance(context["summary"], str))
        and len(context.get("summary") or "") <= MAX_TEXT
        and all(_texts(context.get(name)) for name in ("unit_ids", "open_questions"))
    )
    most = context.get("max_tokens") if sound else None
    if not sound or (most is not None and (type(most) is not int or most < 1)):
        raise call.error(
            "INVALID_REQUEST", "context is {summary, unit_ids[], open_questions[], max_tokens: 1 or more}."
        )
    return dict(context)


def _texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _packed(call: OperationCall, handoff: Handoff, receiver: FieldAgent, context: Mapping[str, Any]) -> Handoff:
    """Choose the units of the package: those that both agents may see, ranked, within the budget."""
    view = _view(call, receiver)
    named = []
    for unit_id in dict.fromkeys(context.get("unit_ids") or []):
        entry = call.tx.get(unit_id)
        if entry is None or not call.view.sees(entry):
            raise call.error("UNIT_NOT_FOUND", "context.unit_ids names a unit that does not exist.")
        named.append(entry)
    ids = {entry.id for entry in named}
    found = [*named]
    prepared: _TaskUnits = call.prepared
    seen = call.tx.at([entry.position for entry in prepared.units], Filter(states=READABLE))
    new = [entry for entry in touched(call.tx, prepared.snapshot) if entry.position not in seen]
    found += [
        entry
        for entry in (*seen.values(), *new)
        if task_of(entry) == handoff.task_id and entry.id not in ids and call.view.sees(entry)
    ]
    found = [entry for entry in found if view.sees(entry)]
    summary = context.get("summary") or ""
    questions = list(context.get("open_questions") or [])
    asked = RelevanceQuery(role=receiver.role, query=summary, task_id=handoff.task_id, epoch=call.epoch)
    meaning = prepared.meaning and {**prepared.meaning, **(words_of(new, summary) or {})}
    ranked = rank_units(found, asked, meaning)
    count = counting(call.services.parts.tokens)
    budget = context.get("max_tokens")
    if budget is not None:
        summary, questions = _within(summary, questions, budget, count)
        budget = max(0, budget - sum(count(text) for text in (summary, *questions) if text))
    chosen, _ = fit([item.entry.content for item in ranked], budget, count)
    return msgspec.structs.replace(
        handoff,
        summary=summary or None,
        open_questions=questions,
        units=[(ranked[index].entry.id, length) for index, length in chosen],
    )


def _within(summary: str, questions: list[str], budget: int, count: Any) -> tuple[str, list[str]]:
    """The summary, cut to the budget if it must be, and as many questions as still fit."""
    chosen, used = fit([summary], budget, count) if summary else ([], 0)
    kept = cut(summary, chosen[0][1]) if chosen else ""
    fitting: list[str] = []
    for question in questions:
        size = count(question)
        if used + size > budget:
            break
        fitting.append(question)
        used += size
    return kept, fitting


def _answer(call: OperationCall, handoff: Handoff, action: str) -> dict[str, Any]:
    if handoff.to_agent != call.speaker.id:
        raise call.error("INSUFFICIENT_AUTHORITY", "Only the receiver answers a handoff.")
    status = _status(call, handoff)
    if status != "pending":
        raise call.error("INVALID_TRANSITION", f"The handoff is {status}.")
    after = "accepted" if action == "accept" else "rejected"
    task = load_task(call.tx, handoff.task_id) if after == "accepted" else None
    moved = task if task is not None and _may_move(call, handoff, task) else None
    for session_id in {handoff.session_id, moved.session_id if moved else None} - {None, call.session_id}:
        check_session(call, load_session(call.tx, str(session_id)))
    data = {"to_agent": handoff.to_agent, "from_agent": handoff.from_agent, "handoff": handoff.id}
    seq = call.append(f"handoff.{after}", task_id=handoff.task_id, session=handoff.session_id, data=data)
    found = documents.load(call.tx, HANDOFFS, handoff.id)
    answered = msgspec.structs.replace(handoff, status=after)
    body = msgspec.to_builtins(answered)
    documents.save(call.tx, HANDOFFS, handoff.id, body, seq=seq, expected=found[1] if found else 0)
    if moved is not None:
        _reassign(call, moved)
    return {"status": "accepted" if after == "accepted" else "ok", "one": [handoff.id, after]}


def _may_move(call: OperationCall, handoff: Handoff, task: Task) -> bool:
    """Whether a task is open, the receiver may know of it, and the giver may hand it over now."""
    if task.state not in ("pending", *OPEN) or not call.view.enters(task.session_id):
        return False
    if task.assignee is None:
        return True  # the receiver might claim it
    giver = load_agent(call.tx, handoff.from_agent)
    if giver is None:
        return False
    view = _view(call, giver)
    own = giver.id in (task.assignee, task.creator_id)
    return view.enters(task.session_id) and (own or view.commands(task.session_id, 6))


def _reassign(call: OperationCall, task: Task) -> None:
    """An accepted handoff moves the task without changing its state."""
    changed = msgspec.structs.replace(task, assignee=call.speaker.id, updated_epoch=call.epoch)
    data = {"action": "handoff", "from": task.state, "to": task.state, "assignee": call.speaker.id}
    seq = call.append("task.assigned", task_id=task.id, session=task.session_id, data=data)
    save_task(call, changed, seq)
    for agent_id in dict.fromkeys((task.assignee, changed.assignee)):
        if agent_id is not None:
            follow(call, agent_id, seq)


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    if "list" in result:
        return {"status": "ok", "handoffs": [_document(call, *pair) for pair in result["list"]]}
    return {"status": result["status"], "handoff": _document(call, *result["one"])}


def _document(call: OperationCall, handoff_id: str, status: str) -> dict[str, Any]:
    handoff = _load(call.tx, handoff_id)
    if handoff is None:
        return {"id": handoff_id, "status": status}
    return {
        "id": handoff.id,
        "task_id": handoff.task_id,
        "from_agent": handoff.from_agent,
        "to_agent": handoff.to_agent,
        "status": status,
        "reason": handoff.reason,
        "package": _package(call, handoff),
    }


def _package(call: OperationCall, handoff: Handoff) -> dict[str, Any]:
    """The package for the reading agent: the hot units it may see."""
    view = _view(call, call.speaker, session_id=handoff.session_id) if call.agent else None
    shown, texts = [], []
    for unit_id, length in handoff.units:
        entry: Entry | None = call.tx.get(unit_id)
        if entry is None or view is None or not view.sees(entry):
            continue
        content = cut(entry.content, length)
        texts.append(content)
        shown.append(unit(entry, relations_of(call.tx, entry), content=content))
    task = load_task(call.tx, handoff.task_id)
    count = counting(call.services.parts.tokens)
    texts += [text for text in (handoff.summary, *handoff.open_questions) if text]
    return {
        "summary": handoff.summary or f"Task {handoff.task_id}: {len(shown)} units from {handoff.from_agent}.",
        "task": task.document() if task and view and view.enters(task.session_id) else {"id": handoff.task_id},
        "units": shown,
        "unresolved_conflicts": conflicts.unresolved(call) if call.agent else [],
        "open_questions": list(handoff.open_questions),
        "token_count": sum(count(text) for text in texts),
        "generated_epoch": handoff.generated_epoch,
    }


def _view(call: OperationCall, agent: FieldAgent, *, session_id: str | None = None) -> View:
    """The view of the speaker, whose credential is known, or of the agent at the other side."""
    most = call.actor.authority if agent.id == call.speaker.id else agent.authority_level
    return View(
        call.tx,
        level=call.level,
        agent=agent,
        authority=min(agent.authority_level, most),
        session_id=session_id if session_id is not None else call.session_id,
    )


def _concerns(call: OperationCall, handoff: Handoff) -> bool:
    return call.speaker.id in (handoff.from_agent, handoff.to_agent) or call.authority >= 10


def _status(call: OperationCall, handoff: Handoff) -> str:
    late = handoff.status == "pending" and call.tx.now > handoff.created_at + EXPIRES_MS
    return "expired" if late else handoff.status


def _load(tx: ReadTx, handoff_id: str) -> Handoff | None:
    found = documents.load(tx, HANDOFFS, handoff_id)
    return msgspec.convert(found[0], Handoff) if found else None


def _each(tx: ReadTx) -> Iterator[Handoff]:
    for _, body, _ in documents.each(tx, HANDOFFS):
        yield msgspec.convert(body, Handoff)


HANDOFF = Operation("HANDOFF", level=2, execute=_execute, prepare=_prepare, show=_show)
