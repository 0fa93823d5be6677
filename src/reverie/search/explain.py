"""Why these memories and not others: plain data that every door can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reverie.search.analysis import query_terms, terms
from reverie.search.rank import Candidate, Ranked

NEAR_MISSES = 5


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A ranked entry: its place, the signals that add up to its score, the query's terms it contains."""

    id: str
    rank: int
    score: float
    signals: Mapping[str, float]
    matched_terms: tuple[str, ...]
    found_by: tuple[str, ...]
    """`words`, `meaning`, or `context` when only its neighbours were found."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """An entry that was found and then dropped, and by which rule."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CutLine:
    """Where the answer ended: after `limit` hits, at `score`, out of `considered` candidates."""

    limit: int
    score: float | None
    considered: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything needed to see why a search answered as it did. Holds ids and terms of the query, no entry text."""

    terms: tuple[str, ...]
    hits: tuple[ScoredHit, ...]
    cut: CutLine
    near_misses: tuple[ScoredHit, ...]
    filtered: tuple[Filtered, ...]
    degraded: tuple[str, ...]
    """Why the search was less than it could be, e.g. `vectors missing for 12 entries`; empty when it was whole."""


def explain(
    query: str,
    ranked: Sequence[Ranked],
    candidates: Sequence[Candidate],
    *,
    limit: int,
    filtered: Sequence[Filtered] = (),
    degraded: Sequence[str] = (),
) -> Explanation:
    """Explain a ranking of which the first `limit` were returned.

    `ranked` should hold at least `NEAR_MISSES` more than `limit`, so that the misses can be named.
    """
    asked = query_terms(query)
    known = {candidate.id: candidate for candidate in candidates}
    scored = [_scored(place, one, known[one.id], asked) for place, one in enumerate(ranked[: limit + NEAR_MISSES], 1)]
    hits = tuple(scored[:limit])
    return Explanation(
        terms=tuple(asked),
        hits=hits,
        cut=CutLine(limit, hits[-1].score if hits else None, len(known)),
        near_misses=tuple(scored[limit:]),
        filtered=tuple(filtered),
        degraded=tuple(degraded),
    )


def _scored(place: int, ranked: Ranked, candidate: Candidate, asked: Sequence[str]) -> ScoredHit:
    own = set(terms(candidate.content)) | set(terms(candidate.speaker or ""))
    found_by = tuple(
        name for name, score in (("words", candidate.lexical), ("meaning", candidate.dense)) if score is not None
    )
    return ScoredHit(
        id=ranked.id,
        rank=place,
        score=ranked.score,
        signals=ranked.signals,
        matched_terms=tuple(term for term in asked if term in own),
        found_by=found_by or ("context",),
    )
