"""MERGE: seven strategies to resolve a conflict. Of several calls at the same time exactly one succeeds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from reverie.core.entry import Entry, EntryState, Link, Scope
from reverie.core.subject import SUBJECT_TAG, named_subjects
from reverie.memory.insertion import PreparedEntry
from reverie.protocols.akashik.call import FIELD_AGENT, Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.conflicts import UnitConflict, in_sight, load_conflict, move, save_conflict, settle
from reverie.protocols.akashik.operations.agents import load_agent
from reverie.protocols.akashik.operations.record import check_room, tagged
from reverie.protocols.akashik.operations.sessions import load_session
from reverie.protocols.akashik.units import draft, find_unit, score_of, task_of
from reverie.protocols.akashik.visibility import kinds_of
from reverie.store.contract import ReadTx

STRATEGIES = {
    "last_write_wins": 2,
    "confidence_weighted": 2,
    "human_escalation": 2,
    "evidence_count": 3,
    "authority": 3,
    "synthesis": 3,
    "vote": 3,
}
"""Each strategy, with the level that has it."""
AUTHORITY = 6
HUMAN = 10
QUORUM = 3
MAX_TEXT = 65_536
_WITHDRAWN = (EntryState.SUPERSEDED, EntryState.RETRACTED)
_COMPUTED = ("last_write_wins", "confidence_weighted", "evidence_count")


@dataclass(frozen=True, slots=True)
class MergeRequest:
    conflict: str
    strategy: str
    rationale: str
    winner: str | None
    synthesis: str | None


def _ask(ready: Ready) -> MergeRequest:
    payload = ready.payload

    def no(text: str) -> Exception:
        return ready.error("INVALID_REQUEST", text)

    key, strategy, resolution = payload.get("conflict_id"), payload.get("strategy"), payload.get("resolution")
    if not isinstance(key, str) or not key:
        raise no("conflict_id names a conflict.")
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise no(f"strategy is one of {', '.join(STRATEGIES)}.")
    if STRATEGIES[strategy] > ready.level:
        text = f"{strategy} is of Level {STRATEGIES[strategy]}; this Field is of Level {ready.level}."
        raise ready.error("UNSUPPORTED_OPERATION", text)
    if not isinstance(resolution, dict):
        raise no("resolution is an object with a rationale.")
    rationale, winner, synthesis = (resolution.get(name) for name in ("rationale", "winner_id", "synthesis"))
    if not isinstance(rationale, str) or not rationale.strip() or len(rationale) > MAX_TEXT:
        raise no("resolution.rationale says why; it is not empty.")
    if winner is not None and not isinstance(winner, str):
        raise no("resolution.winner_id is the id of a unit.")
    if isinstance(synthesis, dict):
        synthesis = synthesis.get("content")
    if strategy == "synthesis" and (not isinstance(synthesis, str) or not synthesis.strip()):
        raise no("resolution.synthesis is the text that takes the place of both.")
    if strategy in ("authority", "vote") and not winner:
        raise no(f"{strategy} needs resolution.winner_id.")
    return MergeRequest(key, strategy, rationale, winner or None, synthesis if strategy == "synthesis" else None)


def _find(tx: ReadTx, ready: Ready, view: Any, key: str) -> tuple[UnitConflict, int]:
    found = load_conflict(tx, key)
    if found is None or not in_sight(tx, view, found[0]):
        raise ready.error("CONFLICT_NOT_FOUND", "There is no conflict with this id.")
    if not view.commands(found[0].session, AUTHORITY):
        raise ready.error("INSUFFICIENT_AUTHORITY", f"MERGE needs authority {AUTHORITY} in the conflict's session.")
    return found


def _prepare(ready: Ready) -> PreparedEntry | None:
    """The synthesis unit, when one is to be written."""
    ask = _ask(ready)
    ready.require(AUTHORITY)
    if ask.synthesis is None:
        return None
    services = ready.services

    def look(tx: ReadTx) -> tuple[UnitConflict, list[Entry]]:
        conflict, _ = _find(tx, ready, view_of(tx, ready), ask.conflict)
        return conflict, [side for key in conflict.units if (side := find_unit(tx, key)) is not None]

    conflict, sides = services.parts.store.read(Scope(ready.actor.tenant, services.ref), look)
    tasks = {task_of(side) for side in sides}
    scores = [0.5 if (score := score_of(side)) is None else score for side in sides]
    subjects = sorted({name for side in sides for name in named_subjects(side.subject, side.tags)})
    tags = tuple(f"{SUBJECT_TAG}{name}" for name in subjects) if len(subjects) > 1 else ()
    made = draft(
        kind="synthesis",
        content=ask.synthesis,
        mode="committed",
        intent={
            "purpose": f"Resolves conflict {conflict.id}",
            "task_id": next(iter(tasks)) if len(tasks) == 1 else None,
            "question": None,
        },
        confidence={
            "score": min(scores, default=0.5),
            "reasoning": ask.rationale[:2000],
            "evidence": [],
            "assumptions": [],
        },
        author=FIELD_AGENT,
        role="mediator",
        session=conflict.session,
        state=EntryState.ACTIVE,
        more={"derived_from_types": sorted({kind for side in sides for kind in kinds_of(side)})},
        subject=subjects[0] if len(subjects) == 1 else None,
        tags=tags,
    )
    return services.entries.prepare(ready.actor, services.ref, [made], tagged(ready.rules, len(tags)))[0]


def _execute(call: OperationCall) -> dict[str, Any]:
    ask = _ask(call)
    call.require(AUTHORITY)
    conflict, version = _find(call.tx, call, call.view, ask.conflict)
    if conflict.status == "resolved":
        raise call.error("INVALID_TRANSITION", "This conflict is resolved.")
    if conflict.status == "escalated" and (call.authority < HUMAN or ask.strategy in ("human_escalation", "vote")):
        raise call.error("INVALID_TRANSITION", "This conflict waits for a human: authority 10 resolves it.")
    if ask.strategy == "human_escalation":
        conflict, _ = move(call, conflict, version, "escalated")
        return _answer("escalated", conflict)
    sides = {key: find_unit(call.tx, key) for key in conflict.units}
    winner = _winner(call, ask, conflict, sides)
    if ask.strategy == "vote":
        conflict, version = _ballot(call, conflict, version, str(winner))
        winner = _elected(call, conflict, _able(sides))
        if winner is None:
            return _answer("pending_vote", conflict)
    elif conflict.status == "detected":
        conflict, version = move(call, conflict, version, "resolving")
    new_unit = _synthesis(call, conflict) if ask.strategy == "synthesis" else None
    resolution = {
        "strategy": ask.strategy,
        "winner_id": new_unit or winner,
        "rationale": ask.rationale,
        "resolved_by": call.speaker.id,
        "epoch_resolved": call.epoch,
    }
    conflict, _ = move(call, conflict, version, "resolved", resolution=resolution)
    losers = [key for key in conflict.units if key != winner]
    gone = [key for key in losers if _supersede(call, key, conflict, by=new_unit or winner)]
    if winner is not None:
        settle(call, winner, conflict)
    return _answer("resolved", conflict, superseded=gone, new_unit=new_unit)


def _answer(
    status: str, conflict: UnitConflict, *, superseded: list[str] | None = None, new_unit: str | None = None
) -> dict[str, Any]:
    """Build the answer, which is stored for repeats: without the rationale, which a forget must reach."""
    shown = conflict.document()
    if conflict.resolution is not None:
        shown["resolution"] = {key: value for key, value in conflict.resolution.items() if key != "rationale"}
    return {
        "status": status,
        "conflict": shown,
        "side_effects": {
            "superseded_units": superseded or [],
            "new_unit_id": new_unit,
            "notified_agents": conflict.authors if status != "pending_vote" else [],
        },
    }


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """The answer with the rationale as it is stored now."""
    conflict = result["conflict"]
    found = load_conflict(call.tx, conflict["id"])
    if "resolution" not in conflict or found is None or found[0].resolution is None:
        return result
    resolution = conflict["resolution"] | {"rationale": found[0].resolution["rationale"]}
    return result | {"conflict": conflict | {"resolution": resolution}}


def _winner(
    call: OperationCall, ask: MergeRequest, conflict: UnitConflict, sides: dict[str, Entry | None]
) -> str | None:
    """Choose the winner by the strategy; None for synthesis."""
    if ask.strategy == "synthesis":
        return None
    if ask.strategy in _COMPUTED:
        computed = _computed(call, ask.strategy, sides)
        if ask.winner is not None and ask.winner != computed:
            raise call.error("MERGE_FAILED", f"By {ask.strategy} the winner is {computed}; nothing was changed.")
        return computed
    if ask.winner not in conflict.units:
        raise call.error("INVALID_REQUEST", "resolution.winner_id is one of the two units.")
    if ask.winner not in _able(sides):
        raise call.error("MERGE_FAILED", "This unit was withdrawn or replaced, and cannot win; nothing was changed.")
    if ask.strategy == "authority":
        levels = [agent.authority_level for name in conflict.authors if (agent := load_agent(call.tx, name))]
        if call.authority < max(levels, default=0):
            raise call.error("INSUFFICIENT_AUTHORITY", "This needs at least the authority of both authors.")
    return ask.winner


def _able(sides: dict[str, Entry | None]) -> list[str]:
    """The units that may win: of a live unit and one that was withdrawn or replaced, the live one alone."""
    live = [key for key, entry in sides.items() if entry is not None and entry.state not in _WITHDRAWN]
    return live or list(sides)


def _computed(call: OperationCall, strategy: str, sides: dict[str, Entry | None]) -> str:
    if len(able := _able(sides)) == 1:
        return able[0]

    def rank(entry: Entry | None) -> tuple[float, ...]:
        if entry is None:
            return (-1.0, -1.0)
        if strategy == "last_write_wins":
            return (entry.epoch, entry.born_seq)
        if strategy == "confidence_weighted":
            return (score_of(entry) or 0.0,)
        return (float(_evidence(call, entry)),)

    (one, first), (other, second) = ((key, rank(entry)) for key, entry in sides.items())
    if first == second:
        raise call.error("MERGE_FAILED", f"By {strategy} neither unit wins; nothing was changed.")
    return one if first > second else other


def _evidence(call: OperationCall, entry: Entry) -> int:
    confidence = entry.attributes.get("confidence")
    listed = confidence.get("evidence") if isinstance(confidence, dict) else None
    supports = {
        link.from_id
        for link in call.tx.links(entry.id, incoming=True, type="supports")
        if (by := find_unit(call.tx, link.from_id)) is not None
        and by.state not in (EntryState.RETRACTED, EntryState.DRAFT)
    }
    return (len(listed) if isinstance(listed, list) else 0) + len(supports)


def _ballot(call: OperationCall, conflict: UnitConflict, version: int, winner: str) -> tuple[UnitConflict, int]:
    """One vote; an agent's last one counts."""
    ballots = {**conflict.ballots, call.speaker.id: winner}
    if conflict.status == "detected":
        conflict, version = move(call, conflict, version, "resolving")
    conflict = structs.replace(conflict, ballots=ballots)
    data = {"winner_id": winner, "ballots": len(ballots)}
    seq = call.append("conflict.vote", conflict_id=conflict.id, data=data, session=conflict.session)
    save_conflict(call, conflict, seq=seq, expected=version)
    return conflict, version + 1


