"""Output of the command line: JSON for programs on stdout, tables for people, everything else on stderr.

Text that an entry holds may have been written by anyone. Shown to people it never reaches the terminal as control
characters: no colour, no cursor movement, no reordering. `--json` carries it exactly, with the same characters
written as JSON escapes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PIPE_WIDTH = 120
"""Columns of a table that does not go to a terminal."""
_LEAST = 8
_LEAST_STRETCH = 24
_LEAST_ID = 12
_BAR = 30
_REDRAW_SECONDS = 0.1

# Controls but line feed and tab; what reorders or hides text; line and paragraph separators; tag characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# Characters that JSON leaves unescaped although a terminal may act on them.
_UNSAFE_IN_JSON = re.compile(
    "[\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def neutral(text: str) -> str:
    """`text` with everything a terminal might obey made visible: an escape becomes the four characters `\\x1b`."""
    return _UNSAFE.sub(_visible, text)


def one_line(text: str) -> str:
    """`text` on one line, neutral."""
    return neutral(" ".join(text.split()))


def print_json(document: Any) -> None:
    """Print a JSON document as one line on stdout."""
    sys.stdout.buffer.write(json_line(document))


def json_line(document: Any) -> bytes:
    """A JSON document as a line of UTF-8."""
    import orjson

    encoded = orjson.dumps(document, default=_plain).decode()
    return (_UNSAFE_IN_JSON.sub(_json_escape, encoded) + "\n").encode()


def say(text: str) -> None:
    """Print a line for people on stdout."""
    sys.stdout.write(neutral(text) + "\n")


def note(text: str) -> None:
    """Print a remark on stderr, next to the result."""
    sys.stdout.flush()
    sys.stderr.write(neutral(text) + "\n")
    sys.stderr.flush()


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    stretch: str | None = None,
    keep: Sequence[str] = (),
    lines: int | None = 1,
    empty: str = "Nothing here.",
) -> None:
    """Print rows under headings, within the width of the terminal.

    Where columns do not fit, `stretch` is cut first, then the widest others; those that still do not fit are left out,
    from the right. The first column and those in `keep` stay whole. A column without any value is left out. On a
    terminal `stretch` may take several `lines`; None: every column takes as many as its text needs, also in a pipe.
    """
    if not rows:
        note(empty)
        return
    cells = [["" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    numeric = [all(isinstance(row[at], int | float) for row in rows) for at in range(len(columns))]
    shown = [at for at in range(len(columns)) if any(row[at] for row in cells)]
    widths = {at: max(display_width(columns[at]), *(display_width(row[at]) for row in cells)) for at in shown}
    whole = {at for at in shown if at == shown[0] or columns[at] in keep}
    _fit(widths, whole, columns.index(stretch) if stretch in columns else None)
    most = 1 if lines is not None and not sys.stdout.isatty() else lines
    for line in [list(columns), *cells]:
        wrapped = {at for at in widths if lines is None or columns[at] == stretch}
        parts = {at: _wrap(line[at], widths[at], most) if at in wrapped else [line[at]] for at in widths}
        for number in range(max(map(len, parts.values()))):
            made = [
                _pad(parts[at][number] if number < len(parts[at]) else "", widths[at], right=numeric[at])
                for at in widths
            ]
            sys.stdout.write("  ".join(made).rstrip() + "\n")


def _fit(widths: dict[int, int], whole: set[int], stretch: int | None) -> None:
    """Make columns narrower, or leave them out, until the table fits."""
    available = table_width()

    def excess() -> int:
        return sum(widths.values()) + 2 * (len(widths) - 1) - available

    if stretch in widths and excess() > 0:
        widths[stretch] = max(min(widths[stretch], _LEAST_STRETCH), widths[stretch] - excess())
    while excess() > 0:
        others = [at for at in widths if at not in whole and widths[at] > _LEAST]
        if not others:
            break
        widest = max(others, key=lambda at: (at != stretch, widths[at]))
        widths[widest] -= 1
    for at in sorted(widths, reverse=True):
        if excess() > 0 and at not in whole and at != stretch:
            del widths[at]


def table_width() -> int:
    """Columns that a table may take."""
    from reverie.api.cli.command import columns

    return columns() if sys.stdout.isatty() else PIPE_WIDTH


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, width: int) -> str:
    """Cut a text to this many columns; one that is too long ends in an ellipsis."""
    if display_width(text) <= width:
        return text
    room = width - 1
    for at, letter in enumerate(text):
        room -= display_width(letter)
        if room < 0:
            return text[:at] + "…"
    return text + "…"


def _pad(text: str, width: int, *, right: bool) -> str:
    """Pad or cut a text to exactly this many columns."""
    text = cut(text, width)
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def _wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Break a text into lines of this many columns; past `most` of them the last one ends in an ellipsis."""
    if most == 1 or display_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".lstrip()
        if display_width(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:  # a word may be wider than the column
            if display_width(lines[-1] + letter) > width:
                lines.append("")
            lines[-1] += letter
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], " ".join(lines[most - 1 :])]


def shorten_ids(ids: Sequence[str]) -> dict[str, str]:
    """Shorten ids for a terminal to as many characters as keep them unique; whole when output is read by a program.
    Commands accept any unique prefix of an id.
    """
    if not sys.stdout.isatty():
        return {one: one for one in ids}
    length = _LEAST_ID
    while len({one[:length] for one in ids}) < len(set(ids)):
        length += 1
    return {one: one[:length] for one in ids}


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line."""
    width = max(map(len, fields), default=0)
    room = max(table_width() - width - 2, _LEAST_STRETCH)
    for name, value in fields.items():
        text = "" if value is None else one_line(str(value))
        first, *more = _wrap(text, room) if sys.stdout.isatty() else [text]
        say(f"{name:<{width}}  {first}".rstrip())
        for line in more:
            say(" " * (width + 2) + line)


def many(number: int, noun: str, plural: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def counts(findings: Mapping[str, int]) -> str:
    """Findings by kind, for people."""
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(findings.items()))


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, when that is a terminal; nothing otherwise. Yields `report(done, total)`."""
    with steps_bar() as bar:
        yield lambda done, total: bar(title, done, total)


@contextmanager
def steps_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with a title on stderr, when that is a terminal; nothing otherwise. Yields `report(title, done, total)`."""
    if not sys.stderr.isatty():
        yield lambda _title, _done, _total: None
        return
    from time import monotonic

    last = ("", 0.0)

    def report(title: str, done: int, total: int) -> None:
        nonlocal last
        now = monotonic()
        if title == last[0] and now - last[1] < _REDRAW_SECONDS and done != total:
            return
        last = (title, now)
        filled = _BAR * min(done, total) // total if total else 0
        bar = f" [{'#' * filled}{'.' * (_BAR - filled)}] {done}/{total}" if total else f" {done or ''}"
        sys.stderr.write(f"\r\x1b[K{neutral(title)}{bar}".rstrip())
        sys.stderr.flush()

    try:
        yield report
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _plain(value: Any) -> Any:
    import msgspec

    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return str(value)
