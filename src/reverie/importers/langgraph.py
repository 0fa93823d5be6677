"""LangGraph's SqliteStore: items by namespace and key.

They become what `reverie.integrations.langgraph` stores: a graph that changes over to Reverie finds them by namespace
and key. With a memory named (--ref) they become plain notes of it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from reverie.core.names import digest, encode
from reverie.importers.record import Item, Record, Skipped, damaged, moment

ROOT = "langgraph"
EXPECTED = "an SQLite file with the table store(prefix, key, value, created_at, updated_at)"
_MOST_TEXT = 20_000


def fits(path: Path, head: bytes) -> bool:
    """An SQLite file with that table."""
    if not head.startswith(b"SQLite format 3\0"):
        return False
    try:
        with _open(path) as database:
            return _has_table(database)
    except sqlite3.Error:
        return False


def read(path: Path) -> Iterator[Item]:
    """One record per item."""
    try:
        with _open(path) as database:
            columns = {row[1] for row in database.execute("PRAGMA table_info(store)")}
            if not _has_table(database) or not {"prefix", "key", "value"} <= columns:
                raise damaged(path, f"expected {EXPECTED}.")
            wanted = [name if name in columns else "NULL" for name in ("created_at", "expires_at", "ttl_minutes")]
            rows = database.execute(f"SELECT prefix, key, value, {', '.join(wanted)} FROM store ORDER BY prefix, key")  # noqa: S608
            for number, row in enumerate(rows, 1):
                yield _item(row, path, number)
    except sqlite3.Error:
        raise damaged(path, f"expected {EXPECTED}.") from None


def _has_table(database: sqlite3.Connection) -> bool:
    """Whether `store` is an ordinary table: a view or a generated column could run for ever."""
    found = database.execute("SELECT sql FROM sqlite_master WHERE name = 'store' AND type = 'table'").fetchone()
    return found is not None and not re.search(r"\b(virtual|generated|as\s*\()", str(found[0]), re.IGNORECASE)


def _open(path: Path) -> Any:
    from contextlib import closing

    return closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True))


def _item(row: tuple[Any, ...], path: Path, number: int) -> Item:
    prefix, key, raw, created, expires, ttl = row
    place = f"{path.name}, row {number}"
    if not isinstance(prefix, str) or not isinstance(key, str):
        raise damaged(path, f"row {number}: expected texts as prefix and key.")
    try:
        value = orjson.loads(raw)
    except (orjson.JSONDecodeError, TypeError):
        raise damaged(path, f"row {number}: expected JSON as value.") from None
    if not isinstance(value, dict):
        raise damaged(path, f"row {number}: expected an object as value.")
    if expires is not None and moment(expires) is not None:
        return Skipped(place, "an expired item")
    ref = "/".join([ROOT, *(encode(label) for label in prefix.split("."))])
    if len(ref) > 256:
        return Skipped(place, "a namespace of more than 256 characters")
    kept: dict[str, Any] = {"key": key, "value": value}
    if (at := moment(created)) is not None:
        kept["created_at"] = at
    if isinstance(ttl, int | float) and ttl > 0:
        kept["ttl_ms"] = int(ttl * 60_000)
    lines = list(_leaves(value, ""))
    text = lines[0][1] if len(lines) == 1 else "\n".join(f"{name}: {text}" for name, text in lines)
    return Record(
        f"{prefix}\0{key}",
        text[:_MOST_TEXT] or f"Item {key}",
        place,
        kind="item",
        attributes={"langgraph": kept},
        created_at=at,
        pinned=True,
        ref=ref,
        mark=f"~item:{digest(key)}",
    )


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None and str(value).strip():
        yield name, str(value)
