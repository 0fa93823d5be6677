"""The results of a search: hits with their passages, and memory packed for a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, overload

from msgspec import Struct
from msgspec.structs import replace

from reverie.core.entry import Entry, EntryState, brief
from reverie.core.query import Filter
from reverie.memory.derivation import DreamLines
from reverie.memory.indexing import LINES
from reverie.search.confidence import WEAK
from reverie.search.context import LeftOut
from reverie.search.explain import Explanation
from reverie.search.passages import Passage, passages
from reverie.search.rank import Key, Ranked
from reverie.store.contract import ReadTx

Mode = Literal["hybrid", "words", "meaning"]
_SUPERSEDED = Filter(states=frozenset({EntryState.SUPERSEDED}), archived=None, gone=True)
"""Entries that another one replaced. Those that expired, or were deleted after that, are not among them."""


class Hit(Struct, frozen=True):
    """A passage that answers, its entry, and the reasons for its rank."""

    entry: Entry
    score: float
    signals: Mapping[str, float]
    passage: Passage = Passage(0, 0)
    """Passage of the entry: characters `start` to `end` of its content, `number` of `of`."""
    confidence: float = 0.0
    """0 to 1: the measured share of right answers among hits with this much evidence."""
    weak: bool = False
    """More likely noise than an answer. `context` and the tool `recall` leave weak hits out."""
    older: str | None = None
    """The id of a newer hit that says something else about the same matter."""
    superseded_by: str | None = None
    """The id of the entry that replaced this one; only with `include="superseded"`."""
    cold: bool = False
    """Whether it is in cold storage, as a source of a dream."""
    dream: str | None = None
    """Of a cold hit: the id of the readable dream that holds it."""
    sources: Sequence[str] = ()
    """Of a line of a dream: the ids of the entries it was made from. `why` opens them."""

    @property
    def text(self) -> str:
        """The passage itself."""
        return self.entry.content[self.passage.start : self.passage.end].strip()

    def __repr__(self) -> str:
        marks = [name for name in ("weak", "older", "cold") if getattr(self, name)]
        return f"<Hit {self.confidence:.2f} {' '.join([*marks, repr(brief(self.text or self.entry.content))])}>"


class SearchResult(Struct, frozen=True):
    """Hits, best first: a sequence of them."""

    hits: Sequence[Hit]
    mode: Mode
    degraded: Sequence[str] = ()
    """Reasons why this answer may be worse than usual; empty when nothing is wrong."""
    explanation: Explanation | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Hit]: ...

    def __getitem__(self, place: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[place]

    def count(self, hit: Hit) -> int:
        """Count the occurrences of a hit."""
        return self.hits.count(hit)

    def index(self, hit: Hit) -> int:
        """The place of a hit."""
        return self.hits.index(hit)

    def __repr__(self) -> str:
        shown = [repr(hit) for hit in self.hits[:3]] + ["…"] * (len(self.hits) > 3)
        return f"<SearchResult of {len(self.hits)}: [{', '.join(shown)}]>"


Sequence.register(SearchResult)


class Context(Struct, frozen=True):
    """Memory packed for a prompt, as quoted data."""

    text: str
    tokens: int
    budget: int
    included: Sequence[str]
    shortened: Sequence[str]
    left_out: Sequence[LeftOut]
    degraded: Sequence[str] = ()


def hits_of(
    tx: ReadTx,
    order: Iterator[Ranked],
    spans: Mapping[Key, tuple[int, int] | None],
    where: Filter,
    limit: int,
    *,
    spread: bool,
) -> list[Hit]:
    """The first `limit` hits. Of an entry only its best passage, unless its lines are passages or all are wanted."""
    hits: list[Hit] = []
    seen: set[int] = set()
    sizes: dict[int, int] = {}
    while len(hits) < limit and (part := list(islice(order, limit + 2))):
        entries = tx.at(list(dict.fromkeys(one.key[0] for one in part)), where)
        for one in part:
            entry = entries.get(one.key[0])
            if entry is None or (entry.position in seen and not spread and entry.kind not in LINES):
                continue
            seen.add(entry.position)
            passage = _passage(entry, one.key[1], spans.get(one.key), sizes)
            weak = one.confidence < WEAK
            hits.append(Hit(entry, one.score, one.signals, passage, one.confidence, weak, one.older))
            if len(hits) == limit:
                break
    return hits


def _passage(entry: Entry, number: int, span: tuple[int, int] | None, sizes: dict[int, int]) -> Passage:
    """A passage of an entry. `sizes`: the number of passages by position, of entries met before."""
    if span is None:
        return Passage(0, len(entry.content))
    if entry.position not in sizes:
        sizes[entry.position] = len(passages(entry.content, lines=entry.kind in LINES))
    return Passage(*span, number + 1, max(sizes[entry.position], number + 1))


def with_sources(dreams: DreamLines, hits: Sequence[Hit]) -> list[Hit]:
    """Hits on lines of dreams with the sources of their line."""
    return [
        replace(hit, sources=dreams.sources(hit.entry, hit.passage))
        if hit.entry.kind in LINES and not hit.cold
        else hit
        for hit in hits
    ]


def with_superseded(tx: ReadTx, result: SearchResult) -> SearchResult:
    """The result with the entries that its hits superseded, each behind its successor."""
    hits: list[Hit] = []
    for hit in result.hits:
        hits.append(hit)
        for link in tx.links(hit.entry.id, type="supersedes"):
            old = tx.get(link.to_id, where=_SUPERSEDED)
            if old is not None:
                whole = Passage(0, len(old.content))
                hits.append(
                    Hit(old, hit.score, hit.signals, whole, hit.confidence, hit.weak, superseded_by=hit.entry.id)
                )
    return SearchResult(hits, result.mode, result.degraded, result.explanation)
