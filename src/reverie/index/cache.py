"""What memories are found by: their words and their vectors, as segments in files and in memory.

The rows in the store are the truth. An index is brought up to date from them at the log position of the transaction
that searches: what left since is taken out, what came or was indexed again is put in. It may then be newer than the
snapshot of another reader, so everything found is looked up in the snapshot before it is shown.

A memory of some thousand passages is in files (see files.py), which a new process maps instead of reading rows; only
what came since they were written is held in memory. Searches of one memory do not wait for each other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from reverie.core.lazy import np
from reverie.core.query import Brief, Filter, Head, Match
from reverie.index import vectors, words
from reverie.index.files import SMALLEST, Files, Saved
from reverie.index.parts import LARGEST, Parts
from reverie.index.postings import Question
from reverie.index.segment import Damaged, build
from reverie.index.topk import Found as Passage

if TYPE_CHECKING:
    import numpy.typing as npt

_UNIT = 127.0 * 127.0
"""The product of a vector with itself: vectors rest with this length."""
_WIDER = 4
"""How many times more are looked at when too few of the best match the filter."""
_RARE = _WIDER**2
"""When fewer than one in so many of the best match, the store is asked for all that do and only those are ranked.

That takes about as long as to rank and look up twice more, which would not do.
"""
_MOST_HELD = 1024

T = TypeVar("T")
Memory = tuple[int, str]
"""A tenant's number and a ref."""
Found = Iterable[tuple[int, bytes | None, bytes | None]]
"""(position, words, vector)."""
Find: TypeAlias = "Callable[[int, npt.NDArray[np.int64] | None], list[Passage]]"
"""So many of the best, among these positions or all."""


class IndexedTx(Protocol):
    """What an index asks of a read transaction."""

    now: int
    """Expiry is judged by it."""

    def head(self) -> Head:
        """The tip of the tenant's log."""

    def log_key(self) -> bytes:
        """The secret of the tenant, under which the files of its memories are named."""

    def hash_at(self, seq: int) -> str:
        """The hash of the log at a position; empty when it is not there."""

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
        self.parts: Parts | None = None
        self.filed = True
        """Whether its files may be used; not after they were found damaged and could not be removed."""


