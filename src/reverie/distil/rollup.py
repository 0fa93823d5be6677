"""Roll-ups: the same status, reported many times, as one line.

`Reindex finished in 41 s` on nineteen days becomes `Reindex finished in 41 to 66 s (×19, 3 to 9 October 2025)`. Only
lines of one speaker whose words are equal and whose numbers differ are rolled up; every source stays behind the line.
A reading that the value model takes for more than routine is rolled up with its like where the numbers are measurements
(`disk of log-3 at 86 %`): a ticket or an invoice with another number is another thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from reverie.distil.dates import MONTHS, UNKNOWN_DAY, spell

if TYPE_CHECKING:
    from reverie.distil.statements import Candidate, Into

LEAST = 3
"""Reports of the same template before they are rolled up."""
_MOST_NUMBERS = 4
"""A line with more numbers says more than ranges can."""
_NUMBER = re.compile(r"(?<![\w.,:/-])\d[\d,]*(?:\.\d+)?(?![\w:/-])|\b\d{1,2}:\d\d\b")


_UNIT = re.compile(
    r" ?(?:%|°|[kMGT]i?B\b|[mµn]?s\b|min\b|h\b|(?:second|minute|hour|day|request|message|item|row|user|error)s?\b"
    r"|(?:req|rps|qps|ops|km|kg|[kM]?W|kWh|V|A|C|F|mbar|hPa)\b)"
)
"""Units after a measured number."""


def _measures(text: str) -> bool:
    """Whether every number of a statement is a measurement."""
    found = list(_NUMBER.finditer(text))
    return bool(found) and all(_UNIT.match(text, number.end()) for number in found)


def template(text: str) -> tuple[str, ...]:
    """The words around the numbers of a statement."""
    return tuple(_NUMBER.split(text.casefold()))


def numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def roll_up(items: Sequence[Candidate], into: Into) -> list[Candidate]:
    """Statements with every group of routine reports replaced by one, at the place of the newest."""
    groups: dict[tuple[str | None, str | None, tuple[str, ...]], list[Candidate]] = {}
    for item in items:
        if not item.required and (item.reports or _measures(item.text)):
            groups.setdefault((item.speaker, item.about, template(item.text)), []).append(item)
    replaced: dict[tuple[int, int], Candidate | None] = {}
    for (_, _, words), group in groups.items():
        if len(group) < LEAST or len(words) > _MOST_NUMBERS + 1 or 2 * sum(one.reports for one in group) < len(group):
            continue
        if any(one.kind != "status" for one in group) and not _measures(group[-1].text):
            continue
        for item in group[:-1]:
            replaced[item.place] = None
            into[item.place] = ("rolled", group[-1].place)
        replaced[group[-1].place] = _rolled(group)
    return [kept for item in items if (kept := replaced.get(item.place, item)) is not None]


def _rolled(group: Sequence[Candidate]) -> Candidate:
    newest = group[-1]
    columns = list(zip(*(numbers(item.text) for item in group), strict=True))
    ranges = iter([_span(column) for column in columns])
    text = _NUMBER.sub(lambda _: next(ranges), newest.text).rstrip(" .")
    ids = tuple(dict.fromkeys(i for item in reversed(group) for i in item.source_ids))
    days = _days(group[0].day, newest.day)
    times = sum(item.times for item in group)
    return newest._replace(
        text=f"{text} (×{times}{f', {days}' if days else ''})",
        whole="",
        source_ids=ids,
        times=1,  # the count is part of the text
        how="rolled",
        must_keep=any(item.must_keep for item in group),
        length=newest.length + len(columns) + 4,
        needs=None,
    )


def _span(column: Sequence[str]) -> str:
    """The least and the greatest of one number, in their own spelling."""
    ordered = sorted(column, key=lambda number: (_size(number), number))
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def _size(number: str) -> tuple[int, ...]:
    if ":" in number:
        return tuple(int(part) for part in number.split(":"))
    whole, _, fraction = number.replace(",", "").partition(".")
    return (int(whole), int(fraction.ljust(9, "0")[:9] or 0))


def _days(first: date, last: date) -> str:
    if UNKNOWN_DAY in (first, last):
        return ""
    if first == last:
        return spell(first)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day} to {spell(last)}"
    if first.year == last.year:
        return f"{first.day} {MONTHS[first.month - 1]} to {spell(last)}"
    return f"{spell(first)} to {spell(last)}"
