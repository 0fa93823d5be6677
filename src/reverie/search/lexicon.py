"""Weights of English words, words of similar meaning, and words one misspelling away.

`lexicon.txt` is made by tools/build_lexicon.py from the embedding table. Words that are not in it tell as much as a
word can, which is right for names, for identifiers and for other languages.
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
def _lines() -> dict[str, str]:
    text = resources.files("reverie.search").joinpath("lexicon.txt").read_text(encoding="utf-8")
    return {line[: line.index(" ")]: line for line in text.splitlines()}


def weight(word: str) -> float:
    """Return the informativeness of a lower-case word: low for "thing", 1 for "restaurant" and unknown words."""
    line = _lines().get(word)
    return int(line.split(" ", 2)[1]) / 100 if line else 1.0


def similar(word: str) -> list[str]:
    """English stems of words that mean nearly the same."""
    line = _lines().get(word)
    return line.split(" ")[2:] if line else []


def misspelt(word: str) -> list[str]:
    """Every word that is one letter more, less or other, or two letters swapped; none for a word that is right."""
    if not LEAST_LETTERS <= len(word) <= _MOST_LETTERS or word in _lines():
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
