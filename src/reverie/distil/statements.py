"""From sources to candidate statements: short, self-contained, scored, with conflicting ones side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from datetime import date
from typing import NamedTuple

from reverie.core.pause import paced
from reverie.core.subject import labelled
from reverie.distil import score
from reverie.distil.dates import day_of, spell
from reverie.distil.lexicon import FIRST_PERSON, FUNCTION, HARMLESS, MONTH_NAMES, NEGATIONS, NUMBERS, word_set
from reverie.distil.must_keep import advises
from reverie.distil.questions import facts
from reverie.distil.sentences import Form
from reverie.distil.shorten import shorten
from reverie.distil.source import How, Phrase, Reason, Source
from reverie.distil.tokens import Token, join, tokenize
from reverie.distil.value import Value
from reverie.search.languages import guess

_TODAY = frozenset({"today", "tonight", "now"})
_SPANS = frozenset({"morning", "afternoon", "evening", "week", "weekend", "month", "year"})


_OWN = frozenset({"mine", "ours"})
"""Words for a thing that the preceding question names: `What about shoes? Mine have 700 km on them.`"""
_TELLING = 2
"""Informative words with which a statement may be kept even if it reads like chatter."""
_CERTAIN, _LIKELY = 250, 400
"""Weights below which a statement is chatter whatever its words are. The second is for notes of four words or more:
terse notes (`shut the gate`) and talk (`Blue's my favourite`) say more. Repeated chatter is dropped, too."""
_SHORT_TITLE = 6
_TERSE = 4
NAMELESS = frozenset({"ci", "ok", "pr", "no", "nothing", "without"})
"""Words in capitals that are no names, and those of `no errors` and `without conflicts`."""


ROUTINE = "status"
"""The kind of a candidate that is a routine report: under a target it leaves first."""


def points_at_today(tokens: Iterable[Token]) -> bool:
    """Whether the same words would mean something else on another day."""
    before = ""
    for t in tokens:
        if t.lower in _TODAY or (before == "this" and t.lower in _SPANS):
            return True
        before = t.lower
    return False


Place = tuple[int, int]
"""The place of a statement: the index of its source and its number there."""
Into = dict[Place, tuple[str, Place]]
"""Maps each statement that became part of another to how it did, and to the place of that one."""


class Candidate(NamedTuple):
    """A statement that may be kept. `place` is its position in the canonical order."""

    place: tuple[int, int]
    needs: tuple[int, int] | None  # the place of the statement that this one depends on ("It is ...")
    text: str
    whole: str  # the unshortened text; empty if it says no more
    day: date
    since: date  # the day of the oldest source
    speaker: str | None
    about: str | None  # the subject of its source
    source_ids: tuple[str, ...]
    how: How
    times: int  # the number of its sources
    required: bool  # declared by its author: a distillate without it is refused
    must_keep: bool  # judged to matter: its source leaves hot memory only with it
    kind: str  # its class by the value model
    reports: bool  # a status by the value model, routine or not
    idle: bool  # surely a routine report, without a figure or a name: `Waiting for the build`
    length: int  # words and marks
    factor: int
    concepts: dict[str, int]  # weight in tenths of a word, in order
    variant: tuple[str, ...]  # words that would make it another fact: numbers, names, negations
    subject: frozenset[str]  # its other informative words
    head: str = ""  # the headings of its list, with which it begins

    @property
    def label(self) -> str | None:
        """The prefix of its line."""
        return labelled(self.speaker, self.about, self.text) if self.about else self.speaker

    @property
    def opening(self) -> str:
        """Its first word, which is a name if another statement uses it as one."""
        return self.text.partition(" ")[0].lower().rstrip(".,:;!").removesuffix("'s")


def candidates(
    position: int,
    source: Source,
    said: Iterable[tuple[Phrase, Value, Reason]],
    *,
    names: frozenset[str],
    ids: tuple[str, ...],
    since: int,
    repeated: Set[str],
    reply: bool = False,
) -> list[Candidate]:
    """Return the informative statements of one source. `ids`: the source, then its duplicates; `since`: the moment of
    the oldest of them; `repeated`: texts of several sources, of any speaker; `reply`: it answers yes or no."""
    oldest, advice = day_of(since), advises(source)
    out: list[Candidate] = []
    asked: Sequence[Token] = ()  # a question that is left out, if it came just before
    title: Place | None = None  # `Ship on Friday` under `Old plan` is not said without it
    for number, ((original, form, text, tokens, day, head), value, reason) in enumerate(said):
        required = reason.declared is not None
        words = {t.lower for t in tokens if t.word}
        weighty = form is not Form.ASIDE and reason.weighty
        routine = value.chatter and value.kind == "status" and not weighty
        idle = value.chatter and not routine and not required and not weighty
        certain = value.weight < (_LIKELY if source.speaker is None and len(words) >= _TERSE else _CERTAIN)
        stated = _stated(tokens, weighty) if original.endswith("?") and form in (Form.PROSE, Form.ITEM) else []
        if idle and original.endswith("?") and not stated:
            asked = tokens
            continue
        follows = bool(out) and out[-1].place[1] == number - 1
        listed = form is Form.TITLE or head or (reply and number == 0) or (follows and _is_outcome(words, tokens))
        idles = idle and not listed and (certain or text.casefold() in repeated or not _informs(tokens, names))
        if idles or form is Form.HEAD:
            continue
        kept = tokens
        if form is not Form.CODE and form is not Form.ASIDE:
            spoken = source.speaker is not None and form is Form.PROSE
            front = tokenize(head) if head and text.startswith(head) and not stated else []
            kept = _behind(front, stated or tokens, names, spoken=spoken, whole=value.must_keep and weighty)
            if reply and number == 0:
                kept = tokens if tokens[-1].word else tokens[:-1]
            if not (kept or required or weighty or listed):
                continue
            kept = kept or stated or tokens
        shown = text if len(kept) == len(tokens) else join(kept)
        if form is Form.ASIDE:
            shown = f"({shown})"
        elif asked and kept[0].lower in _OWN:
            shown = f"({join(asked)}) {shown}"
        asked = ()
        variant, subject = _distinction(kept)
        asks, general = kept[-1].text == "?", advice and not weighty
        out.append(
            Candidate(
                place=(position, number),
                needs=out[-1].place if out and score.leans(kept) else title,
                text=shown,
                whole=_before(shown, text, stated) if form in (Form.PROSE, Form.ITEM) else "",
                day=day,
                since=min(oldest, day),
                speaker=source.speaker,
                about=source.subject,
                source_ids=ids,
                how="quoted" if shown in original else "shortened",
                times=len(ids),
                required=required,
                must_keep=required or weighty,
                reports=value.kind == "status",
                idle=routine and certain and not (required or listed) and _is_nameless(original),
                kind=ROUTINE if routine else value.kind if value.kind != ROUTINE else "fact",
                length=len(kept) + 1,
                factor=score.factor(words, kept, form=form, asked=asks, routine=routine, idle=idle, advice=general),
                concepts=score.concepts(kept),
                variant=variant,
                subject=subject,
                head=head if head and shown.startswith(f"{head} ") else "",
            )
        )
        if form is Form.TITLE:
            title = (position, number) if len(words) <= _SHORT_TITLE else None
    return out


def _stated(tokens: list[Token], weighty: bool) -> list[Token]:
    """Return the stated part of a question. A reason needs the wish before it: `without hostels, since I am deaf?`"""
    stated = facts(tokens)
    return [] if stated and weighty and stated[0] is not tokens[0] else stated


def _behind(
    front: Sequence[Token], tokens: list[Token], names: frozenset[str], *, spoken: bool, whole: bool
) -> list[Token]:
    """Shorten a statement behind the heading of its list, which stays whole; return nothing if it is only chatter."""
    kept = shorten(tokens[len(front) :], names, spoken=spoken, whole=whole)
    return [*tokens[: len(front)], *kept] if kept else []


def _is_nameless(text: str) -> bool:
    return NAMELESS.issuperset(_distinction(tokenize(text))[0])


def _distinction(tokens: Sequence[Token]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the words that would make a statement another fact, and its subject without them."""
    nouns = guess(" ".join([t.text for t in tokens]))[0] == _CAPITALISED
    names = {i for i, t in enumerate(tokens) if i and t.capital and not nouns}
    variant = tuple(t.lower for i, t in enumerate(tokens) if t.varies or i in names)
    subject = frozenset(t.stem for i, t in enumerate(tokens) if t.telling and not t.varies and i not in names)
    return variant, subject


