"""Contradictions: numbers, negations and states of the same thing that cannot both be true. Pure, without a model.

Two sentences contradict each other when they speak of the same thing in the same words, except that

* one value differs ("the limit is 100 requests" / "... 60 requests"),
* one denies what the other says ("supports refunds" / "does not support refunds"),
* a state differs from another of the same kind ("the build passed" / "the build failed").

Everything else that varies must agree: a number that names the thing ("order 17"), a month, a year, a name, a
qualification ("in staging"). Unclear cases are not flagged: a false alarm keeps a unit out of compaction, while an
agent can still declare a missed contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from reverie.distil.lexicon import MONTH_NAMES, word_set
from reverie.distil.sentences import Form, split
from reverie.distil.tokens import Token, tokenize

Kind = Literal["number", "negation", "state", "value"]
_MOST_EXTRA = 2
"""Maximum number of topic words that only one of two statements about the same thing has."""
_ROOT = 3
"""Letters of a word that its stem never changes."""
_FAMILY = 4
"""Least number of letters that words of one family share."""

_NUMBER = re.compile(r"([-+]?)[$€£~]?(\d[\d,]*(?:\.\d+)?)\s*([a-zµ%]{0,10}(?:/[a-z]{1,6})?)")
_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
_SCALE = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9, "percent": 0}
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?|q[1-4]|\d{1,2}:\d\d")
_DAYS = word_set("monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday")

VERBS = word_set(
    "is are was were be been am 's equals equal has have had having holds hold held takes take took costs cost needs"
    " need needed requires require contains contain contained includes include reached reaches reach grew grows grow"
    " growing rose fell runs run ran uses use used using supports support supported handles handle handled returns"
    " return returned lasts last lasted weighs weigh measures measured scored scores averages averaged totals totalled"
    " will would can could should must may might does do did cannot stands stood sits sat listens listen lives live"
    " lived allows allow allowed accepts accept sends send sent serves serve served shipped ships starts start started"
    " ends end ended stays stay stayed became becomes gets got went goes showed shows show processes process stores"
    " expires expire opens open opened closes close closed failed fails passed passes works work worked remains"
)
"""Words that usually end the subject of a sentence."""
_COPULA = word_set("is are was were be been equals equal 's stands remains became becomes = :")
_PREPOSITIONS = word_set(
    "in on at for with without during under over by from into since until before after between per within across when"
    " while if unless via through against outside inside as"
)
_BOUNDS = word_set(
    "least most than up under over below above max maximum min minimum between almost nearly around range"
)
_NEUTRAL = word_set(
    "currently now about approximately roughly exactly only just still already actually really very the a an our this"
    " that these those it its we i you they there also new latest value number amount total set overall"
    " measured reported confirmed found observed according report reports test tests shows showed says said that"
    " be been being do does did has have had will would is are was were am of to and or so then it's that's"
)
_STATES = [
    word_set(group)
    for group in (
        "open closed merged",
        "opened closed",
        "enabled disabled",
        "on off",
        "up down",
        "passed failed pass fail passing failing",
        "succeeded failed success failure",
        "done pending blocked unfinished finished complete completed incomplete",
        "true false",
        "available unavailable",
        "online offline",
        "safe unsafe dangerous",
        "secure insecure vulnerable",
        "increased decreased",
        "increasing decreasing",
        "increases decreases",
        "rising falling",
        "rose fell",
        "growing shrinking declining",
        "grew shrank declined",
        "high low",
        "higher lower",
        "approved rejected",
        "accepted rejected refused",
        "allowed forbidden denied prohibited",
        "required optional",
        "mandatory optional",
        "synchronous asynchronous",
        "present absent missing",
        "stable unstable",
        "valid invalid",
        "supported unsupported",
        "healthy unhealthy degraded",
        "active inactive",
        "alive dead",
        "full empty",
        "public private",
        "fast slow",
        "faster slower",
        "cheap expensive",
        "positive negative",
        "running stopped",
        "started stopped",
        "locked unlocked",
        "encrypted unencrypted",
        "compatible incompatible",
        "profitable unprofitable",
        "legal illegal",
        "correct incorrect wrong",
        "reliable unreliable",
        "scalable unscalable",
        "connected disconnected",
        "green red yellow",
        "ready unready",
        "live down",
    )
]
_ALIKE = [
    word_set(group)
    for group in (
        "passed pass passing succeeded success",
        "failed fail failing failure",
        "done finished complete completed",
        "pending unfinished incomplete",
        "declined shrank",
        "declining shrinking",
        "unsafe dangerous",
        "insecure vulnerable",
        "forbidden denied prohibited",
        "rejected refused",
        "absent missing",
        "incorrect wrong",
        "unhealthy degraded",
    )
]
_STATE_WORDS = frozenset(word for group in _STATES for word in group)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both be true, each a sentence of its text, and the kind of conflict."""

    kind: Kind
    first: str
    second: str

    @property
    def method(self) -> str:
        """The method of detection, in Akashik's terms."""
        return "temporal" if self.kind == "state" else "logical"


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    words: frozenset[str]
    """Topic words: stems, without values, states, negations and grammar."""
    scope: frozenset[str]
    """Topic words inside a qualification."""
    context: frozenset[str]
    """Numbers and dates that identify the thing or the time, not an amount."""
    values: tuple[tuple[str, str], ...]
    """(amount, unit) in order."""
    states: frozenset[str]
    names: tuple[str, ...]
    """The name after a copula, if nothing else follows."""
    denies: bool
    bounded: bool
    families: Mapping[str, Sequence[str]]
    """Topic words of four letters or more, by their first four."""

    def may_meet(self, lowered: str) -> bool:
        """Whether a text in lower case can have a clause about the same thing: at most two topic words are missing.

        Only the beginnings of words are searched for: a stem differs from its word at the end only.
        """
        missing, most = 0, min(_MOST_EXTRA, len(self.words) - 1)
        for word in self.words:
            if word[:_ROOT] not in lowered:
                missing += 1
                if missing > most:
                    return False
        return True


