"""The search index: words and vectors of each memory, as segments in files and in process memory, with an LRU cache.

The rows in the store are authoritative. A search brings the index up to date from them, to the log position of its
transaction: entries that left since are removed, entries that came or were indexed again are added. The index may then
be newer than the snapshot of another reader, so everything found is looked up in the snapshot before it is returned.

A memory of some thousand passages is in files (see files.py), which a new process maps instead of reading rows; only
entries that came later are held in process memory. Searches of one memory do not wait for each other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from reverie.core.lazy import np
from reverie.core.query import Brief, Filter, Head, HybridMatch, Match, Vector
from reverie.index import words
from reverie.index.files import SMALLEST, Files, Saved, worn
from reverie.index.parts import LARGEST, Parts
from reverie.index.postings import Question
from reverie.index.segment import Damaged, Row, build
from reverie.index.segment import ScoredPassage as Passage
from reverie.index.vectors import Meaning

if TYPE_CHECKING:
    import numpy.typing as npt

_FILTERED = 5
"""With a filter, the first search is for half this multiple of the limit: enough for a filter that keeps half."""
_RARE = 16
"""Rarity threshold: if fewer than one in this many of the best match, the store lists all matches and only those are
ranked.

That takes about as long as ranking and looking up two more times, which would not be enough.
"""
_MOST_HELD = 1024

T = TypeVar("T")
Memory = tuple[int, str]
"""A tenant's number and a ref."""
Positions = Sequence[int]
Promising = Callable[[], Positions]
"""Returns positions, the most promising first. Called only when they are needed."""
Find: TypeAlias = "Callable[[int, npt.NDArray[np.int64] | None], list[Passage]]"
"""Finds the given number of best passages, at these positions or at all."""


class IndexedTx(Protocol):
    """The verbs of a read transaction that an index uses."""

    now: int
    """The instant at which entries count as expired or not."""

    def head(self) -> Head:
        """The tip of the tenant's log."""

    def log_key(self) -> bytes:
        """The secret of the tenant, under which the files of its memories are named."""

    def hash_at(self, seq: int) -> str:
        """The hash of the log at a position; empty when the log does not have it."""

    def index_rows(self, *, after: int, since: int) -> Iterable[Row]:
        """The rows of the memory beyond position `after`, and earlier rows indexed again after log position `since`."""

    def index_gone(self, *, since: int) -> Iterable[int]:
        """Positions of entries that left the indexed part of the memory after a log position."""

    def index_scrubbed(self, *, since: int) -> Sequence[int]:
        """Positions whose text was destroyed after a log position, for stores with files on several machines."""

    def foremost(
        self, lists: Sequence[Positions], where: Filter, *, limit: int, promising: Promising | None = None
    ) -> Mapping[int, Brief]:
        """The first `limit` entries of each list that match. `promising`: positions whose neighbours may be needed."""

    def passing(self, where: Filter) -> Sequence[int]:
        """The positions of all entries of the memory that match, each once."""


