"""Find sources that say the same thing.

Two sources are duplicates when they have the same speaker and the newer wording has every informative
word of the older one, in the same order, with the same numbers, names, negations and other words that can
make a difference: before and after, on and off, he and she. Nothing is merged on a guess: MinHash only
proposes candidates, the comparison is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from rensa import RMinHash

from reverie.core.pause import paced
from reverie.distil.lexicon import HARMLESS
from reverie.distil.tokens import Token

_PERMUTATIONS, _SEED, _BAND = 32, 7, 4
_LEAST_OVERLAP = 75  # per cent, Jaccard over telling words
_BUCKET = 12  # candidates looked at per band; keeps templated logs linear


class Gist(NamedTuple):
    """The features that two wordings must share to be one statement."""

    group: Hashable  # only within a group (the speaker; the day, for words that point at today)
    telling: tuple[str, ...]  # stems in order
    fixed: tuple[str, ...]  # numbers, names, negations and other words that are not harmless, in order


def gist(tokens: Sequence[Token], group: Hashable) -> Gist:
    telling: list[str] = []
    fixed: list[str] = []
    fresh = True  # a capital at the beginning of a sentence is no name
    for t in tokens:
        if not t.word:
            fresh = fresh or t.text in ".!?"
            continue
        if t.hard or t.negates or (t.capital and not fresh) or not (t.telling or t.lower in HARMLESS):
            fixed.append(t.lower)
        if t.telling:
            telling.append(t.stem)
        fresh = False
    return Gist(group, tuple(telling), tuple(fixed))


def says_all_of(newer: Gist, older: Gist) -> bool:
    """Whether `newer` may represent `older`."""
    if newer.group != older.group or newer.fixed != older.fixed:
        return False
    if newer.telling == older.telling:
        return True
    new, old = set(newer.telling), set(older.telling)
    if not old <= new or len(old) * 100 < _LEAST_OVERLAP * len(new):
        return False
    words: Iterator[str] = iter(newer.telling)
    return all(word in words for word in older.telling)


def collapse(gists: Sequence[Gist], exact: Sequence[Hashable]) -> list[int]:
    """Return for each source (oldest first) the index of the newest one that represents it, or its own.

    `exact[i]` is the normalised text: equal texts of one group collapse whatever their gist.
    """
    stands_for = list(range(len(gists)))
    by_text: dict[Hashable, int] = {}
    by_gist: dict[Gist, int] = {}
    left: list[int] = []
    for i in range(len(gists) - 1, -1, -1):
        text, g = exact[i], gists[i]
        if (first := by_text.setdefault((g.group, text), i)) != i:
            stands_for[i] = first
        elif not g.telling:
            continue
        elif (first := by_gist.setdefault(g, i)) != i:
            stands_for[i] = first
        elif len(g.telling) > 3:
            left.append(i)
    if len(left) > 1:
        _collapse_near(gists, left, stands_for)
    for i, first in enumerate(stands_for):
        while stands_for[first] != first:
            first = stands_for[first]
        stands_for[i] = first
    return stands_for


def _collapse_near(gists: Sequence[Gist], left: Sequence[int], stands_for: list[int]) -> None:
    digests = RMinHash.digests_from_token_sets([sorted(set(gists[i].telling)) for i in left], _PERMUTATIONS, _SEED)
    buckets: dict[tuple[int, ...], list[int]] = {}
    numbers: dict[Hashable, int] = {}
    for i, digest in paced(zip(left, digests, strict=True)):  # newest first
        alike = (gists[i].group, gists[i].fixed)  # never merged across these, so never compared
        number = numbers.setdefault(alike, len(numbers))
        bands = [(number, b, *digest[b : b + _BAND]) for b in range(0, _PERMUTATIONS, _BAND)]
        seen: set[int] = set()
        for band in bands:
            seen.update(buckets.get(band, ()))
        match = next((j for j in sorted(seen, reverse=True) if says_all_of(gists[j], gists[i])), None)
        if match is not None:
            stands_for[i] = match
            continue
        for band in bands:
            bucket = buckets.setdefault(band, [])
            if len(bucket) < _BUCKET:
                bucket.append(i)
