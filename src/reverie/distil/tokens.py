"""Words and marks of a sentence, with the spacing needed to join them again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from reverie.core.pause import paced
from reverie.distil.lexicon import EVALUATIVE, FUNCTION, INTERJECTIONS, MONTH_NAMES, NEGATIONS, NUMBERS

# A redaction marker, a link, a code span and a word with inner marks (v1.2.3, CS:GO, a_b, it's, x@y.z)
# are one token each, so that nothing below can cut inside them.
_TOKEN = re.compile(
    r"(\s*)("
    r"\[[A-Z][A-Z_]+(?::[^\]\s]*)?\]"
    r"|https?://[^\s<>\"']*[\w/]"
    r"|`[^`\n]+`"
    r"|(?:(?<!\S)[-$€£#@~/.]{1,2})?\w(?:(?:[\w'’.@:/\\+&#%_=-]|,(?=\d))*[\w+#%])?(?:\(\))?"
    r"|[^\w\s])"
)
_HARD = re.compile(r"[\[`\d_@/\\:=]|\w\.\w|[a-z][A-Z]")
_VOWELS = frozenset("aeiouy")


class Token(NamedTuple):
    """One word or mark, with the properties that do not depend on its neighbours."""

    text: str
    lower: str
    gap: bool  # preceded by white space
    word: bool  # not a mere mark
    hard: bool  # never cut or left out: markers, links, code, identifiers, anything with a digit
    capital: bool
    negates: bool
    content: bool  # not a mark and not grammar
    telling: bool  # informative: not grammar, not a greeting, not a mere judgement
    varies: bool  # with another one it is another fact: numbers, identifiers, negations, months
    stem: str


@lru_cache(maxsize=1 << 17)
def _token(text: str, gap: bool) -> Token:
    word = len(text) > 1 or text.isalnum()
    lower = text.lower().replace("’", "'")
    content = word and lower not in FUNCTION
    hard = word and (text.isdigit() if len(text) == 1 else _HARD.search(text) is not None)
    negates = lower in NEGATIONS or lower.endswith("n't")
    return Token(
        text=text,
        lower=lower,
        gap=gap,
        word=word,
        hard=hard,
        capital=text[0].isupper() and lower != "i",
        negates=negates,
        content=content,
        telling=content and lower not in EVALUATIVE and lower not in INTERJECTIONS,
        varies=hard or negates or lower in NUMBERS or lower in MONTH_NAMES,
        stem=stem(lower),
    )


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text."""
    return [_token(word, space != "") for space, word in _TOKEN.findall(text)]


def lowered(texts: Iterable[str]) -> set[str]:
    """Return the distinct words and marks of texts, in lower case."""
    return {word.lower for text in paced(texts) for word in tokenize(text)}


def join(tokens: Iterable[Token]) -> str:
    """Join tokens to text; words are kept apart where tokens between them were left out."""
    parts: list[str] = []
    after_word = False
    for t in tokens:
        if parts and (t.gap or (t.word and after_word)):
            parts.append(" ")
        parts.append(t.text)
        after_word = t.word
    return "".join(parts)


def stem(word: str) -> str:
    """Strip common English suffixes: enough to map `hiked`, `hikes` and `hiking` to one concept."""
    if word.endswith("'s"):
        word = word[:-2]
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith(("ies", "ied")):
        return word[:-3] + "i"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed"):
        base = word[: -len(suffix)]
        if word.endswith(suffix) and len(base) >= 3 and not _VOWELS.isdisjoint(base):
            word = base
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) > 3:
        if word.endswith("e"):
            word = word[:-1]
        elif word.endswith("y"):
            word = word[:-1] + "i"
    return word
