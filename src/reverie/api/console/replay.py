"""The replay of a dream as its page shows it: each question with its first answer before and after."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from reverie.api.console.page import Look
from reverie.core.dream import DreamReport, ReplayAnswer, Replayed
from reverie.core.errors import NotFound

_EXCERPT = 200
OUTCOMES = {
    "kept": ("Same answer", "good", "the first answer before is among the first three after"),
    "cold": ("From cold storage", "", "nothing hot answers; its original words do"),
    "deep": ("Further down", "warn", "other entries come first; asking cold storage too finds it"),
    "updated": ("Newer answer", "good", "the answer before was overtaken"),
    "lost": ("Not found", "bad", "the answer before is not among the first three"),
    "answered": ("Answered now", "good", "there was no answer before"),
    "unanswered": ("No answer", "", "neither before nor after"),
}


def replay_document(look: Look, report: DreamReport, output: str, texts: Mapping[str, str]) -> dict[str, Any] | None:
    """The replay, or None. `texts`: words of entries that are known already."""
    replay = report.replay
    if replay is None or not replay.questions:
        return None
    known = {**texts, str(report.output_id): output}

    def words(answer: ReplayAnswer | None) -> dict[str, Any] | None:
        if answer is None:
            return None
        if answer.id not in known:
            known[answer.id] = _text(look, report.ref, answer.id)
        text = known[answer.id]
        if answer.line is not None:
            text = next(islice(text.split("\n"), answer.line, None), "")
        line = answer.line if answer.id == report.output_id else None
        return {"id": answer.id, "line": line, "cold": answer.cold, "text": text[:_EXCERPT] or None}

    return {
        "outcomes": [
            {"name": name, "count": count, "title": OUTCOMES[name][0], "meaning": OUTCOMES[name][2]}
            for name, count in replay.outcomes.items()
        ],
        "questions": [
            {
                "question": one.question,
                "outcome": one.outcome,
                "title": OUTCOMES[one.outcome][0],
                "tone": OUTCOMES[one.outcome][1],
                "place": one.place,
                "before": words(one.before[0] if one.before else None),
                "after": words(_after(one)),
            }
            for one in replay.questions
        ],
        "count": len(replay.questions),
        "skipped": replay.skipped,
        "milliseconds": replay.milliseconds,
    }


def answering(report: DreamReport) -> set[str]:
    """The entries whose words the replay shows."""
    queries = report.replay.questions if report.replay is not None else ()
    return {one.before[0].id for one in queries if one.before}


def _after(one: Replayed) -> ReplayAnswer | None:
    """The answer at its place after the dream; without a place, the first answer."""
    return one.after[(one.place or 1) - 1] if one.after else None


def _text(look: Look, ref: str, entry_id: str) -> str:
    try:
        return look.host.reader.get(look.actor, ref, entry_id, cold=True).content
    except NotFound:
        return ""


def recorded(look: Look) -> int:
    """The number of searches that the tenant keeps of a memory."""
    return look.host.rules.current(look.actor.tenant).policy.recorded_searches
