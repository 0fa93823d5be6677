"""search and context: find what is known, say why, and pack it for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, Scope, speaker, valid_ref
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Filter, Match
from reverie.host.parts import Parts
from reverie.recall.explain import Explanation, Filtered
from reverie.recall.explain import explain as explained
from reverie.recall.lexical import query_terms
from reverie.recall.pack import LeftOut, PackItem, pack
from reverie.recall.rank import Candidate, rank, worth_widening
from reverie.recall.text import comparable
from reverie.store.contract import ReadTx

Mode = Literal["hybrid", "words", "meaning"]
MAX_HITS = 200
MAX_QUERY = 4096
_CANDIDATES = 60
"""By words, and as many by meaning. More costs time and finds nothing: see `bench/retrieval.py`."""
_WIDEN = 30
"""How many of the best bring their neighbours along."""
_UNIT = 127.0 * 127.0


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


class Recall:
    """Finding. Reads one snapshot; changes nothing."""

    def __init__(self, parts: Parts) -> None:
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
        if vector is not None and not by_meaning and tx.count(where):
            degraded = [*degraded, "vectors_missing"]
        entries, candidates, neighbours = self._gather(tx, by_words, by_meaning, vector)
        found = {match.entry.id for match in (*by_words, *by_meaning)}
        allowed = found | self._allowed(tx, where, [e for e in entries.values() if e.id not in found])
        # Reports are made for what is shown; all of them only if some may be dropped or explained.
        shown = limit if len(allowed) == len(entries) and not explain else None
        ranked = rank(query, candidates, neighbours=neighbours, now_ms=tx.now, limit=shown)
        ranked = [item for item in ranked if item.id in allowed]
        hits = [Hit(entries[item.id], item.score, item.signals) for item in ranked[:limit]]
        if not explain:
            return SearchResult(hits, mode, tuple(degraded))
        outside = [Filtered(entry_id, "beside a match, but outside the filter") for entry_id in entries]
        dropped = [item for item in outside if item.id not in allowed]
        why = explained(query, ranked, candidates, limit=limit, filtered=dropped, degraded=degraded)
        return SearchResult(hits, mode, tuple(degraded), why)

    def _gather(
        self, tx: ReadTx, by_words: Sequence[Match], by_meaning: Sequence[Match], vector: bytes | None
    ) -> tuple[dict[str, Entry], list[Candidate], dict[str, tuple[str | None, str | None]]]:
        """Both lists as candidates, widened by the neighbours of the best of them."""
        lexical = {match.entry.id: match.score for match in by_words}
        dense = {match.entry.id: match.score for match in by_meaning}
        entries = {match.entry.id: match.entry for match in (*by_words, *by_meaning)}
        self._score(tx, [entry for entry in entries.values() if entry.id not in dense], vector, dense)
        candidates = [_candidate(entry, lexical, dense) for entry in entries.values()]
        best = worth_widening(candidates, _WIDEN)
        beside: dict[int, tuple[int | None, int | None]] = {}
        edge = [entries[entry_id].position for entry_id in best]
        for _ in range(2):  # two steps in each direction
            beside.update(tx.around(edge))
            edge = sorted({p for position in edge for p in beside.get(position, ()) if p is not None} - beside.keys())
        positions = {entry.position: entry for entry in entries.values()}
        wanted = sorted({p for pair in beside.values() for p in pair if p is not None} - positions.keys())
        added = list(tx.at(wanted).values())
        self._score(tx, added, vector, dense)
        for entry in added:
            entries[entry.id] = entry
            positions[entry.position] = entry
            candidates.append(_candidate(entry, lexical, dense))

        def id_at(position: int | None) -> str | None:
            entry = positions.get(position) if position is not None else None
            return entry.id if entry else None

        neighbours = {
            positions[position].id: (id_at(back), id_at(on))
            for position, (back, on) in beside.items()
            if position in positions
        }
        return entries, candidates, neighbours

    def _score(self, tx: ReadTx, entries: Sequence[Entry], vector: bytes | None, dense: dict[str, float]) -> None:
        """Cosines of entries that the search by meaning did not return."""
        if vector is None or not entries:
            return
        stored = tx.vectors([entry.position for entry in entries])
        scored = [entry for entry in entries if len(stored.get(entry.position, b"")) == len(vector)]
        joined = b"".join([stored[entry.position] for entry in scored])
        rows = np.frombuffer(joined, dtype=np.int8).reshape(-1, len(vector)).astype(np.float32)
        products = rows @ np.frombuffer(vector, dtype=np.int8).astype(np.float32)
        for entry, product in zip(scored, products.tolist(), strict=True):
            dense[entry.id] = product / _UNIT

    def _allowed(self, tx: ReadTx, where: Filter, entries: Sequence[Entry]) -> set[str]:
        """Neighbours widen the view; only those the filter admits may be hits."""
        if where == Filter():
            return {entry.id for entry in entries}
        return {entry.id for entry in entries if tx.get(entry.id, where=where) is not None}


def _candidate(entry: Entry, lexical: Mapping[str, float], dense: Mapping[str, float]) -> Candidate:
    return Candidate(
        id=entry.id,
        position=entry.position,
        created_at=entry.created_at,
        content=entry.content,
        lexical=lexical.get(entry.id),
        dense=dense.get(entry.id),
        speaker=speaker(entry.source),
        session=entry.source.session,
    )
