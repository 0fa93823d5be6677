"""Candidates in, one ranking out: the same on every store.

The store offers passages by words (BM25) and by meaning (cosine), and the entries just before and after. The score of a
passage is the sum of a few signals, all reported, so that a ranking can be explained:

- `words`     BM25 compared with the best candidate, times the share of the question that the passage covers;
- `meaning`   the cosine of the vectors, where positive;
- `alike`     the share of the question that the passage says word by word, in the same or similar words (`alike.py`);
- `context`   in a conversation: a share of the words and meaning of the two entries before and after, since a short
              turn is often understood only with its neighbours. A long passage is its own context;
- `time`      the question names a time, and the entry was created then or mentions it;
- `kind`      the question asks for a figure, a time or a person, and the passage has one (`kinds.py`);
- `speaker`   the question asks what the assistant said, or for what the person said, and it is their turn
              (`speakers.py`);
- `currency`  the gain of a newer passage over an older one that says something else about the same matter.

Nothing here depends on the order of the candidates; equal scores are ordered newest first.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import add

from msgspec import Struct

from reverie.search.analysis import Word
from reverie.search.confidence import confidence, evidence
from reverie.search.currency import Closeness, overtake
from reverie.search.dates import Period, mentions
from reverie.search.kinds import kinds
from reverie.search.speakers import speakers

SIGNALS = ("words", "meaning", "alike", "context", "time", "kind", "speaker", "currency")
"""The names in `Ranked.signals`, in order."""

SESSION_GAP_MS = 30 * 60_000
"""Turns further apart than this are not of one conversation, unless their sources say so."""

Key = tuple[int, int]
"""A passage: the position of its entry and its number there."""
Neighbours = Mapping[int, tuple[int | None, int | None]]
"""For each position the position before it and after it in its memory."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight of each signal, tuned on several corpora; `bench retrieval --ablate` checks them one by one."""

    words: float = 1.0
    meaning: float = 0.6
    alike: float = 0.8
    previous: float = 0.3
    following: float = 0.25
    before_previous: float = 0.2
    after_following: float = 0.15
    answer: float = 0.2
    """Added to `previous` when the entry before asks a question."""
    itself: float = 0.5
    """Substitute for a neighbour that is missing or too long, as a share of the passage's own score."""
    time: float = 0.35
    mentioned: float = 0.7
    """The share of `time` for a passage that mentions the time but was not created then."""
    dated: float = 0.7
    """Added to `time` for a question that names nothing but a time; in proportion for others."""
    kind: float = 0.3
    """For each kind of answer that is asked for and that the passage has."""
    speaker: float = 0.3
    currency: bool = True


WEIGHTS = Weights()
_SHORT, _LONG = 480, 960
"""Total length, in characters, up to which a neighbour counts fully as context, and from which it does not count."""
_FITTING = 20
"""Number of the best candidates that are compared with the kind of answer and the speaker that are asked for."""
_AT_ONCE = 16
"""Number of candidates whose evidence is computed together: a little more than most callers ask for."""
_ASKS = re.compile("[?？؟]")
_ONE_IN = 20
"""In a conversation, at least one turn in this many asks something."""
_ENOUGH = 6
"""Words in common that cover a question of any length: a remark of forty words is not a question of forty parts."""


class Candidate(Struct, frozen=True, gc=False):
    """A passage that may answer. `lexical` or `dense` is None when the store did not find it that way."""

    id: str
    position: int
    created_at: int
    content: str
    """The text of the passage."""
    number: int = 0
    lexical: float | None = None
    dense: float | None = None
    cover: float = 0.0
    speaker: str | None = None
    session: str | None = None
    subject: str | None = None
    size: int = 0
    """Characters of the whole entry; 0: the passage is all of it."""
    alike: float = 0.0
    """The share of the question that the passage says, in the same or in similar words; 0: not read."""
    role: str | None = None
    """The role of the speaker, or the speaker's name where no role is known."""

    @property
    def key(self) -> Key:
        """The position of the entry, and the number of the passage there."""
        return self.position, self.number


