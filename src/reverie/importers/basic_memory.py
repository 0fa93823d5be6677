"""basic-memory and Obsidian: notes with front matter, observations and relations.

- [category] text #tag (context)      an observation
- type [[Target]]                     a relation
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reverie.importers.pages import MarkdownFile, files, other_files, page
from reverie.importers.record import CHUNK, OVERLAP, Item, Record, in_pieces, labels, moment, whole

_OBSERVATION = re.compile(r"\[([^\[\]]{1,60})\]\s+(.+)$", re.DOTALL)
_RELATION = re.compile(r"(?:(.{1,80}?)\s+)?\[\[([^\]]{1,200})\]\](?:\s+\((.+)\))?$", re.DOTALL)
_TAG = re.compile(r"(?:^|\s)#([\w/-]+)")
_CONTEXT = re.compile(r"\s*\(([^()]{1,300})\)\s*$")
_TASKS = {" ", "x", "X", "-", "/", ">"}


def fits(path: Path, head: bytes) -> bool:
    """A vault, or a note with a permalink and a type."""
    if path.is_dir():
        return (path / ".obsidian").is_dir() or any(_is_note(one) for one in files(path, ".md")[:20])
    return path.suffix.lower() == ".md" and head.startswith(b"---") and b"\npermalink:" in head


def _is_note(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(2048)
    return head.startswith(b"---") and b"\npermalink:" in head


def read(path: Path) -> Iterator[Item]:
    """One record per observation and relation, the note its subject; other text in pieces."""
    root = path if path.is_dir() else path.parent
    for one in files(path, ".md"):
        yield from _note(page(one), one.relative_to(root).as_posix())
    yield from other_files(path, ".md")


def _note(found: MarkdownFile, name: str) -> Iterator[Item]:
    front = found.front
    title = str(front.get("title") or found.path.stem)[:256]
    note = str(front.get("permalink") or name.removesuffix(".md"))
    tags = labels(front.get("tags") or ())
    at = moment(str(front["created"])) if front.get("created") else moment(str(front.get("date") or ""))
    about = {"note": note, "file": name}
    text: list[str] = []
    start = found.first
    for block in found.blocks():
        place = f"{name}, line {block.line}"
        observation = _OBSERVATION.match(block.text) if block.bullet else None
        relation = _RELATION.match(block.text) if block.bullet else None
        if observation and observation[1] not in _TASKS:
            said = observation[2].strip()
            context = _CONTEXT.search(said)
            said = _CONTEXT.sub("", said) if context else said
            own = tuple(dict.fromkeys((observation[1].lower(), *_TAG.findall(said), *tags)))
            words = _TAG.sub("", said).strip() or said
            content = words if title.casefold() in words.casefold() else f"{title}: {words}"
            more = {**about, "category": observation[1]} | ({"context": context[1]} if context else {})
            key = f"{note}\0{observation[1]}\0{words}"
            yield Record(key, content, place, tags=own[:32], subject=title, attributes=more, created_at=at)
        elif relation:
            kind = (relation[1] or "relates to").replace("_", " ")
            more = {**about, "relation": kind, "to": relation[2]}
            content, key = f"{title} {kind} {relation[2]}", f"{note}\0{kind}\0{relation[2]}"
            yield Record(key, content, place, kind="relation", subject=title, attributes=more, created_at=at)
        else:
            if not text:
                start = block.line
            text.append(f"- {block.text}" if block.bullet else block.text)
    if text:
        body = "\n\n".join(text)
        record = Record(
            f"{note}\0text",
            body,
            f"{name}, line {start}",
            tags=tags,
            subject=title,
            attributes=about,
            created_at=at,
            file="" if front.get("permalink") else whole(found.path),
        )
        yield from in_pieces(record, size=CHUNK, overlap=OVERLAP)
