"""Dates in a text: the spelling of days, and the anchoring of relative dates such as "yesterday".

An entry is read long after it was written, so dates relative to the day of writing are anchored
to it: `yesterday` becomes `on 7 May`, `last month` becomes `in April 2023`, `last week` becomes
`the week before` (the heading gives the day). Only unambiguous expressions are replaced;
`recently`, `last summer` or `in a few days` stay as they are.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = {
    name[:n]: name.capitalize()
    for name in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for n in (3, 4, len(name))
}
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "a couple of": 2}
_SHIFTS = {
    "yesterday": -1, "last night": -1, "tomorrow": 1,
    "the day before yesterday": -2, "the day after tomorrow": 2,
}  # fmt: skip
_PARTS = r"(?: (?P<{}>morning|afternoon|evening|night))?"
_RELATIVE = re.compile(
    r"(?<![\w'’-])(?:(?P<prep>on|in|for|from|since|until|by|of|at|like|like just|like only) )?(?:"
    r"(?P<day>the day before yesterday|the day after tomorrow|yesterday|tomorrow|last night)"
    + _PARTS.format("part")
    + r"|(?<!the )(?P<side>last|this past|next) (?P<unit>week|weekend|month|year|"
    + "|".join(sorted(_WEEKDAYS, key=lambda w: (-len(w), w)))
    + r")"
    + _PARTS.format("unitpart")
    + r"|(?P<count>\d{1,2}|a couple of|a|one|two|three|four|five|six) (?P<what>day|week|weekend)s? ago"
    r")(?![\w'’-])(?! of\b)",
    re.IGNORECASE,
)
_HINT = re.compile(r"yesterday|tomorrow|last |past |next | ago", re.ASCII | re.IGNORECASE)
_EARLIEST, _LATEST = date(1, 1, 10).toordinal(), date(9999, 12, 20).toordinal()


UNKNOWN_DAY = date(1970, 1, 1)
"""The day of a text without a time: it gets no heading, and nothing is anchored to it."""


@lru_cache(4096)
def day_of(created_at: int) -> date:
    """Return the UTC day of a time in milliseconds, clamped to the days that a calendar can hold."""
    ordinal = date(1970, 1, 1).toordinal() + created_at // 86_400_000
    return date.fromordinal(min(max(ordinal, _EARLIEST), _LATEST))


def spell(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def anchor(text: str, day: date) -> str:
    """Replace relative dates in `text` by dates as seen from `day`."""
    if day == UNKNOWN_DAY or not _HINT.search(text):
        return text

    def near(shift: int) -> str:
        d = day + timedelta(days=shift)
        return spell(d) if d.year != day.year else f"{d.day} {MONTHS[d.month - 1]}"

    def replace(m: re.Match[str]) -> str:
        prep = m["prep"] or ""
        if prep.lower().startswith("like"):  # "it feels like yesterday" names no day
            return m[0]
        lead = prep + " " if prep else ""
        if m["day"]:
            word = m["day"].lower()
            part = "night" if word == "last night" else (m["part"] or "").lower()
            of_part = f"the {part} of " if part else ""
            return f"{lead or 'on '}{of_part}{near(_SHIFTS[word])}"
        if m["side"]:
            step = 1 if m["side"].lower() == "next" else -1
            unit = m["unit"].lower()
            if unit == "month":
                month = day.month - 1 + step
                return f"{lead or 'in '}{MONTHS[month % 12]} {day.year + month // 12}"
            if unit == "year":
                return f"{lead or 'in '}{day.year + step}"
            part = f" {m['unitpart'].lower()}" if m["unitpart"] else ""
            return f"{lead}the {_WEEKDAYS.get(unit, unit)}{part} {'after' if step > 0 else 'before'}"
        word = m["count"].lower()
        count = int(word) if word.isdigit() else _COUNTS[word]
        what = m["what"].lower()
        if what == "day":
            return f"{lead or 'on '}{near(-count)}"
        return f"{lead}{m['count']} {what}{'s' if count != 1 else ''} before"

    return _RELATIVE.sub(replace, text)
