"""Weights of English words, words of similar meaning, and words one misspelling away.

`lexicon.txt` is made by tools/build_lexicon.py from the embedding table. A word that is not in it has the highest
weight, which is right for names, for identifiers and for other languages.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from importlib import resources

_ASCII = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = (_ASCII, "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψως")
LEAST_LETTERS = 5
"""A shorter word has too many neighbours."""
_MOST_LETTERS = 24


@lru_cache(maxsize=1)
def _text() -> str:
    """The lines in the order of their words, each after a line end. Not parsed: most words are never looked up."""
    return "\n" + resources.files("reverie.search").joinpath("lexicon.txt").read_text(encoding="utf-8")


_seen: dict[str, list[str]] = {}
"""Fields of words that were looked up and found. Other words, such as a name in a question, are not remembered."""


def _line(word: str) -> list[str]:
    """The fields of a word, found by binary search; empty when it has none."""
    if word in _seen:
        return _seen[word]
    text = _text()
    low, high = 0, len(text) - 1
    while low < high:
        start = text.rfind("\n", low, (low + high) // 2 + 1)
        end = text.index("\n", start + 1)
        fields = text[start + 1 : end].split(" ")
        if fields[0] == word:
            _seen[word] = fields
            return fields
        low, high = (end, high) if fields[0] < word else (low, start)
    return []


def weight(word: str) -> float:
    """Return the informativeness of a lower-case word: low for "thing", 1 for "restaurant" and for unknown words."""
    fields = _line(word)
    return int(fields[1]) / 100 if fields else 1.0


def similar(word: str) -> list[str]:
    """English stems of words that mean nearly the same."""
    return _line(word)[2:]


def misspelt(word: str) -> list[str]:
    """Every spelling one edit away: a letter more, less or other, or two swapped; none for a word of the lexicon."""
    if not LEAST_LETTERS <= len(word) <= _MOST_LETTERS or _line(word):
        return []
    letters = next((own for own in _ALPHABETS if word[0] in own), "")
    if not letters or not all(unicodedata.category(letter)[0] == "L" for letter in word):
        return []
    found: dict[str, None] = {}
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            found[before + after[1:]] = None
        if len(after) > 1:
            found[before + after[1] + after[0] + after[2:]] = None
        for letter in letters:
            if after:
                found[before + letter + after[1:]] = None
            found[before + letter + after] = None
    found.pop(word, None)
    return list(found)
