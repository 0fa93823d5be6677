"""The value of a statement: what it is, whether it must be kept, whether it is chatter.

A linear model over the mean of the static word vectors, hashed words and a few surface features. The part over the
vectors is folded into one small score per word and class, so that no vector is needed at run time. All arithmetic is
in integers, so every machine gives the same verdict. The weights are data (`value.npz`), fitted by
`tools/fit_value.py` on statements we wrote and labelled ourselves (`bench/data/statements.tsv`).

The model is asked only about languages its labels cover. A statement in any other language must be kept.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.search.languages import ENGLISH, guess

MUST_KEEP = (
    "instruction",
    "preference",
    "safety",
    "identity",
    "commitment",
    "decision",
    "configuration",
    "artifact",
    "task",
)
LOW = ("status", "chatter")
CLASSES = (*MUST_KEEP, "fact", *LOW)

COVERED = frozenset({ENGLISH})
BUCKETS = 1024
_SHORT, _LONG = 4, 20
UNIT = 64
"""The value of a surface feature that applies, and of the bias."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d|[!?]")
_SURFACE: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        r"\?\W*$",
        r"!\W*$",
        r"\d",
        r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2}(?:st|nd|rd|th)\b",
        r"\w[/._-]+\w",
        r"https?://|@|/\w+/|\w\.\w{2,4}\b(?!\.)|\w\(\)|[A-Z]{2,}[-_ ]?\d|[A-Z_]{6,}",
        r"(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
        r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b",
        r"(?i)\b(?:i|my|me|we|our|us|i['’]\w+|we['’]\w+)\b",
        r"(?i)\b(?:you|your)\b",
        r"(?i)\b(?:never|always|must|do not|don['’]t|only|no|not|cannot|can['’]t|please|should|needs?"
        r"|has to|have to)\b",
        r"(?<=[a-z,] )[A-Z][a-z]+",
        r":",
        r"(?i)\b(?:is|are|am|has|have|lives?|works?|runs?|takes?|uses?)\b",
        r"(?i)\b(?:was|were|had|did|went|came|got|made|took|saw|found|gave|lost|spent|\w{3,}ed)\b",
        r"(?i)\b(?:will|by|until|before|due|next|tomorrow)\b",
        r"%|\b(?:ms|s|MB|GB|percent|degrees)\b",
    )
)
QUANTUM = 1 << 20
"""The score that stands for one natural logarithm."""
WHOLE = 1 << 10
STEPS = 32
_POWERS: NDArray[np.int64] = np.array([round(2**30 * 2.718281828459045 ** (-step / STEPS)) for step in range(640)])
FEATURES = BUCKETS + len(_SURFACE) + 4


class Value(NamedTuple):
    """The verdict on one statement. `weight` grows with the likelihood that it matters."""

    kind: str
    must_keep: bool
    chatter: bool
    weight: int


UNKNOWN = Value("fact", must_keep=True, chatter=False, weight=2 * WHOLE)
"""The verdict on a statement in a language without labels."""


_FEWEST = 3
"""Words without which the language of a text in Latin letters is a guess."""


def covers(text: str) -> bool:
    """Whether the labels cover the language of a statement. One without evidence counts as English."""
    language, sure = guess(text)
    return language in COVERED or not sure or (text.isascii() and len(text.split()) < _FEWEST)


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def surface(text: str, words: Sequence[str]) -> dict[int, int]:
    """The features that apply, by number: hashed words and pairs of words, then what the surface shows."""
    grams = {*words, *(f"{a} {b}" for a, b in pairwise(words))}
    if words:
        grams.add("^" + words[0])
    share = 4 * UNIT // isqrt(16 * len(grams)) if grams else 0
    found: dict[int, int] = {}
    for gram in grams:
        bucket = zlib.crc32(gram.encode()) % BUCKETS
        found[bucket] = found.get(bucket, 0) + share
    for number, pattern in enumerate(_SURFACE, BUCKETS):
        if pattern.search(text):
            found[number] = UNIT
    length = BUCKETS + len(_SURFACE)
    found[length] = min(len(words), 40) * 2
    if len(words) < _SHORT:
        found[length + 1] = UNIT
    elif len(words) > _LONG:
        found[length + 2] = UNIT
    found[length + 3] = UNIT
    return found


def chances(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Softmax in integers: per class, the chance in units of 1 / WHOLE, rounded down."""
    below = np.minimum((scores.max(axis=1, keepdims=True) - scores) * STEPS // QUANTUM, len(_POWERS) - 1)
    powers = _POWERS[below]
    found: NDArray[np.int64] = powers * WHOLE // powers.sum(axis=1, keepdims=True)
    return found


class ValueModel:
    """Judges statements. Stateless after loading; safe to share between threads."""

    def __init__(self) -> None:
        data = resources.files(__package__).joinpath("value.npz").read_bytes()
        self.name = f"value/{hashlib.sha256(data).hexdigest()[:12]}"
        loaded: Any = np.load(io.BytesIO(data), allow_pickle=False)
        words = bytes(loaded["words"]).decode("utf-8").split("\n")
        self._rows = {word: row for row, word in enumerate(words)}
        self._words: NDArray[np.int64] = loaded["scores"].astype(np.int64)
        """Per known word and class: its share of the score, in units of `unit`."""
        self._surface: NDArray[np.int64] = loaded["surface"].astype(np.int64)
        self._unit, self._must, self._low = (int(number) for number in loaded["limits"])

    def judge(self, texts: Sequence[str]) -> list[Value]:
        """One verdict per statement, in order."""
        if not texts:
            return []
        found = chances(np.array([self._score(text) for text in texts]))
        must = found[:, : len(MUST_KEEP)].sum(axis=1).tolist()
        low = found[:, -len(LOW) :].sum(axis=1).tolist()
        kinds = found.argmax(axis=1).tolist()
        return [
            Value(CLASSES[kind], mine > self._must, other > self._low, WHOLE + mine - other)
            if covers(text)
            else UNKNOWN
            for text, kind, mine, other in zip(texts, kinds, must, low, strict=True)
        ]

    def _score(self, text: str) -> NDArray[np.int64]:
        words = words_of(text)
        found = surface(text, words)
        values = np.fromiter(found.values(), dtype=np.int64, count=len(found))
        total: NDArray[np.int64] = values @ self._surface[list(found)]
        known = [row for word in words if (row := self._rows.get(word)) is not None]
        if known:
            total = total + self._words[known].sum(axis=0) * self._unit // len(known)
        return total


@lru_cache(maxsize=1)
def model() -> ValueModel:
    """The model of this release, loaded when first asked for."""
    return ValueModel()
