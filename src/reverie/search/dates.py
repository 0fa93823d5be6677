"""Times named in a question: "in May 2023", "on 8 May", "yesterday", "two weeks ago".

Pure and in UTC. A day reaches half a day beyond its ends, since neither the asker's nor the writer's time
zone is known. A month or day without a year means that month or day of any year.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_NUMBER_NAMES = "zero one two three four five six seven eight nine ten"
_NUMBERS = {word: n for n, word in enumerate(_NUMBER_NAMES.split())}
_NUMBERS |= {"a": 1, "an": 1, "few": 3, "couple": 2}
_NAME = "|".join([*_MONTHS, *(month[:3] for month in _MONTHS if month != "may"), "sept"])
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_NAMED = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{_NAME})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?:of\s+)?(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_AGO = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_NUMBERS)})(?:\s+of)?\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(today|tonight|yesterday|last night|(?:this|last|past) (?:week|weekend|month|year))\b", re.IGNORECASE
)
_AFTER_WHICH_MAY_IS_A_MONTH = re.compile(
    r"\b(?:in|of|since|until|by|during|last|this|early|late|mid|on|through|to|from|before|after)\W+$",
    re.IGNORECASE,
)
_DAY = timedelta(days=1)
_UNITS = {"day": _DAY, "week": 7 * _DAY, "month": timedelta(days=30.4), "year": timedelta(days=365.25)}
_HALF_DAY_MS = 12 * 3_600_000


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: [start, end) in milliseconds, or a month (and day) of any year."""

    start: int = 0
    end: int = 0
    month: int = 0
    day: int = 0

    def covers(self, at_ms: int) -> bool:
        """Whether the instant lies in the period."""
        if not self.month:
            return self.start <= at_ms < self.end
        dates = _dates_around(at_ms, wide=bool(self.day))
        return any(month == self.month and self.day in (0, day) for month, day in dates)


def periods(query: str, now_ms: int) -> tuple[Period, ...]:
    """The times `query` names, absolute ones first; empty when it names none."""
    found: list[Period] = []
    rest = query
    for match in _ISO.finditer(query):
        found += _calendar(int(match[1]), int(match[2]), int(match[3] or 0))
    rest = _ISO.sub(" ", rest)
    for match in _NAMED.finditer(rest):
        if _is_month(rest, match):
            month = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(match["month"].lower()[:3]))
            found += _calendar(int(match["year"] or 0), month, int(match["before"] or match["after"] or 0))
            rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end() :]
    for match in _YEAR.finditer(rest):
        found += _calendar(int(match[0]), 0, 0)
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(rest):
        count = _NUMBERS.get(match[1].lower()) if not match[1].isdigit() else int(match[1])
        unit = _UNITS[match[2].lower()]
        centre = midnight - min(count or 0, 200) * unit
        found.append(_between(centre - unit / 2 + _DAY / 2, centre + unit / 2 + _DAY / 2))
    for match in _RELATIVE.finditer(rest):
        found.append(_relative(match[1].lower(), midnight))
    return tuple(found)


def _is_month(text: str, match: re.Match[str]) -> bool:
    """ "may", "march" and the short forms are words too: they need a number, a capital or a preposition."""
    name = match["month"]
    if match["before"] or match["after"] or match["year"] or name.lower() not in {"may", "march", "mar", "dec"}:
        return True
    capital = name[0].isupper() and match.start() > 0
    return capital or _AFTER_WHICH_MAY_IS_A_MONTH.search(text[: match.start()]) is not None


def _calendar(year: int, month: int, day: int) -> list[Period]:
    try:
        if not year:
            datetime(2024, month, day or 1, tzinfo=UTC)
            return [Period(month=month, day=day)]
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day:
            end = start + _DAY
        elif month:
            end = (start + 31 * _DAY).replace(day=1)
        else:
            end = start.replace(year=year + 1)
    except (ValueError, OverflowError):
        return []
    return [_between(start, end)]


def _relative(words: str, midnight: datetime) -> Period:
    if words in {"today", "tonight"}:
        return _between(midnight, midnight + _DAY)
    if words in {"yesterday", "last night"}:
        return _between(midnight - _DAY, midnight)
    which, unit = words.split(" ")
    if unit in {"week", "weekend"}:
        start = midnight - midnight.weekday() * _DAY
        return _between(start - 7 * _DAY, start) if which != "this" else _between(start, start + 7 * _DAY)
    start = midnight.replace(day=1) if unit == "month" else midnight.replace(month=1, day=1)
    before = (start - _DAY).replace(day=1) if unit == "month" else start.replace(year=start.year - 1)
    return _between(start, midnight + _DAY) if which == "this" else _between(before, start)


def _between(start: datetime, end: datetime) -> Period:
    return Period(int(start.timestamp() * 1000) - _HALF_DAY_MS, int(end.timestamp() * 1000) + _HALF_DAY_MS)


@lru_cache(maxsize=4096)
def _dates_around(at_ms: int, *, wide: bool) -> tuple[tuple[int, int], ...]:
    """(month, day) of the instant; if `wide`, also of half a day before and after it."""
    shifts = (-_HALF_DAY_MS, 0, _HALF_DAY_MS) if wide else (0,)
    try:
        moments = [datetime.fromtimestamp((at_ms + shift) / 1000, UTC) for shift in shifts]
    except (ValueError, OverflowError, OSError):
        return ()
    return tuple((moment.month, moment.day) for moment in moments)