def _informs(tokens: Sequence[Token], names: frozenset[str]) -> bool:
    """Whether a statement that reads like chatter is informative: two informative words, or a name not addressed."""
    telling = [t for t in tokens if t.telling]
    named = any(t.capital and t.lower not in names and i for i, t in enumerate(tokens) if t.telling)
    return len(telling) >= _TELLING or named


_OUTCOMES = word_set("help helps helped work works worked fixed solved succeeded failed fails passed")
_LONGEST_OUTCOME = 4


def _is_outcome(words: Set[str], tokens: Sequence[Token]) -> bool:
    """Whether a short sentence says how the one before it went: `Tried the other cable. Did not help.`"""
    return len(words) <= _LONGEST_OUTCOME and not words.isdisjoint(_OUTCOMES) and tokens[-1].text != "?"


def _before(shown: str, text: str, stated: Sequence[Token]) -> str:
    """Return the statement before it was shortened; of a question that states something, the stated part."""
    longer = join(stated) if stated else text.rstrip(".")
    return longer if longer != shown and len(longer) > len(shown) else ""


_LONGEST_ANSWER, _LONGEST_QUESTION = 7, 16  # words and marks
_THIN = 2  # telling words
_REPLIES = word_set(
    "yes yeah yep no nope never always not none nobody maybe perhaps only both neither ja nein nie nur doch oui non"
    " jamais si sí no nunca sì mai sim não nee nooit tak nie nigdy evet hayır да нет nej"
)
"""Words of an answer that depends on its question alone."""


