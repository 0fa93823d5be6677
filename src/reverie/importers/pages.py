"""Markdown: front matter, sections, and the blocks of a section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from reverie.core.errors import MissingExtra
from reverie.importers.record import Skipped, damaged, text_of

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_BULLET = re.compile(r"[-*+]\s+|\d+[.)]\s+")
_FENCE = re.compile(r"(```|~~~)")
_PAIR = re.compile(r"([A-Za-z_][\w .-]*):(?:\s+(.*))?$")
_INNER = re.compile(r"\s+([A-Za-z_][\w.-]*):(?:\s+(.*))?$")
_LEFT_OUT = {".git", "node_modules", ".venv", "__pycache__", ".obsidian", ".trash"}
MOST_FILES = 20_000


class Block(NamedTuple):
    """A bullet with what belongs to it, or a paragraph."""

    text: str
    line: int
    section: tuple[str, ...]
    bullet: bool


class MarkdownFile(NamedTuple):
    """A Markdown file."""

    path: Path
    front: dict[str, Any]
    body: str
    first: int
    """The line on which the body begins."""

    def blocks(self) -> Iterator[Block]:
        """The bullets and paragraphs of the body, with the headings above them."""
        return blocks(self.body, self.first)


def files(path: Path, *endings: str) -> list[Path]:
    """A file, or the files of a folder with these endings, in order. Links and folders of tools are left out."""
    if path.is_file():
        return [path]
    found = _walk(path, endings, named=True)
    if len(found) > MOST_FILES:
        raise damaged(path, f"expected at most {MOST_FILES} files in a folder, found {len(found)}.")
    return found


def other_files(path: Path, *endings: str) -> Iterator[Skipped]:
    """The files of a folder with other endings, as skipped. Hidden files and folders are passed over."""
    for one in _walk(path, endings, named=False) if path.is_dir() else ():
        name = one.relative_to(path)
        if not any(part.startswith(".") for part in name.parts):
            yield Skipped(name.as_posix(), "a file of another format")


def _walk(folder: Path, endings: Sequence[str], *, named: bool) -> list[Path]:
    """The files below a folder whose ending is, or is not, one of these, in order."""
    return [
        one
        for one in sorted(folder.rglob("*"))
        if (one.suffix.lower() in endings) is named
        and one.is_file()
        and not one.is_symlink()
        and not _LEFT_OUT & set(one.relative_to(folder).parts)
    ]


def page(path: Path) -> MarkdownFile:
    """A Markdown file with its front matter."""
    text = text_of(path)
    if not text.startswith("---\n"):
        return MarkdownFile(path, {}, text, 1)
    end = re.search(r"^(---|\.\.\.)[ \t]*$", text[4:], re.MULTILINE)
    if end is None:
        return MarkdownFile(path, {}, text, 1)
    head, body = text[4 : 4 + end.start()], text[4 + end.end() :].removeprefix("\n")
    return MarkdownFile(path, front_matter(head, path), body, head.count("\n") + 3)


def front_matter(text: str, path: Path) -> dict[str, Any]:
    """The fields of front matter. Pairs, lists and pairs within a pair are read here; anything richer needs PyYAML."""
    results: dict[str, Any] = {}
    lines = text.split("\n")
    name = ""
    for number, line in enumerate(lines, 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = re.match(r"\s*-\s+(.*)$", line)
        pair, inner = _PAIR.match(line), _INNER.match(line)
        if item and name and isinstance(results.get(name), list | None):
            results[name] = [*(results[name] or []), _scalar(item[1])]
        elif inner and name and isinstance(results.get(name), dict | None):
            results[name] = {**(results[name] or {}), inner[1]: _scalar(inner[2] or "")}
        elif pair:
            name = pair[1].strip()
            results[name] = _scalar(pair[2]) if pair[2] is not None and pair[2].strip() else None
        else:
            return _yaml(text, path, number)
    if any(isinstance(value, str) and value[:1] in "{&*|>!" for value in results.values()):
        return _yaml(text, path, 2)
    return results


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in ('"', "[", "{"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            if text[:1] == "[" and text[-1:] == "]":
                return [_scalar(part) for part in text[1:-1].split(",") if part.strip()]
            return text
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    return {"true": True, "false": False, "null": None, "~": None}.get(text, text)


def _yaml(text: str, path: Path, number: int) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise MissingExtra(
            f"{path.name}, line {number}: this front matter needs a YAML reader: pip install 'reverie[import]'"
        ) from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        raise damaged(path, "expected YAML as front matter.", number) from None
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def blocks(text: str, first: int = 1) -> Iterator[Block]:
    """Bullets and paragraphs. Text indented below a bullet belongs to it; fenced code is one block."""
    headings: list[tuple[int, str]] = []
    pending: list[str] = []
    start, bullet, fenced = first, False, ""

    def flush() -> Iterator[Block]:
        block = "\n".join(pending).strip()
        pending.clear()
        if block:
            yield Block(
                _BULLET.sub("", block, count=1) if bullet else block, start, tuple(h for _, h in headings), bullet
            )

    for number, line in enumerate(text.split("\n"), first):
        fence = _FENCE.match(line.lstrip())
        if fenced or fence:
            if fence and (not fenced or fence[1] == fenced):
                fenced = "" if fenced else fence[1]
            if not pending:
                start, bullet = number, False
            pending.append(line)
            continue
        heading = _HEADING.match(line)
        opens = _BULLET.match(line)
        if (
            heading
            or opens
            or (not line.strip() and not bullet)
            or (bullet and pending and not pending[-1].strip() and line[:1].strip())
        ):
            yield from flush()
            bullet = False
        if heading:
            level = len(heading[1])
            headings = [one for one in headings if one[0] < level] + [(level, heading[2].strip())]
            continue
        if opens:
            bullet = True
        if not pending:
            if not line.strip():
                continue
            start = number
        pending.append(line)
    yield from flush()
