"""Secrets in another notation: percent signs, escapes, entities, base64, hex, look-alike letters, lines that go on.

Decode once and look. A decoded copy is only looked at; what is found in it is cut from the original, whole. Text is
decoded line by line, runs of base64 and of hex by themselves, and only when they hold text. Linear: every byte is
decoded once per level, and levels are few.
"""

from __future__ import annotations

import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from reverie.redact.markers import Lazy

# Letters of other alphabets that look like Latin ones, and those they look like.
_ALIKE: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u051b\u0501\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"
        "\u03bf\u03b1\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
        "aeopcxyijsqdABEKMHOPCTXSIJoavpABEZHIKMNOPTYX",
        strict=True,
    )
)
_LETTER: Final = b"(?:" + b"|".join(re.escape(c.encode()) for c in _ALIKE) + b")"
_ENTITY: Final = rb"&(?:#[0-9]{2,7}|#[xX][0-9A-Fa-f]{2,6}|[a-zA-Z]{2,8});"

ENCODED: Final = (
    rb"%[0-9A-Fa-f]{2}|\\(?:x[0-9A-Fa-f]{2}|u\{?[0-9A-Fa-f]{2}|[0-3][0-7]{2})|&(?:#[0-9xX]|[a-z]{2,8};)"
    rb"|[A-Za-z0-9_](?:\xd0|\xd1|\xd2|\xd4|\xce|\xcf)|(?:\xd0|\xd1|\xd4|\xce|\xcf)[\x80-\xbf][A-Za-z0-9_]"
)
"""Where text may be in another notation."""
RUN: Final = rb"[A-Za-z0-9+/_-]{24}|[0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :]"
"""Where base64 or hex may be."""

_ONE: Final = re.compile(
    rb"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|\\x(?P<x>[0-9A-Fa-f]{2})|\\u\{?(?P<u>[0-9A-Fa-f]{2,6})\}?"
    rb"|\\(?P<octal>[0-3][0-7]{2})|(?P<entity>" + _ENTITY + rb")"
    rb"|(?P<alike>(?<=[A-Za-z0-9_])" + _LETTER + rb"+|" + _LETTER + rb"+(?=[A-Za-z0-9_]))"
)
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX: Final = re.compile(
    rb"(?:0x)?(?:[0-9A-Fa-f]{2}){8,}(?![0-9A-Fa-f])|(?<![0-9A-Za-z])[0-9A-Fa-f]{2}(?:[ :][0-9A-Fa-f]{2}){7,}"
)
_INDENT: Final = re.compile(rb"\n[ \t]+(?:[>|#*] ?)?")
_PARTED: Final = Lazy(
    rb"(?:[0-9][A-Za-z0-9_+/=.~-]{0,11}[ \t\r\\]*\n[ \t]+(?:[>|#*] ?)?[A-Za-z0-9_+/=.~-]{4}"
    rb"|[A-Za-z0-9_+/=.~-]{4}[ \t\r\\]*\n[ \t]+(?:[>|#*] ?)?[A-Za-z0-9_+/=.~-]{0,11}[0-9])"
)
_EARLIER: Final = re.compile(
    rb"[A-Za-z0-9_+/=.~-]{4}[ \t\r\\]*(\n)[ \t]+(?:[>|#*] ?)?[A-Za-z0-9_+/=.~-]{4,}[ \t\r\\]*\Z"
)
_MOST_LINES: Final = 16
_NEXT: Final = re.compile(rb"[ \t\r\\]*\n[ \t]+(?:[>|#*] ?)?")
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~-"
_DIGIT: Final = re.compile(rb"[0-9]")
_LONGEST: Final = 256
# Control characters that text does not have.
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Decoded(NamedTuple):
    """A decoded copy, and for each replaced piece where it begins there, where it began, and both ends."""

    plain: bytes
    pieces: list[tuple[int, int, int, int]]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """A span of the copy as a span of the original, replaced pieces whole."""
        return self._at(start, last=False), self._at(end, last=True)

    def _at(self, position: int, *, last: bool) -> int:
        at = bisect_right(self.pieces, (position, -1, -1, -1) if last else (position, 1 << 62, 0, 0)) - 1
        if at < 0:
            return position
        begin, origin, end, origin_end = self.pieces[at]
        if position >= end:
            return origin_end + position - end
        return origin_end if last and position > begin else origin


