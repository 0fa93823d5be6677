"""Rows of the tables that plots are drawn from. A cell holds the value that is drawn and the text that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reverie.api.console.latency import SearchSlot
from reverie.api.console.text import day, moment, number
from reverie.dreams.lineage import DreamFigures
from reverie.memory.history import Day

Cell = list[Any]
Row = list[Cell]
_BUCKETS = 40


def cell(value: float, shown: str | None = None) -> Cell:
    """A cell of a plot's table."""
    return [value, number(value) if shown is None else shown]


def entries(days: Sequence[Day]) -> list[Row]:
    """Readable entries at the end of each day."""
    return [[cell(one.at, day(one.at)), cell(one.entries)] for one in days]


def changes(days: Sequence[Day]) -> list[Row]:
    """Events of each day."""
    return [[cell(one.at, day(one.at)), cell(one.changes)] for one in days]


def hot_and_cold(dreams: Sequence[DreamFigures], earlier: Sequence[DreamFigures] = ()) -> list[Row]:
    """Tokens of the memories that were dreamt, as measured before and after each dream, oldest first.

    A memory counts from its first dream on; `earlier` dreams say what it had when the range begins. Cold: what the
    dreams of the range put there.
    """
    hot: dict[str, int] = {}
    for one in reversed(earlier):
        if one.state != "undone":
            hot[one.ref] = one.hot_after or one.output_tokens
    rows: list[Row] = []
    cold = 0
    for one in reversed(dreams):
        if one.state == "undone":
            continue
        hot[one.ref] = one.hot_before or one.tokens_before
        at, shown = one.created_at, moment(one.created_at)
        rows.append([cell(at - 1, f"{shown}, before"), cell(sum(hot.values())), cell(cold)])
        hot[one.ref] = one.hot_after or one.output_tokens
        if one.state != "redone":  # the dream made in its place counts what rests in cold storage
            cold += one.cold_tokens
        rows.append([cell(at, f"{shown}, after"), cell(sum(hot.values())), cell(cold)])
    return rows


def saved(dreams: Sequence[DreamFigures]) -> list[Row]:
    """Tokens saved so far, after each dream that was not undone, oldest first."""
    rows: list[Row] = []
    total = 0
    for one in reversed(dreams):
        if one.state in ("done", "superseded"):
            total += one.saved
            rows.append([cell(one.created_at, moment(one.created_at)), cell(total)])
    return rows


def before_and_after(dreams: Sequence[DreamFigures]) -> list[Row]:
    """Tokens of the entries that each dream took and of its text, oldest first."""
    return [
        [cell(one.created_at, moment(one.created_at)), cell(one.taken), cell(one.output_tokens)]
        for one in reversed(dreams)
    ]


def latency(searches: Sequence[SearchSlot]) -> list[Row]:
    """Searches by time: their number, and the median and 95th percentile of their duration in milliseconds."""
    if not searches:
        return []
    first, last = searches[0].at, searches[-1].at
    width = max(1, -(-(last - first + 1) // _BUCKETS))
    parts: dict[int, SearchSlot] = {}
    for one in searches:
        place = (one.at - first) // width
        before = parts.get(place)
        parts[place] = one if before is None else SearchSlot(before.at, before.sizes + one.sizes)
    return [
        [
            cell(one.at, moment(one.at)),
            cell(round(one.slowest_but(0.5), 1)),
            cell(round(one.slowest_but(0.95), 1)),
            cell(one.count),
        ]
        for one in parts.values()
    ]
