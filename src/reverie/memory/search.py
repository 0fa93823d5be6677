"""search and context: find entries, explain the ranking, and pack them for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reverie.core.actor import Actor, Right
from reverie.core.draft import When
from reverie.core.entry import Entry, Scope, named, speaker, valid_ref
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Brief, Filter, HybridMatch, QueryWord, Vector
from reverie.core.subject import labelled
from reverie.memory.deep import beside, cold_filter, merge, wants_sources, with_lines
from reverie.memory.derivation import DreamLines
from reverie.memory.hits import Context, Hit, Mode, SearchResult, hits_of, with_sources, with_superseded
from reverie.memory.indexing import model_of
from reverie.memory.searches import RecordedSearches
from reverie.memory.times import between, times_in
from reverie.search.alike import WordVectors, vectors_know
from reverie.search.analysis import Word, near
from reverie.search.analysis import question as words_of
from reverie.search.context import Packed, PackItem, pack
from reverie.search.currency import Closeness
from reverie.search.explain import Filtered
from reverie.search.explain import explain as explained
from reverie.search.passages import Headings, said_at
from reverie.search.rank import (
    WEIGHTS,
    Candidate,
    Key,
    Neighbours,
    Question,
    Weights,
    meaning_worth,
    ranked,
    worth_widening,
)
from reverie.search.text import comparable
from reverie.services import Services
from reverie.store.contract import ReadTx, SearchIndex

T = TypeVar("T")
Include = Literal["superseded"] | None
Deep = Literal["auto", "never", "always"]
"""Whether the sources of dreams are searched: when nothing hot surely answers, never, or always."""
MAX_HITS = 200
MAX_QUERY = 4096
_CANDIDATES = 60
"""By words, and as many by meaning. More costs time and finds nothing: see `bench/retrieval.py`."""
_WIDEN = 30
"""Number of the best candidates whose neighbours are added."""


class _Candidates(Struct, frozen=True):
    """The candidates of a question, their entries, and the parts of their neighbours that the ranking needs."""

    question: Question
    candidates: Sequence[Candidate]
    neighbours: Neighbours
    spans: Mapping[Key, tuple[int, int] | None]
    matched: frozenset[int]
    """Positions found by words or meaning, and not only as neighbours."""
    closeness: Closeness | None
    """Compares passages by meaning; None where words are searched alone."""


class Search:
    """Finding. Reads one snapshot; changes nothing."""

    def __init__(self, parts: Services, searches: RecordedSearches | None = None, weights: Weights = WEIGHTS) -> None:
        """`searches` records the questions."""
        self._parts = parts
        self._searches = searches
        self._weights = weights
        self._by_word = getattr(parts.embedder, "by_word", False)
        self._words = WordVectors(parts.embedder.embed) if parts.embedder is not None and self._by_word else None

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
        zone: str | None = None,
        deep: Deep = "auto",
        since: When | None = None,
        until: When | None = None,
    ) -> SearchResult:
        """The passages that best answer `query`, at most one of an entry; of a dream, its lines.

        Hits below the floor are marked `weak`. Unless an original is surely an answer, the sources of dreams are
        searched too; `deep` makes that never or always. Their hits are `cold`, name the dream that holds them and come
        before hits that are clearly less sure, unless a line of the dream says the same.

        Dates in the question, and words as `since` and `until` ("last week"), are read in the time zone `zone`, by
        default that of the tenant's policy. With `include="superseded"`, superseded entries follow their successors.
        Word search always works; when meaning cannot be searched, or not in full, `degraded` says so.
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
        if deep not in ("auto", "never", "always"):
            raise Invalid("deep is auto, never or always.", pointer="/deep")
        if not valid_ref(ref):
            return SearchResult((), mode)
        vector, degraded = self._vector(query, mode)

        def body(tx: ReadTx) -> SearchResult:
            chosen = between(tx, where, since, until, zone, pointer="/filter")
            dreams = DreamLines(tx)
            result = self._search(tx, tx, query, vector, degraded, chosen, limit, mode, explain, zone, spread=False)
            if deep == "always" or (deep == "auto" and wants_sources(result.hits)):
                cold = self._cold_hits(tx, query, vector, chosen, limit, mode, zone, spread=False)
                if cold:
                    hits = merge(tx, dreams, result.hits, cold, chosen, limit, all_=deep == "always")
                    result = replace(result, hits=hits)
            result = replace(result, hits=with_sources(dreams, result.hits))
            return with_superseded(tx, result) if include else result

        result, seq = self._parts.store.read(Scope(actor.tenant, ref), _at_position(body))
        if self._searches is not None and where == Filter() and since is None and until is None:
            self._searches.note(actor, ref, query, seq, result.hits)
        return result

    def context(
        self,
        actor: Actor,
        ref: str,
        purpose: str,
        *,
        budget: int,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 50,
        zone: str | None = None,
        since: When | None = None,
        until: When | None = None,
    ) -> Context:
        """The best passages for a purpose, within `budget` tokens, ready to paste into a prompt as quoted data.

        Weak hits are left out: when nothing answers, the text is empty.
        """
        made, _ = self.contexts(
            actor, ref, purpose, budgets=(budget,), where=where, limit=limit, zone=zone, since=since, until=until
        )
        return made[0]

    def contexts(
        self,
        actor: Actor,
        ref: str,
        purpose: str,
        *,
        budgets: Sequence[int],
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 50,
        zone: str | None = None,
        since: When | None = None,
        until: When | None = None,
        as_of: int | None = None,
    ) -> tuple[Sequence[Context], SearchResult]:
        """Pack contexts for several budgets from one search; also return its result.

        `as_of`: as it would have been at that log position, with what dreams have taken out since. Entries that were
        withdrawn, archived or forgotten since stay out.
        """
        tokens = self._parts.tokens
        if tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        if not all(1 <= budget <= 1_000_000 for budget in budgets):
            raise Invalid("budget is 1 to 1000000 tokens.", pointer="/budget")
        actor.require(Right.READ)
        if not purpose.strip() or len(purpose) > MAX_QUERY:
            raise Invalid(f"A query is 1 to {MAX_QUERY} characters.", pointer="/query")
        if not 1 <= limit <= MAX_HITS:
            raise Invalid(f"limit is 1 to {MAX_HITS}.", pointer="/limit")
        if not valid_ref(ref):
            return [Context("", 0, budget, (), (), ()) for budget in budgets], SearchResult((), "hybrid")
        vector, degraded = self._vector(purpose, "hybrid")

        def body(tx: ReadTx) -> SearchResult:
            chosen = between(tx, where, since, until, zone, pointer="/filter")
            now = self._search(tx, tx, purpose, vector, degraded, chosen, limit, "hybrid", False, zone, spread=True)
            then = self._cold_hits(tx, purpose, vector, chosen, limit, "hybrid", zone, spread=True)
            if as_of is None:
                return replace(now, hits=with_lines(tx, now.hits, then, chosen)) if then else now
            hits = [hit for hit in (*now.hits, *then) if _was_readable(hit.entry, as_of)]
            return replace(now, hits=sorted(hits, key=lambda hit: -hit.score)[:limit])

        found, seq = self._parts.store.read(Scope(actor.tenant, ref), _at_position(body))
        if self._searches is not None and where == Filter() and since is None and until is None and as_of is None:
            self._searches.note(actor, ref, purpose, seq, found.hits)
        strong = [hit for hit in found.hits if not hit.weak]
        packed = [_pack(strong, budget, tokens.count) for budget in budgets]
        made = [
            Context(
                text=one.text,
                tokens=one.tokens,
                budget=budget,
                included=one.included,
                shortened=one.shortened,
                left_out=one.left_out,
                degraded=found.degraded,
            )
            for one, budget in zip(packed, budgets, strict=True)
        ]
        return made, found

    def _vector(self, query: str, mode: Mode) -> tuple[Vector | None, list[str]]:
        if mode == "words":
            return None, []
        embedder = self._parts.embedder
        if embedder is None:
            if mode == "meaning":
                raise ReverieError("This host has no embedder: search by words instead.", code="no_embedder")
            return None, ["no_embedder"]
        try:
            asked = comparable(query) if self._by_word else query  # a model reads a question as a whole
            return (model_of(embedder), embedder.embed([asked])[0]), []
        except Exception as fault:  # a configured embedder may be down; words still work, and the answer says so
            if mode == "meaning":
                raise ReverieError("The embedder failed: search by words instead.", code="embedder_failed") from fault
            return None, ["embedder_failed"]

    def _cold_hits(
        self,
        tx: ReadTx,
        query: str,
        vector: Vector | None,
        where: Filter,
        limit: int,
        mode: Mode,
        zone: str | None,
        *,
        spread: bool,
    ) -> Sequence[Hit]:
        """Hits among the sources of dreams."""
        index = tx.cold_index()
        if not len(index):
            return ()
        where = cold_filter(where)
        return self._search(tx, index, query, vector, (), where, limit, mode, False, zone, spread=spread).hits

    def _search(
        self,
        tx: ReadTx,
        index: SearchIndex,
        query: str,
        vector: Vector | None,
        degraded: Sequence[str],
        where: Filter,
        limit: int,
        mode: Mode,
        explain: bool,
        zone: str | None,
        *,
        spread: bool,
    ) -> SearchResult:
        """`spread`: several passages of an entry may be hits."""
        found = self._candidates(tx, index, query, vector, where, max(_CANDIDATES, limit * 2), mode, zone)
        near_any = vector is None or any(one.dense is not None for one in found.candidates)
        if not near_any and index is tx and (found.candidates or tx.scan(where, limit=1).items):
            degraded = [*degraded, "vectors_missing"]
        allowed = None if where == Filter() else found.matched
        if allowed is not None and (beside := {one.position for one in found.candidates} - allowed):
            allowed |= tx.briefs(sorted(beside), where).keys()
        order = ranked(
            found.question,
            found.candidates,
            neighbours=found.neighbours,
            weights=self._weights,
            allowed=allowed,
            closeness=found.closeness,
        )
        kept = list(order) if explain else ()
        hits = hits_of(tx, iter(kept) if explain else order, found.spans, where, limit, spread=spread)
        if not explain:
            return SearchResult(hits, mode, tuple(degraded))
        outside = dict.fromkeys(
            one.id for one in found.candidates if allowed is not None and one.position not in allowed
        )
        dropped = [Filtered(entry_id, "next to a match, but outside the filter") for entry_id in outside]
        shown = [(hit.entry.position, hit.passage.number - 1) for hit in hits]
        why = explained(
            found.question, kept, found.candidates, shown=shown, limit=limit, filtered=dropped, degraded=degraded
        )
        return SearchResult(hits, mode, tuple(degraded), why)

    def _candidates(
        self,
        tx: ReadTx,
        index: SearchIndex,
        query: str,
        vector: Vector | None,
        where: Filter,
        pool: int,
        mode: Mode,
        zone: str | None,
    ) -> _Candidates:
        """Passages by words and by meaning, and the readable neighbours of the best of them."""
        words = near(words_of(query), index.known) if mode != "meaning" else []
        embedder = self._parts.embedder
        known = vectors_know(query)
        trust = 1.0 if getattr(embedder, "multilingual", False) else known
        counts = float(getattr(embedder, "weight", 1.0))
        named_times, rest = times_in(tx, query, zone)
        dated = _date_share(words, rest) if named_times else 0.0
        question = Question(query, words, named_times, trust, counts, dated, known=known)
        asked = [QueryWord(word.terms, word.weight) for word in words]
        worth = meaning_worth(question, self._weights)
        matches = index.find(asked, vector, where, limit=pool, meaning=worth, ahead=_WIDEN)
        if matches:
            question = replace(question, among=matches[0].among)
        briefs = {match.entry.position: match.entry for match in matches}
        candidates = _passages(matches)
        if index is tx and (then := _made_then(tx, question, where, pool // 2) - briefs.keys()):
            found = tx.briefs(sorted(then), where)
            briefs |= found
            candidates += _more(tx, found, vector)
        neighbours: Neighbours = {}
        best = worth_widening(question, candidates, _WIDEN, weights=self._weights)
        if best and index is tx:
            neighbours = tx.around(best, steps=2)
            wanted = sorted({p for pair in neighbours.values() for p in pair if p is not None} - briefs.keys())
            candidates += _more(tx, tx.briefs(wanted, Filter()), vector)
        closeness: Closeness | None = None
        if self._words is not None and vector is not None and mode == "hybrid" and known:
            candidates = self._words.read(question, candidates, self._weights)
            closeness = self._words.closeness
        spans = {(match.entry.position, match.number): match.span for match in matches}
        return _Candidates(question, candidates, neighbours, spans, frozenset(briefs), closeness)


def _at_position(body: Callable[[ReadTx], T]) -> Callable[[ReadTx], tuple[T, int]]:
    """The result of `body` and its log position. Marked: what a search needs comes with its snapshot."""

    def look(tx: ReadTx) -> tuple[T, int]:
        return body(tx), tx.head().seq

    look.searches = True  # type: ignore[attr-defined]
    return look


def _more(tx: ReadTx, briefs: Mapping[int, Brief], vector: Vector | None) -> list[Candidate]:
    """Entries that were not found by words or meaning, by their first passage."""
    cosines = tx.cosines(vector, list(briefs)) if vector is not None else {}
    return _passages(
        [
            HybridMatch(brief, 0, None, None, 0.0, next(iter(cosines.get(position, ())), None))
            for position, brief in briefs.items()
        ]
    )


def _passages(matches: Sequence[HybridMatch]) -> list[Candidate]:
    """Matches as they are ranked."""
    speakers = {actor: named(actor) for actor in {match.entry.actor for match in matches}}
    headings: dict[int, Headings] = {}
    found = []
    for match in matches:
        brief, span = match.entry, match.span
        content, created_at = brief.content, brief.created_at
        if span and brief.position not in headings:
            headings[brief.position] = Headings(content)
        found.append(
            Candidate(
                brief.id,
                brief.position,
                headings[brief.position].said_at(span[0], created_at) if span else created_at,
                content[span[0] : span[1]] if span else content,
                match.number,
                match.score,
                match.cosine,
                match.cover,
                speakers[brief.actor] or brief.role,
                brief.session,
                brief.subject,
                len(content),
                role=brief.role or speakers[brief.actor],
            )
        )
    return found


def _was_readable(entry: Entry, position: int) -> bool:
    """Whether an entry was readable at a log position, restored entries as if they had never left."""
    return entry.born_seq <= position and (entry.gone_seq is None or entry.gone_seq > position)


def _date_share(words: Sequence[Word], rest: str) -> float:
    """The share of a question's words that name its times; `rest` is the question without them."""
    kept = {word.text for word in words_of(rest)} if rest.strip() else set()
    whole = sum(word.weight for word in words)
    return sum(word.weight for word in words if word.text not in kept) / whole if whole else 1.0


def _made_then(tx: ReadTx, question: Question, where: Filter, limit: int) -> set[int]:
    """Return the positions of the newest entries made at the times that a question names, regardless of their words."""
    found: set[int] = set()
    for span in filter(None, (period.span for period in question.periods)):
        since, until = max(span[0], where.since or 0), min(span[1], where.until or span[1])
        if since < until:
            found |= {one.position for one in tx.scan(replace(where, since=since, until=until), limit=limit).items}
    return found


def _pack(hits: Sequence[Hit], budget: int, count: Callable[[str], int]) -> Packed:
    """Hits as a prompt; where all of them fit, with the neighbouring lines of dreams."""
    packed = pack(_items(hits), budget=budget, count=count)
    whole = not packed.shortened and all(one.reason != "over budget" for one in packed.left_out)
    more = beside(hits, (budget - packed.tokens) * 9 // 10, count) if whole else ()
    return pack(_items([*hits, *more]), budget=budget, count=count) if more else packed


def _items(hits: Sequence[Hit]) -> list[PackItem]:
    """Passages to pack; what two passages of an entry share is in the first of them only."""
    reached: dict[str, int] = {}
    items = []
    for hit in sorted(hits, key=lambda hit: hit.passage.start):
        start = max(hit.passage.start, reached.get(hit.entry.id, 0))
        reached[hit.entry.id] = max(start, hit.passage.end)
        content = hit.entry.content[start : hit.passage.end].strip()
        label = labelled(speaker(hit.entry.source), hit.entry.subject, content)
        items.append(
            PackItem(
                id=hit.entry.id,
                content=content,
                created_at=said_at(hit.entry.content, start, hit.entry.created_at),
                source=(label or "") + (" (older)" if hit.older else ""),
                score=hit.score,
                position=hit.entry.position,
                start=start,
            )
        )
    return items
