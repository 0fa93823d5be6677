"""Registered secrets split by line breaks, blanks, invisible characters, or the layout of a list.

The redactor finds a value in one piece. Text made from many pieces can hold a value in two; this module
searches the text without the separators, and replaces the original span by the marker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.core.dream import RedactionFailed
from reverie.redact import KnownSecrets, Redactor

_ROUNDS = 8
_BLANK = "[\\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]"
_BETWEEN = re.compile(f"{_BLANK}+")
# Separators of two statements: the end of one, a day's heading, a bullet, the speaker of the next.
_LAYOUT = re.compile(
    "(?:"
    r"\n[ \t]*(?:[-*•>]|\d{1,3}[.)])(?=\s)"
    r"|\n\[[^\]\n]{1,40}\](?=\n)"
    r"|\n[^\n:]{1,64}:(?=[ \t])"
    rf"|[.;,|](?={_BLANK})"
    rf"|{_BLANK}"
    ")+"
)


def clean(text: str, redactor: Redactor, known: KnownSecrets) -> str:
    """Redact derived text like a fresh write, and mend split values, until neither finds anything.

    Raises RedactionFailed for text that is built never to come to rest.
    """
    for _ in range(_ROUNDS):
        text, found = mend(redactor.text(text, known).text, known)
        if not found:
            return text
    raise RedactionFailed()


def clean_each(texts: Sequence[str], redactor: Redactor, known: KnownSecrets) -> list[str | None]:
    """Apply `clean` to every text, fast where most have no finding; None for a text that never comes to rest."""
    found: list[str | None] = []
    for redacted in redactor.many(texts, known):
        text, mended = mend(redacted.text, known)
        try:
            found.append(clean(text, redactor, known) if mended else text)
        except RedactionFailed:
            found.append(None)
    return found


def mend(text: str, known: KnownSecrets) -> tuple[str, int]:
    """Replace every split value in `text` by its marker; also return their number."""
    if not known:
        return text, 0
    found = 0
    for between in (_BETWEEN, _LAYOUT):
        text, more = _joined(text, known, between)
        found += more
    return text, found


def _joined(text: str, known: KnownSecrets, between: re.Pattern[str]) -> tuple[str, int]:
    gaps = [gap.span() for gap in between.finditer(text)]
    starts = [0, *(end for _, end in gaps)]
    ends = [*(start for start, _ in gaps), len(text)]
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    matches = known.squeezed().find("".join(pieces).encode("utf-8", "surrogatepass"))
    if not matches:
        return text, 0
    origin = _origin(pieces, starts)
    out: list[str] = []
    at = found = 0
    for start, end, label in sorted((origin[start], origin[end - 1] + 1, label) for start, end, label in matches):
        if start < at:
            at = max(at, end)
            continue
        out += [text[at:start], known.marker(label).decode()]
        at = end
        found += 1
    return "".join([*out, text[at:]]), found


def _origin(pieces: list[str], starts: list[int]) -> list[int]:
    """Map every byte of the joined pieces to the index of its character in the text."""
    origin: list[int] = []
    for piece, start in zip(pieces, starts, strict=True):
        for place, character in enumerate(piece, start=start):
            origin += [place] * len(character.encode("utf-8", "surrogatepass"))
    return origin
