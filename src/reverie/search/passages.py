"""Passages: the parts of a long entry that are indexed, found and shown separately.

A passage has about eighty words, begins and ends at the border of a sentence or line, and shares its last sentence with
the next passage. A short entry is one passage. In a dream every line is a passage, whatever its length, because each is
a statement of its own. Headings are not passages: they date the lines below them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime

from msgspec import Struct

from reverie.search.analysis import near, question, terms

WORDS = 80
"""Approximate number of words in a passage."""
_SHORT = 600
"""Characters up to which a text is one passage."""
_OVERLAP = 25
"""A sentence of up to this many words is repeated at the beginning of the next passage."""
_CHARACTERS = 6
"""Characters of a word and the space after it, on average."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_BORDER = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]++|\n++")
_SPACE = re.compile(r"\s+")
_MONTHS = ["January", "February", "March", "April", "May", "June"]
_MONTHS += ["July", "August", "September", "October", "November", "December"]
_HEADING = re.compile(rf"\[(?:(\d{{1,2}}) )?({'|'.join(_MONTHS)}) (\d{{4}})\]$", re.MULTILINE)
"""`[8 May 2023]` or `[May 2023]`, alone on a line."""
_LIKE_HEADING = re.compile(r"\n\[")
_HEADINGS = 8
"""Number of lines above a passage that begin like a heading and are examined."""


class Passage(Struct, frozen=True):
    """A part of an entry: characters `start` to `end` of its content, number `number` of `of` (from 1)."""

    start: int
    end: int
    number: int = 1
    of: int = 1


def passages(content: str, *, lines: bool = False) -> list[Passage]:
    """The passages of a content, in order; together they cover all of it. `lines`: one for each line but headings."""
    if lines:
        spans = _lines(content)
    elif len(content) <= (_SHORT if not _UNSPACED.search(content) else _SHORT // 3):
        return [Passage(0, len(content))]
    else:
        spans = _joined(content)
    return [Passage(start, end, number, len(spans)) for number, (start, end) in enumerate(spans, 1)]


def _lines(content: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for line in content.splitlines(keepends=True):
        end = start + len(line)
        if not line.isspace() and not (line[0] == "[" and _HEADING.match(line.rstrip())):
            spans.append((start, end))
        start = end
    return spans or [(0, len(content))]


def said_at(content: str, start: int, created_at: int) -> int:
    """Return the time of the passage at `start`: noon of the day in the heading above it, else `created_at`."""
    return Headings(content).said_at(start, created_at)


class Headings:
    """The headings of a content, found once for any number of its passages."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._before = [found.start() for found in _LIKE_HEADING.finditer(content)]
        """The line breaks before lines that begin like a heading."""

    def said_at(self, start: int, created_at: int) -> int:
        """See `said_at`."""
        above = bisect_right(self._before, start - 2)
        nearest = self._before[max(0, above - _HEADINGS) : above][::-1]
        for at in nearest if len(nearest) == _HEADINGS else (*nearest, -1):
            heading = _HEADING.match(self._content, at + 1)
            if heading is not None and heading.start() < start:
                day, month, year = int(heading[1] or 1), _MONTHS.index(heading[2]) + 1, int(heading[3])
                try:
                    return int(datetime(year, month, day, 12, tzinfo=UTC).timestamp() * 1000)
                except ValueError:
                    return created_at
        return created_at


def _joined(content: str) -> list[tuple[int, int]]:
    """Sentences joined to spans of about WORDS words."""
    sentences = _sentences(content)
    sizes = [_size(content[start:end]) for start, end in sentences]
    spans: list[tuple[int, int]] = []
    first = at = 0
    size = 0
    while at < len(sentences):
        if size and size + sizes[at] > WORDS * 1.25:
            spans.append((sentences[first][0], sentences[at - 1][1]))
            again = at - 1 > first and sizes[at - 1] <= _OVERLAP
            first = at - 1 if again else at
            size = sizes[at - 1] if again else 0
        size += sizes[at]
        at += 1
    spans.append((sentences[first][0], sentences[-1][1]))
    if len(spans) > 1 and size < WORDS // 4:  # a short rest joins the passage before it
        last = spans.pop()
        spans[-1] = (spans[-1][0], last[1])
    return spans


def _sentences(content: str) -> list[tuple[int, int]]:
    """Spans of sentences that cover the content; a very long sentence is cut at white space."""
    ends = [match.end() for match in _BORDER.finditer(content)]
    if not ends or ends[-1] < len(content):
        ends.append(len(content))
    most = WORDS * _CHARACTERS
    spans: list[tuple[int, int]] = []
    start = 0
    for end in ends:
        while end - start > most * 1.5:
            last = start + 2 * most
            space = _SPACE.search(content, start + most, min(last, end))
            cut = space.end() if space and space.end() < last else start + most
            spans.append((start, cut))
            start = cut
        if end > start:
            spans.append((start, end))
            start = end
    return spans


def excerpt(text: str, query: str, *, width: int) -> str:
    """Cut what precedes the sentence that has most words of the query, but leave at least `width` characters.

    A text that begins with that sentence, or has it among its first `width` characters, stays as it is.
    """
    if len(text) <= width:
        return text
    sentences = _sentences(text)
    own = [set(terms(text[start:end])) for start, end in sentences]
    words = near(question(query), set().union(*own).intersection)
    scores = [
        sum(word.weight * max((share for term, share in word.terms if term in found), default=0) for word in words)
        for found in own
    ]
    best = scores.index(max(scores))
    if best == 0 or sentences[best][1] <= width:
        return text
    while len(text) - sentences[best - 1][0] <= width:
        best -= 1
    return "… " + text[sentences[best][0] :].lstrip("-*• \n")


def _size(text: str) -> int:
    """Approximate number of words; two characters of a script without spaces count as one."""
    return max(text.count(" ") + 1, len(_UNSPACED.findall(text)) // 2 if not text.isascii() else 0)


MARK = "\x00"
"""Begins a mark among the terms of an entry: `mark(start, end)`, before the terms of each of its passages."""


def mark(start: int, end: int) -> str:
    """The mark of a passage, characters `start` to `end` of a content. No term looks like it."""
    return f"{MARK}{start}:{end}"
