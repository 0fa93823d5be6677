"""COMPACT: archive, summarize, purge. The log keeps every row; the text of purged units is nowhere.

Archive and purge select and act inside one transaction. Summarize works on a snapshot first: it selects, groups, and
has the dream engine write one text per group. Its transaction checks every original again; when one has changed, all is
undone and the groups are made again. So a reader finds an original hot, or archived with its synthesis present, and
never anything in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from reverie.core.actor import Right
from reverie.core.clock import to_iso
from reverie.core.dream import After, DreamPlan
from reverie.core.entry import Entry, EntryState, Link, Scope
from reverie.core.pause import paced
from reverie.core.retry import Moved
from reverie.distil.group import Member, group
from reverie.dreams.report import Made, report_of
from reverie.memory.entries import searchable_text
from reverie.memory.indexing import model_of
from reverie.memory.insertion import PreparedEntry, entry_hash
from reverie.protocols.akashik import conflicts
from reverie.protocols.akashik.call import FIELD_AGENT, FieldServices, Operation, OperationCall, Ready, view_of
from reverie.protocols.akashik.operations.record import MAX_TAGS, check_room
from reverie.protocols.akashik.selection import AUTHORITY, CompactRequest, matching, read_ask, select
from reverie.protocols.akashik.units import ANY_UNIT, draft, score_of, task_of
from reverie.protocols.akashik.visibility import kinds_of
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import holder

PURGE_LEVEL = 3
ROLE = "compactor"
MOST_NAMED = 100
LEASE_MS = 5000
_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0
"""Longest wait for a lease. The work then goes on without it: at worst it is done twice and stored once."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """One group, ready to be written."""

    made: Made
    output: PreparedEntry | None
    """None in a dry run."""


@dataclass(frozen=True, slots=True)
class PreparedSummary:
    """A summarize, ready to be written."""

    position: int
    groups: Sequence[Synthesis]
    leases: Sequence[str] = ()
    holder: str = ""


def _prepare(ready: Ready) -> PreparedSummary | None:
    ask = _read_request(ready)
    if ask.strategy != "summarize":
        return None
    services = ready.services
    scope = Scope(ready.actor.tenant, services.ref)

    def look(tx: ReadTx) -> tuple[int, list[Entry], list[Any]]:
        head, view = tx.head(), view_of(tx, ready)
        entries = select(tx, view, ask, epoch=head.epoch + 1)
        borders = [(view.visibility_class(entry), entry.state is EntryState.CONTESTED) for entry in entries]
        return head.seq, entries, borders

    read = services.parts.store.read
    _, entries, borders = read(scope, look)
    if ask.dry_run:
        return PreparedSummary(0, [Synthesis(made, None) for made in _texts(ready, entries, borders, model=False)])
    if entries:
        read(scope, lambda tx: check_room(ready, tx, 1, 1))  # before any lease: a refusal must not keep others waiting
    own = holder(f"compact/{threading.get_ident()}")
    leases = sorted({f"compact/{services.ref}/{entry.source.session or ''}" for entry in entries})
    for lease in leases:
        _take(ready, scope, lease, own)
    try:
        # someone else may have done the work while we waited
        position, entries, borders = read(scope, look) if leases else (0, entries, borders)
        groups = []
        for made in _texts(ready, entries, borders):
            unit = services.dreams.prepare(ready.actor, services.ref, _unit(made, ask), ready.rules)
            groups.append(Synthesis(made, unit))
        read(scope, lambda tx: _check_outputs(ready, tx, groups))
    except BaseException:
        services.parts.store.write(scope, lambda tx: _release(tx, leases, own))
        raise
    return PreparedSummary(position, groups, leases, own)


def _release(tx: WriteTx, leases: Sequence[str], holder: str) -> None:
    for lease in leases:
        tx.release(lease, holder)


def _check_outputs(ready: Ready, tx: ReadTx, groups: Sequence[Synthesis]) -> None:
    """Refuse synthesis units for which there is no room."""
    outputs = [item.output.entry for item in groups if item.output is not None]
    if outputs:
        check_room(ready, tx, len(outputs), sum(output.byte_size for output in outputs))


def _texts(ready: Ready, entries: Sequence[Entry], borders: Sequence[Any], *, model: bool = True) -> list[Made]:
    """The texts of all groups. The must-keep statements of one group may take several texts."""
    services = ready.services
    dreams = services.dreams
    by_id = {entry.id: entry for entry in entries}
    room = min(dreams.composer.room(ready.rules.policy), 8000)
    found: list[Made] = []
    for ids in group(_members(services, entries, borders), tokens=room):
        found += dreams.compose(ready.actor, services.ref, [by_id[i] for i in ids], ready.rules, model=model)
    return found


def _members(services: FieldServices, entries: Sequence[Entry], borders: Sequence[Any]) -> list[Member]:
    count, embedder = services.dreams.composer.count, services.parts.embedder
    vectors = embedder.embed([searchable_text(entry) for entry in entries]) if embedder and entries else None
    tasks = [task_of(entry) for entry in entries]
    sizes = [count(entry.content) + 12 for entry in paced(entries)]
    return [
        Member(entry.id, entry.epoch, border, task, entry.kind, size, vectors[at] if vectors else None)
        for at, (entry, border, task, size) in enumerate(zip(entries, borders, tasks, sizes, strict=True))
    ]


def _take(ready: Ready, scope: Scope, lease: str, holder: str) -> None:
    """Take the lease that makes compactions of one session run one after another. It only saves double work and expires
    soon; correctness rests on the versions checked inside the transaction."""
    parts = ready.services.parts
    seconds = LEASE_MS // 1000 + (ready.rules.policy.model_seconds_per_dream if parts.distillers else 0)
    patience = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < patience:
        until = parts.clock.now() + seconds * 1000
        if parts.store.write(scope, lambda tx, until=until: tx.claim(lease, holder, until=until)):  # type: ignore[misc]
            return
        time.sleep(_POLL_SECONDS)


def _unit(made: Made, ask: CompactRequest) -> Any:
    """The synthesis unit of a group: less sure than the least sure of its originals, visible with all their types."""
    entries = made.sources
    count = len(entries)
    tasks = {task_of(entry) for entry in entries}
    task = next(iter(tasks)) if len(tasks) == 1 else None
    scores = [score_of(entry) for entry in entries]
    lowest = min(0.5 if score is None else score for score in scores)
    unscored = sum(score is None for score in scores)
    types = sorted({kind for entry in entries for kind in kinds_of(entry)})
    units = "1 unit" if count == 1 else f"{count} units"
    reason = ask.reason or "to keep the Field small without losing what was said"
    unit = draft(
        kind="synthesis",
        content=made.text,
        mode="committed",
        intent={
            "purpose": f"Compaction of {units} ({', '.join(types)}): {reason}",
            "task_id": task,
            "question": None,
        },
        confidence={
            "score": lowest,
            "reasoning": f"The lowest score of the {units} this was made from"
            + (f"; {unscored} had none and count as 0.5." if unscored else "."),
            "evidence": [],
            "assumptions": [],
        },
        author=FIELD_AGENT,
        role=ROLE,
        session=entries[0].source.session,
        state=EntryState.ACTIVE,
        more={"derived_from_types": types, "dream": made.id, "sources": count},
    )
    shape = made.draft()
    return msgspec.structs.replace(
        unit,
        tags=_handed_down(entries, shape.tags),
        subject=shape.subject,
        expires_at=shape.expires_at,
        source=msgspec.structs.replace(unit.source, trust=shape.source.trust),
    )


def _handed_down(entries: Sequence[Entry], made: Sequence[str]) -> tuple[str, ...]:
    """The tags of a synthesis: its subjects, its dream, then those of the originals as far as there is room."""
    own = [tag for tag in made if not tag.startswith("archive:")]
    hosts = ("compacted-from:", "archive:")
    labels = sorted({tag for entry in entries for tag in entry.tags if not tag.startswith(hosts)})
    return tuple([*own, *(tag for tag in labels if tag not in own)][: max(MAX_TAGS, len(own))])


def _read_request(ready: Ready) -> CompactRequest:
    ask = read_ask(ready)
    if ask.strategy == "purge" and ready.level < PURGE_LEVEL:
        raise ready.error("UNSUPPORTED_OPERATION", f"purge is of Level {PURGE_LEVEL}; this Field is of {ready.level}.")
    ready.require(AUTHORITY[ask.strategy], f"COMPACT {ask.strategy}")
    return ask


def _execute(call: OperationCall) -> dict[str, Any]:
    ask = _read_request(call)
    if ask.strategy == "summarize":
        return _summarize(call, ask)
    entries = select(call.tx, call.view, ask, epoch=call.clock + 1)
    reclaimed = _weight(call, entries) if ask.strategy == "purge" else None
    if not ask.dry_run:
        call.append("field.compacted", data={"strategy": ask.strategy, "units": len(entries)})
        for entry in entries:
            if ask.strategy == "archive":
                _archive(call, entry)
            else:
                _purge(call, entry, ask)
        if ask.strategy == "purge":
            conflicts.sides_purged(call, [entry.id for entry in entries])
    return _answer(len(entries), 0, reclaimed)


def _answer(affected: int, created: int, reclaimed: int | None) -> dict[str, Any]:
    return {
        "status": "ok",
        "units_affected": affected,
        "synthesis_units_created": created,
        "storage_reclaimed_bytes": reclaimed,
    }


def _archive(call: OperationCall, entry: Entry) -> None:
    attributes = {**entry.attributes, "archived_epoch": call.epoch}
    after = msgspec.structs.replace(entry, attributes=attributes)
    data = {"ref": entry.ref, "hash": entry_hash(call.tx.log_key(), after)}
    seq = call.append(
        "memory.archived", entry_id=entry.id, task_id=task_of(entry), data=data, session=entry.source.session
    )
    call.tx.change(entry.id, seq=seq, expected=entry.version, archived=True, attributes=attributes)


def _purge(call: OperationCall, entry: Entry, ask: CompactRequest) -> None:
    who = call.speaker.id
    tombstone = {
        "unit_id": entry.id,
        "deleted_at": to_iso(call.tx.now),
        "reason": ask.reason or f"COMPACT purge by {who}",
        "purged_by": who,
    }
    data = {"ref": entry.ref, "bytes": entry.byte_size, "tombstone": tombstone}
    seq = call.append(
        "memory.purged", entry_id=entry.id, task_id=task_of(entry), data=data, session=entry.source.session
    )
    call.tx.purge(entry.id, seq=seq)


def _weight(call: OperationCall, entries: Sequence[Entry]) -> int:
    """The bytes of text and of vectors that these units take now."""
    size = sum(entry.byte_size for entry in entries)
    embedder = call.services.parts.embedder
    if embedder is not None and entries:
        probe = (model_of(embedder), bytes(embedder.dimensions))
        for at in range(0, len(entries), 500):
            positions = [entry.position for entry in entries[at : at + 500]]
            size += embedder.dimensions * sum(map(len, call.tx.cosines(probe, positions).values()))
    return size


def _summarize(call: OperationCall, ask: CompactRequest) -> dict[str, Any]:
    work: PreparedSummary = call.prepared
    originals = [entry for item in work.groups for entry in item.made.sources]
    if ask.dry_run:
        return _answer(len(originals), len(work.groups), None)
    current = call.tx.at([entry.position for entry in originals], ANY_UNIT) if originals else {}
    same = [unit for entry in originals if (unit := current.get(entry.position)) and unit.version == entry.version]
    if len(matching(same, call.view, ask, epoch=call.clock + 1)) < len(originals):
        raise Moved
    _check_outputs(call, call.tx, work.groups)
    call.append(
        "field.compacted", data={"strategy": ask.strategy, "units": len(originals), "outputs": len(work.groups)}
    )
    for item in work.groups:
        _write(call, item, work.position)
    _release(call.tx, work.leases, work.holder)
    return _answer(len(originals), len(work.groups), None)


def _write(call: OperationCall, item: Synthesis, position: int) -> None:
    assert item.output is not None
    entries, ref = item.made.sources, call.services.ref
    session = item.output.entry.source.session
    output = call.insert(item.output, task_id=task_of(item.output.entry), data={"compaction": True})
    ids = [entry.id for entry in entries]
    data: dict[str, Any] = {
        "ref": ref,
        "memoryRef": ref,
        "session_id": session,
        "dream": item.made.id,
        "hash": entry_hash(call.tx.log_key(), output),
        "outputId": output.id,
        "sources": len(ids),
        "sourceCount": len(ids),
        "trigger": "host-managed",
        "bytes": output.byte_size,
        "byteSize": output.byte_size,
        "after": "archive",
    }
    if len(ids) <= MOST_NAMED:
        data |= {"source_ids": ids, "sourceIds": ids}
    seq = call.append(
        "memory.compacted", entry_id=output.id, task_id=task_of(output), data=data, session=session, actor=FIELD_AGENT
    )
    call.tx.link(*(Link(output.id, entry.id, "elaborates") for entry in entries))
    plan = DreamPlan(ref, after=After.ARCHIVE, operation="COMPACT")
    report = report_of(call.tx, plan, item.made, output, retired=entries, position=position, seq=seq)
    call.services.dreams.keep(call.tx, report, {output.id: ids})
    for entry in entries:
        _archive(call, entry)


COMPACT = Operation("COMPACT", level=2, execute=_execute, prepare=_prepare, right=Right.WRITE)
