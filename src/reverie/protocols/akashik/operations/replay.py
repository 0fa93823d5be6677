"""REPLAY: how something came to be, read from the log and from nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from reverie.core.actor import Right
from reverie.core.entry import Scope
from reverie.core.event import Event
from reverie.protocols.akashik.call import FIELD_AGENT, Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.units import PURGES, tombstone_of, type_of_kind
from reverie.protocols.akashik.visibility import View
from reverie.store.contract import ReadTx, each_event

TARGETS = ("task", "memory_unit", "decision", "conflict", "session")
DEPTHS = ("summary", "detailed", "full_trace")
MOST_EVENTS = 10_000
_BORN = frozenset({"memory.recorded", "memory.written", "memory.imported", "dream.redone"})
_MISSING = {
    "memory_unit": ("UNIT_NOT_FOUND", "There is no unit with this id."),
    "decision": ("UNIT_NOT_FOUND", "There is no unit with this id."),
    "conflict": ("CONFLICT_NOT_FOUND", "There is no conflict with this id."),
    "task": ("NOT_FOUND", "There is no task with this id."),
    "session": ("NOT_FOUND", "There is no session with this id."),
}
_SAYS = {
    "memory.recorded": "recorded {kind} {unit}",
    "memory.written": "wrote {kind} {unit}",
    "memory.superseded": "superseded {unit}",
    "memory.retracted": "retracted {unit}",
    "memory.archived": "archived {unit}",
    "memory.purged": "purged {unit}; its text is destroyed",
    "memory.compacted": "compacted {count} units into {unit}",
    "memory.contested": "{unit} became contested",
    "memory.settled": "{unit} is no longer contested",
    "memory.enriched": "completed the index of {unit}",
    "conflict.detected": "opened conflict {conflict} between {unit_a} and {unit_b}",
    "conflict.resolving": "began to resolve conflict {conflict}",
    "conflict.vote": "voted on conflict {conflict}",
    "conflict.escalated": "escalated conflict {conflict} to a human",
    "conflict.resolved": "resolved conflict {conflict}",
}


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    kind: str
    target: str
    depth: str


class Log:
    """The part of the log that one agent may know of, indexed by what each event names."""

    def __init__(self, events: Iterable[Event], view: View, ref: str, agent_id: str) -> None:
        self.events: dict[int, Event] = {}
        self.of_unit: dict[str, list[int]] = defaultdict(list)
        self.of_conflict: dict[str, list[int]] = defaultdict(list)
        self.of_task: dict[str, list[int]] = defaultdict(list)
        self.of_session: dict[str, list[int]] = defaultdict(list)
        self.relations: dict[str, list[str]] = defaultdict(list)
        self.conflicts_of: dict[str, set[str]] = defaultdict(set)
        self.compactions_of: dict[str, list[Event]] = defaultdict(list)
        self.born: dict[str, Event] = {}
        self.sessions: set[str] = set()
        entered: list[Event] = []
        homes: dict[str, str | None] = {}
        for event in events:
            if event.data.get("ref", ref) != ref:
                continue
            if event.session is not None:
                self.sessions.update(filter(None, view.logged(event.session)))
            home = event.session
            if event.entry_id is not None:  # an event that names no session is of its unit's
                first = homes.setdefault(event.entry_id, home)
                home = first if home is None else home
            if view.enters_logged(home):
                entered.append(event)
        drafts, denied, conflicts = self._find_hidden(entered, view, agent_id)
        for event in entered:
            if event.entry_id in drafts or event.entry_id in denied:
                continue
            if event.conflict_id not in conflicts or not event.type.startswith("conflict."):
                self._add(event, view)

    def _find_hidden(self, events: Iterable[Event], view: View, agent_id: str) -> tuple[set[str], set[str], set[str]]:
        """Return the ids of other agents' drafts, of units of denied types and syntheses made from those, and of
        conflicts about those.
        """
        drafts, denied, conflicts = set[str](), set[str](), set[str]()
        for event in events:
            unit, data = event.entry_id, event.data
            if unit is not None and event.type in _BORN and unit not in self.born:
                self.born[unit] = event
                if data.get("mode") == "draft" and event.actor != agent_id:
                    drafts.add(unit)
                kinds = (type_of_kind(str(data.get("kind", ""))),)
                if not all(view.allows(kinds, session) for session in view.logged(event.session)):
                    denied.add(unit)
            if unit is not None and not denied.isdisjoint(_originals(event)):
                denied.add(unit)
            if event.type == "conflict.detected" and not denied.isdisjoint((data.get("unit_a"), data.get("unit_b"))):
                conflicts.add(str(event.conflict_id))
        return drafts, denied, conflicts

    def _add(self, event: Event, view: View) -> None:
        seq = event.seq
        self.events[seq] = event
        if event.entry_id is not None:
            self.of_unit[event.entry_id].append(seq)
            self.relations[event.entry_id] += [str(r["target_id"]) for r in event.data.get("relations", ())]
        if event.conflict_id is not None:
            self.of_conflict[event.conflict_id].append(seq)
        if event.task_id is not None:
            self.of_task[event.task_id].append(seq)
        for session in view.logged(event.session):
            if session is not None:
                self.of_session[session].append(seq)
        if event.type == "conflict.detected" and event.conflict_id is not None:
            for side in ("unit_a", "unit_b"):
                self.conflicts_of[str(event.data.get(side))].add(event.conflict_id)
        if event.type == "memory.compacted" and event.entry_id is not None:
            sources = [str(source) for source in event.data.get("source_ids", ())]
            self.relations[event.entry_id] += sources
            for source in sources:
                self.compactions_of[source].append(event)

    def chain(self, units: Iterable[str]) -> set[int]:
        """Events of these units, of every unit reachable over their relations, of their conflicts, and of compactions
        that took them."""
        found: set[int] = set()
        edge, seen = list(units), set()
        while edge:
            unit = edge.pop()
            if unit in seen:
                continue
            seen.add(unit)
            found.update(self.direct(unit))
            edge += self.relations.get(unit, ())
        return found

    def direct(self, unit: str) -> set[int]:
        """Events that name this unit, its conflicts, or a compaction that took it."""
        found = set(self.of_unit.get(unit, ()))
        for conflict in self.conflicts_of.get(unit, ()):
            found.update(self.of_conflict[conflict])
        for compaction in self.compactions_of.get(unit, ()):
            found.add(compaction.seq)
            made = self.born.get(compaction.entry_id or "")
            if made is not None and made.seq in self.events:
                found.add(made.seq)
        return found


def _originals(event: Event) -> list[str]:
    """Ids of the units that the Field made this event's unit from."""
    if event.actor != FIELD_AGENT:
        return []
    related = [str(relation["target_id"]) for relation in event.data.get("relations", ())]
    return [*related, *map(str, event.data.get("source_ids", ()))]


