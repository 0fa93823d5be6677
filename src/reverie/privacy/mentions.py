"""Mentions: entries that contain certain words, regardless of their subject label.

A text is a sequence of tokens: words, single characters of scripts that do not separate words, and punctuation. It
mentions a phrase when it holds the tokens of the phrase in sequence, without regard to case, Unicode form, invisible
characters and space. So `ana` is not in `Tirana`, and `C++` is not in every `c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from reverie.core.entry import Entry
from reverie.core.event import keyed_hash
from reverie.core.subject import fold, forms

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese: written without spaces between words."""
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_BETWEEN = "\x1f"


class Mention(Struct, frozen=True):
    """Words to look for: in clear or, after a restore, only as their number and keyed hash."""

    tokens: tuple[str, ...] = ()
    hashed: str = ""
    size: int = 0
    """Number of tokens."""
    key: bytes = b""

    def hash(self, log_key: bytes) -> str:
        """The keyed hash of the words: enough to find them again, useless for reading them."""
        return keyed_hash(log_key, _BETWEEN.join(self.tokens)) if self.tokens else self.hashed

    def occurs_in_entry(self, entry: Entry) -> bool:
        """Whether the content, a tag, the subject or an attribute of an entry mentions the words."""
        return any(self.occurs_in(text) for text in _texts(entry))

    def occurs_in(self, text: str) -> bool:
        """Whether a text mentions the words."""
        if self.tokens:
            folded = fold(text)
            return all(token in folded for token in self.tokens) and _follows(self.tokens, _tokens(folded))
        return any(keyed_hash(self.key, _BETWEEN.join(window)) == self.hashed for window in self._windows(text))

    def _windows(self, text: str) -> Iterator[tuple[str, ...]]:
        for form in forms(text):
            tokens = _tokens(form)
            yield from (tokens[at : at + self.size] for at in range(len(tokens) - self.size + 1))


def phrase(words: str) -> Mention:
    """The mention of a phrase."""
    tokens = _tokens(fold(words))
    return Mention(tokens=tokens, size=len(tokens))


def runs(text: str, longest: int = 8) -> Iterator[str]:
    """Every run of up to `longest` tokens of a text, folded: the names that it may hold."""
    for form in forms(text):
        spans = [found.span() for found in _TOKEN.finditer(form)]
        for first, (start, _) in enumerate(spans):
            for _, end in spans[first : first + longest]:
                yield form[start:end]


def _tokens(folded: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(folded))


def _follows(wanted: tuple[str, ...], tokens: tuple[str, ...]) -> bool:
    width = len(wanted)
    return any(tokens[at : at + width] == wanted for at in range(len(tokens) - width + 1) if tokens[at] == wanted[0])


def _texts(entry: Entry) -> Iterator[str]:
    yield entry.content
    yield from entry.tags
    if entry.subject:
        yield entry.subject
    yield from _strings(entry.attributes)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _each(value.keys())
        yield from _each(value.values())
    elif isinstance(value, list | tuple):
        yield from _each(value)


def _each(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from _strings(value)
