"""JSON lines, or a JSON list: texts, objects with a text in one of the usual fields, or the entries of an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reverie.importers.entry_file import entry_record
from reverie.importers.record import (
    Item,
    Record,
    Skipped,
    damaged,
    digest,
    in_pieces,
    json_document,
    json_lines,
    labels,
    moment,
    whole,
)

TEXTS = ("content", "text", "memory", "fact", "note", "message", "body")
EXPECTED = f"a JSON text, or an object with one of {', '.join(TEXTS)}"
_UNIQUE = 20
"""Characters from which on an id is taken for one that no other file has."""
TIMES = {"created_at", "timestamp"}
KNOWN = {*TEXTS, *TIMES, "id", "kind", "type", "tags", "subject", "user_id", "session", "role"}


def fits(path: Path, head: bytes) -> bool:
    """A file of lines that begin like JSON, or a JSON list of objects with a text."""
    ending, first = path.suffix.lower(), _first(head)
    if ending == ".json":
        return first == b"[" and any(f'"{name}"'.encode() in head for name in TEXTS)
    return ending in (".jsonl", ".ndjson") and path.is_file() and first in (b"{", b'"', b"")


def read(path: Path) -> Iterator[Item]:
    """One record per line, or per element of a list."""
    for number, place, line in _rows(path):
        if isinstance(line, dict) and {"ref", "id", "content", "version", "seq"} <= set(line):
            yield entry_record(line, str(line["content"]), path, place, number)
        elif isinstance(line, str):
            yield from (
                row({"text": line}, place, number, path) if line.strip() else [Skipped(place, "a line without text")]
            )
        elif isinstance(line, dict) and any(isinstance(line.get(name), str) for name in TEXTS):
            yield from row(line, place, number, path)
        else:
            raise damaged(path, f"{place}: expected {EXPECTED}.")


def _rows(path: Path) -> Iterator[tuple[int, str, Any]]:
    """(number, place, value) of every line, or of every element of a list."""
    with path.open("rb") as file:
        many = _first(file.read(4096)) == b"["
    if many:
        document = json_document(path, "a list")
        yield from ((number, f"{path.name}, {number}", one) for number, one in enumerate(document, 1))
    else:
        yield from ((number, f"{path.name}, line {number}", one) for number, one in json_lines(path, EXPECTED))


def _first(head: bytes) -> bytes:
    """The first character behind a byte order mark and space."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def row(fields: Mapping[str, Any], place: str, order: int, path: Path) -> Iterator[Item]:
    """A row of any table. The usual names are understood; the other fields become attributes.

    A short id, such as a number, names a row of this file; a long one, such as a UUID, that row in any file.
    """
    content = next(
        (str(fields[name]) for name in TEXTS if isinstance(fields.get(name), str) and fields[name].strip()), ""
    )
    if not content:
        yield Skipped(place, "a row without text")
        return
    at = moment(fields.get("created_at") or fields.get("timestamp"))
    used = KNOWN if at is not None else KNOWN - TIMES  # a time that cannot be read is kept as it is
    rest = {str(name): value for name, value in fields.items() if name not in used and value not in (None, "")}
    subject = fields.get("subject") or fields.get("user_id")
    role = fields.get("role") if isinstance(fields.get("role"), str) else None
    key = str(fields["id"]) if fields.get("id") not in (None, "") else digest(content, str(fields.get("created_at")))
    session = fields.get("session")
    record = Record(
        key,
        content,
        place,
        kind=str(fields.get("kind") or "note")[:64],
        tags=labels(fields.get("tags") or ()),
        subject=str(subject)[:256] if subject else None,
        attributes={"order": order} | ({"fields": rest} if rest else {}),
        actor=role or "",
        role=role,
        session=str(session)[:256] if session else None,
        created_at=at,
        file=whole(path) if len(key) < _UNIQUE else "",
    )
    yield from in_pieces(record)
