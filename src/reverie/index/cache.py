"""What a memory is found by, held in memory for those searched last: its words and its vectors.

The rows in the store are the truth. An index is brought up to date from them at the log position of whoever searches:
what left since is taken out, what came or was indexed again is put in. It may then be newer than the snapshot of
another reader, so everything found is looked up in the snapshot before it is shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from reverie.core.query import Brief, Filter, Head, Match
from reverie.index import topk as best
from reverie.index.postings import Question, Words
from reverie.index.vectors import Vectors

_UNIT = 127.0 * 127.0
"""The product of a vector with itself: vectors rest with this length."""
_WIDER = 4
"""How many times more are looked at when too few of the best match the filter."""
_RARE = _WIDER**2
"""When fewer than one in so many of the best match, the store is asked for all that do and only those are ranked.

That takes about as long as to rank and look up twice more, which would not do.
"""

T = TypeVar("T")
Memory = tuple[int, str]
"""A tenant's number and a ref."""
Found = Iterable[tuple[int, bytes | None, bytes | None]]
"""(position, words, vector)."""


class IndexedTx(Protocol):
    """What an index asks of a read transaction."""

    now: int
    """Expiry is judged by it."""

    def head(self) -> Head:
        """The tip of the tenant's log."""

    def index_rows(self, *, after: int, since: int) -> Found:
        """Rows of the memory beyond a position, and those up to it that were indexed again after a log position."""

    def index_gone(self, *, since: int) -> Iterable[int]:
        """Positions of the memory's entries that left readable memory after a log position."""

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        """The entries at these positions that match."""

    def passing(self, where: Filter) -> Sequence[int]:
        """The positions of all entries of the memory that match, each once."""


class _Index:
    """One memory."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.words = Words()
        self.vectors: dict[int, Vectors] = {}
        """By their length."""
        self._seq = 0
        self._last = 0
        """The highest position."""

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + sum(part.nbytes for part in self.vectors.values())

    def bring_up(self, tx: IndexedTx) -> None:
        """Make it as new as the transaction's snapshot, unless it is."""
        head = tx.head().seq
        if self._seq >= head:
            return
        try:
            if self._seq:
                self._remove(list(tx.index_gone(since=self._seq)))
            if self.words.wasted * 2 > self.words.size:  # more that is gone than is there
                self._begin_anew()
            rows = list(tx.index_rows(after=self._last, since=self._seq))
            if rows:
                self._update(rows)
            self._seq = head
        except BaseException:  # Control-C, or the store is gone: what is half done is not kept
            self._begin_anew()
            raise

    def _remove(self, positions: Sequence[int]) -> None:
        self.words.remove(positions)
        for vectors in self.vectors.values():
            vectors.remove(positions)

    def _update(self, rows: Sequence[tuple[int, bytes | None, bytes | None]]) -> None:
        self.words.update([(position, words or b"") for position, words, _ in rows])
        by_length: dict[int, list[tuple[int, bytes]]] = {}
        again = []
        for position, _, vector in rows:
            if position <= self._last:
                again.append(position)
            if vector and len(vector) % (count := self.words.count(position)) == 0:
                by_length.setdefault(len(vector) // count, []).append((position, vector))
        for vectors in self.vectors.values():
            vectors.remove(again)
        for length, given in by_length.items():
            self.vectors.setdefault(length, Vectors(length)).update(given)
        self._last = max(self._last, max(position for position, _, _ in rows))


Find = Callable[[int, Sequence[int] | None, _Index], list[best.Found]]
"""So many of the best, among these positions or all, in an index."""


def _placed(
    find: Find, wanted: int, among: Sequence[int] | None, index: _Index
) -> list[tuple[best.Found, tuple[int, int] | None]]:
    """The best, with the characters they are."""
    return [(one, index.words.span(one.position, one.number)) for one in find(wanted, among, index)]


class IndexCache:
    """The memories searched last, up to a number of bytes."""

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._held: OrderedDict[Memory, _Index] = OrderedDict()
        self._passed: tuple[object, Sequence[int]] = (None, ())
        """What was asked for last, in which snapshot, and the positions that matched."""

    def match(self, tx: IndexedTx, memory: Memory, words: Question, where: Filter, limit: int) -> list[Match]:
        """The best passages by any of these words."""

        def find(wanted: int, among: Sequence[int] | None, index: _Index) -> list[best.Found]:
            return index.words.best(words, wanted, among)

        return self._best(tx, memory, where, limit, find)

    def nearest(self, tx: IndexedTx, memory: Memory, vector: bytes, where: Filter, limit: int) -> list[Match]:
        """The best passages by cosine."""

        def find(wanted: int, among: Sequence[int] | None, index: _Index) -> list[best.Found]:
            vectors = index.vectors.get(len(vector))
            found = vectors.best(vector, wanted, among) if vectors else []
            return [one._replace(score=one.score / _UNIT) for one in found]

        return self._best(tx, memory, where, limit, find)

    def cosines(
        self, tx: IndexedTx, memory: Memory, vector: bytes, positions: Sequence[int]
    ) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of those that have vectors of this length."""

        def products(index: _Index) -> Mapping[int, Sequence[float]]:
            vectors = index.vectors.get(len(vector))
            return vectors.products(vector, positions) if vectors else {}

        found = self._ask(tx, memory, products)
        return {position: [product / _UNIT for product in own] for position, own in found.items()}

    def known(self, tx: IndexedTx, memory: Memory, words: Sequence[int]) -> list[bool]:
        """Which of these words the memory has."""
        return self._ask(tx, memory, lambda index: index.words.known(words))

    def _best(self, tx: IndexedTx, memory: Memory, where: Filter, limit: int, find: Find) -> list[Match]:
        """Most filters leave most entries, so the index alone finds the best and only those are looked up.

        When few of them match, the store says which entries do, and the index finds the best among those.
        """
        wanted, among = limit, None
        while True:
            found = self._ask(tx, memory, partial(_placed, find, wanted, among))
            briefs = tx.briefs(list(dict.fromkeys(one.position for one, _ in found)), where)
            kept = [
                Match(briefs[one.position], one.score, one.number, span, one.cover)
                for one, span in found
                if one.position in briefs
            ]
            if len(kept) >= limit or len(found) < wanted:
                return kept[:limit]
            if among is None and (len(kept) + 1) * _RARE < wanted:
                among = self._passing(tx, memory, where)
            else:
                wanted *= _WIDER

    def _passing(self, tx: IndexedTx, memory: Memory, where: Filter) -> Sequence[int]:
        """A search asks for words and for meaning in one snapshot: the store is asked once."""
        asked = (memory, where, tx.head().seq, tx.now)
        known, positions = self._passed
        if known != asked:
            positions = tx.passing(where)
            self._passed = asked, positions
        return positions

    def _ask(self, tx: IndexedTx, memory: Memory, question: Callable[[_Index], T]) -> T:
        with self._lock:
            index = self._held.get(memory)
            if index is None:
                index = self._held[memory] = _Index()
            self._held.move_to_end(memory)
        with index.lock:
            before = index.nbytes
            index.bring_up(tx)
            answer = question(index)
            grown = index.nbytes != before
        if grown:
            self._evict()
        return answer

    def _evict(self) -> None:
        with self._lock:
            held = sum(index.nbytes for index in self._held.values())
            while held > self._max_bytes and len(self._held) > 1:
                held -= self._held.popitem(last=False)[1].nbytes
