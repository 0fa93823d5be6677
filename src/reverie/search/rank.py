"""Candidates in, one ranking out: the same on every store.

The store offers candidates by words (BM25) and by meaning (cosine), and the entries just before and after.
Each candidate's score is the sum of a few signals, all reported, so that a ranking can be explained:

- `words`      BM25 relative to the best candidate, squared: a clear match stands out, a stray word does not;
- `meaning`    the cosine of the vectors, where positive;
- `context`    a share of the words and meaning of the two entries before and the two after, within one
               session: what was said is often only understood with what was said just before or after;
- `answers`    a further share of the entry before, when that entry asks a question;
- `speaker`    the question names the one who wrote the entry;
- `time`       the question names a time, and the entry was made then;
- `substance`  longer entries say more, up to a few lines; an entry that ends in a question says less.

Scores are comparable within one ranking only. Nothing here depends on the order candidates come in, and equal
scores are ordered by position, then id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from msgspec import Struct

from reverie.search.analysis import query_terms, terms
from reverie.search.dates import periods

SIGNALS = ("words", "meaning", "context", "answers", "speaker", "time", "substance")
"""The names in `Ranked.signals`, in order."""

SESSION_GAP_MS = 30 * 60_000
"""Entries further apart than this are not of one session, unless their sources say so."""

Neighbours = Mapping[str, tuple[str | None, str | None]]
"""For each id the id before it and the id after it in its memory, in order of insertion."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts. Found by cross-validation over conversations; see `bench/retrieval.py`."""

    meaning: float = 0.6
    previous: float = 0.3
    following: float = 0.25
    before_previous: float = 0.2
    after_following: float = 0.15
    answers: float = 0.3
    speaker: float = 0.15
    time: float = 0.35
    substance: float = 0.3
    asking: float = 0.15


WEIGHTS = Weights()
_LENGTHS = tuple(sqrt(length / 240) for length in range(241))


class Candidate(Struct, frozen=True):
    """An entry that may answer. `lexical` and `dense` are None where the store did not find it that way."""

    id: str
    position: int
    created_at: int
    content: str
    lexical: float | None = None
    dense: float | None = None
    speaker: str | None = None
    session: str | None = None


class Ranked(Struct, frozen=True):
    """A candidate in its place. `score` is the sum of `signals`, rounded to six places."""

    id: str
    score: float
    signals: dict[str, float]


def rank(
    query: str,
    candidates: Sequence[Candidate],
    *,
    neighbours: Neighbours,
    now_ms: int,
    weights: Weights = WEIGHTS,
    limit: int | None = None,
) -> list[Ranked]:
    """Order candidates, best first, and return the first `limit` of them (all by default).

    A neighbour counts only if it is among the candidates itself; the caller adds the neighbours of its best
    candidates (`worth_widening`), which may also put an entry on the list that shares no word with the query.
    """
    chosen = list({candidate.id: candidate for candidate in candidates}.values())
    words, meaning = _own_signals(chosen, weights)
    own = [a + b for a, b in zip(words, meaning, strict=True)]
    before, after = _beside(chosen, neighbours)
    speaker = _named(query, chosen, weights)
    time = _timely(query, chosen, now_ms, weights)
    substance = _substance(chosen, weights)
    previous, following, answering = weights.previous, weights.following, weights.answers
    found: list[tuple[float, ...]] = []
    order: list[tuple[float, int, str, int]] = []
    for at, candidate in enumerate(chosen):
        context = answers = 0.0
        back, on = before[at], after[at]
        if back is not None:
            context = previous * own[back]
            if "?" in chosen[back].content:
                answers = answering * own[back]
            if (further := before[back]) is not None:
                context += weights.before_previous * own[further]
        if on is not None:
            context += following * own[on]
            if (further := after[on]) is not None:
                context += weights.after_following * own[further]
        values = (words[at], meaning[at], context, answers, speaker[at], time[at], substance[at])
        found.append(values)
        order.append((-round(sum(values), 6), candidate.position, candidate.id, at))
    order.sort()
    return [Ranked(name, -score, dict(zip(SIGNALS, found[at], strict=True))) for score, _, name, at in order[:limit]]


def worth_widening(candidates: Sequence[Candidate], limit: int = 50, *, weights: Weights = WEIGHTS) -> list[str]:
    """The ids whose neighbours are worth fetching before `rank`: the best by their own words and meaning."""
    words, meaning = _own_signals(candidates, weights)
    order = sorted(
        range(len(candidates)),
        key=lambda at: (-(words[at] + meaning[at]), candidates[at].position, candidates[at].id),
    )
    return [candidates[at].id for at in order[:limit]]


def _own_signals(candidates: Sequence[Candidate], weights: Weights) -> tuple[list[float], list[float]]:
    """Words and meaning of each candidate, by its place in the list."""
    scores = [candidate.lexical or 0.0 for candidate in candidates]
    best = max(scores, default=0.0)
    words = [(score / best) ** 2 if score > 0 else 0.0 for score in scores]
    cosines = [candidate.dense or 0.0 for candidate in candidates]
    meaning = [weights.meaning * min(1.0, cosine) if cosine > 0 else 0.0 for cosine in cosines]
    return words, meaning


def _beside(candidates: Sequence[Candidate], neighbours: Neighbours) -> tuple[list[int | None], list[int | None]]:
    """For each candidate the place of its neighbour before and after, if a candidate of the same session."""
    places = {candidate.id: at for at, candidate in enumerate(candidates)}
    found: tuple[list[int | None], list[int | None]] = ([None] * len(candidates), [None] * len(candidates))
    for name, pair in neighbours.items():
        at = places.get(name)
        if at is None:
            continue
        for side, other in zip(found, pair, strict=True):
            beside = places.get(other) if other is not None else None
            if beside is not None and _one_session(candidates[at], candidates[beside]):
                side[at] = beside
    return found


def _one_session(one: Candidate, other: Candidate) -> bool:
    if one.session is not None and other.session is not None:
        return one.session == other.session
    return abs(one.created_at - other.created_at) <= SESSION_GAP_MS


def _named(query: str, candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """Which candidates were written by someone the query names."""
    asked = set(query_terms(query))
    speakers = {candidate.speaker for candidate in candidates}
    named = {speaker for speaker in speakers if speaker and not asked.isdisjoint(terms(speaker))}
    return [weights.speaker if candidate.speaker in named else 0.0 for candidate in candidates]


def _timely(query: str, candidates: Sequence[Candidate], now_ms: int, weights: Weights) -> list[float]:
    """Which candidates were made at a time the query names."""
    times = periods(query, now_ms)
    if not times:
        return [0.0] * len(candidates)
    covered = {
        at: weights.time if any(time.covers(at) for time in times) else 0.0
        for at in {candidate.created_at for candidate in candidates}
    }
    return [covered[candidate.created_at] for candidate in candidates]


def _substance(candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """Grows with length up to 240 characters, so that a long document gains nothing over a paragraph."""
    by_length = [weights.substance * length for length in _LENGTHS]
    contents = [candidate.content for candidate in candidates]
    ends = [content[-1:] for content in contents]
    asks = [
        end == "?" or (end.isspace() and content.rstrip().endswith("?"))
        for end, content in zip(ends, contents, strict=True)
    ]
    return [
        by_length[min(len(content), 240)] - (weights.asking if ask else 0.0)
        for content, ask in zip(contents, asks, strict=True)
    ]