def read(tx: ReadTx, *, upto: int) -> Iterable[Event]:
    """The log up to a position."""
    return takewhile(lambda event: event.seq <= upto, each_event(tx))


def _ask(ready: Ready) -> ReplayRequest:
    payload = ready.payload
    kind, target, depth = payload.get("target_type"), payload.get("target_id"), payload.get("depth", "summary")
    if kind not in TARGETS:
        raise ready.error("INVALID_REQUEST", f"target_type is one of {', '.join(TARGETS)}.")
    if not isinstance(target, str) or not target:
        raise ready.error("INVALID_REQUEST", "target_id names what to replay.")
    if depth not in DEPTHS:
        raise ready.error("INVALID_REQUEST", f"depth is one of {', '.join(DEPTHS)}.")
    return ReplayRequest(kind, target, depth)


def replay(tx: ReadTx, ready: Ready, ask: ReplayRequest, *, upto: int) -> dict[str, Any]:
    """The answer as of a log position. It never changes, since the log does not."""
    view = view_of(tx, ready)
    log = Log(read(tx, upto=upto), view, ready.services.ref, ready.speaker.id)
    direct, chain = _chain_of(ready, log, view, ask)
    if len(chain) > MOST_EVENTS:
        text = f"The causal chain has {len(chain)} events; at most {MOST_EVENTS} are replayed."
        raise ready.error("REPLAY_TOO_LARGE", text)
    chosen = {"summary": set(), "detailed": direct, "full_trace": chain}[ask.depth]
    events = [log.events[seq] for seq in sorted(chain)]
    return {
        "status": "ok",
        "timeline": [_line(log.events[seq]) for seq in sorted(chosen)],
        "summary": _summary(ask, events),
        "agents_involved": sorted({event.actor for event in events}),
        "total_events": len(chain),
    }


