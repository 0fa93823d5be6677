"""Compaction: many entries as one text, within a number of bytes. No tokens, no model, no word of its own.

Texts that fit are kept word for word, each once. The rest is distilled, counting bytes instead of tokens; when
even that is too large, the text is cut, never inside a character or a marker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reverie.distil.extractive import ExtractiveDistiller, OutputTooSmallError, PreparedSources
from reverie.distil.layout import wording
from reverie.distil.plan import Work
from reverie.distil.source import Source
from reverie.redact.markers import PREFIX

ELLIPSIS = "\u2026"
_OPENING = PREFIX.decode()
MOST_DISTILLED = 2 * 2**20  # beyond this, distilling would take longer than a caller waits


def joined(sources: Sequence[Source]) -> str:
    """Every text once, oldest first, a line end between two."""
    return "\n".join(dict.fromkeys(source.content for source in sources))


def unweighed(sources: Sequence[Source]) -> Work:
    """Work that is not counted in tokens."""
    return Work(tuple(sources), PreparedSources(tuple(sources), (), (), (), ()), 0, 0, 0)


def compacted(sources: Sequence[Source], clean: Callable[[str], str], *, most: int) -> tuple[str, frozenset[str]]:
    """The sources joined, redacted as one text, then brought to at most `most` bytes.

    Also the ids of sources with a must-keep statement that is not in the text.
    """
    text = clean(joined(sources))
    if size(text) <= most:
        return cut(text, most, size), frozenset()
    if size(text) <= MOST_DISTILLED:
        try:
            done = ExtractiveDistiller().distil(sources, output_tokens=most, count=size)
        except OutputTooSmallError:
            return cut(text, most, size), frozenset(needs(sources))
        if done.text.strip() and (_OPENING in done.text or _OPENING not in text):
            text = clean(done.text)
            if size(text) <= most:
                return cut(text, most, size), frozenset(done.unkept)
    return cut(text, most, size), frozenset(needs(sources))


def needs(sources: Sequence[Source]) -> dict[str, int]:
    """By source, the bytes of its must-keep statements; a statement of several sources counts for the oldest."""
    order = {source.id: at for at, source in enumerate(sources)}
    found: dict[str, int] = {}
    for item in ExtractiveDistiller().prepare(sources).candidates:
        if item.must_keep:
            first = min(item.source_ids, key=lambda name: order[name])
            found[first] = found.get(first, 0) + size(wording(item)) + 1
    return found


def cut(text: str, most: int, count: Callable[[str], int]) -> str:
    """The longest beginning of `text` that counts at most `most`; no character and no marker is split.

    Never blank: an ellipsis when nothing fits.
    """
    text = text if text.strip() else ELLIPSIS
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[:middle]) <= most:
            low = middle
        else:
            high = middle
    kept = _whole(text, low)
    while kept and count(kept) > most:  # counting tokens is not quite monotonous
        kept = _whole(text, len(kept) - 1)
    if kept.strip():
        return kept
    return ELLIPSIS if count(ELLIPSIS) <= most else "."


def size(text: str) -> int:
    """UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def _whole(text: str, end: int) -> str:
    """`text[:end]` without the marker, or the beginning of one, that would be split."""
    start = text.rfind(_OPENING[0], 0, end)
    while start >= 0 and end - start < 80:
        if text.startswith(_OPENING, start):
            close = text.find("]", start)
            return text[:start] if close < 0 or close >= end else text[:end]
        start = text.rfind(_OPENING[0], 0, start)
    return text[:end]
