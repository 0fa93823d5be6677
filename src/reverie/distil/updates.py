"""Updates: statements that overtake earlier ones. Pure, without a model; precision before recall.

Two ways lead to an update; in languages other than English only moved appointments do (`moves.py`).

* *The same frame, another value.* `The capital of Ruritania is Strelsau` and, later, `The capital of Ruritania is
  Zenda`: equal words up to a preposition or a form of *be*, then values of the same kind. The frame must describe a
  state (a form of *be*, a verb in the present, a passive): what somebody did twice stays twice.
* *A cue.* `Anna has moved to Sheffield` after `Anna lives in Leeds`: the later statement says that something changed
  (now, no longer, moved, switched, instead ...) and is about what the earlier one is about.

A statement is never overtaken by an older one, nor by one that merely says more.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from reverie.core.pause import paced
from reverie.distil.lexicon import MONTH_NAMES, NUMBERS, word_set
from reverie.distil.moves import adds, moves
from reverie.distil.score import rarity
from reverie.distil.tokens import Token, tokenize

_BE = word_set("is are was were am be been being 's")
_PIVOTS = word_set("in on at to of for by with from as into under until till is are was were am be called named : =")
_SINGLE = word_set("died born moved switched changed relocated transferred")
"""Verbs of the past whose last mention counts."""
_ONE_OBJECT = word_set("prefer prefers cost costs lead leads head heads manage manages maintain maintains chair chairs")
_ATTRIBUTES = word_set(
    "limit timeout deadline due owner lead manager phone mobile telephone fax number address email e-mail"
    " mail version port timezone zone budget price cost costs fee rent rate size capacity location place"
    " venue room date day start end url host hostname endpoint branch minimum maximum min max quota"
    " interval threshold duration temperature weight height age birthday colour color language theme"
    " default model currency release launch opening hours wifi pin code capital status seat desk floor"
    " doctor dentist plumber landlord supplier provider employer job salary balance score favourite"
    " favorite"
)
"""Things that have one value at a time: a label with one of them is an attribute (`Deadline: Monday`). Any other label
(`Todo: buy milk`, `Allergy: nuts`, `Ana: fine`) says nothing about what was written under it before.
"""
_PREFERS = word_set("prefer prefers")
_PARTICIPLES = ("ed", "en", "rn", "wn", "ilt")
_MANY_STATES = word_set(
    "interested involved trained scared used known loved covered filled surrounded worried tired bored excited annoyed"
    " pleased satisfied skilled experienced certified licensed vaccinated banned needed required supported blocked"
    " treated tested seen invited asked warned sent given taken eaten watched visited mentioned cited closed prescribed"
)
"""Participles of which several hold at once, unlike `married`, `based`, `founded` and `due`."""
_ROLES = word_set(
    "citizen resident native capital head chair chairman ceo director president owner author founder mayor captain"
    " leader chancellor king queen editor mother father son daughter wife husband"
)
"""Nouns of which somebody or something is one: `is a citizen of`."""
_LASTING = word_set(
    "starts begins ends opens closes leaves departs arrives ships expires launches lands finishes falls"
)
"""Verbs of the present with one day, unlike `comes on` and `delivers on`."""
_DETERMINERS = word_set("the a an my our his her its their your this that")
_RECURRING = word_set("mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends every each")
_BOUNDING = word_set("during when if unless while until after before")
"""Words before the circumstance under which a name, a place or a thing holds."""
_ALSO = re.compile(
    r"(?i)\b(?:also|as well|additionally|another|other|auch|zusätzlich|aussi|également|también|anche|também|ook)\b"
    r"|\btoo\W*$"
)
"""Words of a statement that adds a value and replaces none."""
_PLACES = word_set("in at with under behind inside near above below")
_NO_STATE = word_set(
    "have has had want wants need needs like likes love loves enjoy enjoys hate hates include includes contain"
    " contains support supports"
)
_SKIPPED = word_set("now currently still already actually today recently just also the a an its")
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_DAYS = frozenset(token.stem for day in _WEEKDAYS for token in tokenize(f"{day} {day}s"))
_TIME = re.compile(r"\d{1,2}[:.]\d\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CHANGE = word_set(
    "now moved switched changed instead longer anymore raised lowered increased reduced extended replaced renamed"
    " postponed pushed handed correction new became upgraded downgraded delayed rescheduled promoted"
)
"""Words for a change."""
_END = word_set(
    "longer stopped quit gone off closed dropped ended cancelled canceled left gave abandoned anymore more instead"
)
"""Words for an end."""
_STOPS = _END - word_set("gone off closed left instead")
_MOVES = re.compile(r"(?i)\b(?:up|down|back) to\b|\bfrom now on\b|\bany ?more\b")
_VAGUE_VERBS = word_set("plann schedul tak plac set locat run com held happen call")
"""Stems that only state the existence of a thing."""
_CIRCUMSTANCES = word_set("for in of during at on before after with without per when if unless while")
"""Words before the circumstance under which an amount holds."""
_UNITS = word_set(
    "month months week weeks day days hour hours minute minutes second seconds year years morning evening evenings"
    " afternoon night time times"
)
_COMMON = _CHANGE | _END | _UNITS | _WEEKDAYS
_FAMILIES = {
    "residence": word_set("live lives living lived moved address relocated"),
    "work": word_set("works work working job employed employer company office"),
    "number": word_set("number phone mobile extension"),
}
_SITES = frozenset(
    token.stem for token in tokenize("venue place location address office room seat desk site branch city")
)
_DEPARTS = re.compile(r"(?i)\bleft(?=$|[;,.!]| (?:the|us|our|his|her|their)\b)")
"""`Left` that is for good, unlike `left early`."""
_NEW = re.compile(r"(?i)(?:\b(?:the|our|my|his|her|their|its|your)|['’]s|^) new\b|^new\b")
"""`New` that replaces the former one, unlike `needs new pads` and `has a new dog`."""
_HOMES = word_set("flat house apartment home studio village town city")
_LEFT = re.compile(
    r"(?i)\bfrom(?! \d| \w+day)((?: [\w'-]+){1,4}?) to\b|\b(?:instead of|(?<=, )not)\b((?: [\w'-]+){1,4})"
)
"""Names the value that no longer holds: `from invoice to`, `instead of yellow`, `, not at the mill`."""
_GIVES_UP = re.compile(r"(?i)\b(?:gave up|given up|quit|no longer|stopped \w+ing)\b")
_DENIES = re.compile(r"(?i)\b(?:can['’]?t|cannot|won['’]?t|will not|isn['’]?t|doesn['’]?t)\b")
_STOPPED = re.compile(
    r"(?i)\b(?:no longer|stopped|(?:can|won|doesn|isn|don)['’]t|cannot|will not)\b(.*?)(?:$|[,;.]| but | and )"
)
"""Names what ends or is denied, with its circumstance: `no longer works on Fridays`."""
_REMOVED = re.compile(
    r"(?i)\bmoved (?!to\b|into\b|in\b|from\b|out\b|back\b|house\b|home\b|flats?\b|away\b|again\b|here\b)\w+"
)
"""Something that was moved: `moved the piano`."""
_SPEAKERS = {"i": "i", "i'm": "i", "i've": "i", "i'll": "i", "we": "we", "we're": "we", "we've": "we", "we'll": "we"}
_FIRST = word_set("i i'm i've i'll")
_PARTS = re.compile(r"; |\. (?=[A-Z])| [–—-] ")
_NEARBY = 48
"""Most statements compared for one word of a later one, newest first: a more frequent word says little."""
_PREFIX = 4
_LONGEST_VALUE = 8
_SHARE = 34
"""Per cent, by weight, of the earlier statement that the later one must share."""


class Utterance(NamedTuple):
    """One statement, in the order it was made."""

    id: str
    text: str
    group: Hashable = None
    """Only statements of one group (speaker, kind) overtake each other."""


class Update(NamedTuple):
    newer: str
    older: str
    why: str
    """`value` or `cue`."""


def says_more(older: str, newer: str) -> bool:
    """Whether an overtaken statement holds something that the later one lacks: a time, a number, a clause.

    `The teacher is Mr. Okello; the evening is on 3 March at 19:00` after `The evening was moved to 10 March`.
    """
    parts = _PARTS.split(older)
    whole, later, *tokens = [tokenize(text) for text in (older, newer, *(parts if len(parts) > 1 else ()))]
    old, new = _amounts(whole), _amounts(later)
    if any(old[kind] > new[kind] for kind in old) or adds(older, newer):
        return True
    if len(parts) < 2:
        return False
    stems = _read(newer, later, ()).stems
    clauses = [_read(part, own, ()).stems for part, own in zip(parts, tokens, strict=True)]
    return any(len(part) > 1 and 2 * sum(_known(stem, stems) for stem in part) < len(part) for part in clauses)


def _amounts(tokens: Sequence[Token]) -> Counter[str]:
    """Count the times, days and numbers of a statement."""
    kinds = [_kind(token, None) for token in tokens if token.word]
    return Counter([kind for kind in kinds if kind])


class _Claim(NamedTuple):
    frame: tuple[str, ...]
    value: tuple[Token, ...]


def updates(said: Sequence[Utterance]) -> list[Update]:
    """Return every statement that a later one overtakes, with the newest that does."""
    found: dict[str, Update] = {}
    tokens = [tokenize(item.text) for item in paced(said)]
    claims = [_claims(item.text, own) for item, own in paced(zip(said, tokens, strict=True))]
    read = [_read(item.text, own, claimed) for item, own, claimed in paced(zip(said, tokens, claims, strict=True))]
    moved = [Update(newer, older, "cue") for newer, older in moves(said)]
    for update in (*_by_value(said, claims), *_by_cue(said, read), *moved):
        found.setdefault(update.older, update)
    return [found[item.id] for item in said if item.id in found]


def _by_value(said: Sequence[Utterance], claims: Sequence[Sequence[_Claim]]) -> Iterable[Update]:
    groups: dict[tuple[Hashable, tuple[str, ...]], dict[_Value, list[int]]] = {}
    for place, (item, own) in enumerate(zip(paced(said), claims, strict=True)):
        for claim in own if not _ALSO.search(item.text) else ():
            stated = _value_of(claim)
            if stated.content:
                groups.setdefault((item.group, claim.frame), {}).setdefault(stated, []).append(place)
    longest: dict[int, tuple[int, int]] = {}  # by the older place: words of the frame, the newer place
    for (_, frame), values in paced(groups.items()):
        for older, newer in _overtaken(values) if len(values) > 1 else ():
            if len(frame) > longest.get(older, (0, 0))[0]:
                longest[older] = (len(frame), newer)
    return [Update(said[newer].id, said[older].id, "value") for older, (_, newer) in sorted(longest.items())]


class _Value(NamedTuple):
    """The properties of a value by which another one rivals it."""

    shape: str
    period: str
    content: frozenset[str]
    unit: str = ""
    """The word after a number."""


def _value_of(claim: _Claim) -> _Value:
    value = claim.value
    shape, stems = _shape(value), frozenset([t.stem for t in value if t.content])
    bare = shape != "day" and shape != "date" and claim.frame[-1] in _BE
    unit = value[1].stem if shape == "number" and len(value) > 1 and value[1].content and not value[1].hard else ""
    return _Value(shape, _period(value, bare=bare), stems, unit)


def _overtaken(values: Mapping[_Value, Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yield the places of values of one frame that a rival follows, each with the place of the newest rival."""
    newest = sorted(values, key=lambda value: values[value][-1], reverse=True)
    alike: dict[tuple[str, str], list[_Value]] = {}
    for value in newest:
        alike.setdefault((value.shape, value.period), []).append(value)
    for value, places in values.items():
        rival = next((one for one in alike[value.shape, value.period] if _rivals(one, value)), None)
        if rival is not None:
            yield from ((older, values[rival][-1]) for older in places if older < values[rival][-1])


