"""Words: the indexed terms of a text, and the terms of a question.

Every store indexes the terms made here, so a search finds the same entries on every store. A term has only lower-case
letters, digits, `_` and the vowel signs of Indic scripts, and never white space. A term with a leading or trailing `^`
is the beginning or end of a long compound word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from reverie.search.languages import ENGLISH, FUNCTION_WORDS, LATIN, detect, fold, guess, stem
from reverie.search.lexicon import misspelt, similar, weight

MAX_QUERY_TERMS = 32
MAX_TERM_LENGTH = 64
"""Longer runs (keys, hashes, blobs) are indexed by their first 64 characters."""

_SIGNS = "".join(chr(code) for code in range(0x0900, 0x1800) if unicodedata.category(chr(code))[0] == "M")
"""Vowel signs and tone marks of Indic and South-East Asian scripts; Python's `\\w` does not match them."""
# Scripts written without spaces between words: indexed as overlapping pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
_IN_WORD = rf"\w{_SIGNS}"
_WORD = re.compile(rf"[{_IN_WORD}]+(?:['’][{_IN_WORD}]+)*(?:[-./:@#+&]+[{_IN_WORD}]+(?:['’][{_IN_WORD}]+)*)*")
_PART = re.compile(rf"(?:(?!_)[{_IN_WORD}])+(?:['’](?:(?!_)[{_IN_WORD}])+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUN = re.compile(f"[{_UNSPACED}]+")
_ELISIONS = frozenset(
    [
        "l",
        "d",
        "j",
        "m",
        "t",
        "s",
        "n",
        "c",
        "qu",
        "jusqu",
        "lorsqu",
        "puisqu",
        "dell",
        "nell",
        "sull",
        "all",
        "dall",
        "quell",
        "un",
        "gl",
    ]
)
"""Words before an apostrophe in French and Italian: articles and pronouns."""
_FORMULAS = re.compile(
    "でしょうか|ましたか|ですか|ますか|でした|ました|ません|です|ます|という|いつ|どこ|だれ|誰が|誰に|誰の|なに|何が|何の"
    "|何を|いくら|どの|どれ|なぜ|から|まで|している|していた|する|した|して"
    "|为什么|什么时候|是什么|什么|时候|多少钱|多少|哪里|哪个|哪些|怎么样|怎么|谁|吗|呢|了|的"
    "|為什麼|什麼時候|什麼|時候|多少錢|哪裡|哪個|怎麼|誰|嗎"
    "|언제야|언제|어디에|어디|누구에게|누구|무엇|무슨|얼마나|얼마야|얼마|어떻게|있어|있다|이다|한다|했다"
)
"""Question words, endings and particles of Japanese, Chinese and Korean: no word extends across them."""
_COMPOUNDING = frozenset({"german", "dutch", "swedish", "danish", "finnish", "hungarian"})
_CONTRACTIONS = frozenset({"t", "d", "ll", "re", "ve", "m", "s"})
_LONG = 9
"""Letters from which a word of a compounding language is also indexed by its beginning and end."""
_EDGE = 6
"""Letters of a beginning or end."""
_START = "^"
"""Marks a beginning when it is in front, and an end when it is behind."""
SIMILAR = 0.5
"""Weight of a word of similar meaning, relative to the same word."""
MISSPELT = 0.8
_PARTLY = 0.5
"""Weight of the same beginning or end, relative to the same word."""


class Word(Struct, frozen=True):
    """A word of a question as written, and the terms that match it, each with a weight up to 1."""

    text: str
    terms: tuple[tuple[str, float], ...]
    weight: float = 1.0
    """Informativeness of the word, up to 1."""


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, with repetitions; function words of its language are left out.

    An identifier is included whole and in parts (`ERR_42`: err_42, err, 42). A text of nothing but function words keeps
    them, so that it can still be found.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    language = detect(plain)
    # no word has white space in it
    kept = list(chain.from_iterable(map(_seen[language].__getitem__, plain.split())))
    return kept or [term for word in _WORD.findall(plain) for term, _, _ in _compute(word, language)]


def query_terms(text: str) -> list[str]:
    """The terms of a question in its own language: unique, in order, at most 32."""
    return list(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


_IDIOM = re.compile(
    r"\b(?:(?:takes?|took|taken|taking) place|end(?:s|ed|ing)? up|turn(?:s|ed|ing)? out|f(?:ind|ound) out"
    r"|supposed to|going to|used to)\b",
    re.IGNORECASE,
)
"""Phrases that say no more than a function word: "when does the launch take place" asks when it is."""


def question(text: str) -> list[Word]:
    """The words of a question, each with the terms under which it may be indexed: unique, in order, at most 32.

    An entry that is too short to show its language is indexed as English, so every word is also looked up by its
    English stem. When the question does not show its own language, words are looked up by their stems in every one.
    """
    text = unicodedata.normalize("NFKC", text)
    language, shown = guess(text)
    if language == ENGLISH:
        text = _IDIOM.sub(" ", text)
    languages = (language, ENGLISH) if shown else (language, *LATIN)
    spoken = [said for word in _WORD.findall(text) for said in _compute(word, language)]
    chosen: dict[str, Said] = {}
    for said in [said for said in spoken if not said[1]] or spoken:
        chosen.setdefault(said[0], said)
    folded = [fold(surface) for _, _, surface in chosen.values()]
    found: list[Word] = []
    for (term, _, surface), plain, tells in zip(
        chosen.values(), folded, [weight(word) for word in folded], strict=True
    ):
        alternatives = {term: 1.0}
        if surface and not surface.isdigit():
            for other in languages:
                alternatives.setdefault(stem(surface, other), 1.0)
            alternatives.setdefault(plain, 1.0)
            if (language in _COMPOUNDING or not shown) and len(term) >= _EDGE:
                alternatives |= {_START + term[:_EDGE]: _PARTLY, term[-_EDGE:] + _START: _PARTLY}
        if "_" in term:
            alternatives.setdefault(stem(term.replace("_", ""), language), 1.0)
        found.append(Word(surface or term, tuple(alternatives.items()), tells))
    return found[:MAX_QUERY_TERMS]


def written(text: str, language: str) -> Iterator[str]:
    """The words of a text as they are written, in lower case, without function words and parts of runs."""
    for word in _WORD.findall(text):
        yield from (surface for _, stopped, surface in _compute(word, language) if surface and not stopped)


def near(words: Sequence[Word], known: Callable[[Sequence[str]], Collection[str]]) -> list[Word]:
    """Words with terms of similar meaning. A word that no entry has also gets the terms one misspelling or hyphen away.

    `known` returns those of the given terms that some entry has.
    """
    alike = [similar(plain) for plain in [fold(word.text) for word in words]]
    own_terms = [term for word in words for term, _ in word.terms]
    there = known(list(dict.fromkeys([*own_terms, *chain.from_iterable(alike)])))
    return [_near(word, own, there, known) for word, own in zip(words, alike, strict=True)]


def _near(
    word: Word, alike: Sequence[str], there: Collection[str], known: Callable[[Sequence[str]], Collection[str]]
) -> Word:
    own = dict(word.terms)
    added = {term: SIMILAR for term in alike if term in there and term not in own}
    if not any(term in there for term in own):
        folded = fold(word.text)
        hyphenated = known([f"{folded[:at]}_{folded[at:]}" for at in range(1, min(len(folded), MAX_TERM_LENGTH))])
        by_term = dict.fromkeys(stem(spelt) for spelt in misspelt(folded)) if not hyphenated else ()
        added |= dict.fromkeys(hyphenated, 1.0)
        added |= {term: MISSPELT for term in known([term for term in by_term if len(term) > 2]) if term not in own}
    return Word(word.text, (*word.terms, *sorted(added.items())), word.weight) if added else word


Said = tuple[str, bool, str]
"""(term, whether it is a function word, the lower-case word that it comes from or "" for a part of a run)."""


def _compute(word: str, language: str) -> list[Said]:
    """The terms of one word of a text. A word may consist of several parts."""
    if word.isascii() and word.isalpha() and (word.islower() or word.istitle()):  # nearly every word: one part
        return _spaced(word.lower(), language)
    parts = _PART.findall(word)
    pieces = [piece for part in parts for piece in _CAMEL.split(part)]
    found: list[Said] = []
    if len(pieces) > 1:
        whole = "_".join(fold(_bare(part)) for part in parts)[:MAX_TERM_LENGTH]
        if not _RUN.search(whole):
            found.append((whole, False, ""))
    for piece in pieces:
        lowered = _bare(piece)
        at = 0
        for run in _RUN.finditer(lowered):
            found += _spaced(lowered[at : run.start()], language)
            for characters in _FORMULAS.split(run.group()):
                if characters:
                    found += [(characters[i : i + 2], False, "") for i in range(max(1, len(characters) - 1))]
            at = run.end()
        found += _spaced(lowered[at:], language)
    return found


def _spaced(word: str, language: str) -> list[Said]:
    if not word:
        return []
    if word.isdigit():
        return [(word[:MAX_TERM_LENGTH], False, word)]
    clipped = word[:MAX_TERM_LENGTH]
    plain = word if word.isascii() else fold(word)  # in lower case already
    return [(stem(clipped, language), plain in FUNCTION_WORDS[language], clipped)]


def _bare(piece: str) -> str:
    """The piece in lower case, without the article before an apostrophe, or the possessive or ending after it."""
    lowered = piece.lower().replace("’", "'")
    if "'" not in lowered:
        return lowered
    before, _, after = lowered.partition("'")
    if before in _ELISIONS and len(after) > 1:
        return after.replace("'", "")
    if after == "s" or (len(before) > 2 and len(after) > 1 and after not in _CONTRACTIONS):
        return before
    return lowered.replace("'", "")


class _Seen(dict[str, tuple[str, ...]]):
    """Cache of the terms of pieces between white space, function words left out.

    `__missing__` keeps the common path in C code.
    """

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, piece: str) -> tuple[str, ...]:
        found = tuple([term for word in _WORD.findall(piece) for term in _kept(word, self._language)])
        if len(piece) <= MAX_TERM_LENGTH:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[piece] = found
        return found


def _kept(word: str, language: str) -> list[str]:
    """The terms of a word without function words; of a long compound, also its beginning and end."""
    kept = [term for term, stopped, _ in _compute(word, language) if not stopped]
    if language in _COMPOUNDING:
        for term in [term for term in kept if len(term) >= _LONG and "_" not in term]:
            kept += [_START + term[:_EDGE], term[-_EDGE:] + _START]
    return kept


_REMEMBERED = 1 << 15
_seen = {language: _Seen(language) for language in FUNCTION_WORDS}
