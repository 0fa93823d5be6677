"""ATTUNE: the units that matter to an agent now, scored, with reasons, within its budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reverie.core.actor import Right
from reverie.core.entry import Entry, Scope
from reverie.core.retry import Moved
from reverie.protocols.akashik import conflicts
from reverie.protocols.akashik.budget import counting, cut, fit, gist
from reverie.protocols.akashik.call import Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.candidates import MOST_FRESH, NewUnits, UnitAdmission, admit, fresh, gather
from reverie.protocols.akashik.envelope import LIMIT_EPOCH
from reverie.protocols.akashik.operations.agents import FieldAgent
from reverie.protocols.akashik.relevance import (
    LAYERS,
    Meaning,
    RelevanceQuery,
    Scored,
    meaning_of,
    rank_units,
    reason_of,
    vector_of,
    words_of,
)
from reverie.protocols.akashik.units import find_unit, relations_of, unit
from reverie.protocols.akashik.visibility import View
from reverie.store.contract import ReadTx

FORMATS = ("full", "summary", "ids_only")
_TIMES = 3
"""Maximum number of restarts on a new snapshot, when too much was committed meanwhile."""


@dataclass(frozen=True, slots=True)
class _Scope:
    role: str
    max_units: int
    max_tokens: int | None
    interests: tuple[str, ...]
    active_task_id: str | None
    threshold: float | None
    recency_weight: float | None
    layers: tuple[str, ...]
    since_epoch: int
    include_own: bool
    include_archived: bool
    hint: str
    format: str


def _scope(call: Ready) -> _Scope:
    payload = call.payload
    scope = payload.get("scope")

    def no(text: str) -> Exception:
        return call.error("INVALID_REQUEST", text)

    if not isinstance(scope, dict):
        raise no("scope is an object with role and max_units.")
    role = scope.get("role")
    if not isinstance(role, str) or not role.strip():
        raise no("scope.role is a string that is not empty.")
    since = [
        number
        for number in (
            _integer(no, payload, "since_epoch", least=0),
            _integer(no, scope, "since_epoch", least=0),
        )
        if number is not None
    ]
    most = _integer(no, scope, "max_units", least=1)
    if most is None:
        raise no("scope.max_units is a whole number, 1 or more.")
    hint, form = payload.get("context_hint"), payload.get("format")
    form = "full" if form is None else form
    if hint is not None and not isinstance(hint, str):
        raise no("context_hint is a string.")
    if form not in FORMATS:
        raise no(f"format is one of {', '.join(FORMATS)}.")
    task = scope.get("active_task_id")
    if task is not None and not isinstance(task, str):
        raise no("scope.active_task_id is a string or null.")
    layers = _texts(no, scope, "temporal_layers")
    if any(layer not in LAYERS for layer in layers):
        raise no(f"scope.temporal_layers are of {', '.join(LAYERS)}.")
    for name in ("include_own", "include_archived"):
        if scope.get(name) is not None and not isinstance(scope[name], bool):
            raise no(f"scope.{name} is true or false.")
    return _Scope(
        role=role,
        max_units=most,
        max_tokens=_integer(no, scope, "max_tokens", least=1),
        interests=_texts(no, scope, "interests"),
        active_task_id=task,
        threshold=_share(no, scope, "relevance_threshold"),
        recency_weight=_share(no, scope, "recency_weight"),
        layers=layers,
        since_epoch=max(since, default=0),
        include_own=bool(scope.get("include_own")),
        include_archived=bool(scope.get("include_archived")),
        hint=hint or "",
        format=form,
    )


def _integer(no: Any, given: Mapping[str, Any], name: str, *, least: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value < LIMIT_EPOCH:
        raise no(f"{name} is a whole number, {least} or more, below 2^53.")
    return value


def _share(no: Any, given: Mapping[str, Any], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise no(f"scope.{name} is a number from 0 to 1.")
    return float(value)


def _texts(no: Any, given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = given.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise no(f"scope.{name} is a list of strings.")
    return tuple(value)


@dataclass(slots=True)
class _Attunement:
    """Result for an agent as of a snapshot."""

    scope: _Scope
    asked: RelevanceQuery
    ranked: list[Scored]
    """The best: as many as requested, and some to replace units that leave meanwhile."""
    meaning: Meaning | None
    available: int
    snapshot: int
    at_hand: Mapping[str, Scored] = field(default_factory=dict)


def _prepare(ready: Ready) -> _Attunement:
    """Find, score and count on a snapshot: no writer waits for it."""
    scope = _scope(ready)
    ready.require(2)
    agent, services = ready.speaker, ready.services
    query = _query(scope, agent)
    vector = vector_of(query, services.parts.embedder)

    def look(tx: ReadTx) -> _Attunement:
        admission = _admission(view_of(tx, ready), ready, scope)
        task_id = scope.active_task_id or agent.current_task_id
        found = gather(tx, admission, query=query, vector=vector, task_id=task_id, most_units=scope.max_units)
        asked = RelevanceQuery(
            role=scope.role,
            query=query,
            task_id=task_id,
            recency_weight=scope.recency_weight,
            layers=scope.layers,
            related=found.related,
            epoch=ready.epoch,
        )
        meaning = meaning_of(tx, found.entries, query, vector, found.alike)
        ranked = _above(rank_units(found.entries, asked, meaning), scope)
        available = len(found.entries) if found.complete else admission.count(tx)
        kept = ranked[: scope.max_units + MOST_FRESH]
        return _Attunement(scope, asked, kept, meaning, available, found.snapshot)

    return services.parts.store.read(Scope(ready.actor.tenant, services.ref), look)


def _query(scope: _Scope, agent: FieldAgent | None) -> str:
    """The text that units are compared with."""
    interests = scope.interests or (agent.interests if agent is not None else ())
    return " ".join([scope.hint, *interests]) if scope.hint or scope.interests else ""


def _admission(view: View, ready: Ready, scope: _Scope) -> UnitAdmission:
    return admit(
        view,
        ready.speaker.id,
        since_seq=ready.speaker.since_seq,
        own=scope.include_own,
        archived=scope.include_archived,
        since_epoch=scope.since_epoch,
    )


def _above(ranked: list[Scored], scope: _Scope) -> list[Scored]:
    return ranked if scope.threshold is None else [item for item in ranked if item.score >= scope.threshold]


def _execute(call: OperationCall) -> dict[str, Any]:
    """Make the small write: check the candidates again, and add units committed meanwhile."""
    found: _Attunement = call.prepared
    scope = found.scope
    call.require(2)
    admission = _admission(call.view, call, scope)
    later = fresh(call.tx, admission, found.snapshot)
    if not later.complete and call.attempt < _TIMES:
        raise Moved
    ranked = _checked(call, found, admission, later)
    best = ranked[: scope.max_units]
    count = counting(call.services.parts.tokens)
    lengths: list[int | None] = [None] * len(best)
    if scope.format == "summary":
        lengths = [gist(item.entry.content, count) for item in best]
    texts = [cut(item.entry.content, length) for item, length in zip(best, lengths, strict=True)]
    if scope.format == "ids_only":
        texts = [""] * len(best)
    chosen, used = fit(texts, scope.max_tokens, count)
    record = []
    for index, length in chosen:
        item = best[index]
        kept = lengths[index] if length is None else min(length, lengths[index] or length)
        whole = kept is None and scope.format == "full"
        reason = {"reason": item.facts, "words": len(item.words)}  # no words: what is remembered holds no text of units
        shown = {"id": item.entry.id, "score": item.score, "length": kept, **reason}
        record.append({**shown, "format": "full" if whole else "summary"})
    found.at_hand = {item.entry.id: item for item in best}
    call.append("field.attuned", data={"units": len(record)})
    return {
        "status": "ok",
        "record": record,
        "ids_only": scope.format == "ids_only",
        "busy": not later.complete,
        "context_budget": {
            "units_returned": len(record),
            "units_available": max(found.available + later.more, len(record)),
            "tokens_used": used,
            "tokens_budget": scope.max_tokens,
        },
    }


def _checked(call: OperationCall, found: _Attunement, admission: UnitAdmission, later: NewUnits) -> list[Scored]:
    """The best as they are now: without what left since the snapshot, with what came."""
    expiring = any((item.entry.expires_at or call.tx.now + 1) <= call.tx.now for item in found.ranked)
    if call.tx.head().seq == found.snapshot and call.epoch == found.asked.epoch and not expiring:
        return found.ranked  # nothing was committed since, so nothing left
    hot = call.tx.at([item.entry.position for item in found.ranked], admission.where)
    entries: list[Entry] = []
    for item in found.ranked:
        current = hot.get(item.entry.position)
        if current is None and (item.entry.archived or item.entry.gone_seq is not None):
            current = call.tx.get(item.entry.id, where=admission.where)
        if current is not None and admission.takes(current):
            entries.append(current)
    known = {entry.id for entry in entries}
    new = [entry for entry in later.entries if entry.id not in known]
    if not new and call.epoch == found.asked.epoch and len(entries) == len(found.ranked):
        return found.ranked
    asked = replace(found.asked, epoch=call.epoch)
    more = words_of(new, asked.query)
    meaning = None if found.meaning is None else {**found.meaning, **(more or {})}
    return _above(rank_units([*entries, *new], asked, meaning), found.scope)


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """Put the units in. A unit that was purged since the first answer is not shown again."""
    at_hand: Mapping[str, Scored] = call.prepared.at_hand if call.prepared else {}
    query = "" if call.prepared else _query(_scope(call), call.agent)
    record = []
    for item in result["record"]:
        scored = at_hand.get(item["id"])
        entry = scored.entry if scored is not None else find_unit(call.tx, item["id"])
        if entry is None:
            continue
        words = scored.words if scored is not None else _words(entry, query)
        if result["ids_only"]:
            shown: dict[str, Any] = {"id": entry.id}
        else:
            shown = unit(entry, relations_of(call.tx, entry), content=cut(entry.content, item["length"]))
        record.append(
            {
                "memory_unit": shown,
                "relevance_score": item["score"],
                "relevance_reason": reason_of(words[: item.get("words", 0)], item["reason"]),
                "format": item["format"],
            }
        )
    open_conflicts = conflicts.unresolved(call) if call.agent is not None else []
    budget = {**result["context_budget"], "units_returned": len(record)}
    shown_all = {"status": "ok", "record": record, "conflicts": open_conflicts, "context_budget": budget}
    return {**shown_all, "warnings": ["BUSY"]} if result.get("busy") else shown_all


def _words(entry: Entry, query: str) -> Sequence[str]:
    """Words of the query that a unit has, as the first answer named them."""
    found = words_of([entry], query)
    return () if found is None else found[entry.id][1]


ATTUNE = Operation(
    "ATTUNE", level=0, execute=_execute, prepare=_prepare, show=_show, event="field.attuned", right=Right.READ
)