def contradiction(first: str, second: str) -> Contradiction | None:
    """Return the first contradiction between two texts, or None."""
    if first == second:
        return None
    lowered = second.lower().replace("’", "'")
    ours = [clause for clause in _clauses(first) if clause.may_meet(lowered)]
    if not ours:
        return None
    theirs = _clauses(second)
    for a in ours:
        for b in theirs:
            kind = _compare(a, b)
            if kind is not None:
                return Contradiction(kind, a.text, b.text)
    return None


def subjects(text: str) -> frozenset[str]:
    """Return the words by which candidates for a contradiction can be found."""
    return frozenset(word for clause in _clauses(text) for word in clause.words)


def _compare(a: _Clause, b: _Clause) -> Kind | None:
    if a.context != b.context or not _same_thing(a, b):
        return None
    if a.denies != b.denies:
        agree = a.values == b.values and _same_states(a.states, b.states) and a.names == b.names
        return "negation" if agree and len(a.words & b.words) + len(a.states & b.states) >= 2 else None
    if a.states or b.states:
        if _opposed(a.states, b.states) and a.values == b.values and not a.denies and a.names == b.names:
            return "state"
        if not _same_states(a.states, b.states):
            return None
    if a.values and b.values and a.values != b.values:
        return "number" if not (a.bounded or b.bounded or a.denies) and _comparable(a.values, b.values) else None
    if a.names and b.names and a.names != b.names and a.values == b.values and not a.denies:
        return "value"
    return None


def _same_thing(a: _Clause, b: _Clause) -> bool:
    """Whether two clauses have the same topic words. One side may have a few more, if they do not qualify."""
    extra = {word for word in a.words if not _known(word, b)}
    shared = len(a.words) - len(extra)
    if not extra:
        extra = {word for word in b.words if not _known(word, a)}
    elif not all(_known(word, a) for word in b.words):
        return False
    if extra & (a.scope | b.scope):
        return False
    if a.names or b.names:
        return not extra and shared >= 1
    if shared >= 2:
        return len(extra) <= (1 if shared < 4 else _MOST_EXTRA)
    return shared == 1 and not extra and bool(a.values or a.states)


