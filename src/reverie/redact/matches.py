"""Matches of one rule in a text: found by its pattern, judged by its check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reverie.redact import markers
from reverie.redact.entropy import is_plain_word
from reverie.redact.escapes import before_escape
from reverie.redact.meter import FIND, REFUSAL, WORD, Meter
from reverie.redact.spans import OVERLAP, Range

if TYPE_CHECKING:
    from reverie.redact.rules.rule import Rule

LONG_VALUE: Final = 200
"""Values of this length or longer are extended to the end of the word: a pattern may have matched only a part."""
LONG_WORD: Final = markers.compiled(rb"[A-Za-z0-9+/=_.~%-]*")

# A marker that is a whole word.
_ALONE: Final = re.compile(rb"\[REDACTED:[A-Za-z0-9_.-]{1,64}\](?=[\s\"'`,;<>)}]|\Z)")
_LINE_END: Final = ord("\n")
_QUOTES: Final = b"\"'`"


def matches(
    rule: Rule, pattern: markers.Spans, chunk: bytes, ranges: Sequence[Range], meter: Meter
) -> Iterator[tuple[int, int]]:
    """Yield the secrets that one rule finds in these ranges of `chunk`: the first group that took part in a match, or
    the whole match. Stops when the meter has no steps left."""
    position = 0
    for first, stop in ranges:
        position = max(position, first - 1)  # A pattern may begin with the line end before its line.
        cut = stop - OVERLAP if stop < len(chunk) and chunk[stop - 1] != _LINE_END else stop
        while (found := _next(rule, pattern, chunk, position, stop, meter)) is not None:
            begin, finish = found[0]
            if finish == stop and begin >= cut:
                break  # The next range sees all of it.
            start, end = next((span for span in found[1:] if span[0] >= 0), found[0])
            if chunk.startswith(markers.PREFIX, start) and (marker := _ALONE.match(chunk, start)) is not None:
                position = max(marker.end(), begin + 1)
                continue
            if rule.extent is not None:
                end = rule.extent(chunk, start)
            if b"\\" in chunk[start:end]:
                end = before_escape(chunk, start, end)
            span = rule.judge(chunk, begin, start, end)
            if span is None or span[0] == span[1]:  # The refused value may itself begin with a key.
                meter.work(REFUSAL if span else _price(rule, chunk, begin, start, end), generic=rule.generic)
                position = max(start if end - start <= LONG_VALUE + 56 else end, begin + 1)
                continue
            start, end = span
            if end - start >= LONG_VALUE:
                end = LONG_WORD.match(chunk, end).end()
            meter.work(rule.price + FIND, generic=rule.generic)
            yield start, end
            position = max(end, begin + 1)


def _price(rule: Rule, chunk: bytes, begin: int, start: int, end: int) -> int:
    """Return the steps for a value that was dismissed: fewer for a plain word without quotes."""
    plain = start > begin and chunk[start - 1] not in _QUOTES and is_plain_word(chunk[start:end])
    return WORD if plain else rule.price


def _next(
    rule: Rule, pattern: markers.Spans, chunk: bytes, position: int, stop: int, meter: Meter
) -> list[Range] | None:
    """Return the next match, as long as the meter has steps left."""
    if meter.dry if rule.generic else meter.spent:
        return None
    found = pattern.after(chunk, position, stop)
    meter.read((stop if found is None else found[0][1]) - position, generic=rule.generic)
    return found
