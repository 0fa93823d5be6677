"""Exports of chat programs: `conversations.json`, alone, in shards, in a folder or in an archive."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from reverie.importers.record import MAX_FILE, damaged, json_document, loads

EXPECTED = "a list of conversations"
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, orjson.JSONDecodeError)
"""Errors raised by the archive reader for a damaged, encrypted or unusual archive."""


_SMALL = 16 * 2**20
_MOST_PACKED = 100
"""Chats are packed to a fifth or a tenth of their size."""


def conversations(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, conversation) of every conversation."""
    found = False
    for name, document in documents(path, "conversations"):
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
        for shard in _files(path, "conversations"):
            with shard.open("rb") as file:
                yield file.read(65_536)
    elif path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in _shards(archive, "conversations"):
                with archive.open(name) as member:
                    yield member.read(65_536)


def _files(folder: Path, kind: str) -> list[Path]:
    """The shards of a folder. Links are left out: an archive that was unpacked may have some to anywhere."""
    shards = [*folder.glob(f"{kind}*.json"), *folder.glob(f"{kind}/*.json")]
    return sorted(one for one in shards if not one.is_symlink() and not one.parent.is_symlink())


def documents(path: Path, kind: str) -> Iterator[tuple[str, Any]]:
    """(name, document) of every `KIND*.json` and `KIND/*.json` of a folder or an archive; of a file, itself."""
    if path.is_dir():
        for shard in _files(path, kind):
            yield shard.name, json_document(shard, EXPECTED)
    elif path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                names = _shards(archive, kind)
                _check_size(path, [archive.getinfo(name) for name in names])
                for name in names:
                    yield name, loads(archive.read(name))
        except (FileNotFoundError, PermissionError):
            raise
        except _DAMAGED:
            raise damaged(path, f"expected a ZIP archive with {EXPECTED}.") from None
    else:
        yield path.name, json_document(path, EXPECTED)


def _check_size(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive that would fill the memory of the machine: too large, or packed as no text can be."""
    size = sum(member.file_size for member in members)
    if size > MAX_FILE:
        raise damaged(path, f"at most {MAX_FILE >> 20} MB of conversations were expected, found {size >> 20} MB.")
    packed = sum(member.compress_size for member in members)
    if size > _SMALL and size > _MOST_PACKED * packed:
        raise damaged(path, f"expected conversations, found {size >> 20} MB packed into {packed >> 10} KB.")


def _shards(archive: zipfile.ZipFile, kind: str) -> list[str]:
    results = [Path(name) for name in archive.namelist() if name.endswith(".json")]
    return sorted(one.as_posix() for one in results if one.name.startswith(kind) or one.parent.name == kind)
