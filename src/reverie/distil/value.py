"""The value of a statement: what it is, whether it must be kept, whether it is chatter.

A linear model over the mean of the static word vectors, hashed words and a few surface features. The part over the
vectors is folded into one small score per word and class, so that no vector is needed at run time. All arithmetic is
in integers, so every machine gives the same verdict. The weights are data (`value.npz`), fitted by
`tools/fit_value.py` on statements we wrote and labelled ourselves (`bench/data/statements.tsv`).

The model is asked only about languages its labels cover. A statement in any other language must be kept, unless it is a
mere courtesy.
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

from reverie.distil.courtesy import is_courtesy
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
BUCKETS = 4096
_SHORT, _LONG = 4, 20
UNIT = 64
"""The value of a surface feature that applies, and of the bias."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d|[!?]")
_NAME = re.compile(r"(\b[a-z]{1,20}|,) [A-Z][a-z]")
_SURFACE: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        r"\?\W*$",
        r"!\W*$",
        r"\d",
        r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2}(?:st|nd|rd|th)\b",
        r"\w[/._-]+\w",
        r"https?://|@|/\w+/|\w\.\w{2,4}\b(?!\.)|\w\(\)|[A-Z]{2,}[-_ ]?\d|[A-Z_]{6,}",
        r"(?<=[a-z,] )[A-Z][a-z]+",
        r":",
        r"%|\b(?:ms|s|MB|GB|percent|degrees)\b",
    )
)
_WORDS = tuple(
    frozenset(text.split(","))
    for text in (
        "monday,tuesday,wednesday,thursday,friday,saturday,sunday,mondays,tuesdays,wednesdays,thursdays,fridays,saturdays"
        ",sundays,january,february,march,april,june,july,august,september,october,november,december",
        "i,my,me,we,our,us,i'm,i've,i'd,i'll,we're,we've,we'd,we'll",
        "you,your",
        "never,always,must,do not,don't,only,no,not,cannot,can't,please,should,need,needs,has to,have to",
        "is,are,am,has,have,live,lives,work,works,run,runs,take,takes,use,uses",
        "was,were,had,did,went,came,got,made,took,saw,found,gave,lost,spent",
        "will,by,until,before,due,next,tomorrow",
        "~aller,~intol,~diabe,~asthm,~epile,~diagn,~medic,~pregn,~surge,~migra,~seizu,~disab,~emerg,~dange,~poiso,~hazar"
        ",~faint,~veget,~addic,~wheel,asthma,pill,pills,mg,insulin,inhaler,pregnant,surgery,deaf,blind"
        ",blood,danger,poison,hazard,vegan,coeliac,celiac,gluten,lactose,kosher,halal,sober,allergy,allergic",
        "decide,decided,decision,agreed,chose,chosen,picked,settled on,went with,going with,opted,voted,approved"
        ",rejected,turned down,ruled out,dropped,replaced,switched,cancelled,postponed,signed off",
        "~prefe,favourite,favourites,favorite,favorites,rather,dislike,dislikes,hate,hates,can't stand,fan of,fond of"
        ",not into,enjoy,enjoys,love,loves,suits me,suit me,for me,bore,bored,boring,instead of,more than,better than",
        "my name,his name,her name,my wife,my husband,my partner,his wife,her husband,my son,my daughter,our son"
        ",our daughter,my brother,my sister,my mother,my father,my mum,my mom,my dad,my parents"
        ",my kids,my children,our kids,my dog,my cat,my boss,my manager,my birthday,my address,born,married,grew up"
        ",live in,lives in,work as,works as,is called",
    )
)
"""Words, pairs of words and heads of longer words (~) that go with a class."""
QUANTUM = 1 << 20
"""The score that stands for one natural logarithm."""
WHOLE = 1 << 10
STEPS = 32
_POWERS: NDArray[np.int64] = np.array([round(2**30 * 2.718281828459045 ** (-step / STEPS)) for step in range(640)])
_PATTERNS = len(_SURFACE) + len(_WORDS) + 1
FEATURES = BUCKETS + _PATTERNS + 4


class Value(NamedTuple):
    """The verdict on one statement. `weight` grows with the likelihood that it matters."""

    kind: str
    must_keep: bool
    chatter: bool
    weight: int


UNKNOWN = Value("fact", must_keep=True, chatter=False, weight=2 * WHOLE)
"""The verdict on a statement in a language without labels."""


COURTESY = Value("chatter", must_keep=False, chatter=True, weight=0)
"""The verdict on a greeting, thanks or an acknowledgement, in any language."""

_OTHER_SCRIPT = re.compile(
    r"[\u0370-\u1dbf\u2c00-\ua71f\ua800-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\U00020000-\U0003ffff]"
)
_FEWEST = 3
"""Words without which the language of a text in Latin letters is a guess."""


def covers(text: str) -> bool:
    """Whether the labels cover the language of a statement. One in Latin letters without evidence counts as English."""
    if _OTHER_SCRIPT.search(text):
        return False
    language, sure = guess(text)
    return language in COVERED or not sure or (text.isascii() and len(text.split()) < _FEWEST)


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def surface(text: str, words: Sequence[str]) -> dict[int, int]:
    """The features that apply, by number: hashed words and pairs of words, then what the surface shows."""
    grams = {*words, *(f"{a} {b}" for a, b in pairwise(words)), *("~" + word[:5] for word in words if len(word) > 5)}
    if words:
        grams |= {"^" + words[0], "^" + " ".join(words[:2]), words[-1] + "$"}
    if name := _NAME.search(text):
        grams.add("name " + name[1].lower())
    share = 4 * UNIT // isqrt(16 * len(grams)) if grams else 0
    found: dict[int, int] = {}
    for gram in grams:
        bucket = zlib.crc32(gram.encode()) % BUCKETS
        found[bucket] = found.get(bucket, 0) + share
    for number, pattern in enumerate(_SURFACE, BUCKETS):
        if pattern.search(text):
            found[number] = UNIT
    for number, group in enumerate(_WORDS, BUCKETS + len(_SURFACE)):
        if not grams.isdisjoint(group):
            found[number] = UNIT
    length = BUCKETS + _PATTERNS
    if any(word.endswith("ed") for word in words):
        found[length - 1] = UNIT
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
        out = []
        for text, kind, mine, other in zip(texts, kinds, must, low, strict=True):
            if is_courtesy(text):
                out.append(COURTESY)
            elif covers(text):
                out.append(Value(CLASSES[kind], mine > self._must, other > self._low, WHOLE + mine - other))
            else:
                out.append(UNKNOWN)
        return out

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
