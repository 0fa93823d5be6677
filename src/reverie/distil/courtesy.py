"""Courtesies: greetings, thanks and acknowledgements in thirty languages, which carry no information.

A statement is a courtesy when it consists of phrases from one list (`courtesies.txt`), apart from a name that it
addresses: `Guten Morgen zusammen!`, `Thanks, Ines!`, `了解しました。ありがとうございます。` Drawn-out words
(`heyyy`), laughter of any length, emoticons and missing accents make no difference. Any other word
makes it a statement like any other.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib import resources

from reverie.distil.lexicon import MONTH_NAMES, word_set

_LONGEST = 64
"""Characters above which no text is a mere courtesy."""
_MOST_WORDS = 6
_BREAK = re.compile(
    r"[\s.,;:!?…。！？、，،؟؛·।()\"“”„«»¡¿~～〜*_^\u200d\u200e\u200f\u2600-\u27bf\ufe0f\U0001F300-\U0001FAFF]+"
    r"|(?<=\s)[-–—]+(?=\s)"
)
_EMOTICON = re.compile(
    r"(?<!\S)(?:[:;=8xX]['’]?-?[)(DPpoO3/\\|*\]\[]+|<3+|\^[_.]?\^|[-uToO][_.][-uToO]|xD+|XD+|\\o/)(?!\w)"
)
_LAUGHTER = re.compile(
    r"(?:[bm]?(?:wa|a)?h*(?:[hjx][aeiou]){2,}[hj]?|(?:ха|хе|хи){2,}х?|[哈呵嘻]{2,}|[ㅋㅎ]+|ه{3,}|ח{3,}|555+|w{2,}|k{3,}|(?:wk){2,}w?|l+o+l+|(?:rs){2,})"
)
_DRAWN_OUT = re.compile(r"([^\W\d])\1{2,}")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_ANSWERS = word_set(
    "yes yeah yep no nope sure ok okay exactly absolutely ja nein genau oui non sí claro exacto sì certo esatto sim"
    " não nee precies nej precis tak nie ano ne da nu igen nem evet hayır ya tidak then and all"
    " oh ooh ah aha aw aww hm hmm um uh so"
)
"""Words after which the next word belongs to the answer and is no form of address."""
_DAYS = MONTH_NAMES | word_set("monday tuesday wednesday thursday friday saturday sunday")


@lru_cache(maxsize=1)
def _phrases() -> frozenset[str]:
    lines = resources.files(__package__).joinpath("courtesies.txt").read_text(encoding="utf-8").splitlines()
    phrases = {phrase.casefold() for line in lines for phrase in line.split("|")[1:]}
    return frozenset(phrases | {_unaccented(phrase) for phrase in phrases})


@lru_cache(maxsize=1)
def _lengths() -> dict[str, int]:
    """Map the first words of phrases to the length in words of the longest phrase."""
    found: dict[str, int] = {}
    for phrase in _phrases():
        first, *others = phrase.split(" ")
        found[first] = max(found.get(first, 1), 1 + len(others))
    return found


def _unaccented(phrase: str) -> str:
    """Return a phrase in Latin letters without accents; any other as it is."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", phrase) if not unicodedata.combining(c))
    return bare if bare.isascii() else phrase


def _is_known(phrase: str, known: frozenset[str]) -> bool:
    if phrase in known or _LAUGHTER.fullmatch(phrase):
        return True
    return _DRAWN_OUT.search(phrase) is not None and any(_DRAWN_OUT.sub(by, phrase) in known for by in (r"\1", r"\1\1"))


def is_courtesy(text: str) -> bool:
    """Whether a statement is made of courtesies alone."""
    if len(text) > _LONGEST:
        return False
    words = [word for word in _BREAK.split(_EMOTICON.sub(" ", text.replace("’", "'"))) if word]
    known, lengths = _phrases(), _lengths()
    at, before = 0, ""
    while at < len(words):
        first = words[at].casefold()
        most = _MOST_WORDS if _DRAWN_OUT.search(first) else lengths.get(first, 1)
        for size in range(min(most, _MOST_WORDS, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + size]).casefold()
            if _is_known(phrase, known) or (size == 1 and _unspaced(phrase, known)):
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
    """Whether a word in a script without spaces is a sequence of phrases."""
    if not _UNSPACED.search(word):
        return False
    while word:
        size = next((n for n in range(len(word), 0, -1) if word[:n] in known), 0)
        if not size:
            return False
        word = word[size:]
    return True