def decode(line: bytes) -> Decoded:
    """`line` with escapes of every kind replaced by what they stand for."""
    parts: list[bytes] = []
    pieces: list[tuple[int, int, int, int]] = []
    done = length = 0
    for match in _ONE.finditer(line):
        made = _stands_for(match)
        if made is None:
            continue
        start, end = match.span()
        parts += (line[done:start], made)
        length += start - done
        pieces.append((length, start, length + len(made), end))
        length += len(made)
        done = end
    parts.append(line[done:])
    return Decoded(b"".join(parts), pieces)


def _stands_for(match: re.Match[bytes]) -> bytes | None:
    kind, text = match.lastgroup, match.group(match.lastgroup or 0)
    if kind == "percent":
        made = binascii.unhexlify(text.replace(b"%", b""))
    elif kind == "alike":
        made = "".join(_ALIKE[c] for c in text.decode()).encode()
    elif kind == "entity":
        decoded = html.unescape(text.decode())
        made = b"" if decoded == text.decode() else decoded.encode("utf-8", "ignore")
    else:
        code = int(text, 8 if kind == "octal" else 16)
        made = chr(code).encode("utf-8", "ignore") if code <= 0x10FFFF else b""
    try:
        made.decode()
    except UnicodeDecodeError:
        return None
    # A line end would make two lines of one: the plain copy for strings sees to those.
    return made.replace(b"\n", b" ").replace(b"\r", b" ").replace(b"\x00", b"") or None


def runs(line: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Runs of base64 and hex in `line` that hold text: (start, end, the text)."""
    for match in _HEX.finditer(line):
        digits = re.sub(rb"^0x|[ :]", b"", match.group())
        text = _text(binascii.unhexlify(digits)) if len(digits) % 2 == 0 else None
        if text is not None:
            yield match.start(), match.end(), text
    for match in _BASE64.finditer(line):
        word = match.group().rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        if len(word) % 4 == 1:
            continue
        text = _text(binascii.a2b_base64(word + b"=" * (-len(word) % 4)))
        if text is not None:
            yield match.start(), match.end(), text


def _text(raw: bytes) -> bytes | None:
    """`raw` when it is text."""
    if len(raw) < 8 or _BINARY.search(raw):
        return None
    try:
        raw.decode()
    except UnicodeDecodeError:
        return None
    return raw


def continued(data: bytes) -> Iterator[tuple[int, Decoded]]:
    """Words that go on behind a line end and an indent: where each begins, and the copy in one piece."""
    done = 0
    gap = _gap(data, 0)
    while gap is not None:
        begin = max(done, gap.start() - _LONGEST)
        before = data[begin : gap.start()].rstrip(b" \t\r\\")
        first = before[len(before.rstrip(_WORD)) :]
        end = begin + len(before)
        start, length, done = end - len(first), len(first), gap.end()
        parts, pieces = [first], list[tuple[int, int, int, int]]()
        while gap is not None and len(parts[-1]) >= 4 and len(pieces) < _MOST_LINES:
            after = data[gap.end() : gap.end() + _LONGEST]
            word = after[: len(after) - len(after.lstrip(_WORD))]
            if len(word) < 4:
                break
            pieces.append((length, end - start, length, gap.end() - start))
            parts.append(word)
            length += len(word)
            end = done = gap.end() + len(word)
            gap = _NEXT.match(data, end)
        if pieces and _DIGIT.search(b"".join(parts)):
            yield start, Decoded(b"".join(parts), pieces)
        gap = _gap(data, done)


def _gap(data: bytes, position: int) -> re.Match[bytes] | None:
    """The next indented line end that may part a token: one with a digit near it in the words on either side."""
    found = _PARTED.search(data, position)
    gap = None if found is None else _INDENT.search(data, found.start(), found.end())
    for _ in range(_MOST_LINES):  # The word may have begun lines before, without a digit.
        earlier = None if gap is None else _EARLIER.search(data, max(position, gap.start() - _LONGEST), gap.start())
        if earlier is None:
            break
        gap = _INDENT.match(data, earlier.start(1))
    return gap
