"""The words of entries and of questions in the form that the index uses.

A word is stored as a hash under the tenant's key, so the index holds no text. The words of an entry are one string of
records, in one row with its vector: a commit writes one row instead of one for every word. Segments are made from rows
later.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from reverie.core.query import QueryWord
from reverie.search.passages import MARK

RECORD = [("word", ">i8"), ("times", ">i2")]
"""The type of a record, as numpy takes it."""
_HASH_BYTES = 8
RECORD_BYTES = _HASH_BYTES + 2
_ONCE = (1).to_bytes(2, "big")
_MOST_TIMES = 2**15 - 1
_REMEMBERED = 1 << 15
K1, B = 1.2, 0.75
"""The constants of BM25."""


def pack(terms: Sequence[str], key: bytes) -> bytes:
    """The words of an entry as stored: the hash of each word once, with the number of times it occurs.

    The words of several passages follow each other. Before each passage is a record with a count of 0, which holds the
    beginning and end of the passage in place of a hash. An entry without marks is one passage.
    """
    if not terms or not terms[0].startswith(MARK):
        return _packed(terms, key)
    found: list[bytes] = []
    at = 0
    while at < len(terms):
        start, _, end = terms[at][1:].partition(":")
        after = next((n for n in range(at + 1, len(terms)) if terms[n].startswith(MARK)), len(terms))
        found.append(int(start).to_bytes(4, "big") + int(end).to_bytes(4, "big") + bytes(2))
        found.append(_packed(terms[at + 1 : after], key))
        at = after
    return b"".join(found)


def _packed(terms: Sequence[str], key: bytes) -> bytes:
    once = _records(key)
    if len(set(terms)) == len(terms):
        return b"".join(map(once.__getitem__, terms))
    return b"".join(
        [
            once[term] if times == 1 else once[term][:_HASH_BYTES] + min(times, _MOST_TIMES).to_bytes(2, "big")
            for term, times in Counter(terms).items()
        ]
    )


Question = Sequence[tuple[float, Sequence[tuple[int, float]]]]
"""The words of a question: (weight of the word, [(hash of a term that matches it, weight)])."""


def ask(words: Sequence[str | QueryWord], key: bytes) -> Question:
    """The words of a question in the form that `words.best` takes."""
    asked = [word if isinstance(word, QueryWord) else QueryWord(((word, 1.0),)) for word in dict.fromkeys(words)]
    return [(word.weight, [(hashed(term, key), weight) for term, weight in word.terms]) for word in asked]


def hashed(term: str, key: bytes) -> int:
    """The hash of a term."""
    return int.from_bytes(_records(key)[term][:_HASH_BYTES], "big", signed=True)


class _Records(dict[str, bytes]):
    """Cache of the records of words that occur once. `__missing__` keeps the common path in C code."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __missing__(self, term: str) -> bytes:
        raw = term.encode("utf-8", "surrogatepass")
        made = hashlib.blake2b(raw, digest_size=_HASH_BYTES, key=self._key).digest() + _ONCE
        if len(self) >= _REMEMBERED:
            self.clear()
        self[term] = made
        return made


@lru_cache(maxsize=64)
def _records(key: bytes) -> _Records:
    return _Records(key)
