"""Hits, dreams, lineage and schedules as every door shows them: plain JSON, instants as RFC 3339."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from reverie.core.clock import to_iso
from reverie.core.dream import DreamReport, Estimate, Nothing
from reverie.dreams.lineage import Why
from reverie.jobs.timetable import Due, Outcome, Schedule
from reverie.memory.export import entry_documents
from reverie.memory.hits import SearchResult


def nothing_document(why: Nothing) -> dict[str, Any]:
    """A dream that had nothing to do."""
    return {"state": "nothing", "reason": why.value, "message": why.sentence}


def report_document(report: DreamReport) -> dict[str, Any]:
    """A stored report. Ids, counts and hashes; no memory text."""
    document: dict[str, Any] = msgspec.to_builtins(report)
    document["created_at"] = to_iso(report.created_at)
    document["tokens_used"] = report.tokens_used
    return document


def estimate_document(estimate: Estimate) -> dict[str, Any]:
    """Render the estimate of a dream."""
    document: dict[str, Any] = msgspec.to_builtins(estimate)
    return document


def why_document(tree: Why) -> dict[str, Any]:
    """Render an entry and, below it, its sources."""
    document: dict[str, Any] = {**msgspec.structs.asdict(tree), "created_at": to_iso(tree.created_at)}
    document["sources"] = [why_document(source) for source in tree.sources]
    return document


def due_document(due: Due) -> dict[str, Any]:
    """A schedule with its next run, and the reason why it did not run."""
    return {
        **schedule_document(due.schedule),
        "next_at": None if due.next_at is None else to_iso(due.next_at),
        "why_not": due.why_not,
    }


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """A schedule with the outcome of its last tick."""
    document: dict[str, Any] = msgspec.to_builtins(schedule)
    document["created_at"] = to_iso(schedule.created_at)
    document["last_tick"] = None if schedule.last_tick is None else to_iso(schedule.last_tick)
    document["last"] = None if schedule.last is None else outcome_document(schedule.last)
    return document


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Render the outcome of a tick."""
    document: dict[str, Any] = msgspec.to_builtins(outcome)
    document["tick"], document["at"] = to_iso(outcome.tick), to_iso(outcome.at)
    return document


def originals(tree: Why) -> Iterator[Why]:
    """The leaves of a tree: the original words, in the order of the tree."""
    if not tree.sources:
        yield tree
    for source in tree.sources:
        yield from originals(source)


def search_document(result: SearchResult) -> dict[str, Any]:
    """The result of a search, with the explanation if there is one."""
    entries = entry_documents([hit.entry for hit in result.hits])
    texts = [hit.text for hit in result.hits]
    document: dict[str, Any] = {
        "hits": [
            {
                "entry": entry,
                "passage": {"text": text, **msgspec.structs.asdict(hit.passage)},
                "score": float(hit.score),
                "signals": {name: float(value) for name, value in hit.signals.items()},
                "confidence": float(hit.confidence),
                "weak": hit.weak,
                "older": hit.older,
                "superseded_by": hit.superseded_by,
                "cold": hit.cold,
                "dream": hit.dream,
                "sources": list(hit.sources),
            }
            for hit, entry, text in zip(result.hits, entries, texts, strict=True)
        ],
        "mode": result.mode,
        "degraded": list(result.degraded),
    }
    if result.explanation is not None:
        document["explanation"] = msgspec.to_builtins(result.explanation)
    return document
