"""Conflicts: two units that contradict each other, from detection to resolution.

A conflict is a document; the unresolved ones have a space of their own, so that a Field with a long history lists
its open ones quickly, and another one by unit, so that those of one unit are found without reading the others. A pair
of units has at most one conflict ever: its id is made from theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, convert, structs, to_builtins

from reverie.core.actor import Actor
from reverie.core.entry import READABLE, Entry, EntryState, Scope
from reverie.core.event import NewEvent
from reverie.core.ids import encode
from reverie.core.query import Filter
from reverie.distil.contradictions import Contradiction, contradiction
from reverie.protocols.akashik import documents
from reverie.protocols.akashik.call import OperationCall
from reverie.protocols.akashik.candidates import touched
from reverie.protocols.akashik.units import find_unit, type_of
from reverie.protocols.akashik.visibility import CredentialView, View
from reverie.search.analysis import terms
from reverie.search.lexicon import weight
from reverie.store.contract import ReadTx, Store, WriteTx

CONFLICTS = "akashik.conflict"
OPEN = "akashik.conflict.open"
OF_UNIT = "akashik.conflict.unit"
"""Unresolved conflicts by the digest of a unit's id. Older versions did not keep it: the first use makes it."""
_MADE = "made"
TYPES = ("factual", "interpretive", "strategic", "priority")
STATUSES = ("detected", "resolving", "resolved", "escalated")
TRANSITIONS = {
    "detected": ("resolving", "escalated"),
    "resolving": ("resolved", "escalated"),
    "escalated": ("resolved",),
    "resolved": (),
}
"""Allowed transitions. Compaction is not one of them, except that purging a side ends a conflict."""
_OF_TYPE = {
    "decision": "strategic",
    "intention": "strategic",
    "constraint": "priority",
    "human_directive": "priority",
    "assumption": "interpretive",
    "question": "interpretive",
}
_CANDIDATES = 40
_LOOKED_AT, _MOST_TERMS = 2000, 12
"""Limits on a long unit: the length of its beginning, and how many of the rarest words there are searched for."""
WHY = {
    "number": "the numbers differ",
    "negation": "one denies the other",
    "state": "the states differ",
    "value": "the names differ",
}
_DISPUTABLE = (EntryState.ACTIVE, EntryState.PENDING)


class UnitConflict(Struct, frozen=True):
    """A conflict as stored. Its description holds ids and types, never text."""

    id: str
    type: str
    status: str
    unit_a: str
    unit_b: str
    description: str
    detected_by: str
    session: str | None = None
    authors: list[str] = []
    kinds: list[str] = []
    epoch: int = 0
    ballots: dict[str, str] = {}
    resolution: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The conflict on the wire."""
        shown: dict[str, Any] = {
            "id": self.id,
            "type": self.type,
            "status": self.status,
            "unit_a": self.unit_a,
            "unit_b": self.unit_b,
            "description": self.description,
            "detected_by": self.detected_by,
        }
        if self.resolution is not None:
            shown["resolution"] = self.resolution
        return shown

    @property
    def units(self) -> tuple[str, str]:
        return self.unit_a, self.unit_b


def conflict_id(ref: str, one: str, other: str) -> str:
    """The id of a pair's conflict, whichever side it is found from."""
    low, high = sorted((one, other))
    digest = hashlib.sha256("\0".join((ref, low, high)).encode()).digest()
    return encode(int.from_bytes(digest[:16], "big"))


def load_conflict(tx: ReadTx, key: str) -> tuple[UnitConflict, int] | None:
    """A conflict and its version."""
    found = documents.load(tx, CONFLICTS, key)
    return (convert(found[0], UnitConflict), found[1]) if found else None


def each_conflict(tx: ReadTx) -> Iterator[UnitConflict]:
    """Every conflict, resolved ones included."""
    for _, body, _ in documents.each(tx, CONFLICTS):
        yield convert(body, UnitConflict)


def each_unresolved(tx: ReadTx) -> Iterator[UnitConflict]:
    """Every unresolved conflict."""
    for key, _, _ in documents.each(tx, OPEN):
        found = load_conflict(tx, key)
        if found is not None:
            yield found[0]


