"""Home: what needs a decision, and how the memory has been doing."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.api.console import plots
from reverie.api.console.alerts import alerts
from reverie.api.console.latency import Recent
from reverie.api.console.page import Document, Look, Page
from reverie.api.console.span import span_of
from reverie.api.console.windows import requests
from reverie.dreams.lineage import DreamFigures
from reverie.memory.history import Day

DREAMS = 100
"""Dreams that a plot shows, and those read for it: the newest."""
_REPORTS = 5


def show(look: Look) -> Document:
    """Figures, what needs a person, and six plots over a time range."""
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
    """The newest dreams between two log positions, newest first, and those of them that were earlier."""
    found = look.host.lineage.figures(look.actor, since=0, until=last, limit=DREAMS)
    return [one for one in found if one.seq > before], [one for one in found if one.seq <= before]


PAGE = Page("home", "/", "home.html", show)
