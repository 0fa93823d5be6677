"""Home: pending decisions, and the state of the memory over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reverie.api.console import plots
from reverie.api.console.alerts import alerts
from reverie.api.console.latency import Recent
from reverie.api.console.page import Document, Look, Page, See
from reverie.api.console.span import span_of
from reverie.api.console.windows import requests
from reverie.core.clock import MS_PER_DAY, from_iso, to_iso
from reverie.core.draft import to_draft
from reverie.core.errors import Conflict, NotFound
from reverie.dreams.lineage import DreamFigures
from reverie.memory.history import Day

DREAMS = 100
"""Limit of the dreams that a plot shows, and of those read for it."""
_REPORTS = 5
SAMPLE = "tidebook"
"""The memory that the sample goes to."""


def show(look: Look) -> Document:
    """Figures, alerts, and six plots over a time range."""
    host, actor, span = look.host, look.actor, span_of(look)
    refs = host.reader.refs(actor)
    days = host.history.series(actor, since=span.since, until=span.until - 1)
    before, last = positions(days)
    dreams, earlier = dreamt(look, before, last)
    reports = list(host.lineage.page(actor, limit=_REPORTS).items)
    recent: Recent = look.state.console_searches
    searches = recent.of(actor.tenant, since=span.since, until=span.until)
    kept = plots.saved(dreams)
    return {
        "entries": sum(count for _, count in refs),
        "memories": len(refs),
        "dreams": len(dreams),
        "more_dreams": len(dreams) == DREAMS,
        "tokens_saved": kept[-1][-1][0] if kept else 0,
        "searches": sum(one.count for one in searches),
        "events": host.reader.snapshot(actor),
        "sample": look.state.console_sample is not None and look.may("write"),
        "span": span.document(),
        "alerts": alerts(look, reports),
        "plots": {
            "entries": plots.entries(days),
            "changes": plots.changes(days),
            "tokens": plots.hot_and_cold(dreams, earlier),
            "saved": kept,
            "latency": plots.latency(searches),
            "windows": requests(look, since=before, until=last),
        },
        "largest": [{"ref": ref, "entries": count} for ref, count in sorted(refs, key=lambda one: -one[1])[:8]],
    }


def positions(days: Sequence[Day]) -> tuple[int, int]:
    """The log positions before and at the end of a series of days."""
    return (days[0].position - days[0].changes, days[-1].position) if days else (0, 0)


def dreamt(look: Look, before: int, last: int) -> tuple[list[DreamFigures], list[DreamFigures]]:
    """The newest dreams up to the log position `last`, newest first: those after `before`, and those up to it."""
    found = look.host.lineage.figures(look.actor, since=0, until=last, limit=DREAMS)
    return [one for one in found if one.seq > before], [one for one in found if one.seq <= before]


def sample(look: Look) -> See:
    """Fill an empty tenant with five weeks of a made-up team's notes, to look around in."""
    entries: Callable[[], list[dict[str, Any]]] | None = look.state.console_sample
    if entries is None:
        raise NotFound("This host has no sample.")
    if look.host.reader.refs(look.actor):
        raise Conflict("This tenant has memories already.")
    rows = entries()
    moved = look.host.parts.clock.now() // MS_PER_DAY - from_iso(rows[-1]["created_at"]) // MS_PER_DAY - 1
    drafts = []
    for row in rows:
        at = from_iso(row.pop("created_at")) + moved * MS_PER_DAY
        drafts.append(to_draft({**row, "id": None, "created_at": to_iso(at)}))
    look.host.entries.put(look.actor, SAMPLE, drafts)
    message = f"{len(drafts)} notes of a made-up team. Search them, then run a dream and read what it did."
    return See(f"/memories?ref={SAMPLE}", message)


PAGE = Page("home", "/", "home.html", show, {"sample": sample})
