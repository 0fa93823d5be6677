"""What a memory is found by, held in memory for those searched last: its words and its vectors.

The rows in the store are the truth. An index is brought up to date from them at the log position of whoever searches:
what left since is taken out, what came or was indexed again is put in. It may then be newer than the snapshot of
another reader, so everything found is looked up in the snapshot before it is shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from reverie.core.query import Brief, Filter, Head, Match
from reverie.store.best import Rows
from reverie.store.vectors import Vectors
from reverie.store.words import Words

_UNIT = 127.0 * 127.0
"""The product of a vector with itself: vectors rest with this length."""
_WIDER = 4
"""How many times more are looked at when too few of the best match the filter."""

T = TypeVar("T")
Memory = tuple[int, str]
"""A tenant's number and a ref."""
Found = Iterable[tuple[int, bytes | None, bytes | None]]
"""(position, words, vector)."""


class IndexedTx(Protocol):
    """What an index asks of a read transaction."""

    def head(self) -> Head:
        """The tip of the tenant's log."""

    def index_rows(self, *, after: int, since: int) -> Found:
        """Rows of the memory beyond a position, and those up to it that were indexed again after a log position."""

    def index_gone(self, *, since: int) -> Iterable[int]:
        """Positions of the memory's entries that left readable memory after a log position."""

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        """The entries at these positions that match."""


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
            if vector:
                by_length.setdefault(len(vector), []).append((position, vector))
        for vectors in self.vectors.values():
            vectors.remove(again)
        for length, given in by_length.items():
            self.vectors.setdefault(length, Vectors(length)).update(given)
        self._last = max(self._last, max(position for position, _, _ in rows))


class IndexCache:
    """The memories searched last, up to a number of bytes."""

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._held: OrderedDict[Memory, _Index] = OrderedDict()

    def match(self, tx: IndexedTx, memory: Memory, words: Sequence[int], where: Filter, limit: int) -> list[Match]:
        """The best entries by any of these words."""
        return self._best(tx, where, limit, lambda wanted: self._ask(tx, memory, lambda i: i.words.best(words, wanted)))

    def nearest(self, tx: IndexedTx, memory: Memory, vector: bytes, where: Filter, limit: int) -> list[Match]:
        """The best entries by cosine."""

        def find(wanted: int) -> Rows:
            def nearest(index: _Index) -> Rows:
                vectors = index.vectors.get(len(vector))
                return vectors.best(vector, wanted) if vectors else []

            return [(position, product / _UNIT) for position, product in self._ask(tx, memory, nearest)]

        return self._best(tx, where, limit, find)

    def cosines(self, tx: IndexedTx, memory: Memory, vector: bytes, positions: Sequence[int]) -> Mapping[int, float]:
        """The cosines of those that have a vector of this length."""

        def products(index: _Index) -> Mapping[int, float]:
            vectors = index.vectors.get(len(vector))
            return vectors.products(vector, positions) if vectors else {}

        return {position: product / _UNIT for position, product in self._ask(tx, memory, products).items()}

    @staticmethod
    def _best(tx: IndexedTx, where: Filter, limit: int, find: Callable[[int], Rows]) -> list[Match]:
        """Nearly all that is indexed is readable, so the index alone finds the best and only those are looked up."""
        wanted = limit
        while True:
            found = find(wanted)
            briefs = tx.briefs([position for position, _ in found], where)
            kept = [Match(briefs[position], score) for position, score in found if position in briefs]
            if len(kept) >= limit or len(found) < wanted:
                return kept[:limit]
            wanted *= _WIDER

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
