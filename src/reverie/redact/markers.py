"""Markers: the one canonical form, and the look-alikes that leak into text from elsewhere.

`[REDACTED:label]` is canonical. `[BYOK:...]` in any disguise becomes `[REDACTED:byok]`, never with its inner text:
that text may be the key. `<REDACTED:...>` in any disguise becomes canonical, with its label if that is a plain
identifier and with `source` if not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import re2

BYOK: Final = "byok"
SOURCE: Final = "source"

LABEL: Final = rb"[A-Za-z0-9_.-]{1,64}"
PREFIX: Final = b"[REDACTED:"

# Bytes for the states of an automaton.
_LEAST_ROOM: Final = 4 << 20
_MOST_ROOM: Final = 32 << 20
_ROOM_PER_STEP: Final = 4096


@cache
def compiled(pattern: bytes) -> re2._Regexp:
    """Compile a linear-time pattern, once. It is matched byte by byte, so any text can be searched."""
    return _with_room(pattern, _options())


def _with_room(pattern: bytes, options: re2.Options) -> re2._Regexp:
    """Compile the pattern with memory for the states of its automaton: with too little, RE2 falls back to a search that
    is fifty times as slow. Memory is taken only as states are made."""
    made = re2.compile(pattern, options)
    room = min(made.programsize * _ROOM_PER_STEP, _MOST_ROOM)
    if room > options.max_mem:
        options.max_mem = room
        made = re2.compile(pattern, options)
    return made


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _LEAST_ROOM
    return options


class Spans:
    """Matches of such a pattern as plain spans: the whole match, then its groups ((-1, -1): took no part).

    The package's own match objects ask for the number of groups at every access, which costs more than matching does.
    """

    __slots__ = ("_match",)

    def __init__(self, pattern: bytes) -> None:
        self._match = compiled(pattern)._regexp.Match

    def after(self, data: bytes, position: int, end: int | None = None) -> list[tuple[int, int]] | None:
        """Return the first match between `position` and `end`."""
        end = len(data) if end is None else end
        if position > end:
            return None
        found: list[tuple[int, int]] = self._match(_ANYWHERE, data, position, end)
        return None if found[0][0] < 0 else found

    def at(self, data: bytes, position: int, end: int) -> list[tuple[int, int]] | None:
        """Return the match that begins at `position` and ends at `end` at the latest."""
        found: list[tuple[int, int]] = self._match(re2._Anchor.ANCHOR_START, data, position, end)
        return None if found[0][0] < 0 else found

    def each(self, data: bytes, position: int = 0, end: int | None = None) -> Iterator[list[tuple[int, int]]]:
        """Yield all matches between `position` and `end`, without overlap. No match may be empty."""
        while (found := self.after(data, position, end)) is not None:
            yield found
            position = found[0][1]


class Presence:
    """Tests whether such a pattern occurs in a part of a text."""

    __slots__ = ("_match",)

    def __init__(self, pattern: bytes) -> None:
        options = _options()
        options.never_capture = True
        self._match = _with_room(pattern, options)._regexp.Match

    def within(self, data: bytes, start: int, end: int) -> bool:
        """Whether there is a match between `start` and `end`."""
        found: list[tuple[int, int]] = self._match(_ANYWHERE, data, start, end)
        return found[0][0] >= 0


presence = cache(Presence)
_ANYWHERE: Final = re2._Anchor.UNANCHORED
spans = cache(Spans)


class Lazy:
    """Such a pattern, compiled at first use: few texts need more than a few of them."""

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        value = getattr(compiled(self._pattern), name)
        setattr(self, name, value)
        return value


# The standard library's engine, here and for brackets: it returns many small matches far faster, and is linear as well
# for a pattern without nested repetition.
CANONICAL: Final = re.compile(rb"\[REDACTED:(" + LABEL + rb")\]")
_LABEL: Final = re.compile(LABEL)


def canonical(data: bytes) -> Iterator[re.Match[bytes]]:
    """The canonical markers in `data`."""
    return CANONICAL.finditer(data) if PREFIX in data else iter(())


# Each bracket as itself, as an HTML entity (named, decimal, hex; also escaped twice), as a JSON or string escape,
# and percent-encoded.
_NAMES: Final = {
    b"[": (rb"lbrack|lsqb", b"5b", b"91"),
    b"]": (rb"rbrack|rsqb", b"5d", b"93"),
    b"<": (rb"lt", b"3c", b"60"),
    b">": (rb"gt", b"3e", b"62"),
    b"{": (rb"lbrace|lcub", b"7b", b"123"),
    b"}": (rb"rbrace|rcub", b"7d", b"125"),
    b"(": (rb"lpar", b"28", b"40"),
    b")": (rb"rpar", b"29", b"41"),
}


def _spellings(bracket: bytes) -> bytes:
    names, hexadecimal, decimal = _NAMES[bracket]
    return (
        rb"\%s|&(?:amp;){0,3}(?:%s|#0{0,4}%s|#x0{0,4}%s);|\\u00%s|\\x%s|%%%s"
        % (bracket, names, decimal, hexadecimal, hexadecimal, hexadecimal, hexadecimal)
    )  # fmt: skip


_OPENING: Final = b"|".join(_spellings(b) for b in (b"[", b"<", b"{", b"("))
_BLANK: Final = rb"(?:[ \t]|&nbsp;|%20){0,8}"
_COLON: Final = rb"(?::|%3a|&colon;|&#0{0,4}58;|&#x0{0,4}3a;|\\u003a|\\x3a)"

LEAK: Final = (
    rb"(?i)(?:" + _OPENING + rb")" + _BLANK + rb"(?:byok" + _BLANK + _COLON + rb"|redacted" + _BLANK + rb"(?:" + _COLON
    + rb"|" + b"|".join(_spellings(b) for b in (b">", b"}")) + rb"))"
)  # fmt: skip
"""Prefilter for look-alikes of a marker; also matches every canonical marker."""

_LEAK: Final = (
    rb"(?i)(?:" + _OPENING + rb")" + _BLANK + rb"(?:(byok)" + _BLANK + _COLON + rb"|(redacted)" + _BLANK + rb"("
    + _COLON + rb")?)"
)  # fmt: skip
_BRACKET: Final = re.compile(b"(?i)" + b"|".join(b"(" + _spellings(b) + b")" for b in b"[ < { ( ] > } )".split()))
# `[BYOK:ab]cd]`: a value with a lone closing bracket in it. Accepted only if the rest of a word and another closing
# bracket follow without a blank.
_TAIL: Final = Lazy(rb"[A-Za-z0-9_+/=.!@#$%^&*~-]{1,128}[\]>})]")

_SQUARE, _ANGLE, _CURLY, _ROUND = range(4)


class Leak(NamedTuple):
    """A look-alike marker in the bytes searched, and the label of the marker that replaces it."""

    start: int
    end: int
    label: str


def _pairs(line: bytes) -> dict[int, tuple[int, int, int]]:
    """Map the opening offset of every bracket closed on `line` to its kind and the offset of its partner."""
    stacks: tuple[list[int], ...] = ([], [], [], [])
    pairs: dict[int, tuple[int, int, int]] = {}
    for match in _BRACKET.finditer(line):
        token = (match.lastindex or 1) - 1
        stack = stacks[token % 4]
        if token < 4:
            stack.append(match.start())
        elif stack:
            pairs[stack.pop()] = (token % 4, match.start(), match.end())
    return pairs


def _masked(marker: re.Match[bytes]) -> bytes:
    return b"\0" * (marker.end() - marker.start())


def find_leaks(data: bytes, *, canonical: bool = True) -> Iterator[Leak]:
    """Yield the look-alikes in `data`, in order, never overlapping; canonical markers too, if `canonical` is set.

    Never crosses a line. Brackets inside a value must balance; a BYOK marker that is never closed reaches to the end
    of its line. Linear in the length of `data`: brackets are paired once per line.
    """
    line_start, line_end, done = 0, -1, 0
    pairs: dict[int, tuple[int, int, int]] = {}
    for match in spans(_LEAK).each(data if canonical else CANONICAL.sub(_masked, data)):
        start = match[0][0]
        if start < done:
            continue
        marker = CANONICAL.match(data, start)
        if marker:  # By far the most frequent case; its brackets need no pairing.
            done = marker.end()
            yield Leak(start, done, marker.group(1).decode("ascii"))
            continue
        if start >= line_end:
            line_start = data.rfind(b"\n", 0, start) + 1
            line_end = data.find(b"\n", start)
            line_end = len(data) if line_end < 0 else line_end
            pairs = _pairs(data[line_start:line_end])
        pair = pairs.get(start - line_start)
        if match[1][0] >= 0:
            done = _byok_end(data, line_start, line_end, pair)
            yield Leak(start, done, BYOK)
        elif pair is not None:
            kind, close_start, close_end = pair
            inner = data[match[0][1] : line_start + close_start].strip(b" \t")
            has_colon = match[3][0] >= 0
            if (has_colon and kind != _ROUND) or (not inner and kind in (_ANGLE, _CURLY)):
                done = line_start + close_end
                label = inner.decode("ascii") if _LABEL.fullmatch(inner) else SOURCE
                yield Leak(start, done, label)


def _byok_end(data: bytes, line_start: int, line_end: int, pair: tuple[int, int, int] | None) -> int:
    if pair is None:
        return line_end - (data[line_end - 1 : line_end] == b"\r")
    end = line_start + pair[2]
    tail = _TAIL.match(data, end, line_end)
    return tail.end() if tail else end
