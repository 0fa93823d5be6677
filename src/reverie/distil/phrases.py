"""Phrases of sources with anchored dates, and the verdicts on them. A dream reads each source once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice

from reverie.core.pause import paced
from reverie.distil.dates import MONTHS, UNKNOWN_DAY, anchor, day_of
from reverie.distil.questions import facts
from reverie.distil.sentences import Form, split
from reverie.distil.source import Phrase, Source
from reverie.distil.tokens import join, tokenize
from reverie.distil.value import Value, model

_HEADING = re.compile(rf"^\[(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{4}})\]$", re.MULTILINE)
_PHOTO = re.compile(r"^([a-z ]+: )(?:an? )?(?:close[- ]up )?(?:photo|photograph|photography|picture|image)s? of ")


def phrases_of(sources: Sequence[Source]) -> list[Sequence[Phrase]]:
    """Return the phrases of every source; none for blank content."""
    fresh = [source for source in sources if source.memo.phrases is None]
    if fresh:
        read = [
            [(piece, day) for content, day in _by_day(source) for piece in split(content)] for source in paced(fresh)
        ]
        dated = [one for own in read for one in own]
        texts = [anchor(piece.whole, UNKNOWN_DAY if piece.form is Form.CODE else day) for piece, day in paced(dated)]
        texts = [
            _PHOTO.sub(r"\1", text) if piece.form is Form.ASIDE else text
            for text, (piece, _) in zip(texts, dated, strict=True)
        ]
        tokens = [tokenize(text) for text in paced(texts)]
        found = zip(dated, texts, tokens, strict=True)
        for source, own in zip(fresh, read, strict=True):
            source.memo.phrases = [
                Phrase(piece.whole, piece.form, text, words, day, piece.head)
                for (piece, day), text, words in islice(found, len(own))
            ]
    return [source.memo.phrases or () for source in sources]


def _by_day(source: Source) -> Iterator[tuple[str, date]]:
    """The text of a source in parts, each with its day. In the text of a dream headings date the lines below them."""
    day, start = day_of(source.created_at), 0
    for heading in _HEADING.finditer(source.content) if "[" in source.content else ():
        try:
            found = date(int(heading[3]), MONTHS.index(heading[2]) + 1, int(heading[1]))
        except ValueError:
            continue  # no day of the calendar: a line like any other
        yield source.content[start : heading.start()], day
        day, start = found, heading.end()
    yield source.content[start:], day


def judge(texts: Sequence[str]) -> list[Value]:
    """Return the verdicts on statements. A question that states something gets the verdict on its stated part, if that
    matters more: in `I get carsick, so could you plan it by train?` the request is chatter."""
    values = model().judge(texts)
    stated = {n: join(facts(tokenize(text))) for n, text in enumerate(texts) if text.endswith("?")}
    asked = [n for n, text in stated.items() if text]
    for n, own in zip(asked, model().judge([stated[n] for n in asked]), strict=True):
        if own.weight > values[n].weight:
            values[n] = own
    return values


def values_of(sources: Sequence[Source]) -> list[Sequence[Value]]:
    """Return the verdicts on the phrases of every source, judged in one batch."""
    fresh = [source for source in sources if source.memo.values is None]
    if fresh:
        said = phrases_of(fresh)
        values = iter(judge([phrase.original for own in said for phrase in own]))
        for source, own in zip(fresh, said, strict=True):
            source.memo.values = list(islice(values, len(own)))
    return [source.memo.values or () for source in sources]
