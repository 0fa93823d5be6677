"""The search index of cold storage: the sources of the dreams of one memory.

They are not in the index of readable memory, so that they do not change its scores. Their index rows are in the same
table, marked as cold, and make an index of their own in the same cache and files. Everything found is looked up in the
snapshot of the reader before it is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from reverie.core.query import Brief, Filter, Head, HybridMatch, QueryWord, Vector
from reverie.index.cache import IndexCache, Memory, Positions, Promising, cold_memory
from reverie.index.postings import ask, hashed
from reverie.index.segment import Row

if TYPE_CHECKING:
    from reverie.store.snapshot import ReadVerbs


class ColdIndex:
    """The search verbs of a read transaction, over the sources of dreams."""

    def __init__(self, tx: ReadVerbs, cache: IndexCache, memory: Memory) -> None:
        self._tx = tx
        self._cache = cache
        self._memory = cold_memory(memory)
        self.now = tx.now

    def __len__(self) -> int:
        """Number of passages in cold storage."""
        return self._cache.size(self, self._memory)

    def find(
        self,
        terms: Sequence[str | QueryWord],
        vector: Vector | None,
        where: Filter,
        *,
        limit: int,
        meaning: float = 1.0,
        ahead: int = 0,  # noqa: ARG002  (sources have no neighbours)
    ) -> list[HybridMatch]:
        """The best passages by words and by meaning, under the statistics of this memory's cold storage alone."""
        vector = vector if vector is not None and any(vector[1]) else None
        if not terms and vector is None:
            return []
        words = ask(terms, self._tx.log_key())
        return self._cache.find(self, self._memory, words, vector, where, limit, meaning)

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        """The terms among `terms` that some source has."""
        key = self._tx.log_key()
        found = self._cache.known(self, self._memory, [hashed(term, key) for term in terms]) if terms else []
        return frozenset(term for term, has in zip(terms, found, strict=True) if has)

    # for the index cache: see `IndexedTx`

    def head(self) -> Head:
        """The tip of the tenant's log."""
        return self._tx.head()

    def log_key(self) -> bytes:
        """The secret of the tenant."""
        return self._tx.log_key()

    def hash_at(self, seq: int) -> str:
        """The hash of the log at a position."""
        return self._tx.hash_at(seq)

    def index_rows(self, *, after: int, since: int) -> Iterable[Row]:  # noqa: ARG002  (a source of any age may come)
        """The rows of sources that came, or were indexed again, after a log position."""
        return self._tx.cold_rows(since=since)

    def index_gone(self, *, since: int) -> Sequence[int]:
        """Positions that left cold storage after a log position. What came back since is among `index_rows`."""
        return self._tx.cold_left(since=since)

    def index_scrubbed(self, *, since: int) -> Sequence[int]:
        """Positions whose text was destroyed after a log position."""
        return self._tx.index_scrubbed(since=since)

    def foremost(
        self,
        lists: Sequence[Positions],
        where: Filter,
        *,
        limit: int,
        promising: Promising | None = None,  # noqa: ARG002  (sources have no neighbours)
    ) -> Mapping[int, Brief]:
        """The first entries of each list that match."""
        return self._tx.foremost(lists, where, limit=limit)

    def passing(self, where: Filter) -> Sequence[int]:
        """The positions that match."""
        return sorted(self._tx.briefs(self._tx.cold_positions(), where))
