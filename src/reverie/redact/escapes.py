"""Text inside a string literal of JSON or code: unescape `\\n` and `\\"`, and map offsets back to the original.

The output of an agent's tool is often stored as such a string: the line of a file begins behind `\\n` and a
quote is `\\"`. Rules therefore also scan the plain copy, and their finds are cut from the original.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

ESCAPE: Final = rb"\\[nrt\"]"
"""Prefilter for escapes."""

_ONE: Final = re.compile(rb"\\([nrt\"\\/])")
_END: Final = re.compile(rb"\\{1,3}[n\"]")
_STANDS_FOR: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b'"': b'"', b"\\": b"\\", b"/": b"/"}


def unescape(data: bytes) -> tuple[bytes, list[int]]:
    """Replace every escape in `data`; also return the offsets of the replacements in the result."""
    pieces: list[bytes] = []
    at: list[int] = []
    done = length = 0
    for match in _ONE.finditer(data):
        pieces += (data[done : match.start()], _STANDS_FOR[match.group(1)])
        length += match.start() - done
        at.append(length)
        length += 1
        done = match.end()
    pieces.append(data[done:])
    return b"".join(pieces), at


def escaped(at: list[int], position: int) -> int:
    """Convert a position in the plain copy to one in the original, where every escape takes two bytes."""
    return position + bisect_left(at, position)


def before_escape(data: bytes, start: int, end: int) -> int:
    """Return the end of a value that is followed by an escaped line end or quote, on a line with string literals."""
    found = _END.search(data, start + 1, min(len(data), end + 1))
    if found is None or data.rfind(b'"', data.rfind(b"\n", 0, start) + 1, start) < 0:
        return end
    return found.start()