def _rivals(one: _Value, other: _Value) -> bool:
    if one.unit and other.unit and one.unit != other.unit:
        return False
    return not (one.content <= other.content or other.content <= one.content)


def _claims(text: str, said: Sequence[Token]) -> tuple[_Claim, ...]:
    """Cut a statement into frame and value at every place where a value may begin."""
    tokens = [t for t in said if t.word or t.text in ":="]
    if not tokens or text.rstrip().endswith("?"):
        return ()
    verb = _verb(tokens)
    if verb is None or any(t.negates for t in tokens):
        return ()
    out = []
    for at in range(verb, len(tokens) - 1):
        opens = tokens[at].lower in _PIVOTS or (
            at == verb
            and (tokens[at].lower in _ONE_OBJECT or (_first(tokens) and _kind(tokens[at + 1], None) is not None))
        )
        value = tuple([t for t in tokens[at + 1 :] if t.lower not in _SKIPPED]) if opens else ()
        if not value or len(value) > _LONGEST_VALUE or any(t.lower in _BE for t in value):
            continue
        frame = tuple(t.stem for t in tokens[: at + 1] if t.lower not in _SKIPPED)
        if _many_at_once(tokens, verb, at, value):  # of these only one of a kind replaces another
            if _kind(value[-1], None):
                continue
            frame += (value[-1].stem,)
        subject = [t for t in tokens[:at] if t.content]
        if (subject or _first(tokens)) and _is_state(tokens, verb, at):
            out.append(_Claim(frame, value))
    return tuple(out)


