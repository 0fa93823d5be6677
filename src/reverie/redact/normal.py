"""A plain copy of disguised text: no invisible characters, no look-alike letters or brackets.

A token or `[BYOK:...]` disguised with zero-width characters, full-width letters or colour codes is still legible to a
reader. Rules therefore also scan the folded copy, and their finds are cut from the original.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain
from typing import Final

from reverie.core.subject import INVISIBLE

_INVISIBLE: Final = INVISIBLE | {0x7F} | {c for c in range(0x20) if c not in (0x09, 0x0A, 0x0D)}
"""Characters a reader does not see, control characters other than tab, line feed and carriage return among them."""
_BRACKETS: Final = {
    "[": "\u27e6\u3010\u3014\u3016\u3018\u301a\ufe5d\u2045\u2772\u2983\u298b\u298d\u298f\u2e22\u2e24\u2e26\ufe47",
    "]": "\u27e7\u3011\u3015\u3017\u3019\u301b\ufe5e\u2046\u2773\u2984\u298c\u298e\u2990\u2e23\u2e25\u2e27\ufe48",
    "<": "\u2039\u00ab\u27e8\u27ea\u2329\u3008\u300a\u276c\u276e\u2770\u29fc\u02c2",
    ">": "\u203a\u00bb\u27e9\u27eb\u232a\u3009\u300b\u276d\u276f\u2771\u29fd\u02c3",
    "{": "\u2774\u300c\u300e",
    "}": "\u2775\u300d\u300f",
    "(": "\u2768\u276a\u2e28",
    ")": "\u2769\u276b\u2e29",
    ":": "\u2236\ua789\u02d0\ufe13\u0589\u05c3",
    " ": "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}


def _table() -> dict[int, int | None]:
    table: dict[int, int | None] = dict.fromkeys(_INVISIBLE)
    for plain, likes in _BRACKETS.items():
        table.update((ord(like), ord(plain)) for like in likes)
    for code in chain(
        range(0xFF01, 0xFF5F),
        range(0xFE50, 0xFE70),
        range(0x1D400, 0x1D800),
        range(0x2100, 0x2150),
        range(0x24B6, 0x24EA),
    ):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii() and code not in table:
            table[code] = ord(plain)
    return table


_FOLD: Final = _table()
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

DISGUISE: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\xa0\xab\xad\xbb]|\xcb[\x82\x83\x90]|\xcd\x8f|\xd6\x89|\xd7\x83|\xd8\x9c"
    rb"|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|\xe2(?:\x80[\x80-\x8f\xaa-\xaf\xb9\xba]|\x81[\x85\x86\x9f-\xaf]|[\x84\x85\x92\x93]|\x88\xb6|\x8c[\xa9\xaa]"
    rb"|\x9d[\xa8-\xb5]|\x9f[\xa6-\xab]|\xa6[\x83-\x90]|\xa7[\xbc\xbd]|\xb8[\xa2-\xa9])"
    rb"|\xe3(?:\x80[\x80-\x9b]|\x85\xa4)|\xea\x9e\x89|\xef[\xb8-\xbf]|\xf0\x9d[\x90-\x9f]|\xf3\xa0"
)
"""Over UTF-8 bytes: matches whenever `fold` would change a text (and sometimes when it would not)."""


def fold(text: str) -> str:
    """Remove invisible characters and colour codes from `text`; make its letters, brackets and blanks plain."""
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.translate(_FOLD)


def unfold(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Convert character spans of `fold(text)` to spans of `text`, invisible characters inside them included."""
    hidden: set[int] = set()
    if "\x1b" in text:
        for match in _COLOUR.finditer(text):
            hidden.update(range(*match.span()))
    kept = [i for i, c in enumerate(text) if ord(c) not in _INVISIBLE and i not in hidden]
    return [(kept[start], kept[end - 1] + 1) for start, end in spans]