class Ranked(Struct, frozen=True):
    """A ranked candidate. `score` is the sum of `signals`, rounded to six places."""

    id: str
    key: Key
    score: float
    signals: dict[str, float]
    confidence: float = 0.0
    """The measured share of right answers among hits with this much evidence."""
    older: str | None = None
    """The id of a newer candidate that says something else about the same matter."""
    evidence: float = 0.0
    """Strength of evidence, from which `confidence` is computed."""


class Question(Struct, frozen=True):
    """A question as the ranking sees it: its text, its words, and the times it names."""

    text: str
    words: Sequence[Word] = ()
    periods: Sequence[Period] = ()
    trust: float = 1.0
    """The degree to which the vectors know its language, 0 to 1; scales the weight of meaning."""
    counts: float = 1.0
    """Weight of the embedder's cosines; 1 for the built-in table."""
    dated: float = 0.0
    """The share of its words that name times; 1: it asks for nothing but what happened then."""
    among: int = 1 << 30
    """Number of passages searched; by default many."""
    known: float = 1.0
    """Quality of the word vectors for its language, 0 to 1."""

    @property
    def tells(self) -> float:
        """Number of words, each weighted by its informativeness."""
        return sum([word.weight for word in self.words])


def rank(
    question: Question,
    candidates: Sequence[Candidate],
    *,
    neighbours: Neighbours,
    weights: Weights = WEIGHTS,
    limit: int | None = None,
    closeness: Closeness | None = None,
) -> list[Ranked]:
    """Order candidates, best first, and return the first `limit` of them (all by default)."""
    order = ranked(question, candidates, neighbours=neighbours, weights=weights, closeness=closeness)
    return list(islice(order, limit))


def ranked(
    question: Question,
    candidates: Sequence[Candidate],
    *,
    neighbours: Neighbours,
    weights: Weights = WEIGHTS,
    allowed: Container[int] | None = None,
    closeness: Closeness | None = None,
) -> Iterator[Ranked]:
    """Candidates, best first. Evidence is computed only for those that are consumed.

    `allowed`: the positions that may be shown; the others still count as neighbours and as newer statements.
    `closeness` compares the meaning of passages, for currency.

    A neighbour counts only if it is a candidate itself. So the caller adds the neighbours of its best candidates
    (`worth_widening`); that way an entry can be found that shares no word with the question.
    """
    chosen = list({(candidate.position, candidate.number): candidate for candidate in candidates}.values())
    words, meaning, alike = _own_signals(chosen, question, weights)
    context, raised = _context(chosen, _summed(words, meaning, alike), neighbours, weights)
    words, meaning, alike = ([v * more for v, more in zip(one, raised, strict=True)] for one in (words, meaning, alike))
    time = _timely(question, chosen, weights)
    kind, speaker = [0.0] * len(chosen), [0.0] * len(chosen)
    columns = (words, meaning, alike, context, time, kind, speaker)
    scores = [round(score, 6) for score in _summed(words, meaning, alike, context, time)]
    newest = [(-one.created_at, -one.position, one.number) for one in chosen]
    by_age = sorted(range(len(chosen)), key=newest.__getitem__)
    order = sorted(by_age, key=scores.__getitem__, reverse=True)
    best = order[:_FITTING]
    fitting = kinds(question.text, [chosen[at].content for at in best])
    spoken = speakers(question.text, [chosen[at].role for at in best])
    if any(fitting) or any(spoken):
        for at, kind_fits, speaker_fits in zip(best, fitting, spoken, strict=True):
            kind[at], speaker[at] = weights.kind * kind_fits, weights.speaker * speaker_fits
            scores[at] = round(scores[at] + kind[at] + speaker[at], 6)
        order = sorted(by_age, key=scores.__getitem__, reverse=True)
    gains: dict[int, float] = {}
    older: dict[int, int] = {}
    if weights.currency:
        most = max(fitting, default=0)
        fits = {at: fit / most for at, fit in zip(best, fitting, strict=True)} if most else None
        gains, older = overtake(
            question.words, chosen, scores, order, fits=fits, spoken=bool(neighbours), closeness=closeness
        )
        if gains:
            gained = [round(score + gains.get(at, 0.0), 6) for at, score in enumerate(scores)]
            order = sorted(by_age, key=gained.__getitem__, reverse=True)
    taken: dict[int, float] = {}  # a newer statement has at least the evidence of the one that it overtakes
    overtaken = _evidence(question, chosen, list(older), time)
    for (old, new), speaks in zip(older.items(), overtaken, strict=True):
        taken[new] = max(taken.get(new, 0.0), taken.get(old, 0.0), speaks)
    if allowed is not None:
        order = [at for at in order if chosen[at].position in allowed]
    for start in range(0, len(order), _AT_ONCE):
        part = order[start : start + _AT_ONCE]
        proofs = [
            max(speaks, taken.get(at, 0.0))
            for at, speaks in zip(part, _evidence(question, chosen, part, time), strict=True)
        ]
        sure = [confidence(speaks) for speaks in proofs]
        for at, speaks, confident in zip(part, proofs, sure, strict=True):
            candidate, gain = chosen[at], gains.get(at, 0.0)
            signals = dict(zip(SIGNALS, (*[column[at] for column in columns], gain), strict=True))
            key = candidate.position, candidate.number
            newer = chosen[older[at]].id if at in older else None
            score = round(scores[at] + gain, 6)
            yield Ranked(candidate.id, key, score, signals, confident, newer, round(speaks, 4))


