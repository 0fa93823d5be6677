"""Layout of the chosen statements: a heading per day, a line per speaker or subject, oldest day first.

Where there is room, every entry has a line of its own, which is easier to read and to find. Notes of many different
days have a heading per month, since a heading per note would cost too much; the day then follows statements whose
meaning depends on it. A text that would be longer than its sources has a heading per month without days, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from reverie.core.pause import paced
from reverie.distil.dates import MONTHS, UNKNOWN_DAY, spell
from reverie.distil.statements import Candidate

LONGEST_LINE = 56
"""Words and marks, at most, of a line with several entries of one speaker."""
_LONGEST_ENTRY = 112
"""Words and marks, at most, of a line with one entry: statements made together are found together."""


_FEW = 6
"""Statements below which every day keeps its heading."""
_WIDE_ENDS = frozenset("。！？")
_DATED = frozenset({"fact", "decision", "task", "status"})
"""Kinds of statement that need the day on which they were made."""


def heading(day: date, *, monthly: bool) -> str:
    return f"[{MONTHS[day.month - 1]} {day.year}]" if monthly else f"[{spell(day)}]"


def is_sparse(items: Sequence[Candidate]) -> bool:
    """Whether these are notes without speakers, most of them from different days."""
    if len(items) < _FEW or any(item.speaker for item in items):
        return False
    return len({item.day for item in items}) * 5 > len(items) * 3


def wording(item: Candidate) -> str:
    return f"{item.text} (×{item.times})" if item.times > 1 else item.text


def render(items: Sequence[Candidate], most: int | None = None, *, apart: bool = False) -> str:
    """Return the text of statements given in canonical order.

    `most`: characters of their sources. `apart`: every entry gets a line of its own, unless the text would then be
    longer than its sources.
    """
    monthly = is_sparse(items)
    text = _render(items, monthly=monthly, days=monthly, heads=True, apart=True) if apart else ""
    if apart and most is not None and len(text) <= most:
        return text
    for month, days, heads in ((monthly, monthly, True), (True, True, True), (True, False, True), (True, False, False)):
        text = _render(items, monthly=month, days=days, heads=heads, apart=False)
        if most is None or len(items) < _FEW or len(text) <= most:
            break
    return text


def _render(items: Sequence[Candidate], *, monthly: bool, days: bool, heads: bool, apart: bool) -> str:
    lines: list[str] = []
    day = None
    line: list[str] = []
    length = 0
    last: Candidate | None = None
    before: str | None = None
    for item in paced(items):
        under = item.day.replace(day=1) if monthly else item.day
        if under != day:
            if line:
                lines.append(_joined(line))
            line, last = [], None
            day = under
            if heads and item.day != UNKNOWN_DAY:
                lines.append(heading(item.day, monthly=monthly))
        text = wording(item)
        label = item.label if item.about else item.speaker
        if (
            days
            and item.day != UNKNOWN_DAY
            and (item.how != "rolled" or item.since == item.day)
            and (item.kind in _DATED or item.how == "shortened")
        ):
            text = f"{text} ({item.day.day} {MONTHS[item.day.month - 1]})"
        joins = (
            last is not None
            and label == before
            and (item.place[0] == last.place[0] or not (apart or label is None))
            and length + item.length <= (_LONGEST_ENTRY if item.place[0] == last.place[0] else LONGEST_LINE)
        )
        if joins and last is not None:
            # In a list its heading is written once.
            listed = item.place[0] == last.place[0] and item.head and item.head == last.head
            line.append(f"; {text.removeprefix(item.head).lstrip()}" if listed else text)
            length += item.length
        else:
            if line:
                lines.append(_joined(line))
            line = [f"{label}: {text}" if label else text]
            length = item.length + 2
        last, before = item, label
    if line:
        lines.append(_joined(line))
    return "\n".join(lines)


def _joined(statements: Sequence[str]) -> str:
    """Join statements as sentences of one line: with a semicolon where the next does not begin like a sentence, without
    a mark after a colon."""
    out = statements[0]
    for text in statements[1:]:
        if text.startswith("; "):
            out = out.rstrip(".") + text
        elif out[-1] in _WIDE_ENDS:
            out += text
        else:
            out += " " if out[-1] in ".!?…:" else ". " if text[0].isupper() else "; "
            out += text
    return out
