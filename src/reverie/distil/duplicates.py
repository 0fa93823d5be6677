"""Find sources that say the same thing.

Two sources are duplicates when they have the same speaker and the same words in the same order, apart from words that
can make no difference: articles, fillers, a greeting or a mood at the beginning. The newer wording may have further
sentences at its end. Whatever else differs may be another fact: `the side door` and `the door`, `> 40 %` and `< 40 %`,
`smoked` and `smokes`, `in the desk` and `on the desk`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from reverie.distil.lexicon import HARMLESS, OPENING
from reverie.distil.tokens import Token

_LEAST_OVERLAP = 75  # per cent of the words of the newer wording
_LEAST_WORDS = 4  # of an older wording that is the beginning of a newer one
_ENDS = frozenset(".!?")
_PUNCTUATION = frozenset(".,;:!…\"'“”„‘’«»‹›()[]{}-–—*_`|¿¡،؛。、！「」・，；：")
"""Marks that make no difference, unlike `?`, `>`, `≤`, `~`, `☑` and combining vowels."""


class Gist(NamedTuple):
    """The features that two wordings must share to be one statement."""

    group: Hashable  # only within a group (the speaker; the day, for words that point at today)
    words: tuple[str, ...]  # words and marks that can make a difference, in order
    ends: tuple[int, ...] = ()  # numbers of words before the ends of sentences, the last one excepted


def gist(tokens: Sequence[Token], group: Hashable) -> Gist:
    words: list[str] = []
    ends: dict[int, None] = {}
    opening = True
    for i, t in enumerate(tokens):
        if not t.word:
            if t.text in _ENDS:
                ends[len(words)] = None
                opening = True
            if t.text not in _PUNCTUATION:
                words.append(t.text)
        elif not _is_harmless(t, tokens[i + 1] if i + 1 < len(tokens) else None, opening=opening):
            # a capital at the beginning of a sentence is no name
            words.append(t.text if t.capital and not opening else t.lower)
            opening = False
    return Gist(group, tuple(words), tuple([end for end in ends if 0 < end < len(words)]))


def _is_harmless(token: Token, after: Token | None, *, opening: bool) -> bool:
    """Whether leaving a word out makes no other statement. `Great, the barn is dry` begins with a mood, `Great aunt
    Ada` with a name.
    """
    if token.lower in HARMLESS:
        return True
    return opening and token.lower in OPENING and (after is None or not after.telling)


def says_all_of(newer: Gist, older: Gist) -> bool:
    """Whether `newer` may represent `older`."""
    return newer.group == older.group and older.words in _wordings(newer)


def _wordings(newer: Gist) -> list[tuple[str, ...]]:
    """Return the wordings of older sources that a newer one may represent."""
    least = max(_LEAST_WORDS, -(-len(newer.words) * _LEAST_OVERLAP // 100))
    return [newer.words, *(newer.words[:end] for end in newer.ends if end >= least)]


def collapse(gists: Sequence[Gist], exact: Sequence[Hashable]) -> list[int]:
    """Return for each source (oldest first) the index of the newest one that represents it, or its own.

    `exact[i]` is the normalised text: equal texts of one group collapse whatever their gist.
    """
    stands_for = list(range(len(gists)))
    by_text: dict[Hashable, int] = {}
    by_words: dict[tuple[Hashable, tuple[str, ...]], int] = {}
    for i in range(len(gists) - 1, -1, -1):
        text, g = exact[i], gists[i]
        first = by_text.setdefault((g.group, text), i)
        if first == i and g.words:
            first = by_words.get((g.group, g.words), i)
        stands_for[i] = first
        if first == i and g.words:
            for words in _wordings(g):
                by_words.setdefault((g.group, words), i)
    for i, first in enumerate(stands_for):
        while stands_for[first] != first:
            first = stands_for[first]
        stands_for[i] = first
    return stands_for
