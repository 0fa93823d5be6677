"""Secrets in another notation: percent signs, escapes, entities, quoted-printable, base64, hex, look-alike letters,
wrapped lines, sums of strings.

A decoded copy is only scanned; finds in it are cut from the original, whole. Text is decoded line by line, runs of
base64 and of hex by themselves, and only when they hold text. Linear: every byte is decoded once per level, and levels
are few.
"""

from __future__ import annotations

import binascii
import codecs
import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from reverie.redact.entropy import remembered
from reverie.redact.markers import Lazy, spans

_SHORT: Final = 16
"""Bytes. Escapes up to this length are memoised: a text has few different ones, and many of each."""

# Letters of other alphabets, and the Latin letters they look like.
_ALIKE: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u051b\u0501\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"
        "\u03bf\u03b1\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
        "aeopcxyijsqdABEKMHOPCTXSIJoavpABEZHIKMNOPTYX",
        strict=True,
    )
)
_ENTITY: Final = rb"(?:#[0-9]{2,7}|#[xX][0-9A-Fa-f]{2,6}|[a-zA-Z]{2,8});"


def _alike_runs() -> bytes:
    """A pattern for runs of such letters, one alternative for each first byte."""
    followers: dict[bytes, bytes] = {}
    for letter in map(str.encode, _ALIKE):
        followers[letter[:1]] = followers.get(letter[:1], b"") + letter[1:]
    letters = [re.escape(first) + b"[" + re.escape(rest) + b"]" for first, rest in followers.items()]
    return b"|".join(letter + b"(?:" + b"|".join(letters) + b")*" for letter in letters)


# Operators that concatenate strings in one language or another.
_PLUS: Final = rb"(?:\+|\.{1,2}|&|\|\|)"
ENCODED: Final = (
    rb"%(?:[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})|\\(?:x[0-9A-Fa-f]{2}|u\{?[0-9A-Fa-f]{2}|[0-3][0-7]{2})|&(?:#[0-9xX]|[a-z]{2,8};)"
    rb"|\\(?:0{4})?[2-7][0-9A-Fa-f]|=[2-7](?:[A-F]|[0-9]=[2-7][0-9A-F])|[\"'`][ \t]*" + _PLUS + rb"[ \t]*\\{0,3}[\"'`]"
    rb"|[A-Za-z0-9_](?:\xd0|\xd1|\xd2|\xd4|\xce|\xcf)|(?:\xd0|\xd1|\xd4|\xce|\xcf)[\x80-\xbf][A-Za-z0-9_]"
)
"""Prefilter for text in another notation."""
RUN: Final = (
    rb"[A-Za-z0-9+/_-]{24}|[0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :]"
    rb"|0x[0-9A-Fa-f]{2},[ ]?0x[0-9A-Fa-f]{2},"
)
"""Prefilter for runs of base64 or hex."""

