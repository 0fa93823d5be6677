"""Words: what is indexed of a text, and what is asked of the index.

Every store indexes the same terms, made here, so a search finds the same entries on every store. A term has
only the characters a-z, 0-9, `_` and letters or digits beyond ASCII; it never contains white space.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain

from reverie.recall.stem import stem

MAX_QUERY_TERMS = 32
MAX_TERM_LENGTH = 64
"""Longer runs (keys, hashes, blobs) are indexed by their first 64 characters."""

_FUNCTION_WORDS = """
    a an the this that these those some any each every either neither both all such same other another
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
    it its itself we us our ours ourselves they them their theirs themselves one ones
    what when where who whom whose which why how whether
    is am are was were be been being isnt arent wasnt werent im youre hes shes theyre thats whats
    whos wheres heres theres lets
    do does did doing done dont doesnt didnt have has had having havent hasnt hadnt ive youve weve theyve
    will would shall should can could might must cannot cant couldnt wont wouldnt shouldnt
    youll itll theyll id youd hed theyd
    of to in on at for from by with about into onto upon over under than then as if so but and or nor not no
    out up down off again once here there too very just also only even still yet ever more most much many
    because while until during before after between through against
"""

STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words too common to tell entries apart; kept out of index and query alike."""

_WORD = re.compile(r"\w+(?:['’]\w+)*(?:[-./:@#+&]+\w+(?:['’]\w+)*)*")
_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[\W_]+")
# Scripts written without spaces between words: indexed as overlapping pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
_RUN = re.compile(f"[{_UNSPACED}]+")


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, repeated as often as they occur; stop words are left out.

    An identifier is there whole and in parts (`ERR_42`: err_42, err, 42). A text of nothing but stop words
    keeps them, so that it can still be found.
    """
    if not text.isascii():
        text = _plain(text)
    kept = list(chain.from_iterable(map(_told.__getitem__, text.split())))  # no word has white space in it
    return kept or [term for word in _WORD.findall(text) for term, _ in _compute(word)]


def query_terms(text: str) -> list[str]:
    """The terms to ask the index for: unique, in order, stop and question words dropped, at most 32."""
    return list(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


def _plain(text: str) -> str:
    """Compatibility forms folded, accents removed, quotes made straight."""
    bare = "".join(
        character for character in unicodedata.normalize("NFKD", text) if unicodedata.category(character)[0] != "M"
    )
    return unicodedata.normalize("NFKC", bare)


def _compute(word: str) -> tuple[tuple[str, bool], ...]:
    """(term, is a stop word) of one word of the text, which may be joined from several parts."""
    pieces = [piece for part in _PART.findall(word) for piece in _CAMEL.split(part)]
    found: list[tuple[str, bool]] = []
    whole = _clip("_".join(_fold(piece) for piece in _PART.findall(word)))
    if len(pieces) > 1 and not _RUN.search(whole):
        found.append((whole, False))
    for piece in pieces:
        folded = _fold(piece)
        if not folded:
            continue
        at = 0
        for run in _RUN.finditer(folded):
            found.extend(_plain_term(folded[at : run.start()]))
            characters = run.group()
            found.extend((characters[i : i + 2], False) for i in range(max(1, len(characters) - 1)))
            at = run.end()
        found.extend(_plain_term(folded[at:]))
    return tuple(found)


class _Told(dict[str, tuple[str, ...]]):
    """The terms of pieces between white space that were seen before, stop words left out.

    `__missing__` keeps the common path in C code.
    """

    def __missing__(self, piece: str) -> tuple[str, ...]:
        found = tuple(term for word in _WORD.findall(piece) for term in _kept(word))
        if len(piece) <= MAX_TERM_LENGTH:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[piece] = found
        return found


def _kept(word: str) -> tuple[str, ...]:
    """The terms of a word, unless it is a stop word."""
    if word.isascii() and word.isalnum() and (word.islower() or word.isdigit()):
        term = word[:MAX_TERM_LENGTH]
        return () if word in STOP_WORDS else (term if term.isdigit() else stem(term),)
    return tuple(term for term, stopped in _compute(word) if not stopped)


_REMEMBERED = 1 << 16
_told = _Told()


def _plain_term(word: str) -> list[tuple[str, bool]]:
    return [(stem(_clip(word)), word in STOP_WORDS)] if word else []


def _fold(piece: str) -> str:
    """Lower case; a possessive loses its s, a contraction its apostrophe."""
    lowered = piece.lower().replace("’", "'")
    return _NOT_WORD.sub("", lowered.removesuffix("'s"))


def _clip(term: str) -> str:
    return term[:MAX_TERM_LENGTH]