class IndexCache:
    """The memories searched last, up to a number of bytes. `files`: where segments are kept."""

    def __init__(self, max_bytes: int = 512 * 2**20, files: Files | None = None) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._files = files
        self._held: OrderedDict[Memory, _Index] = OrderedDict()
        self._passed: tuple[object, npt.NDArray[np.int64]] | None = None
        """What was asked for last, in which snapshot, and the positions that matched."""

    def match(self, tx: IndexedTx, memory: Memory, question: Question, where: Filter, limit: int) -> list[Match]:
        """The best passages by any of these words."""

        def by_words(parts: Parts, wanted: int, among: npt.NDArray[np.int64] | None) -> list[Passage]:
            found = words.best(parts.parts, question, wanted, among)
            parts.rest()
            return found

        return self._ask(
            tx,
            memory,
            lambda parts: self._best(tx, memory, where, limit, lambda wanted, among: by_words(parts, wanted, among)),
        )

    def nearest(self, tx: IndexedTx, memory: Memory, vector: bytes, where: Filter, limit: int) -> list[Match]:
        """The best passages by cosine."""

        def find(parts: Parts, wanted: int, among: npt.NDArray[np.int64] | None) -> list[Passage]:
            found = vectors.best(parts.parts, vector, wanted, among)
            parts.rest()
            return [one._replace(score=one.score / _UNIT) for one in found]

        return self._ask(
            tx,
            memory,
            lambda parts: self._best(tx, memory, where, limit, lambda wanted, among: find(parts, wanted, among)),
        )

    def cosines(
        self, tx: IndexedTx, memory: Memory, vector: bytes, positions: Sequence[int]
    ) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of those that have vectors of this length."""
        asked = np.array(positions, dtype=np.int64)
        found = self._ask(tx, memory, lambda parts: vectors.products(parts.parts, vector, asked))
        return {position: [product / _UNIT for product in own] for position, own in found.items()}

    def known(self, tx: IndexedTx, memory: Memory, asked: Sequence[int]) -> list[bool]:
        """Which of these words the memory has."""
        return self._ask(tx, memory, lambda parts: words.known(parts.parts, asked))

    def _best(self, tx: IndexedTx, memory: Memory, where: Filter, limit: int, find: Find) -> list[Match]:
        """Most filters leave most entries, so the index alone finds the best and only those are looked up.

        When few of them match, the store says which entries do, and the index finds the best among those.
        """
        among: npt.NDArray[np.int64] | None = None
        wanted = limit if where == Filter() else limit * _WIDER
        briefs: dict[int, Brief] = {}
        kept: list[Match] = []
        looked = 0
        while True:
            found = find(wanted, among)
            while looked < len(found):
                # as many as will do if those that follow match as often as those before
                step = (limit - len(kept)) * looked * 5 // (4 * (len(kept) + 1)) + 1 if looked else limit
                part = found[looked : looked + step]
                looked += len(part)
                briefs |= tx.briefs(list(dict.fromkeys(one.position for one in part)), where)
                kept += [
                    Match(briefs[one.position], one.score, one.number, one.span, one.cover)
                    for one in part
                    if one.position in briefs
                ]
                if len(kept) >= limit:
                    return kept[:limit]
                if among is None and (len(kept) + 1) * _RARE < looked:
                    break
            else:
                if len(found) < wanted:
                    return kept
                wanted *= _WIDER
                continue
            among, looked, wanted, kept = self._passing(tx, memory, where), 0, limit, []

    def _passing(self, tx: IndexedTx, memory: Memory, where: Filter) -> npt.NDArray[np.int64]:
        """A search asks for words and for meaning in one snapshot: the store is asked once."""
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
                    self._evict()
                return question(parts)
            except Damaged:
                self._give_up(tx, memory, index)

    def _bring_up(self, tx: IndexedTx, memory: Memory, index: _Index) -> Parts:
        """As new as the transaction's snapshot."""
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
        parts = _advanced(parts or Parts(), tx, files, name)
        if files is not None and (parts.unsaved >= SMALLEST or (parts.stamp is None and _filed(parts))):
            parts = files.save(name, parts, head.hash)
        index.parts = parts
        return parts

    def _give_up(self, tx: IndexedTx, memory: Memory, index: _Index) -> None:
        """Files were damaged: the index is made again from the rows."""
        with index.lock:
            index.parts = None
            if self._files is not None:
                self._files.drop(self._files.name(memory, tx.log_key()))
                index.filed = self._files.writable

    def tend(self, tx: IndexedTx, memory: Memory) -> None:
        """Bring the files of a memory up to date and put them in order. Small memories have none."""
        if self._files is None or not self._files.writable:
            return
        parts = self._ask(tx, memory, lambda parts: parts)
        if parts.stamp is not None or parts.unsaved >= SMALLEST:
            name = self._files.name(memory, tx.log_key())
            with self._lock:
                index = self._held.setdefault(memory, _Index())
            with index.lock:
                if index.parts is parts and parts.seq == tx.head().seq:
                    index.parts = self._files.save(name, parts, tx.head().hash, thorough=True)

    def peek(self, tx: IndexedTx, memory: Memory) -> Parts:
        """What is there of a memory, from here or from files, at whatever log position up to the transaction's."""
        with self._lock:
            index = self._held.get(memory)
        parts = index.parts if index is not None else None
        if parts is None and self._files is not None:
            saved = self._files.load(self._files.name(memory, tx.log_key()))
            parts = saved.parts if saved is not None and _same_log(tx, saved) else None
        return parts if parts is not None and parts.seq <= tx.head().seq else Parts()

    def note(self, memory: Memory, key: bytes) -> str | None:
        """Before entries of a memory are destroyed: see `Files.note`. The name of its files, if it has some."""
        if self._files is None:
            return None
        name = self._files.name(memory, key)
        return name if self._files.note(name) else None

    def unnote(self, name: str) -> None:
        """Nothing was destroyed."""
        if self._files is not None:
            self._files.unnote(name)

    def scrub(self, name: str, positions: Sequence[int], seq: int) -> None:
        """After entries were destroyed: leave nothing of them in files."""
        if self._files is not None:
            self._files.scrub(name, positions, seq)

    def drop(self, memory: Memory) -> None:
        """Forget an index; it is made again when asked for."""
        with self._lock:
            self._held.pop(memory, None)

    def _evict(self) -> None:
        with self._lock:
            held = {memory: index.parts.nbytes if index.parts else 0 for memory, index in self._held.items()}
            total = sum(held.values())
            while (total > self._max_bytes and len(self._held) > 1) or len(self._held) > _MOST_HELD:
                memory, _ = self._held.popitem(last=False)
                total -= held[memory]


class PrivateIndexes(IndexCache):
    """What a write transaction searches: what is shared, and on top of it what the transaction wrote.

    Nothing is held: what it reads may yet change, and be undone.
    """

    def __init__(self, shared: IndexCache) -> None:
        super().__init__()
        self._shared = shared

    def _ask(self, tx: IndexedTx, memory: Memory, question: Callable[[Parts], T]) -> T:
        try:
            return question(_advanced(self._shared.peek(tx, memory), tx, None, ""))
        except Damaged:
            return question(_advanced(Parts(), tx, None, ""))


def _advanced(parts: Parts, tx: IndexedTx, files: Files | None, name: str) -> Parts:
    """Parts with what came and left up to the transaction's log position."""
    since, after = parts.seq, parts.last
    if since:
        parts = parts.without(tx.index_gone(since=since))
    rows = iter(tx.index_rows(after=after, since=since))
    while chunk := list(islice(rows, LARGEST)):
        if files is not None and len(chunk) >= SMALLEST:
            parts = parts.without([position for position, _, _ in chunk if position <= after])
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
