"""Information score of a statement: integers only, so that every machine ranks alike.

The weight of a word is its rarity among these statements (inverse document frequency); names and numbers
weigh more, judgements and moods less. The factor of a statement, in per cent, estimates how likely it is
to matter: first-hand facts and figures more, questions, status reports and advice less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import lru_cache

from reverie.distil.lexicon import EVALUATIVE, FIRST_PERSON, POINTING, SECOND_PERSON, VAGUE
from reverie.distil.sentences import Form
from reverie.distil.tokens import Token

_IDLE, ROUTINE, _ADVICE = 90, 25, 50
"""Per cent by which the words of chatter, of routine reports and of an assistant's general advice count."""
NAME, NUMBER, PLAIN, MOOD = 30, 25, 10, 3  # tenths of a word


def concepts(tokens: Sequence[Token]) -> dict[str, int]:
    """Map the distinct concepts of a statement, in order, to their weights in tenths."""
    out: dict[str, int] = {}
    for i, t in enumerate(tokens):
        if not t.content:
            continue
        if t.hard:
            weight = NUMBER
        elif i and t.capital:
            weight = NAME
        else:
            weight = PLAIN if t.lower not in EVALUATIVE else MOOD
        if weight > out.get(t.stem, 0):
            out[t.stem] = weight
    return out


def leans(tokens: Sequence[Token]) -> bool:
    """Whether a statement opens with a word that only the statement before it explains."""
    if not tokens or tokens[0].lower not in VAGUE:
        return False
    return tokens[0].lower not in POINTING or len(tokens) < 2 or not tokens[1].content


@lru_cache(maxsize=1 << 16)
def rarity(total: int, seen: int) -> int:
    """Return sixteen times the binary logarithm of the rarity of a concept, rounded down."""
    return max(1, ((2 * total + 2) ** 16).bit_length() - ((2 * seen + 1) ** 16).bit_length())


def factor(
    words: Set[str],
    tokens: Sequence[Token],
    *,
    form: Form,
    asked: bool,
    routine: bool,
    idle: bool,
    advice: bool = False,
) -> int:
    """Return the factor of a statement, in per cent. `words` are those of the whole sentence.

    Must-keep statements are chosen before others whatever their factor. The class of the others has no weight here:
    measured, it costs answers, since a fact is asked for as often as a preference.
    """
    per_cent = 30 if asked else 100
    first = not words.isdisjoint(FIRST_PERSON)
    if first:
        per_cent = per_cent * 120 // 100
    elif not words.isdisjoint(SECOND_PERSON):
        per_cent = per_cent * 50 // 100
    telling = 0
    hard = False
    for t in tokens:
        telling += t.telling
        hard = hard or t.hard
    if hard:
        per_cent = per_cent * 130 // 100
    elif telling < 2:
        per_cent = per_cent * 70 // 100
    if routine:
        per_cent = per_cent * ROUTINE // 100
    if idle:
        per_cent = per_cent * _IDLE // 100
    if advice:
        per_cent = per_cent * _ADVICE // 100
    if leans(tokens):
        per_cent = per_cent * 90 // 100
    if form is Form.ASIDE:
        per_cent = per_cent * 45 // 100
    elif form is Form.CODE or form is Form.TITLE:
        per_cent = per_cent * 60 // 100
    return max(1, per_cent)


def frequencies(statements: Iterable[Iterable[str]]) -> dict[str, int]:
    """Count the statements in which each concept occurs."""
    out: dict[str, int] = {}
    for statement in statements:
        for key in statement:
            out[key] = out.get(key, 0) + 1
    return out
