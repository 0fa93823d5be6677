"""Words and vectors of entries, passage by passage, as a store indexes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from reverie.core.entry import Entry, speaker
from reverie.core.pause import paced
from reverie.core.ports import Embedder
from reverie.search.analysis import terms
from reverie.search.passages import Passage, mark, passages
from reverie.search.text import searchable

ANALYSIS = 3
"""Incremented when the same text gets other words or passages. A job indexes the entries of an older analysis again."""
LINES = frozenset({"dream"})
"""Kinds of entries whose lines are passages."""

Indexed = tuple[list[str], tuple[str, bytes] | None]
"""(terms, (model, vectors)), as the verbs of a store want them."""


def model_of(embedder: Embedder) -> str:
    """The name under which vectors are stored: the embedder and the analysis."""
    return f"{embedder.name}+{ANALYSIS}"


def terms_and_vectors(entries: Sequence[Entry], embedder: Embedder | None) -> list[Indexed]:
    """The words and vectors of entries. Made outside transactions: an embedder may be slow."""
    words: list[list[str]] = []
    texts: list[list[str]] = []
    for entry in paced(entries):
        parts = _passages(entry)
        words.append(_terms(entry, parts))
        texts.append([text for _, text in parts])
    if embedder is None or not texts:
        return [(own, None) for own in words]
    vectors, model = iter(embedder.embed(list(chain.from_iterable(texts)))), model_of(embedder)
    return [(own, (model, b"".join(islice(vectors, len(parts))))) for own, parts in zip(words, texts, strict=True)]


def _passages(entry: Entry) -> list[tuple[Passage, str]]:
    """The passages of an entry, each with the text it is found under: who said it, what, and under which labels."""
    name, content = speaker(entry.source), entry.content
    return [
        (part, searchable(content[part.start : part.end], speaker=name, tags=entry.tags, subject=entry.subject))
        for part in passages(content, lines=entry.kind in LINES)
    ]


def _terms(entry: Entry, found: Sequence[tuple[Passage, str]]) -> list[str]:
    if len(found) == 1 and found[0][0].end - found[0][0].start == len(entry.content):
        return terms(found[0][1])
    every: list[str] = []
    for part, text in found:
        every.append(mark(part.start, part.end))
        every += terms(text)
    return every
