"""Explanations of a ranking: plain data and plain sentences for every interface."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from reverie.search.analysis import MISSPELT, SIMILAR, Word, terms
from reverie.search.confidence import WEAK
from reverie.search.rank import Candidate, Key, Question, Ranked

NEAR_MISSES = 5


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A ranked passage: its place, the signals that add up to its score, and the words of the question that it has."""

    id: str
    rank: int
    score: float
    signals: Mapping[str, float]
    matched_terms: tuple[str, ...]
    found_by: tuple[str, ...]
    """`words`, `meaning`, or `context` when only its neighbours were found."""
    confidence: float = 0.0
    why: tuple[str, ...] = ()
    """The explanation in sentences."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """An entry that was found and then dropped, and the rule that dropped it."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CutLine:
    """The end of the answer: after `limit` hits, at `score`, out of `considered` candidates."""

    limit: int
    score: float | None
    considered: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a search. It holds ids and words of the question, no text of entries."""

    terms: tuple[str, ...]
    hits: tuple[ScoredHit, ...]
    cut: CutLine
    near_misses: tuple[ScoredHit, ...]
    filtered: tuple[Filtered, ...]
    degraded: tuple[str, ...]
    """Reasons why the search was incomplete, e.g. `vectors missing for 12 entries`; empty when it was complete."""
    read: tuple[str, ...] = ()
    """Interpretation of the question: dates, misspellings, words of similar meaning."""


def explain(
    question: Question,
    ranked: Sequence[Ranked],
    candidates: Sequence[Candidate],
    *,
    shown: Sequence[Key],
    limit: int,
    filtered: Sequence[Filtered] = (),
    degraded: Sequence[str] = (),
) -> Explanation:
    """Explain a ranking of which the passages `shown` were returned."""
    known = {candidate.key: candidate for candidate in candidates}
    scored = {one.key: (place, one) for place, one in enumerate(ranked, 1)}
    hits = tuple(_scored(place, scored[key][1], known[key], question) for place, key in enumerate(shown, 1))
    last = max((scored[key][0] for key in shown), default=0)
    returned = set(shown)
    missed = [one for one in ranked[last:] if one.key not in returned][:NEAR_MISSES]
    return Explanation(
        terms=tuple(word.terms[0][0] for word in question.words),
        hits=hits,
        cut=CutLine(limit, hits[-1].score if hits else None, len(known)),
        near_misses=tuple(_scored(len(hits) + n, one, known[one.key], question) for n, one in enumerate(missed, 1)),
        filtered=tuple(filtered),
        degraded=tuple(degraded),
        read=tuple(_read(question)),
    )


def _read(question: Question) -> list[str]:
    found = [f"time named: {period.shown()}" for period in question.periods]
    for word in question.words:
        alike = [term for term, weight in word.terms if weight == SIMILAR and "^" not in term]
        spelt = [term for term, weight in word.terms if weight == MISSPELT]
        if spelt:
            found.append(f'no memory here has "{word.text}": taken for {" or ".join(spelt[:6])}')
        if alike:
            found.append(f'"{word.text}" also as {", ".join(alike[:6])}')
    if question.trust < 1:
        found.append("meaning counts less: the vectors are made for English")
    return found


def _scored(place: int, ranked: Ranked, candidate: Candidate, question: Question) -> ScoredHit:
    own = set(terms(candidate.content)) | set(terms(candidate.speaker or ""))
    matched = tuple(word.text for word in question.words if any(term in own for term, _ in word.terms))
    shown = tuple(found for word in question.words if (found := _matched(word, own)))
    found_by = tuple(
        name for name, score in (("words", candidate.lexical), ("meaning", candidate.dense)) if score is not None
    )
    return ScoredHit(
        id=ranked.id,
        rank=place,
        score=ranked.score,
        signals=ranked.signals,
        matched_terms=matched,
        found_by=found_by or ("context",),
        confidence=ranked.confidence,
        why=tuple(_why(ranked, candidate, question, shown)),
    )


def _matched(word: Word, own: Collection[str]) -> str:
    """A word of the question as the passage has it, such as `couch (as sofa)`; empty when the passage lacks it."""
    terms = [term for term, _ in word.terms if term in own]
    if not terms:
        return ""
    same = any(weight >= 1 or "^" in term for term, weight in word.terms if term in own)
    return word.text if same else f"{word.text} (as {terms[0]})"


_NOUN = ("words", "word")
_CLOSE, _SOMEWHAT = 0.45, 0.25
"""The cosines from which two texts are called close in meaning, or somewhat close."""
_LITTLE = 0.2
"""The share of a question below which similar words are not mentioned."""


def _why(ranked: Ranked, candidate: Candidate, question: Question, matched: Sequence[str]) -> list[str]:
    """The signals in sentences, the strongest first."""
    signals, asked = ranked.signals, len(question.words)
    said = {
        "words": f"has {len(matched)} of {asked} {_NOUN[asked == 1]} of the question: {', '.join(matched)}"
        if matched
        else "",
        "meaning": _meaning(candidate.dense or 0.0, question.trust),
        "alike": _alike(candidate.alike, len(matched), asked),
        "context": "what was said just before or after it matches the question",
        "time": "from or about the time that the question names",
        "kind": "has the kind of answer that the question asks for: a figure, a time or a person",
        "speaker": "said by the one whose words the question asks for",
        "currency": "put before an older hit about the same matter",
    }
    order = sorted((name for name in said if signals.get(name, 0.0) > 0), key=lambda name: -signals[name])
    found = [said[name] for name in order if said[name]]
    if ranked.older is not None:
        found.append(f"older: {ranked.older} is newer and about the same matter")
    right = min(round(100 * ranked.confidence), 99)  # a measured share of all is no certainty
    sure = f"of hits with as much evidence, {right} in 100 are right"
    found.append(f"weak: {sure}" if ranked.confidence < WEAK else sure)
    return found


def _alike(share: float, matched: int, asked: int) -> str:
    """A sentence on similar words; empty when the passage has all words of the question or hardly any similar ones."""
    if matched == asked or share < _LITTLE:
        return ""
    return f"word by word it says {round(100 * share)} % of the question, in the same or similar words"


def _meaning(cosine: float, trust: float) -> str:
    """A phrase on closeness in meaning; empty for languages unknown to the vectors, where all texts seem close."""
    if cosine < _SOMEWHAT or not trust:
        return ""
    return f"{'close' if cosine >= _CLOSE else 'somewhat close'} in meaning ({cosine:.2f})"
