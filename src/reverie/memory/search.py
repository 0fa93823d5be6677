"""search and context: find what is known, say why, and pack it for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, Scope, named, speaker, valid_ref
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Brief, Filter, Match
from reverie.search.analysis import query_terms
from reverie.search.context import LeftOut, PackItem, pack
from reverie.search.explain import Explanation, Filtered
from reverie.search.explain import explain as explained
from reverie.search.rank import Candidate, rank, worth_widening
from reverie.search.text import comparable
from reverie.services import Services
from reverie.store.contract import ReadTx

Mode = Literal["hybrid", "words", "meaning"]
MAX_HITS = 200
MAX_QUERY = 4096
_CANDIDATES = 60
"""By words, and as many by meaning. More costs time and finds nothing: see `bench/retrieval.py`."""
_WIDEN = 30
"""How many of the best bring their neighbours along."""


class Hit(Struct, frozen=True):
    """An entry that answers, and why it stands where it stands."""

    entry: Entry
    score: float
    signals: Mapping[str, float]


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


class Search:
    """Finding. Reads one snapshot; changes nothing."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts

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
    ) -> SearchResult:
        """The entries that best answer `query`: by words, by meaning, and by what stands beside them.

        Word search always works. When meaning cannot be searched, or not in full, `degraded` says so.
        """
        actor.require(Right.READ)
        if not query.strip() or len(query) > MAX_QUERY:
            raise Invalid(f"A query is 1 to {MAX_QUERY} characters.", pointer="/query")
        if not 1 <= limit <= MAX_HITS:
            raise Invalid(f"limit is 1 to {MAX_HITS}.", pointer="/limit")
        if mode not in ("hybrid", "words", "meaning"):
            raise Invalid("mode is hybrid, words or meaning.", pointer="/mode")
        if not valid_ref(ref):
            return SearchResult((), mode)
        vector, degraded = self._vector(query, mode)
        asked = query_terms(query) if mode != "meaning" else []

        def body(tx: ReadTx) -> SearchResult:
            return self._search(tx, query, asked, vector, degraded, where, limit, mode, explain)

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
    ) -> Context:
        """The best memory for a purpose, within `budget` tokens, ready to paste into a prompt as quoted data."""
        tokens = self._parts.tokens
        if tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        if not 1 <= budget <= 1_000_000:
            raise Invalid("budget is 1 to 1000000 tokens.", pointer="/budget")
        found = self.search(actor, ref, purpose, where=where, limit=min(limit, MAX_HITS))
        items = [
            PackItem(
                id=hit.entry.id,
                content=hit.entry.content,
                created_at=hit.entry.created_at,
                source=speaker(hit.entry.source) or "",
                score=hit.score,
                position=hit.entry.position,
            )
            for hit in found.hits
        ]
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
        asked: Sequence[str],
        vector: bytes | None,
        degraded: Sequence[str],
        where: Filter,
        limit: int,
        mode: Mode,
        explain: bool,
    ) -> SearchResult:
        pool = max(_CANDIDATES, limit * 2)
        by_words = tx.match(asked, where, limit=pool) if asked else []
        by_meaning = tx.nearest(vector, where, limit=pool) if vector is not None else []
        if vector is not None and not by_meaning and (by_words or tx.scan(where, limit=1).items):
            degraded = [*degraded, "vectors_missing"]
        found, candidates, neighbours = self._gather(tx, by_words, by_meaning, vector)
        allowed = self._allowed(tx, where, found, {match.entry.position for match in (*by_words, *by_meaning)})
        # Reports are made for what is shown; all of them only if some may be dropped or explained.
        shown = limit if len(allowed) == len(found) and not explain else None
        ranked = rank(query, candidates, neighbours=neighbours, now_ms=tx.now, limit=shown)
        ranked = [item for item in ranked if item.id in allowed]
        entries = tx.at([allowed[item.id] for item in ranked[:limit]], where)
        hits = [Hit(entries[allowed[item.id]], item.score, item.signals) for item in ranked[:limit]]
        if not explain:
            return SearchResult(hits, mode, tuple(degraded))
        outside = [brief.id for brief in found.values() if brief.id not in allowed]
        dropped = [Filtered(entry_id, "beside a match, but outside the filter") for entry_id in outside]
        why = explained(query, ranked, candidates, limit=limit, filtered=dropped, degraded=degraded)
        return SearchResult(hits, mode, tuple(degraded), why)

    def _gather(
        self, tx: ReadTx, by_words: Sequence[Match], by_meaning: Sequence[Match], vector: bytes | None
    ) -> tuple[dict[int, Brief], list[Candidate], dict[str, tuple[str | None, str | None]]]:
        """Both lists by position and as candidates, widened by the neighbours of the best of them."""
        lexical = {match.entry.position: match.score for match in by_words}
        dense = {match.entry.position: match.score for match in by_meaning}
        found = {match.entry.position: match.entry for match in (*by_words, *by_meaning)}
        if vector is not None:
            dense |= tx.cosines(vector, [position for position in found if position not in dense])
        candidates = [_candidate(brief, lexical, dense) for brief in found.values()]
        place = {brief.id: position for position, brief in found.items()}
        best = [place[entry_id] for entry_id in worth_widening(candidates, _WIDEN)]
        beside = tx.around(best, steps=2)
        wanted = sorted({p for pair in beside.values() for p in pair if p is not None} - found.keys())
        added = tx.briefs(wanted, Filter())
        if vector is not None:
            dense |= tx.cosines(vector, list(added))
        candidates += [_candidate(brief, lexical, dense) for brief in added.values()]
        found |= added
        ids: dict[int | None, str] = {position: brief.id for position, brief in found.items()}
        neighbours = {ids[p]: (ids.get(back), ids.get(on)) for p, (back, on) in beside.items() if p in ids}
        return found, candidates, neighbours

    def _allowed(self, tx: ReadTx, where: Filter, found: Mapping[int, Brief], matched: set[int]) -> dict[str, int]:
        """What may be a hit, by id. Neighbours widen the view; of them, only those the filter admits."""
        if where == Filter():
            return {brief.id: position for position, brief in found.items()}
        admitted = matched | tx.briefs([position for position in found if position not in matched], where).keys()
        return {brief.id: position for position, brief in found.items() if position in admitted}


def _candidate(brief: Brief, lexical: Mapping[int, float], dense: Mapping[int, float]) -> Candidate:
    position, content = brief.position, brief.content
    scores = lexical.get(position), dense.get(position)
    return Candidate(brief.id, position, brief.created_at, content, *scores, named(brief.actor), brief.session)
