"""Markdown files, by section and size; and the folder of files that `reverie export --to markdown` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.importers.entry_file import FORMAT, entry_record
from reverie.importers.pages import MarkdownFile, files, other_files, page
from reverie.importers.record import CHUNK, OVERLAP, Item, Record, Skipped, in_pieces, labels, moment, whole

_ENDINGS = (".md", ".markdown")


def fits(path: Path, head: bytes) -> bool:
    """A file named .md, or a folder that has some."""
    if path.is_dir():
        return bool(files(path, *_ENDINGS))
    return path.suffix.lower() in _ENDINGS and b"\0" not in head


def read(path: Path) -> Iterator[Item]:
    """One record per section, long ones in pieces. A file that Reverie exported becomes the entry it was."""
    root = path if path.is_dir() else path.parent
    for one in files(path, *_ENDINGS):
        found, name = page(one), one.relative_to(root).as_posix()
        if found.front.get("reverie") == FORMAT:
            yield entry_record(found.front, found.body.removesuffix("\n"), one, name)
        else:
            yield from _sections(found, name)
    yield from other_files(path, *_ENDINGS)


def _sections(found: MarkdownFile, name: str) -> Iterator[Item]:
    gathered: dict[tuple[str, ...], tuple[int, list[str]]] = {}
    for block in found.blocks():
        _, texts = gathered.setdefault(block.section, (block.line, []))
        texts.append(f"- {block.text}" if block.bullet else block.text)
    if not gathered:
        yield Skipped(name, "a file without text")
    title = found.front.get("title")
    at = moment(str(found.front.get("created") or found.front.get("date") or ""))
    for order, (section, (line, texts)) in enumerate(gathered.items(), 1):
        heading = " / ".join(section)
        about: dict[str, Any] = {"file": name, "order": order} | ({"section": heading[:300]} if heading else {})
        about |= {"title": str(title)[:200]} if title else {}
        body = "\n".join(texts)
        record = Record(
            f"{name}\0{heading}",
            f"{section[-1]}\n{body}" if section else body,
            f"{name}, line {line}",
            tags=labels(found.front.get("tags") or ()),
            attributes=about,
            created_at=at,
            file=whole(found.path),
        )
        yield from in_pieces(record, size=CHUNK, overlap=OVERLAP)
