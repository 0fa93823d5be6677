"""search and context: find what is known, say why, and pack it for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, Scope, named, speaker, valid_ref
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Asked, Filter, Match
from reverie.memory.indexing import LINES
from reverie.memory.read import ANYTHING
from reverie.search.analysis import near
from reverie.search.analysis import question as words_of
from reverie.search.confidence import WEAK
from reverie.search.context import LeftOut, PackItem, pack
from reverie.search.dates import periods
from reverie.search.explain import Explanation, Filtered
from reverie.search.explain import explain as explained
from reverie.search.languages import ENGLISH, detect
from reverie.search.passages import Passage, passages
from reverie.search.rank import (
    WEIGHTS,
    Candidate,
    Key,
    Neighbours,
    Question,
    Ranked,
    Weights,
    rank,
    worth_widening,
)
from reverie.search.text import comparable
from reverie.services import Services
from reverie.store.contract import ReadTx

Mode = Literal["hybrid", "words", "meaning"]
Include = Literal["superseded"] | None
MAX_HITS = 200
MAX_QUERY = 4096
_CANDIDATES = 60
"""By words, and as many by meaning. More costs time and finds nothing: see `bench/retrieval.py`."""
_WIDEN = 30
"""How many of the best bring their neighbours along."""


class Hit(Struct, frozen=True):
    """A passage that answers, the entry it is from, and why it is where it is."""

    entry: Entry
    score: float
    signals: Mapping[str, float]
    passage: Passage = Passage(0, 0)
    """Which part of the entry: characters `start` to `end` of its content, `number` of `of`."""
    confidence: float = 0.0
    """0 to 1: the measured share of right answers among hits with this much evidence."""
    weak: bool = False
    """More likely noise than an answer. `context` and the tool `recall` leave weak hits out."""
    older: str | None = None
    """The id of a newer hit that says something else about the same matter."""
    superseded_by: str | None = None
    """The id of the entry that replaced this one; only with `include="superseded"`."""

    @property
    def text(self) -> str:
        """The passage itself."""
        return self.entry.content[self.passage.start : self.passage.end].strip()


class SearchResult(Struct, frozen=True):
    """Hits, best first."""

    hits: Sequence[Hit]
    mode: Mode
    degraded: Sequence[str] = ()
    """Why this answer may be worse than usual; empty when nothing is wrong."""
    explanation: Explanation | None = None


class Context(Struct, frozen=True):
    """Memory packed for a prompt, as quoted data."""

    text: str
    tokens: int
    budget: int
    included: Sequence[str]
    shortened: Sequence[str]
    left_out: Sequence[LeftOut]
    degraded: Sequence[str] = ()


class _Candidates(Struct, frozen=True):
    """What a question found: candidates, the entries they are from, and what the ranking needs of their neighbours."""

    question: Question
    candidates: Sequence[Candidate]
    neighbours: Neighbours
    spans: Mapping[Key, tuple[int, int] | None]
    matched: frozenset[int]
    """Positions found by words or meaning, and not only as neighbours."""


class Search:
    """Finding. Reads one snapshot; changes nothing."""

    def __init__(self, parts: Services, weights: Weights = WEIGHTS) -> None:
        self._parts = parts
        self._weights = weights

    def search(
        self,
        actor: Actor,
        ref: str,
        query: str,
        *,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 10,
        mode: Mode = "hybrid",
        explain: bool = False,
        include: Include = None,
        zone: str = "UTC",
    ) -> SearchResult:
        """The passages that best answer `query`, at most one of an entry; of a dream, its lines.

        Hits below the floor are marked `weak`. Dates in the question are read in the time zone `zone`. With
        `include="superseded"` entries that consolidation replaced follow their successors. Word search always works;
        when meaning cannot be searched, or not in full, `degraded` says so.
        """
        actor.require(Right.READ)
        if not query.strip() or len(query) > MAX_QUERY:
            raise Invalid(f"A query is 1 to {MAX_QUERY} characters.", pointer="/query")
        if not 1 <= limit <= MAX_HITS:
            raise Invalid(f"limit is 1 to {MAX_HITS}.", pointer="/limit")
        if mode not in ("hybrid", "words", "meaning"):
            raise Invalid("mode is hybrid, words or meaning.", pointer="/mode")
        if include not in (None, "superseded"):
            raise Invalid("include is superseded, or left out.", pointer="/include")
        if not valid_ref(ref):
            return SearchResult((), mode)
        vector, degraded = self._vector(query, mode)

        def body(tx: ReadTx) -> SearchResult:
            result = self._search(tx, query, vector, degraded, where, limit, mode, explain, zone, spread=False)
            return _with_superseded(tx, result) if include else result

        return self._parts.store.read(Scope(actor.tenant, ref), body)

    def context(
        self,
        actor: Actor,
        ref: str,
        purpose: str,
        *,
        budget: int,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 50,
        zone: str = "UTC",
    ) -> Context:
        """The best passages for a purpose, within `budget` tokens, ready to paste into a prompt as quoted data.

        Weak hits are left out: when nothing answers, the text is empty.
        """
        tokens = self._parts.tokens
        if tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        if not 1 <= budget <= 1_000_000:
            raise Invalid("budget is 1 to 1000000 tokens.", pointer="/budget")
        actor.require(Right.READ)
        if not purpose.strip() or len(purpose) > MAX_QUERY:
            raise Invalid(f"A query is 1 to {MAX_QUERY} characters.", pointer="/query")
        if not 1 <= limit <= MAX_HITS:
            raise Invalid(f"limit is 1 to {MAX_HITS}.", pointer="/limit")
        if not valid_ref(ref):
            return Context("", 0, budget, (), (), ())
        vector, degraded = self._vector(purpose, "hybrid")

        def body(tx: ReadTx) -> SearchResult:
            return self._search(tx, purpose, vector, degraded, where, limit, "hybrid", False, zone, spread=True)

        found = self._parts.store.read(Scope(actor.tenant, ref), body)
        items = _items([hit for hit in found.hits if not hit.weak])
        packed = pack(items, budget=budget, count=tokens.count, purpose=purpose)
        return Context(
            text=packed.text,
            tokens=packed.tokens,
            budget=budget,
            included=packed.included,
            shortened=packed.shortened,
            left_out=packed.left_out,
            degraded=found.degraded,
        )

    def _vector(self, query: str, mode: Mode) -> tuple[bytes | None, list[str]]:
        if mode == "words":
            return None, []
        embedder = self._parts.embedder
        if embedder is None:
            if mode == "meaning":
                raise ReverieError("This host has no embedder: search by words instead.", code="no_embedder")
            return None, ["no_embedder"]
        try:
            return embedder.embed([comparable(query)])[0], []
        except Exception as fault:  # a configured embedder may be down; words still work, and the answer says so
            if mode == "meaning":
                raise ReverieError("The embedder failed: search by words instead.", code="embedder_failed") from fault
            return None, ["embedder_failed"]

    def _search(
        self,
        tx: ReadTx,
        query: str,
        vector: bytes | None,
        degraded: Sequence[str],
        where: Filter,
        limit: int,
        mode: Mode,
        explain: bool,
        zone: str,
        *,
        spread: bool,
    ) -> SearchResult:
        """`spread`: several passages of an entry may be hits."""
        found = self._candidates(tx, query, vector, where, max(_CANDIDATES, limit * 2), mode, zone)
        near_any = vector is None or any(one.dense is not None for one in found.candidates)
        if not near_any and (found.candidates or tx.scan(where, limit=1).items):
            degraded = [*degraded, "vectors_missing"]
        ranked = rank(found.question, found.candidates, neighbours=found.neighbours, weights=self._weights)
        allowed = found.matched
        if where == Filter():
            allowed = frozenset(one.position for one in found.candidates)
        elif beside := {one.position for one in found.candidates} - allowed:
            allowed |= tx.briefs(sorted(beside), where).keys()
        kept = [one for one in ranked if one.key[0] in allowed]
        hits = _hits(tx, kept, found.spans, where, limit, spread=spread)
        if not explain:
            return SearchResult(hits, mode, tuple(degraded))
        outside = dict.fromkeys(one.id for one in found.candidates if one.position not in allowed)
        dropped = [Filtered(entry_id, "next to a match, but outside the filter") for entry_id in outside]
        shown = [(hit.entry.position, hit.passage.number - 1) for hit in hits]
        why = explained(
            found.question, kept, found.candidates, shown=shown, limit=limit, filtered=dropped, degraded=degraded
        )
        return SearchResult(hits, mode, tuple(degraded), why)

    def _candidates(
        self, tx: ReadTx, query: str, vector: bytes | None, where: Filter, pool: int, mode: Mode, zone: str
    ) -> _Candidates:
        """Passages by words and by meaning, and the neighbours of the best of them."""
        words = [near(word, tx.known) for word in words_of(query)] if mode != "meaning" else []
        question = Question(query, words, periods(query, tx.now, zone=zone), _trust(query))
        asked = [Asked(word.terms, word.weight) for word in words]
        by_words = tx.match(asked, where, limit=pool) if asked else []
        by_meaning = tx.nearest(vector, where, limit=pool) if vector is not None else []
        matches = {(match.entry.position, match.number): match for match in (*by_meaning, *by_words)}
        briefs = {match.entry.position: match.entry for match in matches.values()}
        lexical = {(match.entry.position, match.number): match for match in by_words}
        cosines = tx.cosines(vector, list(briefs)) if vector is not None else {}
        candidates = [_candidate(match, lexical.get(key), cosines) for key, match in matches.items()]
        neighbours: Neighbours = {}
        best = worth_widening(question, candidates, _WIDEN, weights=self._weights)
        if best:
            neighbours = tx.around(best, steps=2)
            wanted = sorted({p for pair in neighbours.values() for p in pair if p is not None} - briefs.keys())
            added = tx.briefs(wanted, Filter())
            cosines = tx.cosines(vector, list(added)) if vector is not None else {}
            candidates += [_candidate(Match(brief, 0.0), None, cosines) for brief in added.values()]
        spans = {key: match.span for key, match in matches.items()}
        return _Candidates(question, candidates, neighbours, spans, frozenset(briefs))


def _candidate(match: Match, by_words: Match | None, cosines: Mapping[int, Sequence[float]]) -> Candidate:
    brief, own = match.entry, cosines.get(match.entry.position, ())
    text = brief.content[slice(*match.span)] if match.span else brief.content
    return Candidate(
        id=brief.id,
        position=brief.position,
        created_at=brief.created_at,
        content=text,
        number=match.number,
        lexical=by_words.score if by_words else None,
        dense=own[match.number] if match.number < len(own) else None,
        cover=by_words.cover if by_words else 0.0,
        speaker=named(brief.actor),
        session=brief.session,
        size=len(brief.content),
    )


def _trust(query: str) -> float:
    """How well the built-in vectors know the language of a question."""
    letters = [character for character in query if character.isalpha()]
    if sum(character < "\u0250" for character in letters) * 2 < len(letters):
        return 0.0
    return 1.0 if detect(query) == ENGLISH else 0.5


def _hits(
    tx: ReadTx,
    ranked: Sequence[Ranked],
    spans: Mapping[Key, tuple[int, int] | None],
    where: Filter,
    limit: int,
    *,
    spread: bool,
) -> list[Hit]:
    """The first `limit` hits. Of an entry only its best passage, unless its lines are passages or all are wanted."""
    hits: list[Hit] = []
    seen: set[int] = set()
    at = 0
    while at < len(ranked) and len(hits) < limit:
        part = ranked[at : at + 2 * limit]
        at += len(part)
        entries = tx.at(list(dict.fromkeys(one.key[0] for one in part)), where)
        for one in part:
            entry = entries.get(one.key[0])
            if entry is None or (entry.position in seen and not spread and entry.kind not in LINES):
                continue
            seen.add(entry.position)
            passage = _passage(entry, one.key[1], spans.get(one.key))
            weak = one.confidence < WEAK
            hits.append(Hit(entry, one.score, one.signals, passage, one.confidence, weak, one.older))
            if len(hits) == limit:
                break
    return hits


def _passage(entry: Entry, number: int, span: tuple[int, int] | None) -> Passage:
    if span is None:
        return Passage(0, len(entry.content))
    parts = passages(entry.content, lines=entry.kind in LINES)
    return Passage(*span, number + 1, max(len(parts), number + 1))


def _with_superseded(tx: ReadTx, result: SearchResult) -> SearchResult:
    """The entries that hits replaced, each behind its successor."""
    hits: list[Hit] = []
    for hit in result.hits:
        hits.append(hit)
        for link in tx.links(hit.entry.id, type="supersedes"):
            old = tx.get(link.to_id, where=ANYTHING)
            if old is not None and old.content:
                whole = Passage(0, len(old.content))
                hits.append(
                    Hit(old, hit.score, hit.signals, whole, hit.confidence, hit.weak, superseded_by=hit.entry.id)
                )
    return SearchResult(hits, result.mode, result.degraded, result.explanation)


def _items(hits: Sequence[Hit]) -> list[PackItem]:
    """Passages to pack; what two passages of an entry share is in the first of them only."""
    reached: dict[str, int] = {}
    items = []
    for hit in sorted(hits, key=lambda hit: hit.passage.start):
        start = max(hit.passage.start, reached.get(hit.entry.id, 0))
        reached[hit.entry.id] = max(start, hit.passage.end)
        items.append(
            PackItem(
                id=hit.entry.id,
                content=hit.entry.content[start : hit.passage.end].strip(),
                created_at=hit.entry.created_at,
                source=(speaker(hit.entry.source) or "") + (" (older)" if hit.older else ""),
                score=hit.score,
                position=hit.entry.position,
                start=start,
            )
        )
    return items
