"""Spans of bytes: merged, grown, replaced; and the regions of a text that are scanned again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from reverie.redact.known import KnownSecrets, encode

_BLOCK: Final = 32 * 1024
# A rule is searched for in the pieces of a block that have its trigger.
_PIECE: Final = 512
# Short lines this near each other are scanned together, with the text between them.
_GAP: Final = 64
_WINDOW: Final = 3 * 1024
# No pattern matches more bytes.
OVERLAP: Final = 1024
_NEAR: Final = 512
_TOGETHER: Final = 2 * _BLOCK
# From this many finds on, those with at most `_SPARSE` bytes between them are replaced together.
_MANY: Final = 500
_SPARSE: Final = 8
_LINE_END: Final = ord("\n")
# Bytes read around a change in a long line, and around a word wrapped over lines.
_AROUND: Final = 4 * 1024


class Span(NamedTuple):
    """Bytes to remove, and the label of the marker that replaces them."""

    start: int
    end: int
    rank: int  # the lowest rank among overlapping spans names the marker
    label: str
    kind: str


Range = tuple[int, int]


def pieces(chunk: bytes, near: Sequence[int] | None = None) -> list[list[Range]]:
    """Divide `chunk` into short ranges (see `_pieces`), in groups of those that touch. While a group is searched, no
    other thread computes, so groups are short."""
    ranges = _pieces(chunk, near)
    if len(ranges) == 1:
        return [ranges]
    groups, first = [], 0
    for i, (_, end) in enumerate(ranges, 1):
        if i == len(ranges) or ranges[i][0] > end or end - ranges[first][0] >= _TOGETHER:
            groups.append(ranges[first:i])
            first = i
    return groups


def _pieces(chunk: bytes, near: Sequence[int] | None = None) -> list[Range]:
    """Divide `chunk` into short ranges: whole lines, and overlapping parts of a long line. With `near` (ascending),
    only the lines of these places, or their surroundings in a long line, unless there are too many places."""
    made: list[Range] = []
    start, size = 0, len(chunk)
    if near is not None and size > _WINDOW and len(near) * _PIECE < size:
        for place in near:
            if not made or place > made[-1][1] - _NEAR // 2:
                first, last = max(0, place - _NEAR), min(size, place + _NEAR)
                start = chunk.rfind(b"\n", first, place) + 1 or first
                end = chunk.find(b"\n", place, last) + 1 or last
                if made and start - made[-1][1] < _GAP and end - made[-1][0] < _PIECE:
                    made[-1] = (made[-1][0], end)
                else:
                    made.append((start, end))
        return made
    while size - start > _WINDOW:
        end = chunk.find(b"\n", start + _PIECE, start + _WINDOW) + 1
        made.append((start, end or start + _WINDOW))
        start = end or start + _WINDOW - OVERLAP
    made.append((start, size))
    return made


def lines_of(chunk: bytes, ranges: Sequence[Range]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that the ascending ranges touch, each with its start; adjoining lines come in one piece."""
    start = end = -1
    for first, last in ranges:
        if last <= end:
            continue
        begin = first if first <= end else chunk.rfind(b"\n", 0, first) + 1
        finish = chunk.find(b"\n", last - 1)
        if start >= 0 and begin > end + 1:
            yield start, chunk[start:end]
            start = -1
        start = begin if start < 0 else start
        end = len(chunk) if finish < 0 else finish
    if start >= 0:
        yield start, chunk[start:end]


def swarm(spans: list[Span]) -> list[Span]:
    """Join neighbouring spans (disjoint and in order) with the text between them, where that is hardly anything.

    A text made of nothing but finds would grow with every marker, and all of it would be read again."""
    if len(spans) <= _MANY:
        return spans
    between = spans[-1].end - spans[0].start - sum(span.end - span.start for span in spans)
    if between > len(spans) * _SPARSE:
        return spans
    merged = spans[:1]
    for span in spans[1:]:
        last = merged[-1]
        if span.start - last.end > _SPARSE:
            merged.append(span)
        else:
            best = last if last.rank <= span.rank else span
            merged[-1] = best._replace(start=last.start, end=span.end)
    return merged


