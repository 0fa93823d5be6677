"""Write chosen statements as text: a heading per day, a line per speaker, oldest day first."""

from __future__ import annotations

from collections.abc import Iterable

from reverie.distil.dates import UNKNOWN_DAY, spell
from reverie.distil.statements import Candidate

LONGEST_LINE = 56  # words and marks


def heading(item: Candidate) -> str:
    return f"[{spell(item.day)}]"


def shown(item: Candidate) -> str:
    return f"{item.text} (×{item.times})" if item.times > 1 else item.text


def render(items: Iterable[Candidate]) -> str:
    """The text of statements given in canonical order."""
    lines: list[str] = []
    day = None
    line: list[str] = []
    length = 0
    last: Candidate | None = None
    for item in items:
        if item.day != day:
            if line:
                lines.append("; ".join(line))
            line, last = [], None
            day = item.day
            if day != UNKNOWN_DAY:
                lines.append(heading(item))
        text = shown(item)
        joins = (
            last is not None
            and item.speaker == last.speaker
            and (item.speaker is not None or item.place[0] == last.place[0])
            and length + item.length <= LONGEST_LINE
        )
        if joins:
            line.append(text)
            length += item.length
        else:
            if line:
                lines.append("; ".join(line))
            line = [f"{item.speaker}: {text}" if item.speaker else text]
            length = item.length + 2
        last = item
    if line:
        lines.append("; ".join(line))
    return "\n".join(lines)
