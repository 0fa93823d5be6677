"""mem0: an export of memories, with the history of each when it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reverie.core.clock import SystemClock, from_iso
from reverie.core.errors import Invalid
from reverie.importers.record import (
    Item,
    Record,
    Skipped,
    damaged,
    in_pieces,
    json_document,
    json_lines,
    labels,
    member,
    moment,
)

EXPECTED = 'records with "id" and "memory"'
_KEPT = ("metadata", "user_id", "agent_id", "app_id", "run_id", "hash")
HISTORY = '"memory_id", "event", "old_memory" and "new_memory"'


def fits(path: Path, head: bytes) -> bool:
    """A JSON file whose beginning has the fields of a record."""
    return path.is_file() and b'"memory"' in head and b'"id"' in head and head.lstrip()[:1] in (b"{", b"[")


def read(path: Path) -> Iterator[Item]:
    """One record per memory; earlier versions come before it, and it replaces them."""
    found, history = _rows(path)
    by_id: dict[str, list[tuple[str, Any]]] = {}
    for place, row in history:
        if not isinstance(row.get("memory_id"), str) or not isinstance(row.get("event"), str):
            raise damaged(path, f"{place}: expected a row of the history: {HISTORY}.")
        by_id.setdefault(row["memory_id"], []).append((place, row))
    for place, row in found:
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise damaged(path, f"{place}: expected {EXPECTED}.")
        yield from _memory(row, path, place, by_id.pop(row["id"], []))
    for rows in by_id.values():
        yield Skipped(rows[0][0], "the history of a memory that was deleted")


def _memory(row: dict[str, Any], path: Path, place: str, history: Sequence[tuple[str, Any]]) -> Iterator[Item]:
    text = row.get("memory")
    if not isinstance(text, str):
        raise damaged(path, f"{place}: expected {EXPECTED}.")
    if not text.strip():
        yield Skipped(place, "a memory without text")
        return
    expires_at = _end(row.get("expiration_date"))
    if expires_at is not None and expires_at <= SystemClock().now():
        yield Skipped(place, "an expired memory")
        return
    about = {name: row[name] for name in _KEPT if row.get(name)}
    user, agent, run = (
        row.get(name) if isinstance(row.get(name), str) else None for name in ("user_id", "agent_id", "run_id")
    )

    def version(content: str, at: Any) -> Record:
        return Record(
            row["id"],
            content,
            place,
            subject=user[:256] if user else None,
            actor=(agent or "")[:256],
            session=run[:256] if run else None,
            tags=labels(row.get("categories") or ()),
            attributes={"mem0": about} if about else {},
            created_at=moment(at),
            expires_at=expires_at,
        )

    own = member(row, "history", list, path, place) or [one for _, one in history]
    if not all(isinstance(one, dict) for one in own):
        raise damaged(path, f"{place}: expected rows of the history as {HISTORY}.")
    said = text
    for change in sorted(own, key=lambda one: str(one.get("created_at") or one.get("updated_at") or "")):
        older = change.get("old_memory") or change.get("prev_value")
        if isinstance(older, str) and older.strip() and older != said:
            yield from in_pieces(version(older, row.get("created_at")))
            said = older
    yield from in_pieces(version(text, row.get("updated_at") if own else row.get("created_at")))


def _end(date: Any) -> int | None:
    """The last moment of a memory that expires: an instant, or a day, which is included."""
    if not isinstance(date, str) or not date:
        return None
    try:
        return from_iso(f"{date}T23:59:59Z" if len(date) == len("2026-12-31") else date)
    except Invalid:
        return None


def _rows(path: Path) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """(place, row) of the memories and of the history."""
    with path.open("rb") as file:
        first = file.readline(65_536).lstrip()
    many = first.startswith(b"{") and first.rstrip().endswith(b"}") and b'"results"' not in first
    if many and path.suffix.lower() in (".jsonl", ".ndjson"):
        rows: list[tuple[str, Any]] = [(f"{path.name}, line {at}", row) for at, row in json_lines(path, EXPECTED)]
    else:
        document = json_document(path, EXPECTED)
        history: Any = []
        if isinstance(document, dict):
            history = document.get("history") or []
            document = next((document[name] for name in ("results", "memories") if name in document), document)
            document = [document] if isinstance(document, dict) else document
        if not isinstance(document, list) or not isinstance(history, list):
            raise damaged(path, f"expected {EXPECTED}, as a list or in `results`.")
        rows = [(f"{path.name}, record {number}", row) for number, row in enumerate([*document, *history], 1)]
    changes = [(at, row) for at, row in rows if isinstance(row, dict) and "memory_id" in row]
    return [(at, row) for at, row in rows if not (isinstance(row, dict) and "memory_id" in row)], changes
