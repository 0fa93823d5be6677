"""The gates that a distillate must pass before it is stored, regardless of the distiller.

Pure and without a model, so the checks compare words: every must-keep statement is present; no number,
date, name, link, address or identifier is new; no clause says the opposite of its source; and the text is
smaller than its input and within the budget.

Known limits: a name is a capitalised word inside a sentence, so an invented name at the beginning of a
sentence or in a script without capitals is not detected; a flipped negation is detected only where an
output clause shares most of its informative words with a source clause; antonyms are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Literal

from reverie.core.pause import paced
from reverie.distil.dates import anchor, day_of, spell
from reverie.distil.lines import LineIndex
from reverie.distil.must_keep import MustKeep
from reverie.distil.phrases import phrases_of
from reverie.distil.shorten import clauses, shorten, vocatives
from reverie.distil.source import Source, Statement
from reverie.distil.tokens import Token, lowered, tokenize

State = Literal["kept", "quoted", "missing"]
What = Literal["number", "name", "link", "address", "identifier"]

CONNECTIVES = frozenset({"earlier"})  # words that the layout may add to dates and counts
_LISTED = re.compile(r"(?<=\d), (?=\d)")
_MOST_CLAUSES = 200  # source clauses compared with one output clause
_JUDGED = 80  # per cent of an output clause's informative words that a source clause must share
_HEADING = re.compile(r"\[[^\[\]]*\]")
_COUNT = re.compile(r"\(×(\d{1,4000})(?=[),;])")  # Python converts no more than 4300 digits
_FAILED = re.compile(r"(?<=; )(\d{1,4000}) times(?=, last: )")  # the same count of a roll-up's failures
_MARKER = re.compile(r"\[REDACTED:[^\[\]\s]*\]")  # a marker of the redactor is not a new name
_SPACE = re.compile(r"\s+")
_PARTS = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-+$€£#~]?\d[\d.,:/%-]*(?:st|nd|rd|th|ms|s|m|h|d|kb|mb|gb|k|px|x)?")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Presence:
    item: MustKeep
    state: State


@dataclass(frozen=True, slots=True)
class Invented:
    what: What
    text: str


@dataclass(frozen=True, slots=True)
class GateReport:
    """The findings of each gate. `passed` only if no declared item is missing and every gate is clean."""

    tokens: int
    input_tokens: int
    source_tokens: int
    """Tokens of the sources, duplicates included; the distiller was not given the duplicates."""
    budget: int
    must_keep: tuple[Presence, ...]
    invented: tuple[Invented, ...]
    flipped: tuple[str, ...]
    faulty: tuple[str, ...] = ()
    """Statements that a gate refused: without them the text would pass."""

    @property
    def missing(self) -> tuple[MustKeep, ...]:
        """Declared items that are not in the text."""
        return tuple(k.item for k in self.must_keep if k.state == "missing" and k.item.declared)

    @property
    def within_budget(self) -> bool:
        return self.input_tokens + self.tokens <= self.budget

    @property
    def smaller(self) -> bool:
        return self.tokens < self.source_tokens or self.tokens == 0

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the gates that failed."""
        found = {
            "must_keep": bool(self.missing),
            "invented": bool(self.invented),
            "negation": bool(self.flipped),
            "smaller": not self.smaller,
            "budget": not self.within_budget,
        }
        return tuple(name for name, failed in found.items() if failed)

    @property
    def passed(self) -> bool:
        return not self.failures


def verify(
    sources: Sequence[Source],
    text: str,
    *,
    must_keep: Iterable[MustKeep],
    budget: int,
    input_tokens: int,
    count: Callable[[str], int],
    source_tokens: int | None = None,
    statements: Sequence[Statement] = (),
) -> GateReport:
    """Check `text` against the sources it was made from.

    `budget` covers input and output together. `input_tokens` counts the input of the distiller, `source_tokens` also
    the duplicates. `statements`: the statements of the text with their sources, where the distiller knows them.
    """
    invented = _invented(sources, text)
    flipped = _flipped(sources, text, statements)
    denying = set(flipped)
    return GateReport(
        tokens=count(text),
        input_tokens=input_tokens,
        source_tokens=input_tokens if source_tokens is None else source_tokens,
        budget=budget,
        must_keep=_presences(sources, text, must_keep),
        invented=invented,
        flipped=flipped,
        faulty=tuple(
            statement.text
            for statement in statements
            if statement.text in denying or any(item.text in statement.text for item in invented)
        ),
    )