def _evidence(
    question: Question, candidates: Sequence[Candidate], places: Sequence[int], time: Sequence[float]
) -> list[float]:
    """The evidence for the candidates at some places. `time`: that signal of every candidate."""
    longer = max(1.0, question.tells / _ENOUGH)
    covers = [min(1.0, candidates[at].cover * longer) for at in places]
    covers = [
        cover + (1 - cover) * question.dated if time[at] else cover for at, cover in zip(places, covers, strict=True)
    ]
    return [
        evidence(cover, candidates[at].dense or 0.0, question.trust, question.among)
        for at, cover in zip(places, covers, strict=True)
    ]


def best_first(question: Question, candidates: Sequence[Candidate], *, weights: Weights = WEIGHTS) -> list[int]:
    """The places of candidates, ordered by their own words, meaning and likeness."""
    own = _summed(*_own_signals(candidates, question, weights))
    keys = [(-score, one.position, one.number) for score, one in zip(own, candidates, strict=True)]
    return sorted(range(len(candidates)), key=keys.__getitem__)


def worth_widening(
    question: Question, candidates: Sequence[Candidate], limit: int = 50, *, weights: Weights = WEIGHTS
) -> list[int]:
    """The positions whose neighbours are worth fetching before `rank`: the best turns of conversations.

    A log that several people write has authors too, but its entries do not answer each other. Where hardly any entry
    asks something, no entry is context of another.
    """
    spoken = {at for at, one in enumerate(candidates) if one.speaker is not None or one.session is not None}
    asking = sum([_ASKS.search(candidates[at].content) is not None for at in spoken])
    if not spoken or asking * _ONE_IN < len(spoken):
        return []
    order = best_first(question, candidates, weights=weights)
    return list(dict.fromkeys(candidates[at].position for at in order if at in spoken))[:limit]


def _summed(first: Sequence[float], *others: Sequence[float]) -> Sequence[float]:
    """The sums of several columns, from left to right."""
    for column in others:
        first = list(map(add, first, column))
    return first


