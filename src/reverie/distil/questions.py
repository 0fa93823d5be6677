"""Facts inside a question, stated before or after the request.

`I prefer trains because I get sick on planes, can you find a route?` states a preference and asks for something. The
statement is kept without the request. A sentence that only asks has no facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from reverie.distil.lexicon import INTERJECTIONS, word_set
from reverie.distil.shorten import clauses
from reverie.distil.tokens import Token, tokenize

_AUXILIARIES = word_set("can could would will do does did is are was were am should shall may might have has had don't")
_QUESTION_WORDS = word_set("what what's how how's where where's which who who's when why any anything")
_SUBJECTS = word_set("you i we there it they he she this that the my your our anyone anybody someone any")
_CONNECTIVES = word_set("and but so then also or plus please")
_REASONS = word_set("because since as given")
_TAGS = word_set("right correct no yes yeah huh eh hm hmm true ok okay")
_ASKED_BACK = word_set("isn't aren't wasn't weren't doesn't don't didn't won't can't couldn't wouldn't hasn't haven't")
_REMINDING = word_set("remember note know recall forget mind believe mention mentioned tell told")
"""Verbs of a question that states the clause after it: `Can you remember that I am vegan?`"""
_PERSONAL = word_set("i i'm i've we we're we've she he they my our")
_SHORTEST = 3
"""Words that a statement needs to say something by itself."""


def facts(tokens: Sequence[Token]) -> list[Token]:
    """Return the stated part of a sentence that ends in a question mark; empty if it only asks."""
    parts = clauses(tokens)
    first = next((i for i, part in enumerate(parts) if _asks(part, last=i == len(parts) - 1)), None)
    if first is None:
        # Only the mark makes it a question: "You prefer trains?"
        return []
    if first == 0 and (told := _told(tokens)):
        return told
    if first:
        stated = [token for part in parts[:first] for token in part]
    else:
        after = next((i for i, part in enumerate(parts) if i and _opening(part) in _REASONS), None)
        stated = [token for part in parts[after:] for token in part] if after is not None else []
        while stated and (not stated[0].word or stated[0].lower in _REASONS or stated[0].lower == "that"):
            stated = stated[1:]
    while stated and (not stated[-1].word or stated[-1].lower in _CONNECTIVES):
        stated = stated[:-1]
    words = [token for token in stated if token.word]
    return list(stated) if len(words) >= _SHORTEST and any(token.telling for token in words) else []


def _told(tokens: Sequence[Token]) -> list[Token]:
    """Return the clause that a question reminds of, or tells: `Did I mention that ...?`, `Did you know I moved?`"""
    words = [t for t in tokens if t.word]
    if len(words) < 2 or words[0].lower not in _AUXILIARIES or words[1].lower not in ("you", "i"):
        return []
    for at, token in enumerate(words[2:6], 2):
        if token.lower in _REMINDING:
            after = words[at + 1 :]
            if after and after[0].lower in ("you", "him", "her", "them"):
                after = after[1:]
            that = bool(after) and after[0].lower == "that"
            after = after[1:] if that else after
            opens = bool(after) and (after[0].lower in _PERSONAL or (that and _opens_clause(after)))
            if opens and len(after) > 1:
                begins = next(i for i, t in enumerate(tokens) if t is after[0] and i >= at)
                return list(tokens[begins:-1])
    return []


def _opens_clause(words: Sequence[Token]) -> bool:
    return words[0].lower in _SUBJECTS or words[0].capital


def asks_only(sentence: str) -> bool:
    """Whether an English sentence that ends in a question mark only asks for information: `Is it in the contract?`, but
    not `Could you always answer with the sources at the end?`, which asks for an action."""
    tokens = tokenize(sentence)
    if facts(tokens):
        return False
    words = [word for word in _words(tokens) if word not in _CONNECTIVES and word not in INTERJECTIONS]
    asked = words[:2]
    return bool(asked) and (
        asked[0] in _QUESTION_WORDS
        or (asked[0] in _AUXILIARIES and asked[1:] != ["you"] and asked[-1] in _SUBJECTS)
        or len(words) <= _SHORTEST
    )


def _words(part: Sequence[Token]) -> list[str]:
    return [t.lower for t in part if t.word]


def _opening(part: Sequence[Token]) -> str:
    return next((word for word in _words(part) if word not in _CONNECTIVES), "")


def _is_tag(part: Sequence[Token]) -> bool:
    """Whether a clause is a question tag: `Sunflowers stand for warmth, right?`, `It is broken, isn't it?`."""
    words = _words(part)
    return words[0] in _TAGS if len(words) == 1 else len(words) == 2 and words[0] in _ASKED_BACK


def _asks(part: Sequence[Token], *, last: bool) -> bool:
    if last and _is_tag(part):
        return True
    words = [word for word in _words(part) if word not in _CONNECTIVES and word not in INTERJECTIONS]
    if not words:
        return False
    head, after = words[0], words[1] if len(words) > 1 else ""
    if head in _AUXILIARIES:
        return after in _SUBJECTS
    if head in _QUESTION_WORDS:  # `How long will you stay, and ...?` asks; `When we met, ...` does not
        return last or any(one in _AUXILIARIES and other in _SUBJECTS for one, other in pairwise(words[1:5]))
    return False
