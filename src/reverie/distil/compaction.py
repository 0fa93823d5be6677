"""Compaction: many entries as one text of limited bytes. No tokens, no model, no new words.

If all texts fit, they are kept word for word, each once. Otherwise they are distilled, counting bytes instead of
tokens; if even that is too large, the text is cut, never inside a character or a marker.
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
    """Join the texts, each once, oldest first, one per line."""
    return "\n".join(dict.fromkeys(source.content for source in sources))


def unweighed(sources: Sequence[Source]) -> Work:
    """Return work without token counts."""
    return Work(tuple(sources), PreparedSources(tuple(sources), (), (), (), ()), 0, 0, 0)


def compacted(sources: Sequence[Source], clean: Callable[[str], str], *, most: int) -> tuple[str, frozenset[str]]:
    """Join the sources, redact them as one text, and bring it to at most `most` bytes.

    Also return the ids of sources with a must-keep statement that is not in the text.
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
    """Map sources to the bytes of their must-keep statements; one of several sources counts for the oldest."""
    order = {source.id: at for at, source in enumerate(sources)}
    found: dict[str, int] = {}
    for item in ExtractiveDistiller().prepare(sources).candidates:
        if item.must_keep:
            first = min(item.source_ids, key=lambda name: order[name])
            found[first] = found.get(first, 0) + size(wording(item)) + 1
    return found


def cut(text: str, most: int, count: Callable[[str], int]) -> str:
    """Return the longest prefix of `text` of at most `most` by `count`; no character and no marker is split.

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
    while kept and count(kept) > most:  # token counts are not quite monotonic
        kept = _whole(text, len(kept) - 1)
    if kept.strip():
        return kept
    return ELLIPSIS if count(ELLIPSIS) <= most else "."


def size(text: str) -> int:
    """Return the number of UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def _whole(text: str, end: int) -> str:
    """Return `text[:end]` without the beginning of a marker that would be split."""
    start = text.rfind(_OPENING[0], 0, end)
    while start >= 0 and end - start < 80:
        if text.startswith(_OPENING, start):
            close = text.find("]", start)
            return text[:start] if close < 0 or close >= end else text[:end]
        start = text.rfind(_OPENING[0], 0, start)
    return text[:end]
