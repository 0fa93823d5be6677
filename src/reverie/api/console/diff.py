"""Comparison of texts by words. Words that the other text does not have are marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from reverie.api.console.text import visible

_WORD = re.compile(r"\s+|×?\w+|[^\w\s]")
_SPEAKER = re.compile(r"[^\s:][^:\n]{0,39}: ")
"""Name of the speaker at the beginning of a line."""
_MOST = 4000
"""Limit of compared words; the rest of a longer text is shown without marks."""


def before(text: str, after: Sequence[str]) -> Markup:
    """A source. Words that none of the lines made from it has are marked."""
    kept = {word.casefold() for line in after for word in _WORD.findall(visible(line))}
    pieces = _WORD.findall(visible(text))
    return _mark(pieces, [_is_word(word) and word.casefold() not in kept for word in pieces], "del")


def without(text: str, cut: Sequence[str]) -> Markup:
    """A text. Words that were cut from it are marked."""
    gone = {piece.casefold() for word in cut for piece in _WORD.findall(visible(word))}
    pieces = _WORD.findall(visible(text))
    return _mark(pieces, [word.casefold() in gone and not word.isspace() for word in pieces], "del")


def after(line: str, sources: Sequence[str]) -> Markup:
    """A line of a dream. Words that none of its sources has, added by merging or dating, are marked."""
    said = {word.casefold() for text in sources for word in _WORD.findall(visible(text))}
    shown = visible(line)
    speaker = _SPEAKER.match(shown)
    pieces = _WORD.findall(shown[speaker.end() :] if speaker else shown)
    marked = _mark(pieces, [_is_word(word) and word.casefold() not in said for word in pieces], "ins")
    return Markup("<strong><bdi>{}</bdi></strong>{}").format(speaker[0], marked) if speaker else marked


def _is_word(word: str) -> bool:
    """Whether it is a word or a number, also of repetitions (`×2`), rather than a sign."""
    return word.removeprefix("×").isalnum()


def words(old: str, new: str) -> tuple[Markup, Markup]:
    """Align two versions: words dropped and added by the second."""
    first, second = _WORD.findall(visible(old)), _WORD.findall(visible(new))
    gone, come = [False] * len(first), [False] * len(second)
    matcher = SequenceMatcher(None, first[:_MOST], second[:_MOST], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            gone[a:b], come[c:d] = [True] * (b - a), [True] * (d - c)
    return _mark(first, gone, "del"), _mark(second, come, "ins")


def _mark(pieces: Sequence[str], flags: Sequence[bool], element: str) -> Markup:
    """Join pieces and mark the flagged ones. Neighbouring marked words share one mark, with the space between them."""
    made: list[Markup] = []
    run: list[str] = []
    space = ""
    for piece, flag in zip(pieces, flags, strict=True):
        if flag:
            run.append(space + piece if run else piece)
            if not run[:-1]:
                made.append(escape(space))
            space = ""
        elif piece.isspace():
            space += piece
        else:
            if run:
                made.append(_wrap(run, element))
                run = []
            made.append(escape(space + piece))
            space = ""
    if run:
        made.append(_wrap(run, element))
    return Markup("").join([*made, escape(space)])


def _wrap(run: Sequence[str], element: str) -> Markup:
    return Markup(f"<{element}>{{}}</{element}>").format("".join(run))
