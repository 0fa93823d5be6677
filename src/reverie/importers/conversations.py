"""Exports of chat programs: `conversations.json`, alone, in shards, in a folder or in an archive."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from reverie.importers.record import MAX_FILE, damaged, json_document

EXPECTED = "a list of conversations"
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, orjson.JSONDecodeError)
"""Errors raised by the archive reader for a damaged, encrypted or unusual archive."""


def conversations(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, conversation) of every conversation."""
    found = False
    for name, document in _documents(path):
        found = True
        rows = document.get("conversations") if isinstance(document, dict) else document
        if not isinstance(rows, list):
            raise damaged(path, f"{name}: expected {EXPECTED}.")
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise damaged(path, f"{name}, conversation {number}: expected an object.")
            yield f"{name}, conversation {number}", row
    if not found:
        raise damaged(path, "expected conversations.json in it.")


def looks_like(path: Path, head: bytes, field: bytes) -> bool:
    """Whether the first shard has a field of the format near its beginning."""
    if path.is_file() and path.suffix.lower() == ".json":
        return head.lstrip()[:1] in (b"[", b"{") and field in head
    try:
        return any(field in beginning for beginning in _heads(path))
    except _DAMAGED:
        return False


def _heads(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        for shard in sorted(path.glob("conversations*.json")):
            with shard.open("rb") as file:
                yield file.read(65_536)
    elif path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in _shards(archive):
                with archive.open(name) as member:
                    yield member.read(65_536)


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    if path.is_dir():
        for shard in sorted(path.glob("conversations*.json")):
            yield shard.name, json_document(shard, EXPECTED)
    elif path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                for name in _shards(archive):
                    if archive.getinfo(name).file_size > MAX_FILE:
                        raise damaged(path, f"{name}: at most {MAX_FILE >> 20} MB were expected.")
                    yield name, orjson.loads(archive.read(name))
        except (FileNotFoundError, PermissionError):
            raise
        except _DAMAGED:
            raise damaged(path, f"expected a ZIP archive with {EXPECTED}.") from None
    else:
        yield path.name, json_document(path, EXPECTED)


def _shards(archive: zipfile.ZipFile) -> list[str]:
    return sorted(
        name for name in archive.namelist() if Path(name).name.startswith("conversations") and name.endswith(".json")
    )