def _presences(sources: Sequence[Source], text: str, items: Iterable[MustKeep]) -> tuple[Presence, ...]:
    by_id = {s.id: s for s in sources}
    names = vocatives({s.speaker for s in sources if s.speaker})
    folded = _SPACE.sub(" ", text)
    lines = LineIndex(text)
    out = []
    for item in paced(items):
        state: State = "missing"
        if _SPACE.sub(" ", item.text).strip(" .!") in folded:
            state = "quoted"
        else:
            source = by_id.get(item.source_id)
            wording = anchor(item.text, day_of(source.created_at)) if source else item.text
            tokens = tokenize(wording)
            kept = shorten(tokens, names, spoken=True) or tokens
            if _is_present(kept, lines):
                state = "kept"
        out.append(Presence(item, state))
    return tuple(out)


def _is_present(tokens: Sequence[Token], lines: LineIndex) -> bool:
    """Whether one line has every number, identifier and negation, and four of five informative words."""
    firm = {t.stem for t in tokens if t.word and (t.hard or t.negates)}
    return lines.has(firm, {t.stem for t in tokens if t.telling} or {t.stem for t in tokens if t.word})


def _invented(sources: Sequence[Source], text: str) -> tuple[Invented, ...]:
    when = [day_of(s.created_at) for s in sources]
    days = sorted(set(when))
    contents = [s.content for s in sources]
    anchored = [anchor(text, day) for text, day in paced(zip(contents, when, strict=True))]
    texts = [*contents, *(after for after, before in zip(anchored, contents, strict=True) if after != before)]
    # markers are removed from the text: an address with one inside loses its middle
    texts += [_MARKER.sub("", text) for text in anchored if "[" in text]
    texts += {f"{s.speaker or ''} {s.subject or ''} {' '.join(s.tags)}" for s in sources}
    words = lowered(texts) | CONNECTIVES
    words.update([w.replace(",", "").removesuffix("()") for w in words])
    parts = {p for w in words for p in _PARTS.findall(w)}
    for day in days:
        parts.update(spell(day).lower().split())
        words.update((day.isoformat(), _WEEKDAYS[day.weekday()]))
        words.update(_WEEKDAYS[(day + timedelta(days=n)).weekday()] for n in (-1, 1))
    out: dict[Invented, None] = {}
    lines = _MARKER.sub("", text).split("\n")
    for count in (_COUNT, _FAILED):
        lines = [count.sub(lambda m: "" if 1 < int(m[1]) <= len(sources) else m[0], line) for line in lines]
    for tokens in [tokenize(line) for line in paced(lines)]:
        fresh = True
        for t in tokens:
            if not t.word:
                fresh = fresh or t.text in '.!?;:(["“'
                continue
            if t.hard:
                if not _is_known(t.lower, words, parts):
                    out[Invented(_what(t.lower), t.text)] = None
            elif (
                t.capital and not fresh and t.stem not in parts and not all(p in parts for p in _PARTS.findall(t.lower))
            ):
                out[Invented("name", t.text)] = None
            fresh = False
    return tuple(out)


def _is_known(lower: str, words: set[str], parts: set[str]) -> bool:
    if lower in words or lower.removesuffix("()") in words:
        return True
    if _NUMBER.fullmatch(lower):
        bare = lower.strip("$€£#~+%").replace(",", "")
        return bare in parts or bare in words or lower.strip("$€£#~") in words
    if lower.startswith("`"):
        return all(_is_known(t.lower, words, parts) for t in tokenize(lower.strip("`")) if t.hard)
    if lower.startswith(("[", "http")) or "@" in lower:
        return False
    return all(p in parts for p in _PARTS.findall(lower)) and "_" not in lower


