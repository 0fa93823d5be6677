"""RECORD: an agent stores a unit, with its purpose and confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from reverie.core.entry import MAX_TAG_LENGTH, Entry, EntryState, Link, Scope
from reverie.core.errors import QuotaExceeded, ReverieError
from reverie.memory.insertion import PreparedEntry
from reverie.memory.policy import Rules
from reverie.memory.read import ANYTHING
from reverie.protocols.akashik import conflicts, units
from reverie.protocols.akashik.call import Operation, OperationCall, Ready
from reverie.protocols.akashik.envelope import MAX_NAME
from reverie.protocols.akashik.units import ANY_UNIT, RELATIONS, TYPES, find_unit
from reverie.store.contract import ReadTx

MAX_RELATIONS = 1000
MAX_TAGS = 64
_FINAL = (EntryState.SUPERSEDED, EntryState.RETRACTED)


@dataclass(frozen=True, slots=True)
class Relation:
    """An arrow from the unit to another."""

    type: str
    target_id: str
    description: str | None


@dataclass(frozen=True, slots=True)
class _Recording:
    """A valid payload, redacted and indexed."""

    item: PreparedEntry
    mode: str
    relations: Sequence[Relation]
    retracts: Sequence[str]
    task_id: str | None
    enriched: bool
    disputes: conflicts.Disputes


def _prepare(ready: Ready) -> _Recording:
    """Validate in the protocol's order of refusals, then embed."""
    payload = ready.payload
    intent = _intent(ready, payload)
    mode = _member(payload, "mode", "committed")
    for name in ("type", "content"):
        if payload.get(name) is None:
            raise ready.error("INVALID_REQUEST", f"{name} is missing.")
    kind, content = payload["type"], payload["content"]
    if not isinstance(content, str) or not content.strip():
        raise ready.error("INVALID_REQUEST", "content is a string that is not empty.")
    if mode not in ("draft", "committed"):
        raise ready.error("INVALID_REQUEST", "mode is draft or committed.")
    if kind not in TYPES:
        raise ready.error("INVALID_TYPE", f"type is one of {', '.join(TYPES)}.")
    subject, tags = _labels(ready, payload)
    confidence = _confidence(ready, payload, mode)
    relations = _relations(ready, payload)
    retracts = _member(payload, "retracts", [])
    if not isinstance(retracts, list) or not all(isinstance(item, str) and item for item in retracts):
        raise ready.error("INVALID_REQUEST", "retracts is a list of unit ids.")
    made = units.Wish(kind, content, mode, intent, confidence, subject, tags)
    return _enrich(ready, made, relations, tuple(dict.fromkeys(retracts)))