def question_before(source: Source, before: Source, asked: Sequence[Phrase]) -> Phrase | None:
    """Return the question that another speaker asked just before a source, or None."""
    if (
        source.speaker is None
        or before.speaker in (None, source.speaker)
        or before.session != source.session
        or day_of(before.created_at) != day_of(source.created_at)
    ):
        return None
    last = next((p for p in reversed(asked) if p.form is not Form.ASIDE), None)
    return last if last is not None and last.original.endswith("?") else None


def replies(said: Sequence[Phrase], question: Phrase | None) -> bool:
    """Whether a source begins with yes or no to a question about something: `No, never!` after `May Lena eat nuts?`"""
    if question is None or not said or len(said[0].tokens) > _LONGEST_ANSWER:
        return False
    return any(t.telling for t in question.tokens) and not _REPLIES.isdisjoint(t.lower for t in said[0].tokens)


def answered(
    item: Candidate, source: Source, before: Source, asked: Sequence[Phrase], names: frozenset[str], *, reply: bool
) -> Candidate:
    """Join a short answer with the question that another speaker asked just before it.

    `About 21,000` says nothing alone; `(How many words is it?) About 21,000` does.
    """
    last = question_before(source, before, asked)
    if (
        last is None
        or item.place[1] > 0
        or item.length > _LONGEST_ANSWER + 1
        or (len(item.concepts) > _THIN and not reply)
        or item.required
    ):
        return item
    question = shorten(last.tokens, names, spoken=False)
    if not question or len(question) > _LONGEST_QUESTION:
        return item
    return item._replace(
        text=f"({join(question)}) {item.text}",
        whole="",
        source_ids=(*item.source_ids, before.id),
        how="merged",
        needs=None,
        length=item.length + len(question) + 2,
        concepts=item.concepts | {k: v for k, v in score.concepts(question).items() if k not in item.concepts},
    )