def _what(lower: str) -> What:
    if lower.startswith("http"):
        return "link"
    if "@" in lower:
        return "address"
    return "number" if _NUMBER.fullmatch(lower) else "identifier"


class _Clause:
    __slots__ = ("denies", "telling")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.telling = frozenset([t.stem for t in tokens if t.telling])
        self.denies = True in [t.negates for t in tokens]


def _flipped(sources: Sequence[Source], text: str, statements: Sequence[Statement]) -> tuple[str, ...]:
    """Find statements that contradict their sources: one denies, the other asserts.

    A statement with known sources is compared with those, a line without known sources with all. Headings are ignored.
    """
    lines = [line for line in text.split("\n") if not _HEADING.fullmatch(line.strip())]
    if not statements:
        said = _ClauseIndex([clause for own in _clauses_of(sources) for clause in own])
        return tuple(line for line, parts in zip(lines, _parts(lines), strict=True) if _denies(parts, said))
    by_id = {source.id: source for source in sources}
    named = [by_id[i] for i in {i: None for statement in statements for i in statement.source_ids} if i in by_id]
    clauses_by_id = {source.id: own for source, own in zip(named, _clauses_of(named), strict=True)}
    parts_of = _parts([statement.text for statement in statements])
    out = []
    for statement, parts in paced(zip(statements, parts_of, strict=True)):
        own = [clauses_by_id[i] for i in statement.source_ids if i in clauses_by_id]
        if own and _denies(parts, _ClauseIndex([clause for one in own for clause in one])):
            out.append(statement.text)
    return tuple(out)


class _ClauseIndex:
    """The clauses of some sources, indexed by their words."""

    def __init__(self, clauses_said: Sequence[_Clause]) -> None:
        self.clauses = clauses_said
        self.holding: dict[str, list[int]] = {}
        for i, clause in enumerate(clauses_said):
            for word in clause.telling:
                self.holding.setdefault(word, []).append(i)


def _clauses_of(sources: Sequence[Source]) -> list[list[_Clause]]:
    """Return the sentences of every source, each followed by its clauses if it has several."""
    said = phrases_of(sources)
    phrases = [phrase for own in said for phrase in own]
    read = [one.tokens if one.text == one.original else tokenize(one.original) for one in paced(phrases)]
    parts = [clauses(tokens) for tokens in paced(read)]
    made = [
        [_Clause(tokens), *([_Clause(part) for part in own] if len(own) > 1 else ())]
        for tokens, own in paced(zip(read, parts, strict=True))
    ]
    following = iter(made)
    return [[clause for one in islice(following, len(own)) for clause in one] for own in said]


def _parts(lines: Sequence[str]) -> list[list[list[Token]]]:
    """Return the clauses of every line. The numbers of a list are no clauses of their own."""
    tokens = [tokenize(_LISTED.sub(" ", line)) for line in paced(lines)]
    return [clauses(words) for words in paced(tokens)]


def _denies(parts: Sequence[Sequence[Token]], said: _ClauseIndex) -> bool:
    for tokens in parts:
        clause = _Clause(tokens)
        if len(clause.telling) > 1 and _is_flipped(clause, said.clauses, said.holding):
            return True
    return False


def _is_flipped(clause: _Clause, said: Sequence[_Clause], holding: dict[str, list[int]]) -> bool:
    """Whether all source clauses most like this one say the opposite."""
    shared: dict[int, int] = {}
    for word in sorted(clause.telling, key=lambda w: (len(holding.get(w, ())), w))[:4]:
        for i in holding.get(word, ())[:_MOST_CLAUSES]:
            shared.setdefault(i, len(clause.telling & said[i].telling))
    most = max(shared.values(), default=0)
    if most * 100 < _JUDGED * len(clause.telling):
        return False
    return all(said[i].denies != clause.denies for i, n in shared.items() if n == most)


__all__ = ["GateReport", "Invented", "Presence", "verify"]
