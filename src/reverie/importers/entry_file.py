"""One entry as a Markdown file with front matter, as exports write it and imports read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from reverie.core.entry import CREDENTIAL_PREFIXES
from reverie.core.errors import Invalid
from reverie.importers.record import Item, Record, Skipped, damaged, digest

FORMAT = "entry/1"
_LINE = b'{"ref":'
_FRONT = f'---\nreverie: "{FORMAT}"\n'.encode()
_SAMPLE = 20
_TEXTS = ("id", "ref", "kind")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def entry_file(document: Mapping[str, Any]) -> str:
    """An entry's document as a file. Every value is JSON, which is YAML too."""
    front: dict[str, Any] = {"reverie": FORMAT}
    front |= {name: document[name] for name in ("id", "ref", "kind", "created_at")}
    front |= {
        name: document[name]
        for name in ("subject", "tags", "attributes", "expires_at", "pinned")
        if document.get(name) not in (None, [], {}, False)
    }
    source = {
        name: value
        for name, value in document["source"].items()
        if value is not None and name in ("actor", "role", "session", "run", "node", "trust")
    }
    front["source"] = source
    if "\r" in document["content"]:  # a text file does not keep it
        front["content"] = document["content"]
    lines = [f"{name}: {orjson.dumps(value).decode()}" for name, value in front.items()]
    return "\n".join(["---", *lines, "---", document["content"], ""])


def exported_as(path: Path, head: bytes) -> str | None:
    """The format in which an export of ours wrote a file, or the files of a folder: jsonl or markdown; else None."""
    if head.startswith(_LINE):
        return "jsonl"
    pages = list(islice(path.glob("*/*.md"), _SAMPLE)) if path.is_dir() else []
    if head.startswith(_FRONT) or (pages and all(map(_is_page, pages))):
        return "markdown"
    return None


def _is_page(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_FRONT)) == _FRONT


def file_name(document: Mapping[str, Any]) -> Path:
    """Return the path of an entry's file in an export: a folder per memory, the oldest first."""
    folder = _UNSAFE.sub("-", document["ref"]).strip("-.") or "memory"
    if folder != document["ref"]:
        folder = f"{folder[:80]}-{digest(document['ref'])[:8]}"
    own = document["id"] if not _UNSAFE.search(document["id"]) and len(document["id"]) <= 64 else digest(document["id"])
    return Path(folder) / f"{document['created_at'][:10]}-{own}.md"


def entry_record(fields: Mapping[str, Any], content: str, path: Path, place: str, line: int | None = None) -> Item:
    """The record of an exported entry, skipped when it has expired. Raises Invalid.

    It comes from such a file, or from a line of the JSON lines export.
    """
    from reverie.core.clock import SystemClock, from_iso

    if not all(isinstance(fields.get(name), str) and fields[name] for name in _TEXTS) or not content.strip():
        raise damaged(path, "expected an entry: id, ref, kind and its text.", line)
    content = fields["content"] if isinstance(fields.get("content"), str) else content
    source = fields.get("source") if isinstance(fields.get("source"), dict) else {}
    assert isinstance(source, dict)
    actor = str(source.get("actor") or "")
    try:
        created = from_iso(fields["created_at"]) if fields.get("created_at") else None
        expires = from_iso(fields["expires_at"]) if fields.get("expires_at") else None
    except (Invalid, TypeError):
        raise damaged(path, "expected RFC 3339 times in created_at and expires_at.", line) from None
    attributes, tags = fields.get("attributes") or {}, fields.get("tags") or []
    if not isinstance(attributes, dict) or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise damaged(path, "expected attributes as an object and tags as a list of texts.", line)
    labels = (fields.get("subject"), source.get("role"), source.get("session"))
    if not all(label is None or isinstance(label, str) for label in labels):
        raise damaged(path, "expected texts as subject, role and session.", line)
    if expires is not None and expires <= SystemClock().now():
        return Skipped(place, "an expired entry")
    return Record(
        fields["id"],
        content,
        place,
        kind=fields["kind"],
        tags=tuple(tags),
        subject=fields.get("subject"),
        attributes=attributes,
        actor="" if actor.startswith(CREDENTIAL_PREFIXES) else actor,
        role=source.get("role"),
        session=source.get("session"),
        created_at=created,
        expires_at=expires,
        pinned=bool(fields.get("pinned")),
        ref=fields["ref"],
        exact_id=fields["id"],
    )