def _chain_of(ready: Ready, log: Log, view: View, ask: ReplayRequest) -> tuple[set[int], set[int]]:
    """The events that name the target, and its whole causal chain."""
    target = ask.target
    if ask.kind in ("memory_unit", "decision"):
        if target not in log.born or not log.of_unit.get(target):
            raise ready.error(*_MISSING[ask.kind])
        return log.direct(target), log.chain([target])
    if ask.kind == "conflict":
        direct = set(log.of_conflict.get(target, ()))
        sides = [log.events[seq].data for seq in direct if log.events[seq].type == "conflict.detected"]
        chain = direct | log.chain(str(data[side]) for data in sides for side in ("unit_a", "unit_b"))
    elif ask.kind == "task":
        direct = set(log.of_task.get(target, ()))
        units = {log.events[seq].entry_id for seq in direct}
        chain = direct | log.chain(unit for unit in units if unit is not None)
    else:
        if target in log.sessions and not view.enters(target):
            raise ready.error("NOT_A_MEMBER", "You are not a member of this session.")
        direct = set(log.of_session.get(target, ()))
        chain = direct
    if not direct:
        raise ready.error(*_MISSING[ask.kind])
    return direct, chain


def _line(event: Event) -> dict[str, Any]:
    """One event of the timeline: facts, never text."""
    line: dict[str, Any] = {
        "epoch": event.epoch,
        "event_type": event.type,
        "agent_id": event.actor,
        "description": _describe(event),
        "memory_unit_id": event.entry_id,
        "task_id": event.task_id,
        "conflict_id": event.conflict_id,
        "seq": event.seq,
    }
    if event.type in PURGES and event.entry_id is not None:
        line["tombstone"] = tombstone_of(event)
    return line


def _describe(event: Event) -> str:
    says = _SAYS.get(event.type)
    if says is None:
        about = event.task_id or event.entry_id or event.session
        return f"{event.actor}: {event.type}" + (f" ({about})" if about else "")
    facts = {
        "kind": event.data.get("kind", "unit"),
        "unit": event.entry_id,
        "count": event.data.get("sources", 0),
        "conflict": event.conflict_id,
        "unit_a": event.data.get("unit_a"),
        "unit_b": event.data.get("unit_b"),
    }
    return f"{event.actor} {says.format(**facts)}"


def _summary(ask: ReplayRequest, events: Sequence[Event]) -> str:
    agents = sorted({event.actor for event in events})
    count = "1 event" if len(events) == 1 else f"{len(events)} events"
    first, last = events[0], events[-1]
    text = (
        f"{ask.kind} {ask.target}: {count} from epoch {first.epoch} to {last.epoch} by {', '.join(agents)}. "
        f"It began when {_describe(first)}."
    )
    return text if len(events) == 1 else f"{text} Last, {_describe(last)}."


def _prepare(ready: Ready) -> tuple[int, dict[str, Any]]:
    ask = _ask(ready)

    def look(tx: ReadTx) -> tuple[int, dict[str, Any]]:
        upto = tx.head().seq
        return upto, replay(tx, ready, ask, upto=upto)

    return ready.services.parts.store.read(Scope(ready.actor.tenant, ready.services.ref), look)


def _execute(call: OperationCall) -> dict[str, Any]:
    _ask(call)
    return {"at": call.prepared[0]}


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """Make the answer from the log; a repeat reads the log again, so no copy is stored."""
    if call.prepared is not None:
        answer: dict[str, Any] = call.prepared[1]
        return answer
    return replay(call.tx, call, _ask(call), upto=result["at"])


REPLAY = Operation("REPLAY", level=2, execute=_execute, prepare=_prepare, show=_show, right=Right.READ)