def once(items: Iterable[Candidate], into: Into) -> list[Candidate]:
    """Collapse statements of one speaker with the same words into the last one."""
    same: dict[tuple[str | None, str | None, str], list[Candidate]] = {}
    for item in items:
        same.setdefault((item.speaker, item.about, item.text.casefold()), []).append(item)
    out = []
    for group in paced(same.values()):
        newest = group[-1]
        if len(group) > 1:
            into.update({item.place: ("merged", newest.place) for item in group[:-1]})
            ids = tuple(dict.fromkeys(i for c in reversed(group) for i in c.source_ids))
            newest = newest._replace(
                source_ids=ids,
                times=len(ids),
                since=min(c.since for c in group),
                required=any(c.required for c in group),
                must_keep=any(c.must_keep for c in group),
                factor=max(c.factor for c in group),
            )
        out.append(newest)
    return sorted(out, key=lambda c: c.place)


_CAPITALISED = "german"
"""The language whose nouns have capitals, so that a capital is no sign of a name."""
_PLURAL = r"(?!(?:is|was|has)\b)[a-z]+s\b(?! (?:\d|the\b|an?\b|our\b|its\b|(?:on|at|to|from|until) (?:the )?[\dA-Z]))"
"""Things that a number counts: `5 boats`, and not the verb of `room 5 costs 80 euros` or `order 5 ships on Monday`."""
_LABEL = re.compile(rf"(?:\w+: )?(?:\w+ )?\w*[^\W\d_] #?(\d+)\b(?! (?:per\b|{_PLURAL}))")
"""A thing named by a number at the beginning of a statement: `Ticket 4711 was closed`."""


_NAMED = re.compile(rf"\b([a-z][\w-]*[^\W\ds_]) #?(\d+)\b(?! ?(?:{_PLURAL}|per\b|[%:/.,]\d))")
"""A thing named by a number anywhere: `Never switch off lamp 4`."""
_STATES = re.compile(r"\b(?:is|are|was|were|be|been)\b")
"""Verbs that are followed by a value: `the meeting is in room 12`."""
_SAYS = word_set("is are was were has have had run runs use uses need needs take takes goes : =")
"""The end of the subject of a statement."""
_NEUTRAL = HARMLESS | word_set("was were be been do does did by now still it its")
"""Words of grammar in which a statement and its earlier version may differ."""
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?\Z")


def _numbered(text: str) -> dict[str, str]:
    """Map the things that a statement names by a number to these numbers."""
    stated = _STATES.search(text)
    text = text[:1].lower() + text[1:]
    return {
        noun: number
        for noun, number in _NAMED.findall(text[: stated.start()] if stated else text)
        if noun not in FUNCTION
    }


class _Claim(NamedTuple):
    """Parts of a statement in which another one about the same words may differ."""

    subject: tuple[str, ...]
    """Numbers and names before the verb."""
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    """Names, identifiers and months without a day; words of one name are joined."""
    grammar: frozenset[str]
    """Words that are neither informative nor neutral: before, new, when."""
    denies: bool
    dated: bool


def _claim(text: str) -> _Claim:
    tokens = tokenize(text)
    nouns = guess(text)[0] == _CAPITALISED
    verb = next((i for i, t in enumerate(tokens) if t.lower in _SAYS), len(tokens))
    numbers: list[tuple[int, str]] = []
    names: list[tuple[int, str]] = []
    grammar: set[str] = set()
    denies = dated = False
    for i, t in enumerate(tokens):
        if _is_number(t):
            numbers.append((i, t.lower))
        elif _denies(t.lower):
            denies = True
        elif (
            t.lower in MONTH_NAMES
            and t.capital
            and any(map(_is_number, (*tokens[max(i - 1, 0) : i], *tokens[i + 1 : i + 2])))
        ):
            dated = True
        elif t.word and (t.hard or (i and t.capital and not nouns)):
            if names and names[-1][0] == i - 1:
                names[-1] = (i, f"{names[-1][1]} {t.lower}")
            else:
                names.append((i, t.lower))
        elif t.word and not t.telling and t.lower not in _NEUTRAL:
            grammar.add(t.lower)
    return _Claim(
        tuple([word for i, word in sorted((*numbers, *names)) if i < verb < len(tokens)]),
        tuple([word for _, word in numbers]),
        tuple([word for _, word in names]),
        frozenset(grammar),
        denies,
        dated,
    )


