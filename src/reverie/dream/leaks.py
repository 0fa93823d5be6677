"""Known secrets that were taken apart: by line breaks, blanks or invisible characters.

The redactor finds a value that stands in one piece. Text made from many pieces can hold one in two; this looks at
the text with everything between the pieces taken out, and marks the original span.
"""

from __future__ import annotations

import re

from reverie.redact import KnownSecrets

_BETWEEN = re.compile("[\\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]+")


def mend(text: str, known: KnownSecrets) -> tuple[str, int]:
    """`text` with every value that stands in pieces replaced by its marker, and how many there were."""
    if not known:
        return text, 0
    joined = bytearray()
    origin: list[int] = []
    at = 0
    for gap in _BETWEEN.finditer(text):
        _take(text, at, gap.start(), joined, origin)
        at = gap.end()
    _take(text, at, len(text), joined, origin)
    spans = sorted((origin[start], origin[end - 1] + 1, label) for start, end, label in known.find(bytes(joined)))
    out: list[str] = []
    at = found = 0
    for start, end, label in spans:
        if start < at:
            at = max(at, end)
            continue
        out += [text[at:start], known.marker(label).decode()]
        at = end
        found += 1
    return "".join([*out, text[at:]]), found


def _take(text: str, start: int, end: int, joined: bytearray, origin: list[int]) -> None:
    for place in range(start, end):
        encoded = text[place].encode("utf-8", "surrogatepass")
        joined += encoded
        origin += [place] * len(encoded)
