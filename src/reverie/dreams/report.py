"""What a dream leaves in the store beside its text: the output entry's fields, and the report with its traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from reverie.core.dream import DreamReport, SourceTrace, StatementTrace
from reverie.core.entry import Draft, Entry, EntryState, Source
from reverie.core.errors import NotFound
from reverie.core.subject import SUBJECT_TAG, named_subjects, subject_hash
from reverie.distil.gates import GateReport
from reverie.distil.plan import DREAM_KIND, Work
from reverie.distil.request import Answer
from reverie.dreams.archive import DREAM_SPACE
from reverie.dreams.gates import FATES
from reverie.memory.policy import Rules
from reverie.memory.read import ANYTHING
from reverie.store.contract import ReadTx, WriteTx


def roomy(rules: Rules) -> Rules:
    """The rules without the entry size limit: a dream may be longer than one entry may be."""
    return replace(rules, policy=rules.policy.changed({"max_entry_bytes": 16 * 2**20, "max_tags": 100_000}))


def output_draft(
    text: str, sources: Sequence[Entry], *, dream_id: str, checksum: str | None, run: str | None = None
) -> Draft:
    """The entry a dream becomes: no more trusted than its weakest source, about everyone its sources are about."""
    subjects = {entry.subject for entry in sources}
    about = sorted({tag for entry in sources for tag in entry.tags if tag.startswith(SUBJECT_TAG)})
    about += [
        SUBJECT_TAG + subject for subject in sorted(s for s in subjects if s) if SUBJECT_TAG + subject not in about
    ]
    expiries = [entry.expires_at for entry in sources]
    sessions = {entry.source.session for entry in sources}
    return Draft(
        content=text,
        kind=DREAM_KIND,
        tags=(*about, f"compacted-from:{dream_id}", *([f"archive:{checksum}"] if checksum else ())),
        subject=next(iter(subjects)) if len(subjects) == 1 else None,
        attributes={"dream": dream_id, "sources": len(sources)},
        source=Source(
            session=next(iter(sessions)) if len(sessions) == 1 else None,
            run=run,
            trust=min(entry.source.trust for entry in sources),
        ),
        expires_at=max(e for e in expiries if e is not None) if all(e is not None for e in expiries) else None,
    )


def about(entries: Sequence[Entry], key: bytes) -> dict[str, list[str]]:
    """The keyed hashes of whom each entry is about."""
    found = {
        entry.id: [subject_hash(key, subject) for subject in named_subjects(entry.subject, entry.tags)]
        for entry in entries
    }
    return {entry_id: hashes for entry_id, hashes in found.items() if hashes}


def trace(text: str, answer: Answer) -> list[StatementTrace]:
    """The line of each statement in the final text. A statement that redaction changed is traced by its place."""
    traces = []
    at = 0
    for statement in answer.statements:
        found = text.find(statement.text, at)
        if found >= 0:
            at = found
        line = text.count("\n", 0, at)
        traces.append(StatementTrace(line, statement.source_ids, statement.how, statement.count))
    return traces


def source_traces(entries: Sequence[Entry], statements: Sequence[StatementTrace], work: Work) -> list[SourceTrace]:
    """What became of each retired entry."""
    fate: dict[str, str] = {}
    for statement in statements:
        for source_id in statement.sources:
            fate.setdefault(source_id, FATES[statement.how])
    for group in work.prepared.collapsed:
        for merged in group.merged:
            fate[merged] = "merged"
    return [SourceTrace(e.id, e.version, e.state, e.archived, fate.get(e.id, "retired")) for e in entries]


def gate_document(gates: GateReport) -> dict[str, Any]:
    """The gates as stored: verdicts, counts, and each must-keep item by its source and reason; no text."""
    states = [kept.state for kept in gates.must_keep]
    return {
        "passed": gates.passed,
        "must_keep": {name: states.count(name) for name in ("kept", "quoted", "missing")},
        "items": [
            {"source": kept.item.source_id, "why": kept.item.why, "required": kept.item.declared, "state": kept.state}
            for kept in gates.must_keep
        ],
        "invented": len(gates.invented),
        "negations_flipped": len(gates.flipped),
        "smaller": gates.smaller,
        "within_budget": gates.within_budget,
    }


def save_report(tx: WriteTx, report: DreamReport, *, seq: int) -> None:
    """Store a report as it is now."""
    tx.save(DREAM_SPACE, report.id, msgspec.json.encode(report), seq=seq, meta={"ref": report.ref}, keep=1)


def load_report(tx: ReadTx, dream_id: str) -> DreamReport:
    """A stored report. Raises NotFound."""
    document = tx.load(DREAM_SPACE, dream_id)
    if document is None or document.body is None:
        raise NotFound("There is no dream of that id. `reverie dream list` shows them.")
    return msgspec.json.decode(document.body, type=DreamReport)


def find_report(tx: ReadTx, entry: Entry) -> DreamReport | None:
    """The report of the dream that made this entry of the transaction's ref; None when no dream did.

    The entry names it. When its text was destroyed the event of its birth does. A caller may write any name into an
    entry, so the report must name the entry too.
    """
    named = entry.attributes.get("dream")
    if entry.state is EntryState.ERASED:
        birth = tx.read_log(after=entry.born_seq - 1, limit=1)
        named = birth[0].data.get("dream") if birth and birth[0].entry_id == entry.id else None
    document = tx.load(DREAM_SPACE, named) if isinstance(named, str) else None
    if document is None or document.body is None:
        return None
    report = msgspec.json.decode(document.body, type=DreamReport)
    return report if (report.output_id, report.ref) == (entry.id, entry.ref) else None


def mark(tx: WriteTx, output_id: str, state: str, *, seq: int) -> None:
    """Set the state of the dream that made an entry."""
    entry = tx.get(output_id, where=ANYTHING)
    report = find_report(tx, entry) if entry is not None else None
    if report is not None:
        save_report(tx, msgspec.structs.replace(report, state=state), seq=seq)