def _many_at_once(tokens: Sequence[Token], verb: int, at: int, value: Sequence[Token]) -> bool:
    """Whether several values hold at once: `I prefer window seats` and short answers, `Mia is on antibiotics` and on
    the team, `is allergic to nuts` and to stings. A participle (married, based) has one value.
    """
    head, pivot = tokens[verb].lower, tokens[at].lower
    between = tokens[verb + 1 : at]
    if head in _PREFERS:
        return True
    dated = _shape(value) in ("day", "date")
    if head not in _BE:
        if dated and head not in _LASTING and head not in _ONE_OBJECT and tokens[verb].text not in ":=":
            return head not in _SINGLE  # `comes on Monday`, `flies to Rome on 3 May`
        return pivot == "with" or (pivot in ("for", "to", "as") and any(t.content for t in between))
    if at == verb or _shape(value[:1]) in ("day", "date", "number"):
        return False
    if between:
        return not (any(map(_is_single, between)) or (pivot == "of" and between[-1].lower in _ROLES))
    if pivot == "on":
        return True
    determined = tokens[at + 1].lower in _DETERMINERS or tokens[at + 1].capital or tokens[at + 1].hard
    return pivot in ("in", "at") and not (determined or any(t.hard for t in value))  # in love, at school


def _is_single(token: Token) -> bool:
    """Whether a word between *be* and a preposition leaves room for one value: a name, an attribute, a participle."""
    low = token.lower
    return token.capital or low in _ATTRIBUTES or (low.endswith(_PARTICIPLES) and low not in _MANY_STATES)


