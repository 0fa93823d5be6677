"""What the command line shows: JSON for programs on stdout, tables for people, everything else on stderr.

Text that a memory holds may have been written by anyone. Shown to people it never reaches the terminal as control
characters: no colour, no cursor movement, no reordering. `--json` carries it exactly, with the same characters
written as JSON escapes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
"""Columns of a table that does not go to a terminal."""

# Controls but line feed and tab; what reorders or hides text; line and paragraph separators; tag characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# What JSON leaves unescaped although a terminal may act on it.
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
    """One JSON document, one line, to stdout."""
    sys.stdout.buffer.write(json_line(document))


def json_line(document: Any) -> bytes:
    """A JSON document as a line of UTF-8."""
    import orjson

    encoded = orjson.dumps(document, default=_plain).decode()
    return (_UNSAFE_IN_JSON.sub(_json_escape, encoded) + "\n").encode()


def say(text: str) -> None:
    """A line for people, on stdout."""
    sys.stdout.write(neutral(text) + "\n")


def note(text: str) -> None:
    """A remark beside the result, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(neutral(text) + "\n")
    sys.stderr.flush()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, stretch: str | None = None, empty: str = "Nothing here."
) -> None:
    """Rows under headings. Only the column `stretch` is cut to fit; all others are shown whole."""
    if not rows:
        note(empty)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    cells = [["" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    for at, column in enumerate(columns):
        numbers = all(isinstance(row[at], int | float) for row in rows)
        table.add_column(
            column,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if numbers else "left",
            ratio=1 if column == stretch else None,
            min_width=None if column == stretch else max(len(column), *(len(row[at]) for row in cells)),
        )
    for row in cells:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    console = _console()
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def print_fields(fields: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        say(f"{name:<{width}}  {'' if value is None else one_line(str(value))}".rstrip())


def many(number: int, noun: str, plural: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def counts(findings: Mapping[str, int]) -> str:
    """Findings by kind, for people."""
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(findings.items()))


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr when a person watches; nothing otherwise. Yields `report(done, total)`."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _console() -> Console:
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False, markup=False)
    return Console(highlight=False, markup=False, width=PIPE_WIDTH, color_system=None, force_terminal=False)


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
