"""DETECT: known conflicts, and mechanical detection of statements that cannot both be true."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from reverie.core.actor import Right
from reverie.core.entry import Entry, Scope
from reverie.core.query import Filter, each
from reverie.distil.contradictions import Contradiction, contradiction, subjects
from reverie.protocols.akashik.call import Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.conflicts import (
    STATUSES,
    TYPES,
    WHY,
    UnitConflict,
    alike,
    each_conflict,
    in_sight,
    open_conflict,
    speaks,
    touches,
)
from reverie.protocols.akashik.units import find_unit
from reverie.store.contract import ReadTx

MODES = ("check", "scan", "list")
AUTHORITY = 4
_SECONDS = 5.0
"""Time limit of a scan. Later pairs are not compared, and the answer says that detection was deferred."""
_PAGE = 1000
_CANDIDATES = 200
"""Units that a check compares with its target: those that share most words with it."""


@dataclass(frozen=True, slots=True)
class DetectRequest:
    mode: str
    target: str | None
    status: frozenset[str] | None
    types: frozenset[str] | None
    agents: frozenset[str] | None

    def takes(self, conflict: UnitConflict) -> bool:
        return (
            (self.status is None or conflict.status in self.status)
            and (self.types is None or conflict.type in self.types)
            and (self.agents is None or not self.agents.isdisjoint(conflict.authors))
        )


@dataclass(frozen=True, slots=True)
class Detection:
    """Result of a scan: the units examined, and the pairs that contradict each other."""

    scanned: int
    pairs: Sequence[tuple[str, str, Contradiction]] = ()
    complete: bool = True


def _ask(ready: Ready) -> DetectRequest:
    payload = ready.payload
    mode, target, asked = payload.get("mode"), payload.get("target_id"), payload.get("filter")
    if mode not in MODES:
        raise ready.error("INVALID_REQUEST", f"mode is one of {', '.join(MODES)}.")
    if mode != "list" and ready.level < 2:
        raise ready.error("UNSUPPORTED_OPERATION", f"DETECT {mode} is of Level 2; this Field is of {ready.level}.")
    if target is not None and not isinstance(target, str):
        raise ready.error("INVALID_REQUEST", "target_id is the id of a unit.")
    if mode == "check" and not target:
        raise ready.error("INVALID_REQUEST", "DETECT check needs target_id.")
    if asked is None:
        asked = {}
    known = {"status": STATUSES, "types": TYPES, "involving_agents": None}
    if not isinstance(asked, dict) or not asked.keys() <= known.keys():
        raise ready.error("INVALID_FILTER", f"filter is an object with {', '.join(known)}.")
    lists: dict[str, frozenset[str] | None] = {}
    for name, allowed in known.items():
        values = asked.get(name)
        if values is not None and (
            not isinstance(values, list)
            or not all(isinstance(value, str) and (allowed is None or value in allowed) for value in values)
        ):
            raise ready.error(
                "INVALID_FILTER", f"{name} is a list" + (f" of: {', '.join(allowed)}." if allowed else ".")
            )
        lists[name] = None if values is None else frozenset(values)
    return DetectRequest(mode, target, lists["status"], lists["types"], lists["involving_agents"])


def _prepare(ready: Ready) -> Detection | None:
    """Look for contradictions on a snapshot: comparing takes time."""
    ask = _ask(ready)
    ready.require(AUTHORITY)
    services = ready.services
    if ask.mode == "list" or services.faults.on(ready.actor.tenant, "detection_timeout"):
        return Detection(0, complete=ask.mode == "list")

    def look(tx: ReadTx) -> list[Entry]:
        view = view_of(tx, ready)
        return [entry for entry in _standing(tx) if view.sees(entry)]

    def check(tx: ReadTx) -> tuple[Entry, list[Entry]] | None:
        view = view_of(tx, ready)
        target = find_unit(tx, ask.target or "")
        if target is None or not view.reaches(target):
            return None
        others = alike(tx, target.content, target.source.session, limit=_CANDIDATES).values() if speaks(target) else ()
        return target, [e for e in others if e.id != target.id and speaks(e) and view.reaches(e)]

    scope = Scope(ready.actor.tenant, services.ref)
    if ask.mode == "check":
        seen = services.parts.store.read(scope, check)
        if seen is None:
            raise ready.error("UNIT_NOT_FOUND", "There is no unit with this id.")
        target, others = seen
        pairs = [(target.id, e.id, c) for e in others if (c := contradiction(target.content, e.content)) is not None]
        return Detection(len(others), pairs)
    return compare(services.parts.store.read(scope, look))


def compare(entries: Sequence[Entry]) -> Detection:
    """Every contradicting pair, each once. Only units that share a word are compared."""
    shelves: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for at, entry in enumerate(entries):
        for word in {word[:4] for word in subjects(entry.content)}:
            shelves[(entry.source.session, word)].append(at)
    until = time.monotonic() + _SECONDS
    seen: set[tuple[int, int]] = set()
    pairs: list[tuple[str, str, Contradiction]] = []
    for members in sorted(shelves.values(), key=len):
        for pair in combinations(members, 2):
            if pair in seen:
                continue
            if time.monotonic() > until:
                return Detection(len(entries), pairs, complete=False)
            seen.add(pair)
            one, other = entries[pair[0]], entries[pair[1]]
            found = contradiction(one.content, other.content)
            if found is not None:
                pairs.append((other.id, one.id, found))
    return Detection(len(entries), pairs)


def _standing(tx: ReadTx) -> list[Entry]:
    return list(filter(speaks, each(lambda cursor: tx.scan(Filter(), limit=_PAGE, cursor=cursor, oldest_first=True))))


def _execute(call: OperationCall) -> dict[str, Any]:
    ask, found = _ask(call), call.prepared
    call.require(AUTHORITY)
    target = find_unit(call.tx, ask.target) if ask.mode == "check" and ask.target else None
    if ask.mode == "check" and (target is None or not call.view.reaches(target)):
        raise call.error("UNIT_NOT_FOUND", "There is no unit with this id.")
    fresh = 0
    for one, other, why in found.pairs:
        sides = [find_unit(call.tx, side) for side in (one, other)]
        if all(side is not None and speaks(side) and call.view.reaches(side) for side in sides):
            first, second = (side for side in sides if side is not None)
            fresh += open_conflict(call, first, second, method=why.method, why=WHY[why.kind])[1]
    known = [
        item
        for item in each_conflict(call.tx)
        if ask.takes(item)
        and (ask.target is None or ask.target in item.units)
        and (in_sight if ask.target else touches)(call.tx, call.view, item)
    ]
    answer: dict[str, Any] = {
        "status": "ok",
        "conflicts": [item.document() for item in sorted(known, key=lambda item: (item.epoch, item.id))],
        "scan_coverage": {"units_scanned": found.scanned, "new_conflicts_found": fresh},
    }
    if not found.complete:
        answer["conflict_detection"] = "deferred"
    return answer


DETECT = Operation("DETECT", level=1, execute=_execute, prepare=_prepare, right=Right.READ)
