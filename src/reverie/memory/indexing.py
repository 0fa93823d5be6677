"""Words and vectors of entries, passage by passage, as a store indexes them."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.core.entry import Entry, speaker
from reverie.core.pause import paced
from reverie.core.ports import Embedder
from reverie.search.analysis import terms
from reverie.search.passages import mark, passages
from reverie.search.text import searchable

ANALYSIS = 3
"""Raised when the same text gets other words or passages. Entries of an older analysis are indexed again by a job."""
LINES = frozenset({"dream"})
"""Kinds of entries whose lines are passages."""

Indexed = tuple[list[str], tuple[str, bytes] | None]
"""(terms, (model, vectors)), as the verbs of a store want them."""


def model_of(embedder: Embedder) -> str:
    """The name under which vectors are stored: the embedder and the analysis."""
    return f"{embedder.name}+{ANALYSIS}"


def texts_of(entry: Entry) -> list[str]:
    """The texts under which the passages of an entry are found: who said it, what, and under which labels."""
    name, content = speaker(entry.source), entry.content
    return [
        searchable(content[part.start : part.end], speaker=name, tags=entry.tags, subject=entry.subject)
        for part in passages(content, lines=entry.kind in LINES)
    ]


def indexed(entries: Sequence[Entry], embedder: Embedder | None) -> list[Indexed]:
    """The words and vectors of entries. Made outside transactions: an embedder may be slow."""
    texts = [texts_of(entry) for entry in paced(entries)]
    vectors = iter(embedder.embed([text for own in texts for text in own]) if embedder and texts else ())
    model = model_of(embedder) if embedder else ""
    return [
        (_terms(entry, own), (model, b"".join([next(vectors) for _ in own])) if embedder else None)
        for entry, own in zip(paced(entries), texts, strict=True)
    ]


def _terms(entry: Entry, texts: Sequence[str]) -> list[str]:
    parts = passages(entry.content, lines=entry.kind in LINES)
    if len(parts) == 1 and parts[0].end - parts[0].start == len(entry.content):
        return terms(texts[0])
    found: list[str] = []
    for part, text in zip(parts, texts, strict=True):
        found.append(mark(part.start, part.end))
        found += terms(text)
    return found
