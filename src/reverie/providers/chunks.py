"""Windows: lines divided into parts that fit the context of a model, at the ends of topics, sessions and days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from reverie.providers.prompt import Line

Count = Callable[[str], int]
_NUMBER = 99_999  # the widest line number that a window is likely to have


def weight(line: Line, count: Count) -> int:
    """Return the tokens of a line as it is sent, line end included."""
    return count(line.as_data(_NUMBER)) + 1


def cut(lines: Sequence[Line], room: int, count: Count) -> list[list[Line]]:
    """Divide `lines`, in order and without loss, into windows of at most `room` tokens.

    A window ends where a topic, a session or a day ends if one ends in its last third. A line longer than a window is
    cut at blanks; its parts keep its sources.
    """
    pieces = [piece for line in lines for piece in _fitting(line, room, count)]
    windows: list[list[Line]] = []
    part: list[Line] = []
    used = 0
    for piece in pieces:
        size = weight(piece, count)
        if part and used + size > room:
            end = _border([*part, piece])
            windows.append(part[:end])
            part = part[end:]
            used = sum(weight(line, count) for line in part)
        part.append(piece)
        used += size
    if part:
        windows.append(part)
    return windows


def _border(part: Sequence[Line]) -> int:
    last = len(part) - 1
    for end in range(last, last * 2 // 3, -1):
        before, after = part[end - 1], part[end]
        if before.topic != after.topic or before.session != after.session or before.day != after.day:
            return end
    return last


def _fitting(line: Line, room: int, count: Count) -> list[Line]:
    if weight(line, count) <= room or len(line.text) < 2:
        return [line]
    middle = len(line.text) // 2
    blank = line.text.rfind(" ", 0, middle)
    at = blank if blank > 0 else middle
    halves = (line.text[:at].rstrip(), line.text[at:].lstrip())
    parts = [replace(line, text=half, keep=tuple(k for k in line.keep if k in half)) for half in halves if half]
    return [piece for part in parts for piece in _fitting(part, room, count)]