def _own_signals(
    candidates: Sequence[Candidate], question: Question, weights: Weights
) -> tuple[list[float], list[float], list[float]]:
    """Words, meaning and likeness of each candidate, by its place in the list."""
    lexical = [one.lexical or 0.0 for one in candidates]
    best = max(lexical, default=0.0) or 1.0
    words = [weights.words * one.cover * own / best for one, own in zip(candidates, lexical, strict=True)]
    factor = meaning_worth(question, weights) * (weights.words or 1.0)
    dense = [one.dense or 0.0 for one in candidates]
    meaning = [factor * (own if own < 1.0 else 1.0) if own > 0 else 0.0 for own in dense]
    # all names of days and months are alike, so words that name a time are compared as a time
    likeness = weights.alike * question.known * (1 - question.dated)
    alike = [likeness * candidate.alike for candidate in candidates]
    return words, meaning, alike


def meaning_worth(question: Question, weights: Weights = WEIGHTS) -> float:
    """Return the score of a cosine of 1, relative to the best match of all words."""
    return weights.meaning * question.counts * max(question.trust, _FOREIGN) / (weights.words or 1.0)


_FOREIGN = 0.3
"""Share of the weight of meaning that remains in scripts that the vectors hardly know."""


def _context(
    candidates: Sequence[Candidate], own: Sequence[float], neighbours: Neighbours, weights: Weights
) -> tuple[list[float], list[float]]:
    """Return what the neighbours add to each candidate, and the factor on its own score that replaces missing ones."""
    if not neighbours:
        alone = weights.previous + weights.following + weights.before_previous + weights.after_following
        return [0.0] * len(candidates), [1 + weights.itself * alone] * len(candidates)
    best: dict[int, int] = {}
    for at, candidate in enumerate(candidates):
        held = best.get(candidate.position)
        if held is None or own[at] > own[held]:
            best[candidate.position] = at
    added, raised = [], []
    for candidate in candidates:
        back, on = neighbours.get(candidate.position, _NEITHER)
        around = (
            (back, weights.previous),
            (on, weights.following),
            (neighbours.get(back, _NEITHER)[0] if back is not None else None, weights.before_previous),
            (neighbours.get(on, _NEITHER)[1] if on is not None else None, weights.after_following),
        )
        context, alone = 0.0, 0.0
        for position, weight in around:
            other = best.get(position) if position is not None else None
            share = _share(candidate, candidates[other]) if other is not None else 0.0
            alone += weight * (1 - share)
            if other is not None and share:
                asked = weights.answer if position == back and "?" in candidates[other].content else 0.0
                context += (weight + asked) * share * own[other]
        added.append(context)
        raised.append(1 + weights.itself * alone)
    return added, raised


_NEITHER: tuple[int | None, int | None] = (None, None)


def _share(one: Candidate, other: Candidate) -> float:
    """Return the degree to which one turn is context of another: 0 outside a conversation or when both are long."""
    if not _one_conversation(one, other):
        return 0.0
    size = (one.size or len(one.content)) + (other.size or len(other.content))
    return min(1.0, max(0.0, (_LONG - size) / (_LONG - _SHORT)))


def _one_conversation(one: Candidate, other: Candidate) -> bool:
    if one.session is not None and other.session is not None:
        return one.session == other.session
    spoken = one.speaker is not None and other.speaker is not None
    return spoken and abs(one.created_at - other.created_at) <= SESSION_GAP_MS


def _timely(question: Question, candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """Return the gain of candidates that were created at a time named in the question, or mention it."""
    if not question.periods:
        return [0.0] * len(candidates)
    gain = weights.time + weights.dated * question.dated
    gained = []
    for one in candidates:
        made_then = any(period.covers(one.created_at) for period in question.periods)
        named = not made_then and any(mentions(one.content, one.created_at, period) for period in question.periods)
        gained.append(gain if made_then else gain * weights.mentioned if named else 0.0)
    return gained