class _Index:
    """The index of one memory."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.parts: Parts | None = None
        self.filed = True
        """Whether files may be used: not after they were found damaged and could not be removed."""
        self.nbytes = 0
        """Bytes that the cache counts for it."""


class IndexCache:
    """The indexes of the memories searched last, up to a number of bytes. `files`: the folder of segments."""

    def __init__(self, max_bytes: int = 512 * 2**20, files: Files | None = None) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._files = files
        self._held: OrderedDict[Memory, _Index] = OrderedDict()
        self._nbytes = 0
        """Bytes of the indexes held, each as of the time when it was last brought up to date."""
        self._passed: tuple[object, npt.NDArray[np.int64]] | None = None
        """The last filter with its snapshot, and the positions that match it."""

    def match(self, tx: IndexedTx, memory: Memory, question: Question, where: Filter, limit: int) -> list[Match]:
        """The best passages by any of these words."""
        return self._ask(
            tx, memory, lambda parts: self._matches(tx, memory, where, limit, partial(_by_words, parts, question))
        )

    def nearest(self, tx: IndexedTx, memory: Memory, vector: Vector, where: Filter, limit: int) -> list[Match]:
        """The best passages by cosine."""
        return self._ask(
            tx, memory, lambda parts: self._matches(tx, memory, where, limit, Meaning(parts.parts, vector).best)
        )

    def _matches(self, tx: IndexedTx, memory: Memory, where: Filter, limit: int, find: Find) -> list[Match]:
        (kept,), briefs = self._best(tx, memory, where, limit, [find])
        return [Match(briefs[one.position], one.score, one.number, one.span, one.cover) for one in kept]

    def find(
        self,
        tx: IndexedTx,
        memory: Memory,
        question: Question,
        vector: Vector | None,
        where: Filter,
        limit: int,
        meaning: float = 1.0,
    ) -> list[HybridMatch]:
        """The best passages by words, and as many by cosine. `meaning`: see `ReadTx.find`."""

        def look(parts: Parts) -> list[HybridMatch]:
            finds: list[Find] = [partial(_by_words, parts, question)]
            near = Meaning(parts.parts, vector) if vector is not None else None
            if near is not None:
                finds.append(near.best)

            def promising(lists: Sequence[Sequence[Passage]]) -> Positions:
                cosines = _cosines(near, lists)
                best = max((one.score for one in lists[0]), default=1.0) or 1.0
                promise = {key: meaning * min(1.0, max(0.0, cosine or 0.0)) for key, cosine in cosines.items()}
                for one in lists[0]:
                    promise[one[:2]] += one.cover * one.score / best
                return list(dict.fromkeys(at for at, _ in sorted(promise, key=lambda key: (-promise[key], key))))

            lists, briefs = self._best(tx, memory, where, limit, finds, promising)
            by_words = {one[:2]: one.score for one in lists[0]}
            by_any = {one[:2]: one for own in reversed(lists) for one in own}
            cosines = _cosines(near, lists)
            live = parts.size
            return [
                HybridMatch(briefs[position], number, span, by_words.get(key), cover, cosines[key], live)
                for key, (position, number, _, cover, span) in by_any.items()
            ]

        return self._ask(tx, memory, look)

    def cosines(
        self, tx: IndexedTx, memory: Memory, vector: Vector, positions: Sequence[int]
    ) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of entries at these positions that have vectors of this model."""
        return self._ask(tx, memory, lambda parts: Meaning(parts.parts, vector).cosines(positions))

    def known(self, tx: IndexedTx, memory: Memory, asked: Sequence[int]) -> list[bool]:
        """Return, for each of these words, whether the memory has it."""
        return self._ask(tx, memory, lambda parts: words.known(parts.parts, asked))

    def size(self, tx: IndexedTx, memory: Memory) -> int:
        """Number of passages of a memory."""
        return self._ask(tx, memory, lambda parts: parts.size)

    def _best(
        self,
        tx: IndexedTx,
        memory: Memory,
        where: Filter,
        limit: int,
        finds: Sequence[Find],
        promising: Callable[[Sequence[Sequence[Passage]]], Positions] | None = None,
    ) -> tuple[list[list[Passage]], Mapping[int, Brief]]:
        """The best passages by each of `finds` that match the filter, and their entries.

        Most filters keep most entries. So the index first finds somewhat more passages than are wanted, and the store
        selects those that match. When few match, the store lists all entries that do, and the index finds the best
        among those.
        """
        among: npt.NDArray[np.int64] | None = None
        wanted = limit if where == Filter() else limit * _FILTERED // 2
        while True:
            lists = [find(wanted, among) for find in finds]
            briefs = tx.foremost(
                [list(dict.fromkeys([one.position for one in own])) for own in lists],
                where,
                limit=limit,
                promising=partial(promising, lists) if promising is not None else None,
            )
            kept = [[one for one in own if one.position in briefs][:limit] for own in lists]
            short = [
                len(some) for own, some in zip(lists, kept, strict=True) if len(some) < limit and len(own) >= wanted
            ]
            if not short:
                return kept, briefs
            if among is None and (min(short) + 1) * _RARE < wanted:
                among, wanted = self._passing(tx, memory, where), limit
            else:  # enough if the next ones match as often, and a quarter more
                wanted *= max(2, limit * 5 // (4 * (min(short) + 1)))

    def _passing(self, tx: IndexedTx, memory: Memory, where: Filter) -> npt.NDArray[np.int64]:
        """The positions that match. A search by words and by meaning in one snapshot asks the store once."""
        asked = (memory, where, tx.head().seq, tx.now)
        passed = self._passed
        if passed is None or passed[0] != asked:
            passed = self._passed = asked, np.array(sorted(tx.passing(where)), dtype=np.int64)
        return passed[1]

    def _ask(self, tx: IndexedTx, memory: Memory, question: Callable[[Parts], T]) -> T:
        with self._lock:
            index = self._held.get(memory)
            if index is None:
                index = self._held[memory] = _Index()
            self._held.move_to_end(memory)
        while True:
            try:
                parts = index.parts
                if parts is None or parts.seq < tx.head().seq:
                    with index.lock:
                        parts = self._bring_up(tx, memory, index)
                    self._count(memory, index, parts.nbytes)
                try:
                    return question(parts)
                finally:
                    parts.rest()
            except Damaged:
                self._give_up(tx, memory, index)

    def _bring_up(self, tx: IndexedTx, memory: Memory, index: _Index) -> Parts:
        """The index, at least as new as the transaction's snapshot. The caller holds the lock of the index."""
        parts, head = index.parts, tx.head()
        if parts is not None and parts.seq >= head.seq:
            return parts
        files = self._files if index.filed else None
        name = files.name(memory, tx.log_key()) if files is not None else ""
        if files is not None and (parts is None or parts.stamp != files.stamp(name)):
            saved = files.load(name)
            if saved is not None and _same_log(tx, saved):
                parts = saved.parts
            elif parts is None or saved is None:
                files.drop(name)
                parts = replace(parts, stamp=None) if parts is not None and not _filed(parts) else None
        if parts is not None and parts.seq and (scrubbed := tx.index_scrubbed(since=parts.seq)):
            parts = self._scrubbed(parts, scrubbed, files, name, head.seq)
        parts = _advanced(parts or Parts(), tx, files, name)
        if files is not None:
            files.touch(name)
        if files is not None and (parts.unsaved >= SMALLEST or any(map(worn, parts.parts))):
            parts = files.save(name, parts, head.hash)
        index.parts = parts
        return parts

    def _scrubbed(self, parts: Parts, positions: Positions, files: Files | None, name: str, seq: int) -> Parts | None:
        """The parts without entries that another process destroyed, in process memory and in files."""
        gone = np.array(positions, dtype=np.int64)
        if files is None or not any(part.segment.name and len(part.segment.rows_of(gone)) for part in parts.parts):
            return parts.scrubbed(gone)
        files.note(name)  # stays when the scrub fails: then nothing uses the files
        files.scrub(name, positions, seq)
        saved = files.load(name)
        return saved.parts if saved is not None else None

    def _give_up(self, tx: IndexedTx, memory: Memory, index: _Index) -> None:
        """Drop an index whose files are damaged; the next search makes it again from the rows."""
        with index.lock:
            index.parts = None
            if self._files is not None:
                name = self._files.name(memory, tx.log_key())
                self._files.drop(name)
                index.filed = self._files.stamp(name) is None

    def reached(self, memory: Memory) -> tuple[int, int] | None:
        """The log position of a cached index and its last entry position; None when the memory is not cached."""
        with self._lock:
            index = self._held.get(memory)
        parts = index.parts if index is not None else None
        return (parts.seq, parts.last) if parts is not None and parts.seq else None

    def peek(self, tx: IndexedTx, memory: Memory) -> Parts:
        """The existing parts of a memory's index, cached or from files, at a log position up to the transaction's."""
        with self._lock:
            index = self._held.get(memory)
        parts = index.parts if index is not None else None
        if parts is None and self._files is not None:
            saved = self._files.load(self._files.name(memory, tx.log_key()))
            parts = saved.parts if saved is not None and _same_log(tx, saved) else None
        return parts if parts is not None and parts.seq <= tx.head().seq else Parts()

    def note(self, memory: Memory, key: bytes) -> list[str]:
        """Call `Files.note` before entries of a memory are destroyed. Returns the names that have files to scrub.

        There is one name for readable memory and one for cold storage.
        """
        if self._files is None:
            return []
        noted: list[str] = []
        try:
            for one in (memory, cold_memory(memory)):
                name = self._files.name(one, key)
                if self._files.note(name):
                    noted.append(name)
        except BaseException:
            for name in noted:
                self._files.unnote(name)
            raise
        return noted

    def leave(self, name: str) -> None:
        """Leave a note for the process that finds it: see `Files.leave`."""
        if self._files is not None:
            self._files.leave(name)

    def unnote(self, name: str) -> None:
        """Remove a note, because nothing was destroyed."""
        if self._files is not None:
            self._files.unnote(name)

    def scrub(self, name: str, positions: Sequence[int], seq: int) -> None:
        """Remove destroyed entries from files: see `Files.scrub`."""
        if self._files is not None:
            self._files.scrub(name, positions, seq)

    def _count(self, memory: Memory, index: _Index, nbytes: int) -> None:
        """Count the bytes of an index, and drop those searched longest ago while there are too many."""
        with self._lock:
            if self._held.get(memory) is index:
                self._nbytes += nbytes - index.nbytes
                index.nbytes = nbytes
            while (self._nbytes > self._max_bytes and len(self._held) > 1) or len(self._held) > _MOST_HELD:
                _, dropped = self._held.popitem(last=False)
                self._nbytes -= dropped.nbytes


def cold_memory(memory: Memory) -> Memory:
    """The key of the index of a memory's cold storage. No ref has a null character."""
    return memory[0], f"{memory[1]}\0cold"


class PrivateIndexes(IndexCache):
    """The index of a write transaction: the shared index, with the transaction's own writes added.

    Nothing is cached: the rows it reads may still change or be rolled back.
    """

    def __init__(self, shared: IndexCache) -> None:
        super().__init__()
        self._shared = shared

    def _ask(self, tx: IndexedTx, memory: Memory, question: Callable[[Parts], T]) -> T:
        try:
            return question(_advanced(self._shared.peek(tx, memory), tx, None, ""))
        except Damaged:
            return question(_advanced(Parts(), tx, None, ""))


def _by_words(parts: Parts, question: Question, wanted: int, among: npt.NDArray[np.int64] | None) -> list[Passage]:
    return words.best(parts.parts, question, wanted, among) if question else []


def _cosines(near: Meaning | None, lists: Sequence[Sequence[Passage]]) -> dict[tuple[int, int], float | None]:
    """The cosine of each passage found. Passages found by meaning come with theirs; the others are computed."""
    cosines: dict[tuple[int, int], float | None] = {one[:2]: one.score for own in lists[1:] for one in own}
    others = [key for one in lists[0] if (key := one[:2]) not in cosines]
    found = near.cosines(sorted({at for at, _ in others})) if near is not None and others else {}
    for key in others:
        position, number = key
        own = found.get(position, ())
        cosines[key] = own[number] if number < len(own) else None
    return cosines


def _advanced(parts: Parts, tx: IndexedTx, files: Files | None, name: str) -> Parts:
    """The parts with the entries that came and without those that left, up to the transaction's log position."""
    since, after = parts.seq, parts.last
    if since:
        parts = parts.without(tx.index_gone(since=since))
    rows = iter(tx.index_rows(after=after, since=since))
    while chunk := list(islice(rows, LARGEST)):
        if files is not None and len(chunk) >= SMALLEST:
            parts = parts.without([row[0] for row in chunk if row[0] <= after])
            parts = parts.added(files.store(name, build(chunk)))
        else:
            parts = parts.updated(chunk)
    return replace(parts, seq=tx.head().seq)


def _filed(parts: Parts) -> bool:
    return any(part.segment.name for part in parts.parts)


def _same_log(tx: IndexedTx, saved: Saved) -> bool:
    """Whether the log of this store is the one that an index in files was made from."""
    head = tx.head()
    if saved.parts.seq >= head.seq:
        return saved.parts.seq == head.seq and saved.hash == head.hash
    return saved.hash == tx.hash_at(saved.parts.seq)
