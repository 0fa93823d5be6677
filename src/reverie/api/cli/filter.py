"""Redaction of a stream, line by line, without letting a secret slip through between two lines.

No rule but those for private keys looks beyond a line end (`redact/rules/rule.py`). So whole lines may pass as they
come, except from the first line of a private key to its last: those are held back and judged together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

from reverie.core.errors import TooLarge
from reverie.redact.normal import fold

if TYPE_CHECKING:
    from reverie.redact import Redactor

MAX_LINE = 64 * 2**20
"""A longer line is refused: it would have to be held in memory whole, since a secret may span any cut."""

HOLD = 128 * 1024
"""Most bytes held back for the end of a key: twice the length of the longest key that the rules know."""

_CHUNK = 256 * 1024
_BEGIN = re.compile(r"BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-|Private-Lines:")
_END = re.compile(r"END [A-Z0-9 ]{0,40}PRIVATE KEY|Private-MAC:|Private-Hash:")


def copy_redacted(source: BinaryIO, sink: BinaryIO, redactor: Redactor) -> Mapping[str, int]:
    """Copy `source` to `sink` without secrets; returns the findings by kind. What is not UTF-8 passes as it is."""
    findings: Counter[str] = Counter()
    for text in _safe_pieces(source):
        redaction = redactor.text(text)
        findings.update(redaction.findings)
        sink.write(redaction.text.encode("utf-8", "surrogateescape"))
        sink.flush()
    return findings


def _safe_pieces(source: BinaryIO) -> Iterator[str]:
    """Split the stream into pieces, none of which ends inside a secret."""
    pending: list[str] = []
    size = 0
    for block in _whole_lines(source):
        if not pending and not _opens(block):
            yield block
            continue
        passing: list[str] = []
        for line in _split(block):
            if not pending and not _opens(line):
                passing.append(line)
                continue
            if not pending and passing:
                yield "".join(passing)
                passing = []
            pending.append(line)
            size += len(line)
            if size >= HOLD or _END.search(_plain(line)):
                yield "".join(pending)
                pending, size = [], 0
        if passing:
            yield "".join(passing)
    if pending:
        yield "".join(pending)


def _whole_lines(source: BinaryIO) -> Iterator[str]:
    """Yield the bytes received, up to the last line end."""
    read = getattr(source, "read1", source.read)
    waiting: list[bytes] = []
    size = 0
    while chunk := read(_CHUNK):
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            waiting.append(chunk)
            size += len(chunk)
            if size > MAX_LINE:
                raise TooLarge(f"A line is over {MAX_LINE} bytes. Nothing of it was passed on.")
            continue
        yield b"".join((*waiting, head, newline)).decode("utf-8", "surrogateescape")
        waiting, size = [rest], len(rest)
    last = b"".join(waiting)
    if last:
        yield last.decode("utf-8", "surrogateescape")


def _split(block: str) -> list[str]:
    return [line + "\n" for line in block.split("\n")[:-1]] + [tail for tail in [block.rpartition("\n")[2]] if tail]


def _opens(text: str) -> bool:
    return _BEGIN.search(_plain(text)) is not None


def _plain(text: str) -> str:
    return text if text.isascii() else fold(text)
