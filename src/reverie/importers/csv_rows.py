"""CSV with a header line. The usual column names are understood; other columns follow the text in parentheses.

Without a text column, a row is its columns with their names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from reverie.importers.jsonl import KNOWN, TEXTS, row
from reverie.importers.record import MAX_FILE, Item, damaged, digest, text_of

EXPECTED = "a header line with the names of the columns"
_COLUMNS = 200
_MOST_MORE = 400


def fits(path: Path, head: bytes) -> bool:
    """A file named .csv or .tsv."""
    return path.suffix.lower() in (".csv", ".tsv") and path.is_file() and b"\0" not in head


def read(path: Path) -> Iterator[Item]:
    """One record per row."""
    text = text_of(path)
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FILE))  # of the process; a long text is cut into pieces later
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=text.partition("\n")[0].count)
    lines = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(lines, [])]
        if not header or not all(header) or len(set(_names(header))) < len(header) or len(header) > _COLUMNS:
            raise damaged(path, f"expected {EXPECTED}, each once.", 1)
        order = 0
        for values in lines:
            if not any(value.strip() for value in values):
                continue
            order += 1
            if len(values) != len(header):
                expected = f"expected {len(header)} values as in the header, found {len(values)}."
                raise damaged(path, expected, lines.line_num)
            yield from row(_fields(header, values), f"{path.name}, line {lines.line_num}", order, path)
    except csv.Error as fault:
        raise damaged(path, f"expected CSV ({fault}).", lines.line_num) from None


def _names(header: list[str]) -> list[str]:
    return [name.lower().replace(" ", "_") for name in header]


def _fields(header: list[str], values: list[str]) -> dict[str, object]:
    """A row by the names of its columns. Columns without a known name go into the text."""
    names = _names(header)
    fields: dict[str, object] = {name: value for name, value in zip(names, values, strict=True) if value != ""}
    if not set(TEXTS) & set(names):
        text = "; ".join(f"{name}: {value}" for name, value in zip(header, values, strict=True) if value.strip())
        return {"text": text, "id": fields.get("id") or digest(text)}
    rest = [name for name in names if name not in KNOWN and fields.get(name)]
    text = next((str(fields[name]) for name in TEXTS if fields.get(name)), "")
    more = "; ".join(f"{header[names.index(name)]}: {fields[name]}" for name in rest)
    if not rest or not text or len(more) > _MOST_MORE:  # a longer text would not be found by them
        return fields
    return {**fields, TEXTS[0]: f"{text} ({more})"}
