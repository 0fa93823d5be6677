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

from reverie.core.query import Asked
from reverie.index.topk import Found, Places, best_of, grown
from reverie.search.passages import MARK

_RECORD = np.dtype([("word", ">i8"), ("times", ">i2")])
_RECORD_BYTES = _RECORD.itemsize
_HASH_BYTES = 8
_ONCE = (1).to_bytes(2, "big")
_MOST_TIMES = 2**15 - 1
_REMEMBERED = 1 << 15
_K1, _B = 1.2, 0.75
_LOOSE = 1 << 14
"""So many records may wait to be sorted in; every question looks at all of them."""

_Words = npt.NDArray[np.int64]
_Postings = tuple[_Words, npt.NDArray[np.int32], npt.NDArray[np.int16]]


def pack(terms: Sequence[str], key: bytes) -> bytes:
    """The words of an entry as stored: each once, by its hash, and how often it occurs.

    The words of several passages follow each other. Before each is a record that occurs 0 times, with the beginning
    and end of the passage in place of a hash; an entry without marks is one passage.
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
"""The words of a question: (how much it tells, [(hash of a term that matches it, weight)])."""


def ask(words: Sequence[str | Asked], key: bytes) -> Question:
    """The words of a question, as `Words.best` wants them."""
    asked = [word if isinstance(word, Asked) else Asked(((word, 1.0),)) for word in dict.fromkeys(words)]
    return [(word.weight, [(hashed(term, key), weight) for term, weight in word.terms]) for word in asked]


def hashed(term: str, key: bytes) -> int:
    """The hash of a term."""
    return int.from_bytes(_records(key)[term][:_HASH_BYTES], "big", signed=True)


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
    """The words of one memory by passage, growing at the end.

    Records are sorted by word, so that a word's passages lie together; the newest wait unsorted until they are many.
    """

    def __init__(self) -> None:
        self.size = 0
        """Rows, those out of use among them. A row is a passage."""
        self._places = Places()
        self._live = 0
        """Rows in use."""
        self._positions = np.zeros(64, dtype=np.int64)
        self._numbers = np.zeros(64, dtype=np.int32)
        self._spans = np.zeros((64, 2), dtype=np.int32)
        """Characters of the content; (0, 0) is all of it."""
        self._lengths = np.zeros(64, dtype=np.float64)
        """How many words a passage has; 0 in a row that is out of use."""
        self._sorted = _no_postings()
        self._loose: list[_Postings] = []
        self._waiting = 0
        self._worn = False
        """Whether rows are out of use, so that records have to be looked at before they count."""

    @property
    def nbytes(self) -> int:
        held = (self._positions, self._numbers, self._spans, self._lengths, *self._sorted)
        return sum(part.nbytes for part in (*held, *(one for loose in self._loose for one in loose))) + (
            self._places.nbytes
        )

    @property
    def wasted(self) -> int:
        """Rows out of use."""
        return self.size - self._live

    def count(self, position: int) -> int:
        """How many passages a position has."""
        return self._places.count(position)

    def span(self, position: int, number: int) -> tuple[int, int] | None:
        """The characters that a passage is; None: the whole content."""
        rows = self._places.rows([position])
        if number >= len(rows):
            return None
        start, end = self._spans[rows[number]].tolist()
        return (start, end) if end else None

    def update(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the words of positions, in place of those they had."""
        self.remove([position for position, _ in rows if position in self._places])
        records = np.frombuffer(b"".join([packed for _, packed in rows]), dtype=_RECORD)
        owner = np.repeat(np.arange(len(rows)), [len(packed) // _RECORD_BYTES for _, packed in rows])
        times = records["times"].astype(np.int16)
        marks = times == 0
        marked = np.bincount(owner[marks], minlength=len(rows))
        counts = np.maximum(marked, 1)
        first, self.size = self.size, self.size + int(counts.sum())
        firsts = first + np.cumsum(counts) - counts
        for name in ("_positions", "_numbers", "_spans", "_lengths"):
            setattr(self, name, grown(getattr(self, name), self.size))
        positions = np.array([position for position, _ in rows], dtype=np.int64)
        self._positions[first : self.size] = np.repeat(positions, counts)
        self._numbers[first : self.size] = np.arange(first, self.size) - np.repeat(firsts, counts)
        row = firsts[owner]
        if marks.any():
            row = row + np.maximum(np.cumsum(marks) - (np.cumsum(marked) - marked)[owner] - 1, 0)
            places = records["word"][marks].astype(np.int64)
            self._spans[row[marks], 0] = places >> 32
            self._spans[row[marks], 1] = places & 0xFFFFFFFF
            records, row, times = records[~marks], row[~marks], times[~marks]
        self._lengths[first : self.size] = np.bincount(row - first, weights=times, minlength=self.size - first)
        self._places.add(positions.tolist(), firsts.tolist(), counts.tolist())
        self._live += self.size - first
        self._loose.append((records["word"].astype(np.int64), row.astype(np.int32), times))
        self._waiting += len(records)
        if self._waiting > max(_LOOSE, len(self._sorted[0]) // 8):
            self._sort()

    def remove(self, positions: Sequence[int]) -> None:
        """Forget the words of these positions."""
        rows = self._places.pop(positions)
        if rows:
            self._lengths[rows] = 0.0
            self._spans[rows] = 0
            self._live -= len(rows)
            self._worn = True

    def known(self, words: Sequence[int]) -> list[bool]:
        """Which of these words some passage has."""
        loose = self._gathered()
        return [len(self._used(word, loose)[0]) > 0 for word in words]

    def best(self, words: Question, limit: int, among: Sequence[int] | None = None) -> list[Found]:
        """The best passages, of all or among some positions, best first, ties by position.

        A score does not depend on the other candidates: the statistics are those of all passages of the memory.
        """
        total = float(self._lengths[: self.size].sum())
        if not total:
            return []
        scores = np.zeros(self.size, dtype=np.float64)
        covers = np.zeros(self.size, dtype=np.float64)
        whole = 0.0
        loose = self._gathered()
        for telling, terms in words:
            found = [scored for term in terms if (scored := self._scored(*term, total, loose)) is not None]
            if not found:
                whole += telling * math.log(1 + (self._live + 0.5) / 0.5)
                continue
            rows, values, weight = found[0]
            if len(found) > 1:
                rows, values = _better(found)
                weight = max(one[2] for one in found)
            scores[rows] += telling * values
            covers[rows] += telling * weight
            whole += telling * weight
        found_rows = np.flatnonzero(scores)
        if among is not None:
            asked = self._places.rows(among)
            found_rows = asked[scores[asked] > 0]
        order = found_rows[best_of(self._positions[found_rows], self._numbers[found_rows], scores[found_rows], limit)]
        columns = (self._positions, self._numbers, scores, covers / whole)
        return [Found(*row) for row in zip(*(column[order].tolist() for column in columns), strict=True)]

    def _scored(
        self, word: int, weight: float, total: float, loose: _Postings
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], float] | None:
        """(rows that have a word, BM25 of each, the most it can tell); None when there are none."""
        rows, times = self._used(word, loose)
        if not (count := len(rows)):
            return None
        weight *= math.log(1 + (self._live - count + 0.5) / (count + 0.5))
        length = self._lengths[rows]
        length *= _K1 * _B * self._live / total
        length += _K1 * (1 - _B)
        length += times
        return rows, times * (weight * (_K1 + 1)) / length, weight

    def _used(self, word: int, loose: _Postings) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]]:
        """The rows in use that have a word, and how often."""
        rows, times = self._having(word, loose)
        if self._worn:
            used = self._lengths[rows] > 0
            rows, times = rows[used], times[used]
        return rows, times

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


def _better(
    found: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], float]],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Every row once, with the best of its values."""
    rows = np.concatenate([one[0] for one in found])
    values = np.concatenate([one[1] for one in found])
    order = np.lexsort((-values, rows))
    rows, values = rows[order], values[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    return rows[first], values[first]
