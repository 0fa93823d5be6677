"""Courtesies: greetings, thanks, acknowledgements. They say nothing, in any of thirty languages.

A statement is a courtesy when it is made of the phrases of one list (`courtesies.txt`) and nothing else, a name it
addresses apart: `Guten Morgen zusammen!`, `Thanks, Ines!`, `了解しました。ありがとうございます。` A word on no list
makes it a statement like any other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from reverie.distil.lexicon import MONTH_NAMES, word_set

_LONGEST = 64
"""Characters above which nothing is a mere courtesy."""
_MOST_WORDS = 6
_BREAK = re.compile(r"[\s.,;:!?…。！？、，،؟؛·।()\"“”„«»¡¿~～\u200f\u200e\U0001F300-\U0001FAFF]+|(?<=\s)[-–—]+(?=\s)")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_ANSWERS = word_set(
    "yes yeah yep no nope sure ok okay exactly absolutely ja nein genau oui non sí claro exacto sì certo esatto sim"
    " não nee precies nej precis tak nie ano ne da nu igen nem evet hayır ya tidak then and all"
)
"""What follows one of these is part of the answer, not a name that is addressed."""
_DAYS = MONTH_NAMES | word_set("monday tuesday wednesday thursday friday saturday sunday")


@lru_cache(maxsize=1)
def _phrases() -> frozenset[str]:
    lines = resources.files(__package__).joinpath("courtesies.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(phrase.casefold() for line in lines for phrase in line.split("|")[1:])


def is_courtesy(text: str) -> bool:
    """Whether a statement is made of courtesies alone."""
    if len(text) > _LONGEST:
        return False
    words = [word for word in _BREAK.split(text.replace("’", "'")) if word]
    known = _phrases()
    at, before = 0, ""
    while at < len(words):
        for size in range(min(_MOST_WORDS, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + size]).casefold()
            if phrase in known or (size == 1 and _unspaced(phrase, known)):
                break
        else:
            if not before or before in _ANSWERS or not _is_name(words[at]):
                return False
            at, before = at + 1, ""
            continue
        at, before = at + size, phrase
    return bool(words)


def _is_name(word: str) -> bool:
    return word[:1].isupper() and word[1:].islower() and word.casefold() not in _DAYS


def _unspaced(word: str, known: frozenset[str]) -> bool:
    """The same for a script without spaces: phrases one after the other."""
    if not _UNSPACED.search(word):
        return False
    while word:
        size = next((n for n in range(len(word), 0, -1) if word[:n] in known), 0)
        if not size:
            return False
        word = word[size:]
    return True