def _first(tokens: Sequence[Token]) -> bool:
    return tokens[0].lower in _FIRST


def _verb(tokens: Sequence[Token]) -> int | None:
    """Find the first word after the subject that is a form of be, a present verb, or a lasting past one."""
    if tokens[0].lower == "i":
        spoken = [i for i, t in enumerate(tokens[1:4], 1) if t.content and t.lower not in _SKIPPED]
        if spoken and not tokens[spoken[0]].lower.endswith("ed") and len(tokens) > spoken[0] + 1:
            return spoken[0]
    for i, token in enumerate(tokens[1:], 1):
        low = token.lower
        if low in _BE or low in _SINGLE or low in _ONE_OBJECT or token.text == "=":
            return i
        if token.text == ":" and any(t.lower in _ATTRIBUTES for t in tokens[:i]):
            return i
        if low.endswith("s") and not token.capital and token.content and not low.endswith(("ss", "'s", "us")):
            before = tokens[i - 1]
            if before.capital or before.lower in ("he", "she", "it", "who") or before.content:
                after = tokens[i + 1] if i + 1 < len(tokens) else None
                if after is not None and (after.lower in _PIVOTS or after.lower in ("the", "a", "an", "my", "his")):
                    return i
    return None


def _is_state(tokens: Sequence[Token], verb: int, at: int) -> bool:
    """Whether the frame has one value at a time: an attribute, a place, a time, a role."""
    head = tokens[verb].lower
    if head in _NO_STATE:
        return False
    if head in _ONE_OBJECT or head in _SINGLE or tokens[verb].text in ":=":
        return True
    if at > verb:
        # A preposition after the verb: lives in, is married to, was founded by, plays the position of.
        between = tokens[verb + 1 : at]
        passive = head in ("was", "were") and bool(between) and between[0].lower.endswith(_PARTICIPLES)
        return head not in ("was", "were") or passive
    # Right after a form of be: the value of an attribute (my favourite colour is, the capital of X is).
    subject = tokens[:verb]
    value = [t for t in tokens[verb + 1 :] if t.lower not in _SKIPPED]
    stative = value[0].lower in _PIVOTS or value[0].lower.endswith("ed")  # `the owner is on leave`, `is delayed`
    last = subject[-1]
    if any(t.lower == "of" or t.lower in _ATTRIBUTES for t in subject) and not (stative or last.hard):
        return True
    if _shape(value) == "words":  # somebody is many things at once: allergic, a swimmer, tired; a key is in one place
        return subject[0].lower == "the" and value[0].lower in _PLACES and sum(t.content for t in subject) >= 2
    return any(t.lower in ("my", "our", "his", "her", "their") or t.lower.endswith("'s") for t in subject) or (
        subject[0].lower == "the" and sum(t.content for t in subject) >= 2
    )


