"""Known secrets that were taken apart: by line breaks, blanks, invisible characters, or the layout of a list.

The redactor finds a value in one piece. Text made from many pieces can hold one in two; this looks at
the text with everything between the pieces taken out, and marks the original span.
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
    """Derived text as it may be stored: redacted like a fresh write, and mended, until neither finds anything.

    Raises RedactionFailed for text that is built never to come to rest.
    """
    for _ in range(_ROUNDS):
        text, found = mend(redactor.text(text, known).text, known)
        if not found:
            return text
    raise RedactionFailed()


def clean_each(texts: Sequence[str], redactor: Redactor, known: KnownSecrets) -> list[str | None]:
    """`clean` of every text, quick where most texts hold nothing; None for one that never comes to rest."""
    found: list[str | None] = []
    for redacted in redactor.many(texts, known):
        text, mended = mend(redacted.text, known)
        try:
            found.append(clean(text, redactor, known) if mended else text)
        except RedactionFailed:
            found.append(None)
    return found


def mend(text: str, known: KnownSecrets) -> tuple[str, int]:
    """`text` with every value in pieces replaced by its marker, and how many there were."""
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
    """For every byte of the joined pieces the character of the text it belongs to."""
    origin: list[int] = []
    for piece, start in zip(pieces, starts, strict=True):
        for place, character in enumerate(piece, start=start):
            origin += [place] * len(character.encode("utf-8", "surrogatepass"))
    return origin