def _is_number(token: Token) -> bool:
    return token.lower in NUMBERS or (token.word and any(c.isdigit() for c in token.text))


def _disagree(a: Candidate, b: Candidate) -> bool:
    """Whether two statements about the same words differ in one number or in one name, or only one denies.

    Nothing else may differ: `30 euros for children`, `in the evening`, `on Sundays` and `flat 4` say when or of what
    another value is true. Several weekdays may be true at once.
    """
    ours, theirs = _LABEL.match(a.text), _LABEL.match(b.text)
    if ours and theirs and ours[1] != theirs[1]:
        return False
    if a.speaker != b.speaker and any(map(_is_own, (a, b))):
        return False
    named, others = _numbered(a.text), _numbered(b.text)
    if any(others.get(noun, number) != number for noun, number in named.items()):
        return False
    new, old = _claim(a.text), _claim(b.text)
    if new.subject != old.subject or new.grammar != old.grammar:
        return False
    if (len(new.numbers), len(new.names), new.dated) != (len(old.numbers), len(old.names), old.dated):
        return False
    numbers, names = [
        [one for pair in zip(*both, strict=True) if pair[0] != pair[1] for one in pair]
        for both in ((new.numbers, old.numbers), (new.names, old.names))
    ]
    if new.denies != old.denies:
        return not numbers and not names
    if any(_WEEKDAY.match(name) or name in MONTH_NAMES for name in names):
        return False
    return (len(numbers) == 2 or (bool(numbers) and new.dated)) != (len(names) == 2) and not (numbers and names)


def _is_own(item: Candidate) -> bool:
    """Whether a statement is about its speaker."""
    return any(t.lower in FIRST_PERSON for t in tokenize(item.whole or item.text))


def _denies(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def with_earlier(newest: Candidate, before: Candidate) -> Candidate:
    """Append to a statement the one that it overtook, in one line."""
    when = "" if before.day == newest.day else f", {spell(before.day)}"
    who = "" if before.speaker == newest.speaker or before.speaker is None else f", {before.speaker}"
    return newest._replace(
        text=f"{newest.text} (earlier{when}{who}: {before.text})",
        whole="",
        source_ids=(*newest.source_ids, *(i for i in before.source_ids if i not in newest.source_ids)),
        how="merged",
        required=newest.required or before.required,
        must_keep=newest.must_keep or before.must_keep,
        length=newest.length + before.length + 4,
        factor=max(newest.factor, before.factor),
        concepts=before.concepts | newest.concepts,
    )


_DONE = re.compile(r"(?:[A-Z][a-z]+ed|Made|Ran|Took|Sent|Wrote|Built|Sold|Paid|Went|Did) ")
"""The beginning of a note about an action of its author."""


def side_by_side(items: Sequence[Candidate], into: Into) -> list[Candidate]:
    """Join the present and the former statement into one line.

    Two statements with the same subject that differ in a number, a name or a negation are shown
    together, the newest first; neither silently replaces the other. Reports of what was done or measured do not
    contradict each other: `Ran 5 km in 30:15` is as true as the run before.
    """
    about: dict[tuple[str | None, frozenset[str]], list[Candidate]] = {}
    for item in items:
        if len(item.subject) > 1 and not item.reports and not _DONE.match(item.text):
            about.setdefault((item.about, item.subject), []).append(item)
    absorbed: dict[tuple[int, int], None] = {}
    merged: dict[tuple[int, int], Candidate] = {}
    for group in paced(about.values()):
        newest = group[-1]
        before = next((c for c in reversed(group[:-1]) if _disagree(newest, c)), None)
        if before is None or newest.length + before.length > 50:
            continue
        merged[newest.place] = with_earlier(newest, before)
        absorbed[before.place] = None
        into[before.place] = ("outdated", newest.place)
    return [merged.get(c.place, c) for c in items if c.place not in absorbed]