def _period(value: Sequence[Token], *, bare: bool) -> str:
    """Return the circumstance of a value: `214 euros for February` and `187 euros for March` are both true, and so are
    19 degrees at night and 21 during the day, or `12 euros` and `6 euros for children`.

    `bare`: the value follows a form of be, so that `dark mode on phones` has a circumstance, too.
    """
    if bare or _shape(value[:1]) == "number":
        words = _CIRCUMSTANCES
    else:
        words = _BOUNDING
    for i, token in enumerate(value):
        timed = i + 1 < len(value) and token.lower in ("at", "from") and _kind(value[i + 1], None) is not None
        if i and (token.lower in words or token.lower in _RECURRING or timed):
            return " ".join([t.stem for t in value[i:] if t.content or t.hard])
    return ""


def _shape(value: Sequence[Token]) -> str:
    first = value[0]
    if any(t.lower in _WEEKDAYS or t.lower.rstrip("s") in _WEEKDAYS for t in value):
        return "day"
    if any(t.lower in MONTH_NAMES for t in value):
        return "date"
    if first.hard and any(c.isdigit() for c in first.text):
        return "number"
    if first.lower in NUMBERS:
        return "number"
    return "name" if first.capital else "words"


def _by_cue(said: Sequence[Utterance], read: Sequence[_Words]) -> Iterable[Update]:
    seen: dict[str, list[int]] = {}
    for place, words in enumerate(paced(read)):
        for stem in words.stems:
            seen.setdefault(stem, []).append(place)
    alike: dict[str, list[str]] = {}
    for stem in seen:
        alike.setdefault(stem[:_PREFIX], []).append(stem)
    weight = {stem: rarity(len(said), len(places)) for stem, places in seen.items()}
    out = []
    for newer, words in enumerate(paced(read)):
        if not (words.changes or words.ends or words.denies) or words.adds:
            continue
        nearby: dict[int, None] = {}
        for stem in sorted(words.stems | words.left):
            for other in alike.get(stem[:_PREFIX], ()):
                if other == stem or _known(other, frozenset({stem})):
                    before = seen[other][: bisect_left(seen[other], newer)]
                    nearby |= {at: None for at in before[-_NEARBY:] if said[at].group == said[newer].group}
        scored = [(score, older) for older in nearby if (score := _overtakes(words, read[older], weight)) > 0]
        if scored:
            _, older = max(scored)
            out.append(Update(said[newer].id, said[older].id, "cue"))
    return out


class _Words(NamedTuple):
    about: frozenset[str]
    """The topic: the frame if it gives a value, else all informative words."""
    stems: frozenset[str]
    names: frozenset[str]
    kinds: frozenset[str]
    """Kinds of value that it gives: day, time, amount with its unit, year."""
    values: frozenset[tuple[str, str]]
    shape: str
    """The shape of its value, if it has a frame."""
    value: frozenset[str]
    """The words of the value, or the names if there is no frame."""
    attribute: bool
    """Whether it gives the value of an attribute: our dentist is ..."""
    family: str
    label: str
    """The number in its name, if it has one: ticket 4711."""
    labels: frozenset[str]
    changes: bool
    relocates: bool
    """Whether the only change is that something moved."""
    ends: bool
    retires: bool
    """Whether it ends for certain: not `left`, which may be for today."""
    stops: bool
    left: frozenset[str]
    """Words of a value that no longer holds, by its own account."""
    gives_up: bool
    denies: bool
    first: bool
    """Whether the statement is about its speaker."""
    said: frozenset[str]
    """All its words."""
    subject: frozenset[str]
    """Informative words before its verb."""
    bounds: frozenset[str]
    """Words of the circumstance under which something ends: `no longer works on Fridays`."""
    adds: bool
    homes: bool