def _elected(call: OperationCall, conflict: UnitConflict, able: Collection[str]) -> str | None:
    """The unit with more votes, once enough agents voted for units that may win; None: not yet, or a tie."""
    session = load_session(call.tx, conflict.session) if conflict.session else None
    quorum = session.policy.vote_quorum if session else QUORUM
    votes = [vote for vote in conflict.ballots.values() if vote in able]
    one, other = (votes.count(side) for side in conflict.units)
    if len(votes) < quorum or one == other:
        return None
    return conflict.unit_a if one > other else conflict.unit_b


def _synthesis(call: OperationCall, conflict: UnitConflict) -> str:
    item: PreparedEntry = call.prepared
    check_room(call, call.tx, 1, item.entry.byte_size)
    relations = [{"type": "elaborates", "target_id": side} for side in conflict.units]
    made = call.insert(item, task_id=task_of(item.entry), data={"relations": relations})
    for side in conflict.units:
        call.tx.link(Link(made.id, side, "elaborates"))
    return made.id


def _supersede(call: OperationCall, key: str, conflict: UnitConflict, *, by: str | None) -> bool:
    """The loser is superseded; an archived one stays archived."""
    entry = find_unit(call.tx, key)
    if entry is None or entry.state in _WITHDRAWN:
        return entry is not None and entry.state is EntryState.SUPERSEDED
    seq = call.append(
        "memory.superseded", entry_id=key, conflict_id=conflict.id, data={"by": by}, session=entry.source.session
    )
    call.tx.change(key, seq=seq, state=EntryState.SUPERSEDED)
    return True


MERGE = Operation("MERGE", level=2, execute=_execute, prepare=_prepare, show=_show)
