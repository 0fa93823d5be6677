"""Text full of words for secrets, in which every word is judged by itself.

Where one word in three is `token` or `password`, everything is next to such a word, and judging each value together
with each of them would cost more than the text is worth. So each word is judged once, by its own shape, and in doubt it
goes.
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
# Short words in small letters are passed over at once.
_WORD: Final = re.compile(rb"(?<!%s)(?![a-z]{1,19}(?:%s|\Z))%s{6,}" % (_IN, _END, _IN))
_LONGEST: Final = 256


def suspects(data: bytes) -> Iterator[tuple[int, int]]:
    """The words of `data` that may be secrets."""
    for match in _WORD.finditer(data):
        begin, end = match.span()
        for start in range(begin, end, _LONGEST):
            stop = min(end, start + _LONGEST)
            if _is_suspect(data[start:stop].rstrip(b".!?").decode("utf-8", "replace")):
                yield start, stop


@remembered
def _is_suspect(text: str) -> bool:
    """Letters and digits, or symbols among letters, that make no name, term, address or code."""
    if text.isalpha() and text.islower():
        return len(text) >= 20 and is_random_value(text)
    if not is_password_like(text) or is_term(text) or text.startswith("[REDACTED"):
        return False
    if word_share(text) <= 0.3 and "/" not in text and "." not in text:
        return not is_named_id(text)
    return not (is_placeholder(text) or is_location(text) or is_code(text) or is_named_id(text) or key_strength(text))