def _known(word: str, clause: _Clause) -> bool:
    """Whether a clause has the word or one clearly of its family (grow, growth)."""
    if word in clause.words:
        return True
    family = clause.families.get(word[:_FAMILY]) if word.isalpha() else None
    if family is None or word.startswith(("non", "anti")):
        return False
    return any(other.startswith(word) or word.startswith(other) for other in family)


def _opposed(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    mine, its = ours - theirs, theirs - ours
    if len(mine) != 1 or len(its) != 1:
        return False
    one, other = next(iter(mine)), next(iter(its))
    if any(one in alike and other in alike for alike in _ALIKE):
        return False
    return any(one in group and other in group for group in _STATES)


def _same_states(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    if ours == theirs:
        return True
    mine, its = ours - theirs, theirs - ours
    return len(mine) == len(its) == 1 and any(
        next(iter(mine)) in alike and next(iter(its)) in alike for alike in _ALIKE
    )


def _comparable(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> bool:
    return len(ours) == len(theirs) and all(a[1] == b[1] for a, b in zip(ours, theirs, strict=True))


@lru_cache(maxsize=4096)
def _clauses(text: str) -> tuple[_Clause, ...]:
    pieces = [piece for piece in split(text) if piece.form is not Form.CODE and not piece.text.endswith("?")]
    read = [_read(piece.whole) for piece in pieces[:40]]
    labels = frozenset(mark for clause in read if not clause.values and not clause.states for mark in clause.context)
    spoken = [clause for clause in read if clause.words]
    return tuple([replace(clause, context=clause.context | labels) for clause in spoken] if labels else spoken)


def _read(text: str) -> _Clause:
    """Sort the tokens of a sentence into topic, claim and circumstances.

    Two sentences contradict each other only if they share the topic and the circumstances and differ in the claim, so
    a number in the wrong set makes either a false alarm or a contradiction that is missed.
    """
    tokens = tokenize(text.rstrip(" .!"))
    verb = next((i for i, t in enumerate(tokens) if i and (_is_verb(t) or _acts(tokens, i))), None)
    if verb is None:  # `Limit: 60`; the colon of `Note: room 7 has two doors` ends a label
        verb = next((i for i, t in enumerate(tokens) if i and t.text == ":"), None)
    words: dict[str, None] = {}
    scope: set[str] = set()
    context: set[str] = set()
    values: list[tuple[str, str]] = []
    states: set[str] = set()
    denies = bounded = scoped = False
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else None
        if token.negates or token.lower in ("no", "cannot"):
            # A second negation cancels the first.
            denies = not denies
            continue
        # The scope of a preposition ends with its phrase.
        if not token.word:
            if token.text in ",;":
                scoped = False
            continue
        if token.lower in _BOUNDS:
            bounded = True
        amount = _amount(token, tokens[i + 1] if i + 1 < len(tokens) else None)
        dated = _is_date(token)
        # A number after the verb is the claim (`the limit is 60`); before it, it names the topic (`room 12 is ...`).
        # A date is a claim only right after a copula (`the launch is on Friday`); elsewhere it gives the time.
        if amount is not None or dated:
            value_place = (verb is not None and i > verb) or (before is not None and before.lower in ("at", "to"))
            after_copula = verb is not None and _follows_copula(tokens, i)
            if dated:
                if after_copula:
                    values.append((token.lower, "date"))
                else:
                    context.add(token.lower)
            elif amount is not None and (value_place or after_copula) and not _labels(before):
                values.append(amount)
            elif amount is not None:
                context.add(f"{before.stem if before else ''} {amount[0]}")
            continue
        if token.hard:
            context.add(token.lower)
            continue
        if token.lower in _PREPOSITIONS and not _is_state(tokens, i, verb):
            scoped = verb is not None and i > verb and token.lower != "per"  # `60 per minute` is one value
            continue
        if token.lower in _STATE_WORDS and _is_state(tokens, i, verb):
            states.add(token.lower)
            continue
        if token.lower in _NEUTRAL or token.lower in _SCALE or token.lower in _PREPOSITIONS:
            continue
        if token.content:
            words[token.stem] = None
            if scoped:
                scope.add(token.stem)
    # A name after the copula (`the owner is Alice`) is the claim, not the topic.
    names = _names(tokens, verb)
    for token in tokens:
        if token.lower in names:
            words.pop(token.stem, None)
            context.discard(token.lower)
    return _Clause(
        text,
        frozenset(words),
        frozenset(scope),
        frozenset(context),
        tuple(values),
        frozenset(states),
        names,
        denies,
        bounded,
        _families(words),
    )


def _families(words: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= _FAMILY and word.isalpha():
            found.setdefault(word[:_FAMILY], []).append(word)
    return found


def _is_verb(token: Token) -> bool:
    return token.lower in VERBS or token.lower.endswith("n't") or token.text == "="


def _acts(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word before an amount looks like a verb: the wheel `turns` 7 times."""
    if at < 1 or at + 2 >= len(tokens) or not tokens[at].lower.endswith(("s", "ed")) or not tokens[at].content:
        return False
    number, thing = tokens[at + 1], tokens[at + 2]
    return _amount(number, thing) is not None and thing.content and not thing.hard


def _is_date(token: Token) -> bool:
    lower = token.lower
    if lower.isalpha():  # most words: no digit, so no pattern fits
        return lower in _DAYS or (lower in MONTH_NAMES and (token.capital or lower != "may"))
    return _YEAR.fullmatch(lower) is not None or _DATE.fullmatch(lower) is not None


def _amount(token: Token, following: Token | None) -> tuple[str, str] | None:
    """Return (normal form, unit) of a number in any spelling; None for any other token."""
    if token.lower in _WORDS:
        return _WORDS[token.lower], ""
    if token.lower.isalpha():
        return None
    found = _NUMBER.fullmatch(token.lower.lstrip("$€£~").rstrip("+"))
    if found is None:
        return None
    unit = "" if found[3] == "%" else found[3]
    scale = _SCALE.get(unit)
    if scale is None and following is not None and not unit:
        scale = _SCALE.get(following.lower)
    elif scale is not None:
        unit = ""
    number = float(found[1] + found[2].replace(",", "")) * 10 ** (scale or 0)
    return f"{number:.12g}", unit


def _labels(before: Token | None) -> bool:
    """Whether the number after this token names something: `#17`."""
    return before is not None and before.text == "#"


def _follows_copula(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token follows is, was or =, with at most prepositions and articles between."""
    for back in range(1, 4):
        if at - back < 0:
            return False
        token = tokens[at - back]
        if token.lower in _COPULA or token.text in ("=", ":"):
            return True
        if token.lower not in _PREPOSITIONS and token.lower not in _NEUTRAL and token.text not in "$€£~":
            return False
    return False


def _is_state(tokens: Sequence[Token], at: int, verb: int | None) -> bool:
    token = tokens[at]
    if token.lower not in _STATE_WORDS:
        return False
    if token.lower in ("on", "off", "up", "down", "over"):  # only as the last word: the switch is on
        return at == len(tokens) - 1 and verb is not None
    if _is_denied_verb(tokens, at):
        return False
    return verb is not None and at >= verb


def _is_denied_verb(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is the verb in `does not open at 9`, which denies `opens at 9`."""
    before = [token.lower for token in tokens[max(at - 2, 0) : at]]
    return before[-1:] in (["don't"], ["doesn't"], ["didn't"]) or before in (
        ["do", "not"],
        ["does", "not"],
        ["did", "not"],
    )


def _names(tokens: Sequence[Token], verb: int | None) -> tuple[str, ...]:
    """Return the name in `the owner is Alice`; nothing if the sentence says more than that."""
    if verb is None or tokens[verb].lower not in _COPULA or not tokens:
        return ()
    if tokens[0].lower not in ("the", "our") and not any(t.lower in ("the", "our") for t in tokens[:verb]):
        return ()
    rest = [t for t in tokens[verb + 1 :] if t.word and t.lower not in ("now", "currently", "still")]
    if 0 < len(rest) <= 3 and all(t.capital and t.text.isalpha() and t.lower not in _STATE_WORDS for t in rest):
        if any(_is_date(t) for t in rest):
            return ()
        return tuple(t.lower for t in rest)
    return ()