# Each alternative begins with one of a few bytes, so that the search skips from one such byte to the next. A lone
# quoted-printable escape must have a letter in it: `=42` is nearly always a number.
_ONE: Final = re.compile(
    rb"%(?:(?P<percent>[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)|u(?P<wide>[0-9A-Fa-f]{4}))"
    rb"|\\(?P<css>0{4}[2-7][0-9A-Fa-f]|[2-7][0-9A-Fa-f](?: |(?![0-9A-Fa-f])))"
    rb"|\\{1,4}(?:x(?P<x>[0-9A-Fa-f]{2})|u\{?(?P<u>[0-9A-Fa-f]{2,6})\}?|(?P<octal>[0-3][0-7]{2}))"
    rb"|=(?P<quoted>[2-7][0-9A-F](?:=[2-7][0-9A-F])+|[2-7][A-F])"
    rb"|(?P<sum>\\{0,3}[\"'`][ \t]*" + _PLUS + rb"[ \t]*\\{0,3}[\"'`])"
    rb"|&(?P<entity>" + _ENTITY + rb")|" + _alike_runs()
)
_WORD_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_BASE64: Final = rb"[A-Za-z0-9+/_-]{16,}={0,2}"
_HEX: Final = (
    rb"(?:0x)?([0-9A-Fa-f]{16,})|(?:^|[^0-9A-Za-z])([0-9A-Fa-f]{2}(?:[ :][0-9A-Fa-f]{2}){7,}"
    rb"|0x[0-9A-Fa-f]{2}(?:,[ ]?0x[0-9A-Fa-f]{2}){7,})"
)
_BETWEEN_PAIRS: Final = re.compile(rb"[ :,]+(?:0x)?|0x")
# A line end and an indent, also between two concatenated strings; or the soft line break of quoted-printable.
_BREAK: Final = rb"[ \t\r\\]*\n[ \t]+"
_INDENTED: Final = (
    rb"(?:" + _BREAK + rb"(?:[>|#*] ?)?"
    rb"|\\{0,3}[\"'`][ \t]*" + _PLUS + rb"?" + _BREAK + rb"(?:" + _PLUS + rb"[ \t]*)?\\{0,3}[\"'`])"
)
_GAP: Final = rb"(?:" + _INDENTED + rb"|=\r?\n)"
_PARTED: Final = Lazy(
    rb"(?:[0-9][A-Za-z0-9_+/=.~-]{0,11}" + _GAP + rb"[A-Za-z0-9_+/=.~-]{4}"
    rb"|[A-Za-z0-9_+/=.~-]{4}" + _GAP + rb"[A-Za-z0-9_+/=.~-]{0,11}[0-9])"
)
_EARLIER: Final = re.compile(rb"[A-Za-z0-9_+/=.~-]{4}(" + _INDENTED + rb")[A-Za-z0-9_+/=.~-]{4,}\Z")
_MOST_LINES: Final = 16
_NEXT: Final = re.compile(_GAP)
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~-"
_DIGIT: Final = re.compile(rb"[0-9]")
_LONGEST: Final = 256
# Control characters that do not occur in text.
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Decoded(NamedTuple):
    """A decoded copy, and its replaced pieces: start in the copy, start in the original, end in the copy, end in the
    original."""

    plain: bytes
    pieces: list[tuple[int, int, int, int]]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Convert a span of the copy to a span of the original, replaced pieces whole."""
        return self._at(start, last=False), self._at(end, last=True)

    def _at(self, position: int, *, last: bool) -> int:
        at = bisect_right(self.pieces, (position, -1, -1, -1) if last else (position, 1 << 62, 0, 0)) - 1
        if at < 0:
            return position
        begin, origin, end, origin_end = self.pieces[at]
        if position >= end:
            return origin_end + position - end
        return origin_end if last and position > begin else origin


def decode(lines: bytes) -> Decoded:
    """Decode escapes of every kind in `lines`."""
    parts: list[bytes] = []
    pieces: list[tuple[int, int, int, int]] = []
    done = length = 0
    for match in _ONE.finditer(lines):
        start, end = match.span()
        if match.lastgroup is None and not (
            (start and lines[start - 1] in _WORD_BYTES) or (end < len(lines) and lines[end] in _WORD_BYTES)
        ):
            continue  # A word of another alphabet.
        kind = match.lastgroup
        read = _short if end - start <= _SHORT else _decode_escape
        made = b"" if kind == "sum" else read(kind, match.group(kind or 0), match.group())
        if made is None:
            continue
        parts += (lines[done:start], made)
        length += start - done
        pieces.append((length, start, length + len(made), end))
        length += len(made)
        done = end
    parts.append(lines[done:])
    return Decoded(b"".join(parts), pieces)


def _decode_escape(kind: str | None, text: bytes, whole: bytes) -> bytes | None:
    """Decode one escape (`whole`), or the look-alike letters in `text`; None when it decodes to nothing usable."""
    if kind in ("percent", "quoted"):
        made = binascii.unhexlify(text.replace(b"%", b"").replace(b"=", b""))
    elif kind is None:
        made = "".join(_ALIKE[c] for c in text.decode()).encode()
    elif kind == "entity":
        entity = whole.decode()
        decoded = html.unescape(entity)
        made = b"" if decoded == entity else decoded.encode("utf-8", "ignore")
    else:
        code = int(text, 8 if kind == "octal" else 16)
        made = chr(code).encode("utf-8", "ignore") if code <= 0x10FFFF else b""
    try:
        made.decode()
    except UnicodeDecodeError:
        return None
    # A line end would split the line: escaped ones are left to the plain copy for string literals.
    return made.replace(b"\n", b" ").replace(b"\r", b" ").replace(b"\x00", b"") or None


_short = remembered(_decode_escape)


def runs(lines: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the runs of base64 and hex in `lines` that hold text: (start, end, the text)."""
    for whole, digits, pairs in spans(_HEX).each(lines):
        start, end = digits if digits[0] >= 0 else pairs
        number = lines[start:end] if digits[0] >= 0 else _BETWEEN_PAIRS.sub(b"", lines[start:end])
        odd = len(number) % 2
        text = _text(binascii.unhexlify(number[odd:]))
        if text is not None:
            yield (start + odd if odd or digits[0] < 0 else whole[0]), end, text
    for ((start, end),) in spans(_BASE64).each(lines):
        word = lines[start:end].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        if len(word) % 4 == 1:
            continue
        text = _text(binascii.a2b_base64(word + b"=" * (-len(word) % 4)))
        if text is not None:
            yield start, end, text


def _text(raw: bytes) -> bytes | None:
    """Return `raw` if it is text; UTF-16 of ASCII letters becomes ASCII."""
    if b"\x00" in raw:
        raw = raw[2:] if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else raw
        raw = raw[::2] if not raw[1::2].strip(b"\x00") else raw[1::2] if not raw[::2].strip(b"\x00") else raw
    if len(raw) < 8 or _BINARY.search(raw):
        return None
    try:
        raw.decode()
    except UnicodeDecodeError:
        return None
    return raw


def continues(data: bytes) -> bool:
    """Whether `data` has a line that may continue the one before it."""
    return b"\n " in data or b"\n\t" in data or b"=\n" in data or b"=\r\n" in data


def continued(data: bytes) -> Iterator[tuple[int, Decoded]]:
    """Join words that continue after a line end and an indent: yield the start of each and the joined copy."""
    done = 0
    gap = _gap(data, 0)
    while gap is not None:
        end = gap.start()
        before = data[max(done, end - _LONGEST) : end]
        first = before[len(before.rstrip(_WORD)) :]
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
    """Return the next indented line end that may split a token: one with a digit in a word next to it."""
    found = _PARTED.search(data, position)
    gap = None if found is None else _NEXT.search(data, found.start(), found.end())
    for _ in range(_MOST_LINES):  # The word may have begun lines before, without a digit.
        earlier = None if gap is None else _EARLIER.search(data, max(position, gap.start() - _LONGEST), gap.start())
        if earlier is None:
            break
        gap = _NEXT.match(data, earlier.start(1))
    return gap
