"""Confidence: the measured share of right answers for a given amount of evidence.

`confidence.txt` is made by tools/build_confidence.py from our later corpora: for each step of evidence, the share of
first hits that were right.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

WEAK = 0.36
"""A hit below this confidence is weak: twice as likely to be noise as an answer. With a lower threshold, more than one
in ten of the questions that nothing answers would get an answer."""

_UNKNOWN = 0.45
"""Evidence of a word in common, in a script that the vectors do not know: there it is seldom chance."""
_MANY = 20
"""Number of passages above which more make no difference to the evidence for the best."""


def evidence(cover: float, cosine: float, trust: float, among: int = _MANY) -> float:
    """Sum the evidence for a hit: the share of the question it covers, and its closeness in meaning.

    `trust` is how well the vectors know the language of the question. Where they do not, a constant for any word in
    common replaces the meaning, so that one threshold serves all languages. `among` is the number of passages: the
    best of a few is less likely to be there by chance than the best of many. The weights come from a logistic
    regression over the corpora behind `confidence.txt`, with the weight of the share set to 1. The context of
    neighbours added nothing there.
    """
    close = trust * max(0.0, cosine)
    few = math.log(_MANY / min(max(among, 1), _MANY))
    unknown = _UNKNOWN * (1 - trust) ** 2 if cover > 0 else 0.0
    return cover + 0.85 * close + unknown + 0.11 * few


def confidence(value: float) -> float:
    """The measured share of right answers at this much evidence, 0 to 1."""
    return between(_steps(), value)


def between(steps: tuple[Sequence[float], Sequence[float]], value: float) -> float:
    """The share at this much evidence, given the evidence and share of each step; interpolated between steps."""
    values, shares = steps
    at = bisect_right(values, value)
    if at == 0:
        return shares[0] * max(0.0, value) / values[0] if values[0] > 0 else shares[0]
    if at == len(values):
        return shares[-1]
    part = (value - values[at - 1]) / (values[at] - values[at - 1])
    return round(shares[at - 1] + part * (shares[at] - shares[at - 1]), 4)


@lru_cache(maxsize=1)
def _steps() -> tuple[list[float], list[float]]:
    text = resources.files("reverie.search").joinpath("confidence.txt").read_text(encoding="utf-8")
    steps = [tuple(map(float, line.split())) for line in text.splitlines()]
    return [step[0] for step in steps], [step[1] for step in steps]
