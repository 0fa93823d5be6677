"""The value of a statement: its class, whether it must be kept, whether it is chatter.

A linear model over the mean of the static word vectors, hashed words and a few surface features. The part over the
vectors is folded into one small score per word and class, so that no vector is needed at run time. All arithmetic is
in integers, so every machine gives the same verdict. The weights are data (`value.npz`), fitted by
`tools/fit_value.py` on statements written and labelled for it (`bench/data/statements.tsv`).

Words of other languages that indicate a class (`cues.txt`: days, rules, health, choices, likes, kin) set the same
features as their English counterparts, so a language needs few labels of its own. The model judges only languages
that its labels cover. A statement in any other language must be kept, unless it is a mere courtesy.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.core.pause import paced
from reverie.distil.courtesy import is_courtesy
from reverie.distil.lexicon import word_set
from reverie.search.languages import ENGLISH, FUNCTION_WORDS, guess

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

COVERED = word_set(
    "english german french spanish italian portuguese dutch polish russian turkish arabic hindi japanese chinese korean"
)
"""Languages with labels of their own."""
OTHER = "other"
"""One of the languages with labels, but unknown which."""
BUCKETS = 16384
_SHORT, _LONG = 4, 20
_LONGEST_NUMBER = 5
"""Digits above which all numbers are one word: numbers are distinguished by length only."""
UNIT = 64
"""The value of a surface feature that applies, and of the bias."""

_WORD = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u064b-\u065f\u0900-\u0dff\u0e00-\u0eff])+(?:['’][^\W\d_]+)?|\d+|[!?]")
"""Words with their combining marks, numbers, and the marks `!` and `?`."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_MARKS = str.maketrans("’？！؟", "'?!?")
_NAME = re.compile(r"(\b[a-z]{1,20}|,) [A-Z][a-z]")
_CAPITAL = BUCKETS + 6
"""Number of the feature for a capital inside a statement."""
_SURFACE: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (needed, re.compile(pattern))
    for needed, pattern in (
        ("?", r"\?\W*$"),
        ("!", r"!\W*$"),
        ("", r"\d"),
        ("", r"\d(?:(?<!\w\d)|(?<=\b\d\d))(?:[:.]\d\d\b|(?:st|nd|rd|th)\b)"),
        ("", r"[/._-](?<=\w[/._-])[/._-]*\w"),
        (
            "",
            r"[@/.(A-Z_](?:(?<=@)|(?<=/)\w+/|(?<=:/)/|(?<=\w\.)\w{2,4}\b(?!\.)|(?<=\w\()\)"
            r"|(?<=[A-Z])[A-Z]+[-_ ]?\d|(?<=[A-Z_])[A-Z_]{5,})",
        ),
        ("", r"[A-Z](?<=[a-z,] [A-Z])[a-z]"),
        (":", r":"),
        ("", r"%|\b(?:ms|s|MB|GB|percent|degrees)\b"),
        ("", r"^[a-z]"),
        ("", r"[^\W_]\Z"),
        ("ing", r"^[A-Za-z]+ing\b"),
    )
)
"""Patterns, each with a string that all of its matches require. Few characters begin a match, which makes them fast."""
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
        "todo,to do,still open,still to,still need,still needs,left to,remains to,remaining,yet to,not yet,pending"
        ",outstanding,have to,needs to,follow up",
    )
)
"""Words, pairs of words and beginnings of longer words (~) that indicate a class."""
_CUES = ("day", "self", "you", "rule", "now", "past", "due", "health", "chose", "like", "kin", "task")
"""The groups of `cues.txt`, in the order of the groups above."""
QUANTUM = 1 << 20
"""The score of one unit of the natural logarithm."""
WHOLE = 1 << 10
STEPS = 32
_POWERS: NDArray[np.int64] = np.array([round(2**30 * 2.718281828459045 ** (-step / STEPS)) for step in range(640)])
_PATTERNS = len(_SURFACE) + len(_WORDS) + 1
FEATURES = BUCKETS + _PATTERNS + 4
_BATCH = 512
"""Statements judged in one batch."""


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
FIGURE = Value("status", must_keep=False, chatter=True, weight=WHOLE // 4)
"""The verdict on a short figure alone, without words to explain it."""
_BARE = re.compile(r"\W*\d{1,4}\W*")

_OTHER_SCRIPT = re.compile(
    r"[\u0370-\u1dbf\u2c00-\ua71f\ua800-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\U00020000-\U0003ffff]"
)
_SCRIPTS = (
    ("japanese", re.compile(r"[\u3040-\u30ff]")),
    ("chinese", re.compile(r"[\u3400-\u9fff]")),
    ("korean", _HANGUL),
)
_NEIGHBOURS = re.compile(r"[іїєґўђјљњћџ]|[پچژگکیٹڈڑے]")
"""Letters of languages that share a script with one that has labels, but have none themselves."""
_FEWEST = 3
"""Words needed to recognise the language of a text in Latin letters: `compile ok (14.2 s)` has too few."""
_SPELT = re.compile(r"[^\W\d_]{2,}")
_EVERYWHERE = re.compile(r"(?i)\b(?:ok|okay|ci|pr|db|etl|api|min|max|ms|[kmgt]b)\b")
"""Words used in every language, though some are spelt like function words of one."""


def language_of(text: str, guessed: tuple[str, bool] | None = None) -> str:
    """Return the language in which the model reads a statement; empty if its labels do not cover it.

    `guessed`: `guess(text)`, where that is known.

    A text in Latin letters without evidence counts as English, unless one of its words is a cue in another language.
    """
    if not text.isascii() and _OTHER_SCRIPT.search(text):
        for name, letters in _SCRIPTS:
            if letters.search(text):
                return name
        name, sure = guessed or guess(text)
        return name if sure and name in COVERED and not _NEIGHBOURS.search(text.lower()) else ""
    own = text
    name, sure = guessed or guess(text)
    if sure and name != ENGLISH:
        own = _EVERYWHERE.sub(" ", text)
        name, sure = guess(own)
    if name == ENGLISH and _is_foreign(text, sure=sure):
        return OTHER
    if not sure or name == ENGLISH or (text.isascii() and len(_SPELT.findall(own)) < _FEWEST):
        return ENGLISH
    return name if name in COVERED else ""


def words_of(text: str) -> list[str]:
    """Return words, numbers and marks; in scripts without spaces, pairs of characters."""
    found = _WORD.findall(text.lower().translate(_MARKS))
    if text.isascii() or not _UNSPACED.search(text):
        return found
    out: list[str] = []
    for word in found:
        pairs = len(word) > 2 and _UNSPACED.search(word)
        out += [word[i : i + 2] for i in range(len(word) - 1)] if pairs else [word]
    return out


@lru_cache(maxsize=1)
def _cues() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Map whole words, beginnings and, for scripts without spaces, parts of words to their groups, as bits."""
    whole: dict[str, int] = {}
    head: dict[str, int] = {}
    part: dict[str, int] = {}
    for line in resources.files(__package__).joinpath("cues.txt").read_text(encoding="utf-8").splitlines():
        group, _, words = line.partition("|")
        for word in words.split():
            into = part if _UNSPACED.search(word) else head if word.endswith("*") else whole
            word = word.rstrip("*")
            into[word] = into.get(word, 0) | 1 << _CUES.index(group)
    return whole, head, part


@lru_cache(maxsize=1)
def _days() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the weekdays and months: whole words, and beginnings of words."""
    whole, head, _ = _cues()
    return frozenset(word for word, groups in whole.items() if groups & 1), tuple(w for w, g in head.items() if g & 1)


@lru_cache(maxsize=1)
def _strangers() -> frozenset[str]:
    """Return the cues that are no English words."""
    english = FUNCTION_WORDS[ENGLISH].union(*_WORDS)
    return frozenset(word for word in _cues()[0] if len(word) >= _SHORT and word not in english)


def _is_foreign(text: str, *, sure: bool) -> bool:
    """Whether a text that passes for English has cues in another language, at least two if it has English function
    words: `Bitte niemals am Freitag ausliefern.`"""
    found = _strangers().intersection(_WORD.findall(text.lower()))
    return len(found) > sure


def days_among(words: Iterable[str]) -> set[str]:
    """Return the words that name a weekday or a month in a language other than English."""
    whole, heads = _days()
    return {word for word in words if word in whole or word.startswith(heads)}


_LONGEST_PART = 6


def _cued(text: str) -> int:
    """Return the groups of the cues in a text that is not English, as bits."""
    whole, head, part = _cues()
    found = 0
    for word in _WORD.findall(text.lower().translate(_MARKS)):
        found |= whole.get(word, 0)
        for end in range(2, len(word) + 1):
            found |= head.get(word[:end], 0)
        if _UNSPACED.search(word):
            for start in range(len(word)):
                for size in range(1, _LONGEST_PART + 1):
                    found |= part.get(word[start : start + size], 0)
    return found


class _Word(NamedTuple):
    """CRC-32 of a word and of its beginning, and the bytes that continue a CRC: ` word` and ` * word`."""

    code: int
    head: int
    after: bytes
    apart: bytes


Memo = dict[str, _Word]
"""Words of the statements of one batch."""


def _word(word: str) -> _Word:
    said = f"#{min(len(word), _LONGEST_NUMBER)}" if word[0].isdigit() else word
    raw = said.encode()
    head = zlib.crc32(f"~{said[:5]}".encode()) if len(said) > 5 else 0
    return _Word(zlib.crc32(raw), head, b" " + raw, b" * " + raw)


def _by_code() -> dict[int, list[int]]:
    """Map the CRCs of the words, pairs and beginnings in `_WORDS` to their groups."""
    found: dict[int, list[int]] = {}
    for number, group in enumerate(_WORDS):
        for member in group:
            found.setdefault(zlib.crc32(member.encode()), []).append(number)
    return found


_GROUPS = _by_code()
_CODES = frozenset(_GROUPS)
_ENDING = 3
"""Letters at the end of a word that show tense, person or case in inflected languages."""
_CARET = zlib.crc32(b"^")
_PAST = re.compile(r"ed\b")


def _codes(words: Sequence[str], memo: Memo, *, endings: bool = False) -> set[int]:
    """Return the CRCs of words, beginnings, pairs, pairs around a word, and the ends of a statement."""
    said = []
    for word in words:
        one = memo.get(word)
        if one is None:
            one = memo[word] = _word(word)
        said.append(one)
    crc = zlib.crc32
    found = {one.code for one in said}
    found.update([one.head for one in said if one.head])
    if endings:
        found.update([crc(f"{word[-_ENDING:]}~".encode()) for word in words if len(word) > _ENDING + 1])
    found.update([crc(b.after, a.code) for a, b in pairwise(said)])
    found.update([crc(b.apart, a.code) for a, b in zip(said, said[2:], strict=False)])
    if said:
        first = said[0].after[1:]
        begins = crc(first, _CARET)
        ends = first.decode()
        found |= {begins, crc(b"$", said[-1].code), crc(b"^~" + ends[-3:].encode()), crc(b"^~" + ends[-2:].encode())}
        if len(said) > 1:
            found.add(crc(said[1].after, begins))
    return found


def surface(text: str, words: Sequence[str], language: str = ENGLISH, memo: Memo | None = None) -> dict[int, int]:
    """Return the features that apply, by number: hashed words, pairs of words and pairs around a word, then surface
    features. `memo` holds words between calls."""
    codes = _codes(words, {} if memo is None else memo, endings=language != ENGLISH)
    if _SURFACE[_CAPITAL - BUCKETS][1].search(text) and (name := _NAME.search(text)):
        codes.add(zlib.crc32(b"name " + name[1].lower().encode()))
    share = 4 * UNIT // isqrt(16 * len(codes)) if codes else 0
    found: dict[int, int] = {}
    for code in codes:
        bucket = code % BUCKETS
        found[bucket] = found.get(bucket, 0) + share
    for number, (needed, pattern) in enumerate(_SURFACE, BUCKETS):
        if needed in text and pattern.search(text):
            found[number] = UNIT
    groups = BUCKETS + len(_SURFACE)
    for code in codes & _CODES:
        for number in _GROUPS[code]:
            found[groups + number] = UNIT
    if language != ENGLISH and (cued := _cued(text)):
        for number in range(len(_WORDS)):
            if cued >> number & 1:
                found[groups + number] = UNIT
    length = BUCKETS + _PATTERNS
    if _PAST.search(text.lower()):
        found[length - 1] = UNIT
    found[length] = min(len(words), 40) * 2
    if len(words) < _SHORT:
        found[length + 1] = UNIT
    elif len(words) > _LONG:
        found[length + 2] = UNIT
    found[length + 3] = UNIT
    return found


def chances(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Softmax in integers: the probability of each class in units of 1 / WHOLE, rounded down."""
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
        """The contribution of each known word to the score of each class, in units of `unit`."""
        self._unit, step, *limits = (int(number) for number in loaded["limits"])
        self._surface: NDArray[np.int64] = loaded["surface"].astype(np.int64) * step
        self._english, self._others = limits[:2], limits[2:]
        """The probabilities above which a statement must be kept, and above which it is chatter."""

    def judge(self, texts: Sequence[str]) -> list[Value]:
        """Return one verdict per statement, in order."""
        if not texts:
            return []
        guesses = [guess(text) for text in paced(texts)]
        languages = [language_of(*each) for each in paced(zip(texts, guesses, strict=True))]
        courteous = [is_courtesy(text) for text in paced(texts)]
        found = chances(self._scores(texts, languages))
        must = found[:, : len(MUST_KEEP)].sum(axis=1).tolist()
        low = found[:, -len(LOW) :].sum(axis=1).tolist()
        kinds = found.argmax(axis=1).tolist()
        out = []
        for text, language, polite, kind, mine, other in zip(
            texts, languages, courteous, kinds, must, low, strict=True
        ):
            least, most = self._english if language == ENGLISH else self._others
            if polite:
                out.append(COURTESY)
            elif _BARE.fullmatch(text):
                out.append(FIGURE)
            elif language:
                out.append(Value(CLASSES[kind], mine > least, other > most, WHOLE + mine - other))
            else:
                out.append(UNKNOWN)
        return out

    def _scores(self, texts: Sequence[str], languages: Sequence[str]) -> NDArray[np.int64]:
        """Return the scores: a row per statement, a column per class."""
        total = np.zeros((len(texts), self._surface.shape[1]), dtype=np.int64)
        for start in range(0, len(texts), _BATCH):
            self._add(total[start : start + _BATCH], texts[start : start + _BATCH], languages[start : start + _BATCH])
        return total

    def _add(self, total: NDArray[np.int64], texts: Sequence[str], languages: Sequence[str]) -> None:
        features: list[int] = []
        sizes: list[int] = []
        starts: list[int] = []
        known: list[int] = []
        spans: list[tuple[int, int, int]] = []  # a statement with known words, where they begin, how many there are
        memo: Memo = {}
        for row, (text, language) in enumerate(paced(zip(texts, languages, strict=True))):
            words = words_of(text)
            found = surface(text, words, language, memo)
            starts.append(len(features))
            features += found
            sizes += found.values()
            begin = len(known)
            known += [number for word in words if (number := self._rows.get(word)) is not None]
            if len(known) > begin:
                spans.append((row, begin, len(known) - begin))
        scores = self._surface[features]
        scores *= np.array(sizes, dtype=np.int64)[:, None]
        total += np.add.reduceat(scores, starts)  # every statement has a feature: the bias
        if spans:
            rows, begins, counts = map(list, zip(*spans, strict=True))
            sums = np.add.reduceat(self._words[known], begins)
            total[rows] += sums * self._unit // np.array(counts, dtype=np.int64)[:, None]


@lru_cache(maxsize=1)
def model() -> ValueModel:
    """Return the model of this release, loaded at first use."""
    return ValueModel()
