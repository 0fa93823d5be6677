"""WordPiece over an uncased BERT vocabulary, in pure Python, with a cache of whole words.

Text is cut at white space first and every chunk is looked up in the cache, so ordinary text costs one
dictionary access per word. Only a new chunk is cleaned, split at punctuation and cut greedily into the
longest pieces of the vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain

CACHED_WORDS = 1 << 16
"""Maximum number of cached words; when full, the cache is emptied."""

CACHED_LENGTH = 64
"""Longer chunks are not cached, so keys, hashes or blobs cannot fill the memory."""

LONGEST_WORD = 100
"""Characters above which a word has no pieces at all, as in BERT."""


_ASCII = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""Equivalent of `_words` for printable ASCII: runs of letters and digits, and every mark alone."""


class WordPiece:
    """Turns text into row numbers of the table. Words that the vocabulary cannot spell are left out.

    Safe to share between threads: the cache holds only values that can be computed again.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        rows = {token: row for row, token in enumerate(vocabulary)}
        tails = [token for token in rows if token[:2] == "##" and token != "##"]
        self._tails = {token[2:]: rows.pop(token) for token in tails}
        for token in [token for token in rows if token[:1] == "[" and token[-1:] == "]" and len(token) > 2]:
            del rows[token]
        self._rows = rows
        self._longest = max(map(len, chain(self._rows, self._tails)), default=0)
        self._cache = _Cache(self)

    def rows(self, text: str) -> list[int]:
        """Return the rows of every piece of `text`, in order."""
        return list(chain.from_iterable(map(self._cache.__getitem__, text.split())))

    def pieces(self, chunk: str) -> tuple[int, ...]:
        """Compute the rows of a chunk of text without white space."""
        found: list[int] = []
        for word in _words(chunk):
            found.extend(self._spell(word))
        return tuple(found)

    def _spell(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return []
        whole = self._rows.get(word)
        if whole is not None:
            return [whole]
        spelt: list[int] = []
        start, length, table = 0, len(word), self._rows
        while start < length:
            for end in range(min(length, start + self._longest), start, -1):
                row = table.get(word[start:end])
                if row is not None:
                    break
            else:
                return []
            spelt.append(row)
            start, table = end, self._tails
        return spelt


class _Cache(dict[str, tuple[int, ...]]):
    """Rows by chunk. `__missing__` keeps the common path inside the interpreter's C code."""

    def __init__(self, wordpiece: WordPiece) -> None:
        super().__init__()
        self._wordpiece = wordpiece

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        rows = self._wordpiece.pieces(chunk)
        if len(chunk) <= CACHED_LENGTH:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[chunk] = rows
        return rows


def _words(chunk: str) -> list[str]:
    """Return lower-case words without accents; every punctuation mark and CJK character is a word of its own."""
    if chunk.isascii() and chunk.isprintable():
        return [chunk.lower()] if chunk.isalnum() else _ASCII.findall(chunk.lower())
    cleaned = unicodedata.normalize("NFD", chunk.lower())
    words: list[str] = []
    word = ""
    for character in cleaned:
        if character.isalnum() and not _is_cjk(character):
            word += character
            continue
        category = unicodedata.category(character)
        if category == "Mn" or (category[0] == "C" and category != "Cn"):
            continue
        if category[0] == "P" or character in "$+<=>^`|~" or _is_cjk(character):
            if word:
                words.append(word)
            words.append(character)
            word = ""
        elif category[0] == "Z":
            if word:
                words.append(word)
            word = ""
        else:
            word += character
    if word:
        words.append(word)
    return words


def _is_cjk(character: str) -> bool:
    point = ord(character)
    return point >= 0x3400 and (
        point <= 0x4DBF
        or 0x4E00 <= point <= 0x9FFF
        or 0xF900 <= point <= 0xFAFF
        or 0x20000 <= point <= 0x2CEAF
        or 0x2F800 <= point <= 0x2FA1F
    )