def _place(unit_id: str, key: str = "") -> str:
    """The key in `OF_UNIT` of a unit's conflict; without a conflict, what the keys of all of them begin with."""
    return f"{hashlib.sha256(unit_id.encode()).hexdigest()}/{key}"


def _is_disputed(tx: WriteTx, unit_id: str) -> bool:
    """Whether a unit has an unresolved conflict. Its conflicts alone are read."""
    _make_index(tx)
    return bool(tx.documents(OF_UNIT, prefix=_place(unit_id), limit=1).items)


def _make_index(tx: WriteTx) -> None:
    """Make `OF_UNIT` from the unresolved conflicts, once in the life of a Field. The transaction has an event."""
    if tx.load(OF_UNIT, _MADE) is not None:
        return
    seq = tx.head().seq
    for conflict in list(each_unresolved(tx)):
        _add_to_index(tx, conflict, seq=seq)
    documents.save(tx, OF_UNIT, _MADE, {}, seq=seq, expected=None)


def _add_to_index(tx: WriteTx, conflict: UnitConflict, *, seq: int) -> None:
    for side in conflict.units:
        documents.save(tx, OF_UNIT, _place(side, conflict.id), {}, seq=seq, expected=None)


def _close(tx: WriteTx, conflict: UnitConflict, *, seq: int) -> None:
    """Take a resolved conflict out of the unresolved ones, without tombstones: it never opens again."""
    tx.drop(OPEN, conflict.id, seq=seq, keep=0)
    for side in conflict.units:
        tx.drop(OF_UNIT, _place(side, conflict.id), seq=seq, keep=0)


def open_count(tx: ReadTx) -> int:
    """Count the unresolved conflicts."""
    return sum(1 for _ in documents.each(tx, OPEN))


def open_conflict(call: OperationCall, entry: Entry, target: Entry, *, method: str, why: str) -> tuple[str, bool]:
    """Open the conflict of two units unless they have one; both become contested. Returns (id, whether it is new)."""
    key = conflict_id(call.services.ref, entry.id, target.id)
    if load_conflict(call.tx, key) is not None:
        return key, False
    kind = next((_OF_TYPE[k] for k in (type_of(entry), type_of(target)) if k in _OF_TYPE), "factual")
    made = UnitConflict(
        id=key,
        type=kind,
        status="detected",
        unit_a=entry.id,
        unit_b=target.id,
        description=f"{type_of(entry)} {entry.id} contradicts {type_of(target)} {target.id}: {why}",
        detected_by=method,
        session=entry.source.session,
        authors=sorted({entry.source.actor, target.source.actor}),
        kinds=sorted({entry.kind, target.kind}),
        epoch=call.epoch,
    )
    data = {"unit_a": entry.id, "unit_b": target.id, "detected_by": method, "type": kind, "authors": made.authors}
    seq = call.append("conflict.detected", entry_id=entry.id, conflict_id=key, data=data, session=made.session)
    save_conflict(call, made, seq=seq, expected=0)
    for side in (entry, target):
        current = find_unit(call.tx, side.id)
        if current is not None and current.state in _DISPUTABLE:
            data = {"conflict": key}
            session = current.source.session
            seq = call.append("memory.contested", entry_id=side.id, conflict_id=key, data=data, session=session)
            call.tx.change(side.id, seq=seq, state=EntryState.CONTESTED)
    return key, True


def save_conflict(call: OperationCall, conflict: UnitConflict, *, seq: int, expected: int) -> None:
    """Store the next version of a conflict; a resolved one leaves the list of open ones."""
    documents.save(call.tx, CONFLICTS, conflict.id, to_builtins(conflict), seq=seq, expected=expected)
    if conflict.status == "resolved":
        _close(call.tx, conflict, seq=seq)
    elif expected == 0:
        _make_index(call.tx)
        _add_to_index(call.tx, conflict, seq=seq)
        documents.save(call.tx, OPEN, conflict.id, {}, seq=seq, expected=None)


