"""Claude Code: CLAUDE.md and the files it imports, memory folders, and transcripts of sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reverie.importers.pages import Block, MarkdownFile, files, page
from reverie.importers.record import Item, Record, Skipped, content_text, damaged, in_pieces, json_lines, moment, whole
from reverie.search.context import without_blocks

EXPECTED = 'a line of a transcript: {"type": ..., "message": ...}'
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:~/|\.{0,2}/)?[\w./-]+\.(?:md|txt))\b")
_ROLES = ("user", "assistant")
_POINTER_WORDS = 3
"""A block with an import and at most this many other words only points to the file."""
DEPTH = 5
_HOME = ".claude"
_MEMORIES = ("memory", "memories")
_TOOLS = ("agents", "commands", "output-styles", "plugins", "skills")
"""Folders of `.claude` with instructions for tools, which are skipped."""
_INDEXED = re.compile(r"\[[^\]]+\]\(([\w.-]+\.md)\)")
_COMMAND = ("<command-", "<local-command-")


def fits(path: Path, head: bytes) -> bool:
    """CLAUDE.md, a folder that has one or is a folder of Claude's, or a transcript."""
    if path.is_dir():
        named = path.name in (_HOME, "memories") or (path / "MEMORY.md").is_file()
        return named or _is_project(path) or any(map(_is_transcript, sorted(path.glob("*.jsonl"))[:3]))
    return (path.name.upper().startswith("CLAUDE") and path.suffix == ".md") or _is_transcript(path, head)


def _is_project(path: Path) -> bool:
    return any(path.glob("CLAUDE*.md")) or (path / _HOME).is_dir()


def _is_transcript(path: Path, head: bytes | None = None) -> bool:
    if path.suffix != ".jsonl":
        return False
    if head is None:
        with path.open("rb") as file:
            head = file.read(65_536)
    return b'"sessionId"' in head and b'"type"' in head.partition(b"\n")[0]


def read(path: Path) -> Iterator[Item]:
    """One record per bullet or paragraph, with its path and line; one per message of a transcript.

    Of a project, only Claude's files and those they import are read; other pages are skipped.
    """
    root = path if path.is_dir() else path.parent
    project = path.is_dir() and path.name != _HOME and _is_project(path)
    seen: set[Path] = set()
    others: list[Path] = []
    for one in files(path, ".md", ".jsonl"):
        within = one.relative_to(root).parts
        home = ((_HOME, *within) if root.name == _HOME else within)[:-1]
        if _HOME in home and not set(_TOOLS).isdisjoint(home[home.index(_HOME) + 1 :][:1]):
            yield Skipped("/".join(within), "a file of an agent, command, skill or plug-in")
        elif one.suffix == ".jsonl":
            yield from (
                _transcript(one, root)
                if one == path or _is_transcript(one)
                else [Skipped("/".join(within), "a file that is no transcript")]
            )
        elif project and not one.name.upper().startswith("CLAUDE") and set(home).isdisjoint((_HOME, *_MEMORIES)):
            others.append(one)
        else:
            yield from _page(one, root, seen, DEPTH)
    for one in others:
        if one.resolve() not in seen:
            yield Skipped(one.relative_to(root).as_posix(), "a page that CLAUDE.md does not import")


def _page(path: Path, root: Path, seen: set[Path], depth: int) -> Iterator[Item]:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    found = page(path)
    if isinstance(found.front.get("description"), str) and found.body.strip():
        yield from _memory(found, name)
        return
    for block in found.blocks():
        index = _INDEXED.match(block.text) if path.name == "MEMORY.md" else None
        if index and (path.parent / index[1]).is_file():
            yield Skipped(f"{name}, line {block.line}", "a line of an index: its file is imported")
            continue
        imports = [] if "```" in block.text else _IMPORT.findall(block.text)
        if not imports or len(_IMPORT.sub("", block.text).split()) > _POINTER_WORDS:
            yield from _block(block, block.text, name)
        for wanted in imports:
            target = (path.parent / Path(wanted).expanduser()).resolve()
            place = f"{name}, line {block.line}"
            if not target.is_relative_to(root.resolve()):
                yield Skipped(place, "an import from outside the folder")
            elif not target.is_file():
                yield Skipped(place, "an import of a file that is not there")
            elif depth == 0:
                yield Skipped(place, f"an import more than {DEPTH} files deep")
            else:
                yield from _page(target, root, seen, depth - 1)


def _memory(found: MarkdownFile, name: str) -> Iterator[Record]:
    """One of Claude's own memories: a file with a description is about one thing."""
    front, inner = found.front, found.front.get("metadata")
    kind = front.get("type") or (inner.get("type") if isinstance(inner, dict) else None)
    title = str(front.get("name") or found.path.stem)[:200]
    record = Record(
        f"{name}\0memory",
        found.body.strip(),
        name,
        tags=(kind[:100],) if isinstance(kind, str) and kind else (),
        attributes={"file": name, "name": title, "description": str(front["description"])[:500]},
        file=whole(found.path),
    )
    yield from in_pieces(record)


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
        if line.get("isSidechain") or line.get("isCompactSummary"):
            yield Skipped(place, f"a {'message of a sub-agent' if line.get('isSidechain') else 'summary of messages'}")
            continue
        text = without_blocks(content_text(message.get("content")))
        if text.startswith(_COMMAND):
            yield Skipped(place, "a command")
            continue
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
            file="" if line.get("uuid") else whole(path),
        )
        yield from in_pieces(record)
