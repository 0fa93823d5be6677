"""ATTUNE: the units that matter to an agent now, scored, with reasons, within its budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reverie.core.actor import Right
from reverie.core.entry import READABLE, Entry, EntryState
from reverie.core.query import Filter
from reverie.protocols.akashik import conflicts
from reverie.protocols.akashik.budget import counting, cut, fit, gist
from reverie.protocols.akashik.call import Call, Operation
from reverie.protocols.akashik.envelope import LIMIT_EPOCH
from reverie.protocols.akashik.relevance import LAYERS, Asked, rank_units
from reverie.protocols.akashik.units import find_unit, relations_of, unit
from reverie.store.contract import ReadTx

FORMATS = ("full", "summary", "ids_only")
_PAGE = 1000
_OWN_LOOKED_AT = 50
"""How many of the agent's own newest units are asked for their relations."""


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


def _scope(call: Call) -> _Scope:
    payload = call.payload
    scope = payload.get("scope")

    def no(text: str) -> Exception:
        return call.error("INVALID_REQUEST", text)

    if not isinstance(scope, dict):
        raise no("scope is an object with role and max_units.")
    role = scope.get("role")
    if not isinstance(role, str) or not role.strip():
        raise no("scope.role is a text that is not empty.")
    since = [
        number
        for number in (
            _whole(no, payload, "since_epoch", least=0),
            _whole(no, scope, "since_epoch", least=0),
        )
        if number is not None
    ]
    most = _whole(no, scope, "max_units", least=1)
    if most is None:
        raise no("scope.max_units is a whole number, 1 or more.")
    hint, form = payload.get("context_hint"), payload.get("format")
    form = "full" if form is None else form
    if hint is not None and not isinstance(hint, str):
        raise no("context_hint is a text.")
    if form not in FORMATS:
        raise no(f"format is one of {', '.join(FORMATS)}.")
    task = scope.get("active_task_id")
    if task is not None and not isinstance(task, str):
        raise no("scope.active_task_id is a text, or null.")
    layers = _texts(no, scope, "temporal_layers")
    if any(layer not in LAYERS for layer in layers):
        raise no(f"scope.temporal_layers are of {', '.join(LAYERS)}.")
    for name in ("include_own", "include_archived"):
        if scope.get(name) is not None and not isinstance(scope[name], bool):
            raise no(f"scope.{name} is true or false.")
    return _Scope(
        role=role,
        max_units=most,
        max_tokens=_whole(no, scope, "max_tokens", least=1),
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


def _whole(no: Any, given: Mapping[str, Any], name: str, *, least: int) -> int | None:
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
        raise no(f"scope.{name} is a list of texts.")
    return tuple(value)


def each_unit(tx: ReadTx, where: Filter) -> Iterator[Entry]:
    """Every unit that matches."""
    cursor: str | None = None
    while True:
        page = tx.scan(where, limit=_PAGE, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def _execute(call: Call) -> dict[str, Any]:
    scope = _scope(call)
    call.require(2)
    agent, view = call.speaker, call.view
    states = READABLE | {EntryState.DRAFT} if scope.include_own else READABLE
    where = Filter(states=states)
    if scope.include_archived:
        where = msgspec.structs.replace(where, archived=None, gone=True)
    found = [
        entry
        for entry in each_unit(call.tx, where)
        if entry.epoch >= scope.since_epoch and (scope.include_own or not view.wrote(entry)) and view.sees(entry)
    ]
    task = scope.active_task_id or agent.current_task_id
    interests = scope.interests or tuple(agent.interests)
    asked = Asked(
        role=scope.role,
        query=" ".join([scope.hint, *interests]) if scope.hint or scope.interests else "",
        task_id=task,
        recency_weight=scope.recency_weight,
        layers=scope.layers,
        related=_related(call),
        epoch=call.epoch,
    )
    ranked = rank_units(call.tx, found, asked, call.services.parts.embedder)
    if scope.threshold is not None:
        ranked = [item for item in ranked if item.score >= scope.threshold]
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
        shown = {"id": item.entry.id, "score": item.score, "reason": item.reason, "length": kept}
        record.append({**shown, "format": "full" if whole else "summary"})
    call.prepared = {item.entry.id: item.entry for item in best}
    call.append("field.attuned", data={"units": len(record)})
    return {
        "status": "ok",
        "record": record,
        "ids_only": scope.format == "ids_only",
        "context_budget": {
            "units_returned": len(record),
            "units_available": len(ranked),
            "tokens_used": used,
            "tokens_budget": scope.max_tokens,
        },
    }


def _related(call: Call) -> frozenset[str]:
    """What the agent's own newest units point at, and what points at them."""
    own = call.tx.scan(Filter(actor=call.speaker.id, states=READABLE), limit=_OWN_LOOKED_AT).items
    found: set[str] = set()
    for entry in own:
        found.update(link.to_id for link in relations_of(call.tx, entry))
        found.update(link.from_id for link in call.tx.links(entry.id, incoming=True))
    return frozenset(found)


def _show(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """Put the units in. A unit that was purged since the first answer is not shown again."""
    at_hand: Mapping[str, Entry] = call.prepared or {}
    record = []
    for item in result["record"]:
        entry = at_hand.get(item["id"]) or find_unit(call.tx, item["id"])
        if entry is None:
            continue
        if result["ids_only"]:
            shown: dict[str, Any] = {"id": entry.id}
        else:
            shown = unit(entry, relations_of(call.tx, entry), content=cut(entry.content, item["length"]))
        record.append(
            {
                "memory_unit": shown,
                "relevance_score": item["score"],
                "relevance_reason": item["reason"],
                "format": item["format"],
            }
        )
    open_conflicts = conflicts.unresolved(call) if call.agent is not None else []
    budget = {**result["context_budget"], "units_returned": len(record)}
    return {"status": "ok", "record": record, "conflicts": open_conflicts, "context_budget": budget}


ATTUNE = Operation("ATTUNE", level=0, execute=_execute, show=_show, event="field.attuned", right=Right.READ)
