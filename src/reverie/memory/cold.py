"""Search of cold storage: the sources of dreams, by words and by meaning.

They are no part of the index of readable memory, so that they change none of its scores. Their own index is made when a
search first goes behind hot memory, from the text in cold storage, and is brought up to date by log position. Whatever
it finds is looked up in the snapshot of the reader before it is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from reverie.core.entry import Entry, EntryState
from reverie.core.ports import Embedder
from reverie.core.query import Brief, Filter, Head, HybridMatch, QueryWord, Vector
from reverie.index.cache import IndexCache, Memory, Positions, Promising
from reverie.index.postings import ask, hashed, pack
from reverie.index.segment import Row
from reverie.memory.indexing import LINES, indexed
from reverie.providers.static import StaticEmbedder
from reverie.store.contract import ReadTx

_PAGE = 500
_MOST_BYTES = 128 * 2**20
_LOG = 1000
_ADDING = frozenset({"memory.written", "memory.compacted", "memory.recorded", "schedule.fired", "schedule.ran"})
"""Events that take nothing out of cold storage. After any other the index is made again."""


def cold_filter(where: Filter) -> Filter:
    """The same filter for the sources of dreams."""
    return msgspec.structs.replace(
        where,
        states=frozenset({EntryState.DREAMT}),
        gone=True,
        archived=False,
        without_kinds=(*where.without_kinds, *LINES),  # an earlier dream says nothing that its sources do not
    )


class ColdIndexes:
    """The indexes of the memories whose cold storage was searched last."""

    def __init__(self, embedder: Embedder | None) -> None:
        # inside a transaction there is no time for an embedder that asks another machine
        self._embedder = embedder if isinstance(embedder, StaticEmbedder) else None
        self._lock = threading.Lock()
        self._cache = IndexCache(_MOST_BYTES)
        self._seen: dict[Memory, int] = {}
        """The log position up to which an index is known to lack nothing."""

    def of(self, tx: ReadTx) -> ColdIndex:
        """The index of the transaction's memory, as new as its snapshot."""
        memory = (0, f"{tx.scope.tenant}\n{tx.scope.ref}")
        head = tx.head().seq
        with self._lock:
            seen = self._seen.get(memory, 0)
            if seen and seen < head and not _only_added(tx, seen):
                self._cache.drop(memory)
            self._seen[memory] = max(seen, head)
        return ColdIndex(tx, self._cache, memory, self._embedder)


def _only_added(tx: ReadTx, since: int) -> bool:
    events = tx.read_log(after=since, limit=_LOG)
    return len(events) < _LOG and all(event.type in _ADDING for event in events)


class ColdIndex:
    """The search verbs of a read transaction over the sources of dreams."""

    def __init__(self, tx: ReadTx, cache: IndexCache, memory: Memory, embedder: Embedder | None) -> None:
        self._tx = tx
        self._cache = cache
        self._memory = memory
        self._embedder = embedder
        self.now = tx.now

    def __len__(self) -> int:
        """Number of passages in cold storage."""
        return self._cache.size(self, self._memory)

    def head(self) -> Head:
        """The tip of the tenant's log."""
        return self._tx.head()

    def log_key(self) -> bytes:
        """The secret of the tenant."""
        return self._tx.log_key()

    def hash_at(self, seq: int) -> str:  # noqa: ARG002
        """For the index cache: this index has no files."""
        return ""

    def index_rows(self, *, after: int, since: int) -> Iterator[Row]:  # noqa: ARG002  (a source of any age may come)
        """For the index cache: the sources that left after a log position."""
        key = self._tx.log_key()
        for entries in self._pages(since):
            for entry, (terms, vector) in zip(entries, indexed(entries, self._embedder), strict=True):
                model, data = vector or (None, None)
                yield entry.position, pack(terms, key), data, model

    def _pages(self, since: int) -> Iterator[Sequence[Entry]]:
        place = (since, 2**62)
        while entries := self._tx.dreamt(after=place, limit=_PAGE):
            yield entries
            place = (entries[-1].gone_seq or 0, entries[-1].position)

    def index_gone(self, *, since: int) -> Sequence[int]:  # noqa: ARG002
        """For the index cache: nothing leaves an index that is made again when something does."""
        return ()

    def index_scrubbed(self, *, since: int) -> Sequence[int]:  # noqa: ARG002
        """For the index cache: see `index_gone`."""
        return ()

    def foremost(
        self, lists: Sequence[Positions], where: Filter, *, limit: int, promising: Promising | None = None
    ) -> Mapping[int, Brief]:
        """For the index cache: of each list the first entries that match."""
        return self._tx.foremost(lists, where, limit=limit, promising=promising)

    def passing(self, where: Filter) -> Sequence[int]:
        """For the index cache: the positions that match."""
        found = [entry.position for entries in self._pages(0) for entry in entries]
        return sorted(self._tx.briefs(found, where))

    def find(
        self,
        terms: Sequence[str | QueryWord],
        vector: Vector | None,
        where: Filter,
        *,
        limit: int,
        meaning: float = 1.0,
        ahead: int = 0,  # noqa: ARG002  (what rests has no neighbours)
    ) -> list[HybridMatch]:
        """The best passages by words and by meaning, under the statistics of this memory's cold storage alone."""
        vector = vector if vector is not None and any(vector[1]) else None
        asked = ask(terms, self._tx.log_key())
        return self._cache.find(self, self._memory, asked, vector, where, limit, meaning) if terms or vector else []

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        """Those of `terms` that some source has."""
        key = self._tx.log_key()
        found = self._cache.known(self, self._memory, [hashed(term, key) for term in terms]) if terms else []
        return frozenset(term for term, has in zip(terms, found, strict=True) if has)
