"""Claude Code: CLAUDE.md and the files it imports, memory folders, and transcripts of sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.importers.pages import Block, files, page
from reverie.importers.record import Item, Record, Skipped, damaged, in_pieces, json_lines, moment

EXPECTED = 'a line of a transcript: {"type": ..., "message": ...}'
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:~/|\.{0,2}/)?[\w./-]+\.(?:md|txt))\b")
_ROLES = ("user", "assistant")
_POINTER_WORDS = 3
"""A block with an import and at most so many other words only points to the file."""
DEPTH = 5


def fits(path: Path, head: bytes) -> bool:
    """CLAUDE.md, a folder that has one or is a folder of Claude's, or a transcript."""
    if path.is_dir():
        return any(path.glob("CLAUDE*.md")) or path.name in (".claude", "memories") or (path / ".claude").is_dir()
    first = head.partition(b"\n")[0]
    transcript = path.suffix == ".jsonl" and b'"sessionId"' in head and b'"type"' in first
    return (path.name.upper().startswith("CLAUDE") and path.suffix == ".md") or transcript


def read(path: Path) -> Iterator[Item]:
    """One record per bullet or paragraph, with its path and line; one per message of a transcript."""
    root = path if path.is_dir() else path.parent
    seen: set[Path] = set()
    for one in files(path, ".md", ".jsonl"):
        if one.suffix == ".jsonl":
            yield from _transcript(one, root)
        else:
            yield from _page(one, root, seen, DEPTH)


def _page(path: Path, root: Path, seen: set[Path], depth: int) -> Iterator[Item]:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    for block in page(path).blocks():
        imports = [] if "```" in block.text else _IMPORT.findall(block.text)
        if not imports or len(_IMPORT.sub("", block.text).split()) > _POINTER_WORDS:
            yield from _block(block, block.text, name)
        for wanted in imports:
            target = (path.parent / wanted).resolve()
            place = f"{name}, line {block.line}"
            if not target.is_relative_to(root.resolve()):
                yield Skipped(place, "an import from outside the folder")
            elif not target.is_file():
                yield Skipped(place, "an import of a file that is not there")
            elif depth == 0:
                yield Skipped(place, f"an import more than {DEPTH} files deep")
            else:
                yield from _page(target, root, seen, depth - 1)


def _block(block: Block, text: str, name: str) -> Iterator[Record]:
    section = " / ".join(block.section)
    record = Record(
        f"{name}\0{section}\0{text}",
        text,
        f"{name}, line {block.line}",
        tags=(block.section[-1][:100].lower(),) if block.section else (),
        attributes={"file": name, "line": block.line} | ({"section": section[:300]} if section else {}),
    )
    yield from in_pieces(record)


def _transcript(path: Path, root: Path) -> Iterator[Item]:
    name = path.relative_to(root).as_posix()
    for number, line in json_lines(path, EXPECTED):
        place = f"{name}, line {number}"
        if not isinstance(line, dict) or not isinstance(line.get("type"), str):
            raise damaged(path, f"expected {EXPECTED}.", number)
        message = line.get("message")
        if line["type"] not in _ROLES or not isinstance(message, dict) or line.get("isMeta"):
            yield Skipped(place, "a line that is no message")
            continue
        text = _text(message.get("content"))
        if not text:
            yield Skipped(place, "a message without text")
            continue
        record = Record(
            str(line.get("uuid") or f"{name}\0{number}"),
            text,
            place,
            kind="message",
            actor=line["type"],
            role=line["type"],
            session=str(line.get("sessionId") or path.stem)[:256],
            created_at=moment(line.get("timestamp")),
        )
        yield from in_pieces(record)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return ""
    texts = [one.get("text") for one in content if isinstance(one, dict) and one.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()
