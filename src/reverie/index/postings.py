"""Words inside one memory: which entries have them, and how well that answers a question (BM25).

A word rests as a hash under the tenant's key, so the index holds no text; an entry's words are one string of records,
stored beside its vector in one row. There is no index of words on the disk: a memory that is searched is held as an
inverted index in numpy, brought up to date from the rows that came since. A commit then writes one row and not one for
every word, and a question is answered from memory.

Scores depend on what the memory holds and on nothing else, neither the order of insertion nor the kind of store.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reverie.index.topk import Rows, best_of, grown, rows_of

_RECORD = np.dtype([("word", ">i8"), ("times", ">i2")])
_RECORD_BYTES = _RECORD.itemsize
_HASH_BYTES = 8
_ONCE = (1).to_bytes(2, "big")
_MOST_TIMES = 2**15 - 1
_REMEMBERED = 1 << 15
_K1, _B = 1.2, 0.75
_LEAST = 1e-6
"""What a word weighs that half of the entries have or more."""
_LOOSE = 1 << 14
"""So many records may wait to be sorted in; every question looks at all of them."""

_Words = npt.NDArray[np.int64]
_Postings = tuple[_Words, npt.NDArray[np.int32], npt.NDArray[np.int16]]


def pack(terms: Sequence[str], key: bytes) -> bytes:
    """The words of an entry as stored: each once, by its hash, and how often it occurs."""
    once = _records(key)
    if len(set(terms)) == len(terms):
        return b"".join(map(once.__getitem__, terms))
    return b"".join(
        [
            once[term] if times == 1 else once[term][:_HASH_BYTES] + min(times, _MOST_TIMES).to_bytes(2, "big")
            for term, times in Counter(terms).items()
        ]
    )


def ask(terms: Sequence[str], key: bytes) -> list[int]:
    """The words of a question, as `Words.best` wants them."""
    once = _records(key)
    return [int.from_bytes(once[term][:_HASH_BYTES], "big", signed=True) for term in dict.fromkeys(terms)]


class _Records(dict[str, bytes]):
    """The records of words seen before that occur once. `__missing__` keeps the common path in C code."""

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


class Words:
    """The words of one memory, growing at the end.

    Records are sorted by word, so that a word's entries lie together; the newest wait unsorted until they are many.
    """

    def __init__(self) -> None:
        self.size = 0
        """Rows, those out of use among them."""
        self._row_of: dict[int, int] = {}
        self._positions = np.zeros(64, dtype=np.int64)
        self._lengths = np.zeros(64, dtype=np.float64)
        """How many words an entry has; 0 in a row that is out of use."""
        self._sorted = _no_postings()
        self._loose: list[_Postings] = []
        self._waiting = 0
        self._worn = False
        """Whether rows are out of use, so that records have to be looked at before they count."""

    @property
    def nbytes(self) -> int:
        held = (self._positions, self._lengths, *self._sorted, *(part for loose in self._loose for part in loose))
        return sum(part.nbytes for part in held) + 100 * len(self._row_of)

    @property
    def wasted(self) -> int:
        """Rows out of use."""
        return self.size - len(self._row_of)

    def update(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the words of positions, in place of those they had."""
        self.remove([position for position, _ in rows if position in self._row_of])
        first, self.size = self.size, self.size + len(rows)
        self._positions = grown(self._positions, self.size)
        self._lengths = grown(self._lengths, self.size)
        records = np.frombuffer(b"".join([packed for _, packed in rows]), dtype=_RECORD)
        sizes = [len(packed) // _RECORD_BYTES for _, packed in rows]
        row = np.repeat(np.arange(first, self.size, dtype=np.int32), sizes)
        times = records["times"].astype(np.int16)
        self._positions[first : self.size] = [position for position, _ in rows]
        self._lengths[first : self.size] = np.bincount(row - first, weights=times, minlength=len(rows))
        self._row_of.update(zip((position for position, _ in rows), range(first, self.size), strict=True))
        self._loose.append((records["word"].astype(np.int64), row, times))
        self._waiting += len(records)
        if self._waiting > max(_LOOSE, len(self._sorted[0]) // 8):
            self._sort()

    def remove(self, positions: Sequence[int]) -> None:
        """Forget the words of these positions."""
        rows = [row for position in positions if (row := self._row_of.pop(position, None)) is not None]
        if rows:
            self._lengths[rows] = 0.0
            self._worn = True

    def best(self, words: Sequence[int], limit: int, among: Sequence[int] | None = None) -> Rows:
        """The best (position, score), of all or among some positions, best first, ties by position.

        A score is the same whoever is beside it: the statistics are those of all.
        """
        live, lengths = len(self._row_of), self._lengths[: self.size]
        total = float(lengths.sum())
        if not total:
            return []
        scores = np.zeros(self.size, dtype=np.float64)
        loose = self._gathered()
        for word in words:
            rows, times = self._having(word, loose)
            if self._worn:
                used = lengths[rows] > 0
                rows, times = rows[used], times[used]
            if not (count := len(rows)):
                continue
            weight = max(math.log((live - count + 0.5) / (count + 0.5)), _LEAST)
            length = lengths[rows]
            length *= _K1 * _B * live / total
            length += _K1 * (1 - _B)
            length += times
            scores[rows] += times * (weight * (_K1 + 1)) / length
        if among is None:
            found = np.flatnonzero(scores)
        else:
            asked = rows_of(among, self._row_of)
            found = asked[scores[asked] > 0]
        return best_of(self._positions[found], scores[found], limit)

    def _having(self, word: int, loose: _Postings) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]]:
        """The rows that have a word, and how often."""
        words, rows, times = self._sorted
        start, end = np.searchsorted(words, word, side="left"), np.searchsorted(words, word, side="right")
        rows, times = rows[start:end], times[start:end]
        if len(loose[0]) and len(at := np.flatnonzero(loose[0] == word)):
            rows, times = np.concatenate((rows, loose[1][at])), np.concatenate((times, loose[2][at]))
        return rows, times

    def _gathered(self) -> _Postings:
        if len(self._loose) > 1:
            self._loose = [_joined(self._loose)]
        return self._loose[0] if self._loose else _no_postings()

    def _sort(self) -> None:
        """Sort in what waits. Two sorted runs behind each other are merged in one sweep."""
        words, rows, times = self._gathered()
        order = np.argsort(words, kind="stable")
        words, rows, times = _joined([self._sorted, (words[order], rows[order], times[order])])
        order = np.argsort(words, kind="stable")
        self._sorted = words[order], rows[order], times[order]
        self._loose, self._waiting = [], 0


def _no_postings() -> _Postings:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int16)


def _joined(parts: Sequence[_Postings]) -> _Postings:
    words, rows, times = zip(*parts, strict=True)
    return np.concatenate(words), np.concatenate(rows), np.concatenate(times)
