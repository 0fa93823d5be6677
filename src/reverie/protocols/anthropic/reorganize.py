"""Reorganisation of a store's files by a dream. Pure: texts in, texts out.

A store is not a log: the content of a file stays in it. Only lines repeated in another file, and lines outdated by a
newer statement, are removed. Transcripts are distilled elsewhere, into a file of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from reverie.core.entry import Entry
from reverie.distil.consolidate import reconcile
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.sentences import split
from reverie.distil.source import Source
from reverie.protocols.anthropic.listing import Memory

_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_NO_STATEMENT = re.compile(r"^\s*(?:#|\||>|```|~~~|---|===|\*\*\*)")
_FRAME = re.compile(r"\s*#.*|[\s|>`~=*_:-]*")
"""Lines that say nothing by themselves: headings, rules, fences, blank ones."""
_LEAST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Reorganization:
    """New state of the files, and the transcripts not yet used."""

    texts: Mapping[str, str | None]
    """New text by file id, for files that change; None: nothing is left of it."""
    sources: Mapping[str, tuple[str, ...]]
    """For each such file the ids of other entries whose words are in it now."""
    left: Sequence[Entry]
    """Transcripts without the statements that the files hold already."""
    statements: int = 0
    duplicates: int = 0
    outdated: int = 0


@dataclass(slots=True)
class _Lines:
    """The lines of a file while they change."""

    memory: Memory
    lines: list[str]
    stated: list[int]
    """Numbers of lines that state something."""
    gone: set[int] = field(default_factory=set)
    replaced: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Number: (new text, id of the entry it comes from)."""

    def text(self) -> str | None:
        """The text now; None when no line is left in it but headings and the like."""
        if all(number in self.gone or _FRAME.fullmatch(line) for number, line in enumerate(self.lines)):
            return None
        kept = []
        for number, line in enumerate(self.lines):
            if number in self.replaced:
                bullet = _BULLET.match(line)
                kept.append((bullet[0] if bullet else "") + self.replaced[number][0])
            elif number not in self.gone:
                kept.append(line)
        return "\n".join(kept)


def reorganize(
    memories: Sequence[Memory], transcripts: Sequence[Entry], distiller: ExtractiveDistiller
) -> Reorganization:
    """Find statements repeated in the files and the transcripts, and outdated ones."""
    files = [_lines(memory) for memory in memories]
    sources: list[Source] = []
    places: dict[str, tuple[_Lines, int]] = {}
    for at, file in enumerate(files):
        for number in file.stated:
            name = f"m{at:05d}/{number:06d}"
            places[name] = (file, number)
            sources.append(_source(name, _bare(file.lines[number]), file.memory.file.updated_at))
    said: dict[str, tuple[int, str]] = {}
    for at, entry in enumerate(transcripts):
        for number, piece in enumerate(split(entry.content)):
            if len(piece.text.split()) >= _LEAST_WORDS:
                name = f"t{at:05d}/{number:06d}"
                said[name] = (at, piece.text)
                sources.append(_source(name, piece.text, entry.created_at))
    ordered = sorted(sources, key=lambda source: (source.created_at, source.id))
    counts = {"duplicate": 0, "outdated": 0}
    known: set[str] = set()
    """Statements of transcripts that a file says now."""
    for merge in reconcile(ordered, distiller) if len(ordered) > 1 else ():
        counts[merge.why] += len(merge.merged)
        _apply(merge.kept, merge.merged, merge.why, places, said, transcripts, known)
    texts: dict[str, str | None] = {}
    origins: dict[str, tuple[str, ...]] = {}
    for file in files:
        if file.gone or file.replaced:
            texts[file.memory.file.id] = file.text()
            origins[file.memory.file.id] = tuple(sorted({origin for _, origin in file.replaced.values()}))
    return Reorganization(
        texts=texts,
        sources=origins,
        left=_remaining(transcripts, said, known),
        statements=len(sources),
        duplicates=counts["duplicate"],
        outdated=counts["outdated"],
    )


def _apply(
    kept: str,
    merged: Sequence[str],
    why: str,
    places: Mapping[str, tuple[_Lines, int]],
    said: Mapping[str, tuple[int, str]],
    transcripts: Sequence[Entry],
    known: set[str],
) -> None:
    """One group: the newest wording stays where a file has it; a newer statement takes the place of the older."""
    names = [kept, *merged]
    known.update(name for name in merged if name in said)
    lines = [name for name in names if name in places]
    if kept in places:
        stays = kept
    elif lines:  # the newest is in a transcript: it goes where the newest file says it
        stays = max(lines, key=lambda name: (places[name][0].memory.file.updated_at, name))
        known.add(kept)
        if why == "outdated":
            file, number = places[stays]
            at, text = said[kept]
            file.replaced[number] = (text, transcripts[at].id)
    else:
        return
    for name in lines:
        if name != stays:
            file, number = places[name]
            file.gone.add(number)


def _lines(memory: Memory) -> _Lines:
    lines = (memory.content or "").split("\n")
    stated: list[int] = []
    fenced = False
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not _NO_STATEMENT.match(line) and len(_bare(line).split()) >= _LEAST_WORDS:
            stated.append(number)
    return _Lines(memory, lines, stated)


def _bare(line: str) -> str:
    return _BULLET.sub("", line).strip()


def _source(name: str, text: str, at: int) -> Source:
    return Source(id=name, content=text, created_at=at, kind="file")


def _remaining(transcripts: Sequence[Entry], said: Mapping[str, tuple[int, str]], known: set[str]) -> list[Entry]:
    """Transcripts less the statements that files say now."""
    over: dict[int, set[str]] = {}
    for name in known:
        at, text = said[name]
        over.setdefault(at, set()).add(text)
    left: list[Entry] = []
    for at, entry in enumerate(transcripts):
        pieces = [piece.text for piece in split(entry.content)]
        kept = [text for text in pieces if text not in over.get(at, ())]
        if len(kept) == len(pieces):
            left.append(entry)
        elif kept:
            left.append(msgspec.structs.replace(entry, content="\n".join(kept)))
    return left