def merge(spans: list[Span]) -> list[Span]:
    """Merge overlapping spans; the one of lowest rank gives the label."""
    spans.sort(key=lambda span: (span.start, -span.end, span.rank))
    merged: list[Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            best = min(last, span, key=lambda s: s.rank)
            merged[-1] = best._replace(start=last.start, end=max(last.end, span.end))
        else:
            merged.append(span)
    return merged


def replaced(data: bytes, spans: list[Span], known: KnownSecrets) -> tuple[bytes, list[tuple[int, int]]]:
    """Replace each span of `data` with a marker; also return the offsets of the markers in the result."""
    pieces: list[bytes] = []
    changed: list[tuple[int, int]] = []
    done = length = 0
    for span in spans:
        marker = known.marker(span.label)
        pieces += (data[done : span.start], marker)
        length += span.start - done
        changed.append((length, length + len(marker)))
        length += len(marker)
        done = span.end
    pieces.append(data[done:])
    return b"".join(pieces), changed


def blocks(data: bytes) -> list[tuple[int, int]]:
    """Divide `data` into blocks of whole lines, so that a rule that fires in one block is not run over all others."""
    blocks: list[tuple[int, int]] = []
    start = 0
    while len(data) - start > _BLOCK:
        end = data.find(b"\n", start + _BLOCK) + 1
        if end == 0:
            break
        blocks.append((start, end))
        start = end
    if start < len(data) or not blocks:
        blocks.append((start, len(data)))
    return blocks


def around(data: bytes, changed: list[Range], reach: int) -> list[Range]:
    """Return the lines in which a change can have created a find, `reach` bytes to either side included.

    Of a long line, only the surroundings of the change."""
    regions: list[Range] = []
    for start, end in changed:
        if regions and end + reach + _AROUND // 2 <= regions[-1][1]:
            continue
        first, last = max(start - reach - _AROUND, 0), min(end + reach + _AROUND, len(data))
        begin = data.rfind(b"\n", first, max(start - reach, 0)) + 1 or first
        finish = data.find(b"\n", min(end + reach, len(data)), last) + 1 or last
        begin, finish = whole_characters(data, begin, finish)
        if regions and begin <= regions[-1][1]:
            regions[-1] = (regions[-1][0], max(regions[-1][1], finish))
        else:
            regions.append((begin, finish))
    return regions


def core(data: bytes, region: Range) -> Range:
    """Return the part of a region in which finds count: not next to an edge that cuts a line."""
    start, end = region
    return start + OVERLAP * _cuts(data, start), end - OVERLAP if _cuts(data, end) else len(data)


def _cuts(data: bytes, position: int) -> bool:
    """Whether a region with an edge at `position` has only a part of that line."""
    return 0 < position < len(data) and data[position - 1] != _LINE_END


def widened(regions: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Yield the regions grown by the reach of a word wrapped over lines, joined where they touch."""
    start, end = 0, -1
    for begin, stop in regions:
        if end >= 0 and begin - _AROUND > end:
            yield start, end
            end = -1
        start = start if end >= 0 else max(0, begin - _AROUND)
        end = min(size, stop + _AROUND)
    if end >= 0:
        yield start, end


def to_line_ends(data: bytes, spans: list[Span]) -> list[Span]:
    """Grow the spans to the ends of their lines, and merge those that overlap."""
    widened = []
    for span in spans:
        end = data.find(b"\n", span.end)
        widened.append(span._replace(end=len(data) if end < 0 else end))
    return merge(widened)


def whole_characters(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Grow a span so that it cuts no UTF-8 sequence."""
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def character_offsets(data: bytes, offsets: Sequence[int]) -> Iterator[int]:
    """Convert ascending byte offsets of UTF-8 `data` to character offsets; one within a character becomes its start."""
    done = count = 0
    for offset in offsets:
        count += sum(byte & 0xC0 != 0x80 for byte in data[done:offset])
        done = offset
        yield count


def byte_offsets(text: str, offsets: Sequence[int]) -> Iterator[int]:
    """Convert ascending character offsets of `text` to byte offsets."""
    done = length = 0
    for offset in offsets:
        length += len(encode(text[done:offset]))
        done = offset
        yield length


class Batch(NamedTuple):
    """Texts that are scanned together."""

    first: int
    starts: list[int]
    joined: bytes


def batches(texts: list[bytes]) -> Iterator[Batch]:
    """Consecutive texts joined by line ends, about `_BLOCK` bytes at a time."""
    first, starts, size = 0, [], 0
    for i, text in enumerate(texts):
        starts.append(size)
        size += len(text) + 1
        if size >= _BLOCK or i + 1 == len(texts):
            yield Batch(first, starts, b"\n".join(texts[first : i + 1]))
            first, starts, size = i + 1, [], 0