def _labels(ready: Ready, payload: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Read the unit's subject and its tags. Both are fields of the entry, so that a forget and every interface find
    them.
    """
    subject = payload.get("subject")
    if subject is not None and (
        not isinstance(subject, str) or not subject.strip() or len(subject) > MAX_TAG_LENGTH or "\x00" in subject
    ):
        raise ready.error("INVALID_REQUEST", f"subject is a string of 1 to {MAX_TAG_LENGTH} characters, or null.")
    tags = _member(payload, "tags", [])
    sound = isinstance(tags, list) and all(
        isinstance(tag, str) and 0 < len(tag) <= MAX_TAG_LENGTH and "\x00" not in tag for tag in tags
    )
    if not sound or len(dict.fromkeys(tags)) > MAX_TAGS:
        raise ready.error(
            "INVALID_REQUEST", f"tags is a list of at most {MAX_TAGS} strings of 1 to {MAX_TAG_LENGTH} characters."
        )
    return subject, tuple(dict.fromkeys(tags))


def _member(payload: Mapping[str, Any], name: str, default: Any) -> Any:
    """A member of the payload; null counts as absent."""
    value = payload.get(name)
    return default if value is None else value


def _intent(ready: Ready, payload: Mapping[str, Any]) -> dict[str, Any]:
    intent = payload.get("intent")
    purpose = intent.get("purpose") if isinstance(intent, dict) else None
    if not isinstance(intent, dict) or not isinstance(purpose, str) or not purpose.strip():
        raise ready.error("MISSING_INTENT", "intent.purpose says why this is recorded; it is missing.")
    for name in ("task_id", "question"):
        value = intent.get(name)
        if value is not None and not isinstance(value, str):
            raise ready.error("INVALID_REQUEST", f"intent.{name} is a string or null.")
    task = intent.get("task_id")
    if task is not None and len(task) > MAX_NAME:
        raise ready.error("INVALID_REQUEST", f"intent.task_id is at most {MAX_NAME} characters.")
    return {"purpose": purpose, "task_id": task or None, "question": intent.get("question")}


def _confidence(ready: Ready, payload: Mapping[str, Any], mode: str) -> dict[str, Any] | None:
    confidence = payload.get("confidence")
    if confidence is not None and not isinstance(confidence, dict):
        raise ready.error("INVALID_CONFIDENCE", "confidence is an object with score and reasoning.")
    given: dict[str, Any] = confidence or {}
    score, reasoning = given.get("score"), given.get("reasoning")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1):
        raise ready.error("INVALID_CONFIDENCE", "confidence.score is a number from 0 to 1.")
    said = isinstance(reasoning, str) and bool(reasoning.strip())
    if mode == "committed" and ready.level >= 1 and (score is None or not said):
        raise ready.error("MISSING_CONFIDENCE", "A committed unit needs confidence.score and confidence.reasoning.")
    if reasoning is not None and not isinstance(reasoning, str):
        raise ready.error("INVALID_REQUEST", "confidence.reasoning is a string.")
    for name in ("evidence", "assumptions"):
        value = given.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ready.error("INVALID_REQUEST", f"confidence.{name} is a list of strings.")
    if confidence is None:
        return None
    kept = {"score": score, "reasoning": reasoning}
    return kept | {name: given.get(name) or [] for name in ("evidence", "assumptions")}


def _relations(ready: Ready, payload: Mapping[str, Any]) -> tuple[Relation, ...]:
    given = _member(payload, "relations", [])
    if not isinstance(given, list) or len(given) > MAX_RELATIONS:
        raise ready.error("INVALID_REQUEST", f"relations is a list of at most {MAX_RELATIONS}.")
    made: dict[tuple[str, str], Relation] = {}
    for item in given:
        kind, target, text = (
            (item.get("type"), item.get("target_id"), item.get("description"))
            if isinstance(item, dict)
            else (None, None, None)
        )
        if kind not in RELATIONS:
            raise ready.error("INVALID_REQUEST", f"relations[].type is one of {', '.join(RELATIONS)}.")
        if not isinstance(target, str) or not 0 < len(target) <= MAX_NAME:
            raise ready.error("INVALID_REQUEST", "relations[].target_id is the id of a unit.")
        if text is not None and not isinstance(text, str):
            raise ready.error("INVALID_REQUEST", "relations[].description is a string or null.")
        made.setdefault((kind, target), Relation(kind, target, text))
    return tuple(made.values())


def _enrich(ready: Ready, made: units.Wish, relations: Sequence[Relation], retracts: Sequence[str]) -> _Recording:
    services = ready.services
    agent = ready.speaker

    def prepared(*, embed: bool) -> PreparedEntry:
        state = EntryState.DRAFT if made.mode == "draft" else EntryState.ACTIVE if embed else EntryState.PENDING
        wish = units.draft(
            kind=made.kind,
            content=made.content,
            mode=made.mode,
            intent=made.intent,
            confidence=made.confidence,
            subject=made.subject,
            tags=made.tags,
            author=agent.id,
            role=agent.role,
            session=ready.session_id,
            state=state,
            more={"relations": len(relations)},
        )
        item = services.entries.prepare(ready.actor, services.ref, [wish], tagged(ready.rules), embed=embed)[0]
        found = {**item.findings}
        for name, number in ready.findings.items():  # the payload was clean before it came here
            found[name] = max(found.get(name, 0), number)
        return msgspec.structs.replace(item, findings=found)

    enriched = not services.faults.on(ready.actor.tenant, "enrichment")
    item: PreparedEntry | None = None
    if enriched:
        try:
            item = prepared(embed=True)
        except ReverieError:
            raise
        except Exception:  # an embedder that is down never loses a unit: the worker embeds it later
            enriched = False
    if item is None:
        item = prepared(embed=False)
    disputes = conflicts.Disputes()
    if ready.level >= 2 and conflicts.speaks(item.entry):
        scope = Scope(ready.actor.tenant, services.ref)
        disputes = conflicts.disputes_of(services.parts.store, scope, item.entry.content, ready.session_id)
    return _Recording(item, made.mode, relations, retracts, made.intent["task_id"], enriched, disputes)


def tagged(rules: Rules, most: int = MAX_TAGS) -> Rules:
    """The rules with room for `most` tags, even if the tenant's policy allows fewer elsewhere."""
    if rules.policy.max_tags >= most:
        return rules
    return replace(rules, policy=replace(rules.policy, max_tags=most))


def _execute(call: OperationCall) -> dict[str, Any]:
    asked: _Recording = call.prepared
    committed = asked.mode == "committed"
    call.require(4 if committed else 2, f"RECORD of a {'committed unit' if committed else 'draft'}")
    check_room(call, call.tx, 1, asked.item.entry.byte_size)
    pointed = {
        relation: _target(call, relation.target_id)
        for relation in asked.relations
        if relation.type in ("contradicts", "supersedes")
    }
    withdrawn = [_target(call, unit_id) for unit_id in asked.retracts]
    for target in withdrawn:
        if not call.view.wrote(target) and call.authority < 10:
            raise call.error("INSUFFICIENT_AUTHORITY", "Only its author, or authority 10, retracts a unit.")
    known = [
        {"type": relation.type, "target_id": relation.target_id}
        for relation in asked.relations
        if relation in pointed or call.tx.get(relation.target_id, where=ANYTHING) is not None
    ]
    facts: dict[str, Any] = {"mode": asked.mode}
    if known:
        facts["relations"] = known
    entry = call.insert(asked.item, task_id=asked.task_id, data=facts)
    for relation in asked.relations:
        call.tx.link(Link(entry.id, relation.target_id, relation.type, relation.description))
    opened: list[str] = []
    deferred = False
    if committed:
        for relation, target in pointed.items():
            if relation.type == "supersedes":
                retire(call, target, EntryState.SUPERSEDED, by=entry.id)
        for target in withdrawn:
            retire(call, target, EntryState.RETRACTED, by=entry.id)
        opened, deferred = _conflicts(call, entry, pointed)
    answer: dict[str, Any] = {
        "status": "accepted",
        "memory_unit_id": entry.id,
        "conflicts_detected": opened,
        "rejection_reason": None,
    }
    if not asked.enriched:
        answer["warnings"] = ["ENRICHMENT_FAILED"]
    if deferred:
        answer["conflict_detection"] = "deferred"
    return answer


def _conflicts(call: OperationCall, entry: Entry, pointed: Mapping[Relation, Entry]) -> tuple[list[str], bool]:
    """Conflicts the unit opened, and whether automatic detection was put off."""
    opened: list[str] = []
    if call.level >= 1:
        for relation, target in pointed.items():
            if relation.type == "contradicts":
                opened.append(conflicts.contradict(call, entry, target))
    deferred = call.level >= 2 and call.services.faults.on(call.actor.tenant, "detection_timeout")
    if call.level >= 2 and not deferred:
        opened += conflicts.detect(call, entry, call.prepared.disputes)
    return [name for name in dict.fromkeys(opened) if name], deferred


def _target(call: OperationCall, unit_id: str) -> Entry:
    found = find_unit(call.tx, unit_id)
    if found is None or not call.view.sees(found):
        raise call.error("UNIT_NOT_FOUND", "A unit this one refers to does not exist, or was purged.")
    return found


def retire(call: OperationCall, target: Entry, state: EntryState, *, by: str | None = None) -> None:
    """Mark a unit superseded or retracted, with its event, unless it is one of these already."""
    current = call.tx.get(target.id, where=ANY_UNIT)
    if current is None or current.state in _FINAL:
        return
    name = "memory.superseded" if state is EntryState.SUPERSEDED else "memory.retracted"
    data = {"ref": target.ref, **({"by": by} if by else {})}
    seq = call.append(name, entry_id=target.id, session=target.source.session, data=data)
    call.tx.change(target.id, seq=seq, expected=current.version, state=state)


def check_room(ready: Ready, tx: ReadTx, entries: int, size: int) -> None:
    """Refuse new units of `size` bytes for which the tenant's quota, or an injected fault, leaves no room."""
    head, policy = tx.head(), ready.rules.policy
    full = ready.services.faults.on(ready.actor.tenant, "storage_full")
    if full or head.entries + entries > policy.max_entries or head.bytes + size > policy.max_bytes:
        raise QuotaExceeded("The Field is full. Nothing was changed.")


RECORD = Operation("RECORD", level=0, execute=_execute, prepare=_prepare)