def move(
    call: OperationCall, conflict: UnitConflict, version: int, status: str, **changes: Any
) -> tuple[UnitConflict, int]:
    """Move a conflict to its next status. Raises INVALID_TRANSITION."""
    if status not in TRANSITIONS[conflict.status]:
        raise call.error("INVALID_TRANSITION", f"A conflict that is {conflict.status} cannot become {status}.")
    after = structs.replace(conflict, status=status, **changes)
    data: dict[str, Any] = {"unit_a": after.unit_a, "unit_b": after.unit_b, "authors": after.authors}
    if after.resolution is not None:
        data |= {"strategy": after.resolution["strategy"], "winner_id": after.resolution["winner_id"]}
    seq = call.append(f"conflict.{status}", conflict_id=after.id, data=data, session=after.session)
    save_conflict(call, after, seq=seq, expected=version)
    return after, version + 1


def settle(call: OperationCall, unit_id: str, conflict: UnitConflict) -> None:
    """Make a unit that won a conflict, which is resolved, active again, unless it is in another unresolved one."""
    entry = find_unit(call.tx, unit_id)
    if entry is None or entry.state is not EntryState.CONTESTED:
        return
    if _is_disputed(call.tx, unit_id):
        return
    seq = call.append("memory.settled", entry_id=unit_id, conflict_id=conflict.id, session=entry.source.session)
    call.tx.change(unit_id, seq=seq, state=EntryState.ACTIVE)


def sides_purged(call: OperationCall, unit_ids: Sequence[str]) -> None:
    """End the open conflicts of purged units: there is nothing left to decide."""
    gone = set(unit_ids)
    for conflict in list(each_unresolved(call.tx)):
        if gone.isdisjoint(conflict.units):
            continue
        found = load_conflict(call.tx, conflict.id)
        assert found is not None
        conflict, version = found
        if conflict.status != "escalated":
            conflict, version = move(call, conflict, version, "escalated")
        survivors = [side for side in conflict.units if find_unit(call.tx, side) is not None]
        resolution = {
            "strategy": "human_escalation",
            "winner_id": survivors[0] if survivors else None,
            "rationale": "unit purged",
            "resolved_by": call.speaker.id,
            "epoch_resolved": call.epoch,
        }
        conflict, _ = move(call, conflict, version, "resolved", resolution=resolution)
        for side in survivors:
            settle(call, side, conflict)


def sides_forgotten(tx: WriteTx, actor: Actor, ref: str, gone: Collection[str]) -> None:
    """End the open conflicts of forgotten units, and erase the rationale of all their conflicts, which may quote them.

    Reads every conflict of the tenant: no index leads from units to conflicts.
    """
    for key, body, _ in list(documents.each(tx, CONFLICTS)):
        conflict = convert(body, UnitConflict)
        if not set(conflict.units).isdisjoint(gone) and key == conflict_id(ref, *conflict.units):
            with tx.within(ref):
                _end(tx, actor, conflict, [side for side in conflict.units if side not in gone])


def _end(tx: WriteTx, actor: Actor, conflict: UnitConflict, survivors: Sequence[str]) -> None:
    """Resolve a conflict of which a side was destroyed; nothing of its earlier versions is kept."""

    def append(event: str, data: dict[str, Any], *, entry_id: str | None = None) -> int:
        about = {"entry_id": entry_id, "session": conflict.session, "conflict_id": conflict.id}
        return tx.append(NewEvent(event, "FORGET", actor.id, data=data, **about))

    units: dict[str, Any] = {"unit_a": conflict.unit_a, "unit_b": conflict.unit_b, "authors": conflict.authors}
    before = conflict.resolution or {
        "strategy": "human_escalation",
        "winner_id": survivors[0] if survivors else None,
        "resolved_by": actor.id,
        "epoch_resolved": tx.head().epoch,
    }
    resolution = before | {"rationale": "unit forgotten"}
    seq = tx.head().seq
    if conflict.status != "resolved":
        if conflict.status != "escalated":
            append("conflict.escalated", units)
        decided = {name: resolution[name] for name in ("strategy", "winner_id")}
        seq = append("conflict.resolved", units | decided)
        _close(tx, conflict, seq=seq)
    after = structs.replace(conflict, status="resolved", resolution=resolution)
    tx.save(CONFLICTS, conflict.id, orjson.dumps(to_builtins(after)), seq=seq, keep=1)
    for side in survivors:
        unit = find_unit(tx, side)
        if unit is not None and unit.state is EntryState.CONTESTED and not _is_disputed(tx, side):
            seq = append("memory.settled", {}, entry_id=side)
            tx.change(side, seq=seq, state=EntryState.ACTIVE)


