"""A transaction over a plain dictionary, for the tests of the index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reverie.core.query import Brief, Filter, Head
from reverie.index.cache import Positions, Promising
from reverie.index.postings import pack
from reverie.index.segment import Row

KEY = b"k" * 32
MEMORY = (1, "notes")


class Rows:
    """A transaction over a plain dictionary that counts what is read."""

    def __init__(self) -> None:
        self.seq = 0
        self.rows: dict[int, tuple[int, bool, bytes, bytes]] = {}
        self.left: dict[int, int] = {}
        self.scrubbed: dict[int, int] = {}
        self.promised: list[list[int]] = []
        self.read: list[int] = []
        self.looked_up: list[int] = []
        self.asked: list[Filter] = []
        self.tagged: set[int] = set()
        self.now = 0
        self.fails = False

    def put(self, position: int, *terms: str, vector: bytes = bytes([1, 2])) -> None:
        self.seq += 1
        self.rows[position] = (self.seq, position in self.rows, pack(terms, KEY), vector)

    def take(self, position: int) -> None:
        self.seq += 1
        del self.rows[position]
        self.left[position] = self.seq

    def head(self) -> Head:
        return Head(self.seq, 0, f"h{self.seq}", 0, 0)

    def log_key(self) -> bytes:
        return KEY

    def hash_at(self, seq: int) -> str:
        return f"h{seq}"

    def index_rows(self, *, after: int, since: int) -> Iterable[Row]:
        found = [
            (n, words, vector, "m")
            for n, (seq, again, words, vector) in self.rows.items()
            if n > after or (again and seq > since)
        ]
        self.read.append(len(found))
        for number, row in enumerate(found):
            if self.fails and number == len(found) - 1:
                raise KeyboardInterrupt
            yield row

    def index_gone(self, *, since: int) -> Iterable[int]:
        return [n for n, seq in self.left.items() if seq > since]

    def index_scrubbed(self, *, since: int) -> Sequence[int]:
        return [n for n, seq in self.scrubbed.items() if seq > since]

    def foremost(
        self, lists: Sequence[Positions], where: Filter, *, limit: int, promising: Promising | None = None
    ) -> Mapping[int, Brief]:
        found = [[n for n in own if self.matches(n, where)][:limit] for own in lists]
        if promising is not None:
            self.promised.append(list(promising()))
        self.looked_up.append(sum(map(len, found)))
        return {n: Brief(n, f"e{n}", 0, "", "ada", None) for own in found for n in own}

    def passing(self, where: Filter) -> list[int]:
        self.asked.append(where)
        return [n for n in self.rows if self.matches(n, where)]

    def matches(self, position: int, where: Filter) -> bool:
        return position in self.rows and (not where.tags or position in self.tagged)
