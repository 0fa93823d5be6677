"""Secrets in a column: a table or a list of values whose first line names the columns."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.redact.markers import Lazy
from reverie.redact.patterns.literals import is_literal
from reverie.redact.patterns.names import key_strength
from reverie.redact.patterns.plausible import is_password_like, is_random_value, is_technical
from reverie.redact.patterns.rule import Rule, Span

_HEAD = Lazy(
    rb"(?m:^)[ \t]{0,8}((?:\|[^\n|]{1,60}){2,12}\||[A-Za-z_\"]{1,30}(?:[,;\t][A-Za-z0-9_\"]{1,30}){1,12})"
    rb"[ \t]{0,3}\r?\n"
)
_ROW = Lazy(rb"[ \t]{0,8}([^\n]{3,600}?)[ \t]{0,3}(?:\r?\n|\z)")
_MOST_ROWS = 500


def _cells(data: bytes, start: int, end: int, sign: bytes) -> list[Span]:
    """Where the cells of a row stand, without blanks and quotes around them."""
    cells: list[Span] = []
    while start <= end:
        stop = data.find(sign, start, end)
        stop = end if stop < 0 else stop
        cell = data[start:stop]
        left = len(cell) - len(cell.lstrip(b" \t\"'`*"))
        cells.append((start + left, start + max(left, len(cell.rstrip(b" \t\"'`*")))))
        start = stop + 1
    return cells


def _columns(data: bytes) -> Iterator[Span]:
    """The cells below a name such as `password`."""
    for head in _HEAD.finditer(data):
        line = head.group(1)
        sign = b"|" if line[:1] == b"|" else next(s for s in (b",", b";", b"\t") if s in line)
        names = [data[s:e].decode("utf-8", "replace") for s, e in _cells(data, head.start(1), head.end(1), sign)]
        wanted = {i for i, name in enumerate(names) if len(name) <= 24 and key_strength(name.replace(" ", "_"))}
        position = head.end()
        for _ in range(_MOST_ROWS if wanted else 0):
            row = _ROW.match(data, position)
            if row is None:
                break
            cells = _cells(data, row.start(1), row.end(1), sign)
            if len(cells) != len(names):
                break
            position = row.end()
            for i in wanted:
                start, end = cells[i]
                if _is_secret(data[start:end].decode("utf-8", "replace")):
                    yield start, end


def _is_secret(text: str) -> bool:
    if " " in text or len(text) < 6 or not is_literal(text) or is_technical(text):
        return False
    return is_random_value(text) or (is_password_like(text) and any(c.isdigit() for c in text))


_COLUMN = r"(?i:pass(?:word|wd|phrase)?|pwd|secret|(?:api|secret|access)[ _]key|token)[\"* ]*"

RULES = (
    Rule(
        "column-secret",
        _COLUMN,
        trigger=rf"{_COLUMN}(?:\||[,;\t][\"A-Za-z_0-9])|[,;\t][\"A-Za-z_0-9]*{_COLUMN}\r?(?m:$)",
        locate=_columns,
        generic=True,
        examples=(
            "| service | user | password |\n|---|---|---|\n| wiki | bob | ⟨w12⟩7 |\n",
            "user,password,role\nbob,⟨w12⟩7,admin\n",
        ),
        near_misses=(
            "| option | token |\n|---|---|\n| limit | 4096 |\n",
            "name, password\nSome more text about them, which follows.\n",
        ),
    ),
)