def contradict(call: OperationCall, entry: Entry, target: Entry) -> str:
    """Open the conflict that a `contradicts` relation declares, or find the one of the pair; returns its id.

    Empty when one is a draft, of which only its author may know.
    """
    if EntryState.DRAFT in (entry.state, target.state):
        return ""
    return open_conflict(call, entry, target, method="explicit", why="declared by its author")[0]


class Disputes(Struct, frozen=True):
    """Contradictions of a unit about to be recorded, by the position of the other unit, as of a log position."""

    found: Mapping[int, Contradiction] = {}
    snapshot: int = 0


def detect(call: OperationCall, entry: Entry, disputes: Disputes) -> list[str]:
    """Automatic detection for a unit just recorded (Level 2): the ids of conflicts it opened.

    Those found before the write are checked again; units recorded since are compared here.
    """
    if not speaks(entry):
        return []
    opened = []
    known = call.tx.at(list(disputes.found), Filter()) if disputes.found else {}
    before = [(other, disputes.found[position]) for position, other in known.items()]
    since = [other for other in touched(call.tx, disputes.snapshot) if other.id != entry.id]
    for other, found in (*before, *((other, contradiction(entry.content, other.content)) for other in since)):
        if other.source.session != entry.source.session or not speaks(other):
            continue
        if found is not None and call.view.sees(other):
            key, fresh = open_conflict(call, entry, other, method=found.method, why=WHY[found.kind])
            if fresh:
                opened.append(key)
    return opened


def speaks(entry: Entry) -> bool:
    """Whether a unit makes a statement that holds now: readable, hot, and no question."""
    return entry.state in READABLE and not entry.archived and entry.kind != "question"


def alike(tx: ReadTx, content: str, session: str | None, *, limit: int = _CANDIDATES) -> Mapping[int, Entry]:
    """Return the units of a session that share the most words with a text, by position: one bounded search."""
    said = dict.fromkeys(terms(content[:_LOOKED_AT]))
    telling = [word for word in said if not word.isdigit()] or list(said)  # numbers are what contradictions differ in
    words = sorted(telling, key=weight, reverse=True)[:_MOST_TERMS]
    where = Filter(session=session) if session is not None else Filter(sessionless=True)
    found = tx.match(words, where, limit=limit) if words else []
    return tx.at([match.entry.position for match in found], where) if found else {}


def disputes_of(store: Store, scope: Scope, content: str, session: str | None) -> Disputes:
    """Compare a text with the units that are most like it, before the write."""
    others, snapshot = store.read(scope, lambda tx: (alike(tx, content, session), tx.head().seq))
    compared = ((position, contradiction(content, other.content)) for position, other in others.items())
    return Disputes({position: found for position, found in compared if found is not None}, snapshot)


def in_sight(tx: ReadTx, view: View | CredentialView, conflict: UnitConflict) -> bool:
    """Whether both sides are visible; for a purged one, whether its session is."""
    return _are_visible(view, conflict, [find_unit(tx, side) for side in conflict.units])


def _are_visible(view: View | CredentialView, conflict: UnitConflict, sides: Sequence[Entry | None]) -> bool:
    return all(view.reaches(side) if side is not None else view.enters(conflict.session) for side in sides)


def touches(tx: ReadTx, view: View, conflict: UnitConflict) -> bool:
    """Whether a conflict is visible and one of its sides is in the session that the envelope names."""
    sides = [find_unit(tx, side) for side in conflict.units]
    if not _are_visible(view, conflict, sides):
        return False
    return not any(sides) or any(view.sees(side) for side in sides if side is not None)


def unresolved(call: OperationCall) -> list[dict[str, Any]]:
    """The unresolved conflicts touching the caller's session, as ATTUNE and HANDOFF show them."""
    return [item.document() for item in each_unresolved(call.tx) if touches(call.tx, call.view, item)]


def unresolved_for(tx: ReadTx, view: View | CredentialView, *, session_id: str | None) -> list[dict[str, Any]]:
    """`GET /v1/conflicts`: unresolved conflicts of which `view` reaches both sides, of one session if it is named."""
    return [
        item.document()
        for item in each_unresolved(tx)
        if (session_id is None or item.session == session_id) and in_sight(tx, view, item)
    ]
