"""Text full of credential words, in which every word is judged by itself.

Where one word in three is `token` or `password`, every value is near such a word, and judging each value together with
each of them would exceed the budget. So each word is judged once, by its own shape, and redacted when in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reverie.redact.entropy import remembered, word_share
from reverie.redact.rules.names import key_strength
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_named_id,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_term,
)

_END: Final = rb"[\s\"'`,;:<>=|&()\[\]{}\\]"
_IN: Final = rb"[^\s\"'`,;:<>=|&()\[\]{}\\]"
# Short words in lower case are skipped at once.
_WORD: Final = re.compile(rb"(?<!%s)(?![a-z]{1,19}(?:%s|\Z)|REDACTED:|dense-secret\])%s{6,}" % (_IN, _END, _IN))
_LONGEST: Final = 256
# Up to this many words, and this many more per kilobyte, are judged one by one.
_LEAST: Final = 200
_PER_KILOBYTE: Final = 24
_NEAR: Final = 40
_MIXED: Final = re.compile(
    rb"(?<!%s)(?!REDACTED:|dense-secret\])(?:(?=%s*?[0-9])(?=%s*?[A-Za-z])|(?=%s*?[!@#$^*+~]))%s{6,}"
    % (_IN, _IN, _IN, _IN, _IN)
)
# Letters and digits alternating twice, but no version (`v1beta1`), duration (`2h30m15s`), size or character set.
_TURNS: Final = re.compile(
    r"(?!v?[0-9]+(?:alpha|beta|rc|a|b)[0-9]+[a-z]?\Z|(?:[0-9]+[a-z])+\Z|[0-9]+(?:x[0-9]+)+[a-z]*\Z|utf)"
    r"[A-Za-z0-9]*(?:[A-Za-z][0-9]+[A-Za-z]+[0-9]|[0-9][A-Za-z]+[0-9]+[A-Za-z])[A-Za-z0-9]*"
)


def suspects(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the words of `data` that may be secrets."""
    matches = list(_WORD.finditer(data))
    if len(matches) > _LEAST + len(data) * _PER_KILOBYTE // 1024:
        yield from _shaped(data)
        return
    for match in matches:
        begin, end = match.span()
        for start in range(begin, end, _LONGEST):
            stop = min(end, start + _LONGEST)
            if _is_suspect(data[start:stop].rstrip(b".!?").decode("utf-8", "replace")):
                yield start, stop


def _shaped(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the words with letters and digits or with symbols; neighbours and the text between them as one span."""
    start = end = -_NEAR
    for match in _MIXED.finditer(data):
        if match.start() - end >= _NEAR:
            if end > start:
                yield start, end
            start = match.start()
        end = match.end()
    if end > start:
        yield start, end


@remembered
def _is_suspect(text: str) -> bool:
    """Whether letters and digits, or symbols among letters, make no name, term, address or code."""
    if _TURNS.fullmatch(text):
        return True
    if text.isalpha() and text.islower():
        return len(text) >= 20 and is_random_value(text)
    if not is_password_like(text) or is_term(text) or text.startswith("[REDACTED"):
        return False
    if word_share(text) <= 0.3 and "/" not in text and "." not in text:
        return not is_named_id(text)
    return not (is_placeholder(text) or is_location(text) or is_code(text) or is_named_id(text) or key_strength(text))
