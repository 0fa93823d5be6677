"""The segments of one memory at a log position, each with the rows that left since it was made.

Everything here is immutable: a change makes a new list. So any number of threads search without waiting for each other,
and a write transaction adds what it wrote to the shared segments for itself alone.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.core.lazy import np
from reverie.index.segment import Ints, Rows, Segment, build, merged

if TYPE_CHECKING:
    import numpy.typing as npt

_RATIO = 4
"""Two segments in memory are merged when the older has at most this many times the rows of the newer."""
LARGEST = 1 << 17
"""Approximate limit of the passages in a segment."""
_LARGE = 1 << 18
"""Passages in files above which a process unmaps pages after a search."""
_MAPPED = 128 << 20
"""Bytes of files that a process keeps mapped. Mapping postings again takes longer than reading them, so they stay until
then. The process is asked, since kernels map up to a hundred times what is read."""
_SIZES = Path("/proc/self/statm")


def _mapped() -> int:
    """Bytes of files that this process has mapped; where the system does not say, more than it may keep."""
    try:
        return int(_SIZES.read_bytes().split()[2]) * mmap.PAGESIZE
    except OSError:
        return _MAPPED + 1


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment, and its rows that are out of use."""

    segment: Segment
    dead: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def live(self) -> int:
        """Passages in use."""
        return len(self.segment.positions) - len(self.dead)

    @property
    def total(self) -> int:
        """Words of the passages in use."""
        if not len(self.dead):
            return self.segment.total
        self.segment.check("lengths")
        return self.segment.total - int(self.segment.lengths[self.dead].sum(dtype=np.int64))

    def without(self, positions: npt.NDArray[np.int64]) -> Part:
        """This part without the passages of these positions."""
        rows = self.segment.rows_of(positions)
        if not len(rows):
            return self
        dead = np.union1d(self.dead, rows).astype(np.int32)
        if len(dead) == len(self.dead):
            return self
        if self.segment.name is None and len(dead) * 2 > len(self.segment):  # more rows are out of use than in use
            return Part(merged([(self.segment, dead)]))
        return Part(self.segment, dead)


@dataclass(frozen=True, slots=True)
class Parts:
    """All segments of a memory. `seq`: their log position; `last`: the highest position of an entry."""

    parts: Sequence[Part] = ()
    seq: int = 0
    last: int = 0
    stamp: object = None
    """Stamp of the manifest that lists the segments in files; None when there was none."""
    listed: frozenset[str] = frozenset()
    """Names of the segments in that manifest."""

    @property
    def nbytes(self) -> int:
        """Bytes of the process's own memory."""
        return sum(part.segment.nbytes for part in self.parts)

    @property
    def size(self) -> int:
        """Passages in use."""
        return sum(part.live for part in self.parts)

    @property
    def unsaved(self) -> int:
        """Passages of segments that no manifest lists."""
        return sum(len(part.segment) for part in self.parts if part.segment.name not in self.listed)

    def rest(self) -> None:
        """After a search of a large memory: unmap the vectors, and the postings when much is mapped."""
        filed = [(part.live, part.segment.seen) for part in self.parts if part.segment.seen is not None]
        if sum([live for live, _ in filed]) < _LARGE:
            return
        for _, seen in filed:
            seen.drop_vectors()
        if _mapped() > _MAPPED:
            for _, seen in filed:
                seen.drop_postings()

    def scrubbed(self, positions: npt.NDArray[np.int64]) -> Parts:
        """The parts, with nothing left of these entries in segments held in process memory."""
        parts = []
        for part in self.parts:
            rows = part.segment.rows_of(positions)
            if len(rows) and part.segment.name is None:
                part = Part(merged([(part.segment, np.union1d(part.dead, rows).astype(np.int32))]))
            parts.append(part)
        return replace(self, parts=tuple(part for part in parts if part.live or part.segment.name))

    def without(self, positions: Iterable[int]) -> Parts:
        """The parts without these entries."""
        gone = sorted(set(positions))  # np.unique imports a module of its own: 15 ms of a process's first search
        if not gone:
            return self
        left = np.array(gone, dtype=np.int64)
        parts = [part.without(left) for part in self.parts]
        return replace(self, parts=tuple(part for part in parts if part.live or part.segment.name))

    def added(self, segment: Segment) -> Parts:
        """The parts with one more segment, of entries that no other segment has."""
        if not len(segment):
            return self
        parts = [*self.parts, Part(segment)]
        while len(parts) > 1 and _of_similar_size(parts[-2], parts[-1]):
            newer, older = parts.pop(), parts.pop()
            joined = merged([(older.segment, older.dead), (newer.segment, newer.dead)])
            if len(joined):
                parts.append(Part(joined))
        return replace(self, parts=tuple(parts), last=max(self.last, int(segment.positions[-1])))

    def updated(self, rows: Rows) -> Parts:
        """The parts with these entries, which replace those at the same positions."""
        if not rows:
            return self
        again = [row[0] for row in rows if row[0] <= self.last]
        return self.without(again).added(build(rows))


def _of_similar_size(older: Part, newer: Part) -> bool:
    if older.segment.name or newer.segment.name:
        return False
    size = len(older.segment) + len(newer.segment)
    return size <= LARGEST and len(older.segment) <= _RATIO * len(newer.segment)