def _read(text: str, said: Sequence[Token], claims: Sequence[_Claim]) -> _Words:
    tokens = [t for t in said if t.word]
    kinds: set[str] = set()
    values: set[tuple[str, str]] = set()
    units: set[str] = set()
    for i, t in enumerate(tokens):
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        kind = _kind(t, after)
        if kind:
            kinds.add(kind)
            values.add((kind, t.lower))
            if after is not None and kind.startswith("amount "):
                units.add(after.stem)
    lows = {t.lower for t in tokens}
    stems = frozenset(
        [t.stem for t in tokens if t.content and not t.hard and t.stem not in units and t.lower not in _COMMON]
    )
    left = frozenset(
        t.stem for one, other in _LEFT.findall(text) for t in tokenize(one or other) if t.word and t.content
    )
    changing = lows & _CHANGE
    if "new" in changing and not _NEW.search(text):
        changing = changing - {"new"}
    carried = {"moved"} if _REMOVED.search(text) else set()
    claim = min(claims, key=lambda claim: len(claim.frame), default=None)
    framed = frozenset(stem for stem in (stems & set(claim.frame) if claim else ()) if stem not in _VAGUE_VERBS)
    names = frozenset(t.stem for i, t in enumerate(tokens) if t.capital and (i or t.content))
    value = frozenset(t.stem for t in claim.value if t.content and not t.hard) if claim and framed else frozenset()
    return _Words(
        about=framed or stems,
        stems=stems,
        names=names,
        kinds=frozenset(kinds),
        values=frozenset(values),
        shape=_shape(claim.value) if claim and framed else "",
        value=value or (names - {tokens[0].stem} if tokens else frozenset()),
        attribute=claim is not None and claim.frame[-1] in _BE,
        family=next((name for name, words in _FAMILIES.items() if (lows - carried) & words), ""),
        label=_label(tokens),
        labels=frozenset(t.lower for t in tokens if t.hard),
        changes=bool(changing or left) or _MOVES.search(text) is not None,
        relocates=changing <= {"moved"} and not left,
        ends=bool(lows & _END - {"left"}) or _DEPARTS.search(text) is not None,
        retires=bool(lows & (_STOPS - {"more"})) or "retired" in lows,
        stops=bool(lows & _STOPS),
        left=left,
        gives_up=_GIVES_UP.search(text) is not None,
        denies=_DENIES.search(text) is not None,
        first=bool(lows & _FIRST) or "my" in lows,
        said=frozenset([t.stem for t in tokens]),
        subject=_subject(tokens),
        bounds=_bounds(text),
        adds=_ALSO.search(text) is not None,
        homes=bool(lows & _HOMES),
    )


def _subject(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the informative words before the verb, the first one where no verb is known, or `i` or `we`."""
    if not tokens:
        return frozenset()
    if tokens[0].lower in _SPEAKERS:
        return frozenset({_SPEAKERS[tokens[0].lower]})
    before = [t.stem for t in tokens[: _verb(tokens) or 0] if t.content and not t.hard and t.lower not in _COMMON]
    known = before or [t.stem for t in tokens if t.content and not t.hard and t.lower not in _COMMON][:1]
    return frozenset(known)


def _bounds(text: str) -> frozenset[str]:
    found = _STOPPED.search(text)
    tokens = tokenize(found[1]) if found else []
    begins = next((i for i, t in enumerate(tokens) if t.lower in _CIRCUMSTANCES), len(tokens))
    return frozenset([t.stem for t in tokens[begins:] if t.content])


def _label(tokens: Sequence[Token]) -> str:
    for noun, number in pairwise(tokens[:4]):
        if number.hard and number.text.lstrip("#").isdigit() and noun.content and not noun.hard:
            return number.lower
    return ""


def _kind(token: Token, after: Token | None) -> str | None:
    low = token.lower
    if low in _WEEKDAYS or low.rstrip("s") in _WEEKDAYS:
        return "day"
    if token.hard:
        if _TIME.fullmatch(low):
            return "time"
        if _YEAR.fullmatch(low):
            return "year"
        if any(c.isdigit() for c in low) and next((c for c in low if c.isalnum()), "").isalpha():
            return "code"
    if low in MONTH_NAMES and token.capital:
        return "month"
    if low in NUMBERS or (token.hard and any(c.isdigit() for c in low)):
        return f"amount {after.stem}" if after is not None and after.content else "amount"
    return None


def _overtakes(newer: _Words, older: _Words, weight: dict[str, int]) -> int:
    """Return the confidence that the later statement overtakes the earlier one; 0 if it does not."""
    if older.label and older.label not in newer.labels:
        return 0
    if any(not _known(stem, older.stems) and stem not in older.said for stem in newer.bounds):
        return 0
    if _other_things(newer, older):
        return 0
    if older.attribute and older.shape == "name" and newer.relocates and not older.about & _SITES:
        return 0  # `The dentist moved to Elm Road` after `Our dentist is Dr. Lang`
    share = _share({stem for stem in older.about if _known(stem, newer.stems)}, older.about, weight)
    of_all = _share({stem for stem in older.stems if _known(stem, newer.stems)}, older.stems, weight)
    units = older.kinds & newer.kinds
    clash = any(not {v for v in older.values & newer.values if v[0] == kind} for kind in units)
    names = older.names - _DAYS  # a day that both name connects nothing
    named = bool(names & newer.names)
    spoken = named or (older.first and newer.first)
    fresh = bool(newer.names - older.names - _DAYS)
    words = bool(newer.stems - older.stems) and share >= 80 and (newer.ends or len(older.about) > 1)
    given = {"name": fresh, "words": words or (clash and share >= 80)}.get(older.shape, clash)
    if older.left and older.left & newer.left:
        return 0
    if newer.left & (older.value or older.stems):
        rest = older.stems - newer.left
        if not rest or _share({stem for stem in rest if _known(stem, newer.stems)}, rest, weight) >= 50:
            return 130
    if older.shape and newer.changes and given and share >= (45 if units - {"amount"} else 60):
        return 100 + share
    same = older.family and older.family == newer.family and newer.changes and spoken
    moves = fresh and older.shape == "name"
    if older.shape and same and (moves or (newer.first and (newer.homes or older.family == "work"))):
        return 90
    if names and names <= newer.names and newer.changes and clash and units - {"amount"}:
        return 88
    part = older.value & newer.stems
    if names and names <= newer.names and part and part < older.value and newer.changes:
        return 85
    replaced = fresh or (newer.changes and (newer.stops or clash or bool(older.shape)))
    ended = bool(older.value) and older.value <= newer.stems and newer.ends and replaced
    if ended and ((older.attribute and newer.retires) or of_all >= _SHARE):
        return 80
    if newer.gives_up and not newer.denies and spoken and newer.stems and newer.stems <= older.stems:
        return 75
    if newer.denies and fresh and names and names <= newer.names and of_all >= 60:
        return 72
    if older.shape and newer.stops and share >= 70 and newer.stems - older.stems and older.about - older.subject:
        return 70
    changed = clash or (named and fresh) or (fresh and of_all >= 50 and len(older.stems) > 1)
    if not older.shape and newer.changes and of_all >= 40 and changed:
        return of_all
    return 0


def _other_things(newer: _Words, older: _Words) -> bool:
    """Whether both have a subject that the other does not speak of, and the newer one does not repeat the rest, as
    `Ana now leads the choir` does after `Ben leads the choir`.
    """
    if not newer.subject or not older.subject:
        return False
    if all(_known(stem, older.stems | older.subject) for stem in newer.subject):
        return False
    if all(_known(stem, newer.stems | newer.subject) for stem in older.subject):
        return False
    rest = older.stems - older.subject
    return newer.stops or len(rest) < 2 or not all(_known(stem, newer.stems) for stem in rest)


def _share(part: Set[str], whole: Set[str], weight: dict[str, int]) -> int:
    return 100 * sum(weight[stem] for stem in part) // max(sum(weight[stem] for stem in whole), 1)


def _known(stem: str, stems: frozenset[str]) -> bool:
    """Whether `stems` has the word or one clearly of its family (swim, swimming)."""
    return stem in stems or (
        len(stem) >= 4
        and any(len(other) >= 4 and (other.startswith(stem) or stem.startswith(other)) for other in stems)
    )
