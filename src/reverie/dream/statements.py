"""From sources to candidate statements: short, self-contained, scored, with what differs side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from reverie.dream import mustkeep, score
from reverie.dream.dates import anchor, day_of, spell
from reverie.dream.lexicon import MONTH_NAMES, NEGATIONS, NUMBERS
from reverie.dream.sentences import Form, split
from reverie.dream.shorten import shorten
from reverie.dream.source import How, Source
from reverie.dream.tokens import Token, join, tokenize

_PHOTO = re.compile(r"^([a-z ]+: )(?:an? )?(?:close[- ]up )?(?:photo|photograph|photography|picture|image)s? of ")
_TODAY = frozenset({"today", "tonight", "now"})
_SPANS = frozenset({"morning", "afternoon", "evening", "week", "weekend", "month", "year"})


class Phrase(NamedTuple):
    """A piece of a source with its dates anchored, in tokens."""

    original: str
    form: Form
    text: str
    tokens: list[Token]


def phrases(source: Source) -> list[Phrase]:
    """What a source says, piece by piece; empty for blank content."""
    day = day_of(source.created_at)
    out = []
    for piece in split(source.content):
        text = piece.text if piece.form is Form.CODE else anchor(piece.text, day)
        if piece.form is Form.ASIDE:
            text = _PHOTO.sub(r"\1", text)
        tokens = tokenize(text)
        if tokens:
            out.append(Phrase(piece.text, piece.form, text, tokens))
    return out


def points_at_today(said: Iterable[Phrase]) -> bool:
    """True if the same words would mean something else on another day."""
    for phrase in said:
        before = ""
        for t in phrase.tokens:
            if t.lower in _TODAY or (before == "this" and t.lower in _SPANS):
                return True
            before = t.lower
    return False


class Candidate(NamedTuple):
    """A statement that may be kept. `place` is its position in the canonical order."""

    place: tuple[int, int]
    text: str
    day: date
    speaker: str | None
    source_ids: tuple[str, ...]
    how: How
    times: int  # by how many sources
    required: bool
    length: int  # words and marks
    factor: int
    concepts: dict[str, int]  # weight in tenths of a word, in order
    variant: tuple[str, ...]  # what would make it another fact: numbers, names, negations
    subject: frozenset[str]  # what it is about, without those


def candidates(
    position: int, source: Source, said: Sequence[Phrase], names: frozenset[str], ids: tuple[str, ...]
) -> list[Candidate]:
    """The statements of one source that say something. `ids`: the source, then its duplicates."""
    day = day_of(source.created_at)
    out = []
    for number, (original, form, text, tokens) in enumerate(said):
        required = mustkeep.declared(source, original) is not None
        kept = tokens
        if form is not Form.CODE and form is not Form.ASIDE:
            spoken = source.speaker is not None and form is Form.PROSE
            kept = shorten(tokens, names, spoken=spoken)
            if not kept:
                if not required:
                    continue
                kept = tokens
        shown = text if len(kept) == len(tokens) else join(kept)
        if form is Form.ASIDE:
            shown = f"({shown})"
        words = {t.lower for t in tokens}
        out.append(
            Candidate(
                place=(position, number),
                text=shown,
                day=day,
                speaker=source.speaker,
                source_ids=ids,
                how="quoted" if shown in original else "shortened",
                times=len(ids),
                required=required,
                length=len(kept) + 1,
                factor=score.factor(
                    words,
                    kept,
                    form=form,
                    asked=original.endswith("?"),
                    weighty=not words.isdisjoint(mustkeep.HINTS) and mustkeep.is_weighty(original),
                ),
                concepts=score.concepts(kept),
                variant=tuple(t.lower for i, t in enumerate(kept) if t.varies or (i and t.capital)),
                subject=frozenset(
                    t.stem for i, t in enumerate(kept) if t.telling and not t.varies and not (i and t.capital)
                ),
            )
        )
    return out


def once(items: Iterable[Candidate]) -> list[Candidate]:
    """Statements one speaker made in the same words become one, where it was said last."""
    same: dict[tuple[str | None, str], list[Candidate]] = {}
    for item in items:
        same.setdefault((item.speaker, item.text.casefold()), []).append(item)
    out = []
    for group in same.values():
        newest = group[-1]
        if len(group) > 1:
            ids = tuple(dict.fromkeys(i for c in reversed(group) for i in c.source_ids))
            newest = newest._replace(
                source_ids=ids,
                times=len(ids),
                required=any(c.required for c in group),
                factor=max(c.factor for c in group),
            )
        out.append(newest)
    return sorted(out, key=lambda c: c.place)


def _disagree(a: Candidate, b: Candidate) -> bool:
    """Both give a number or both a name, and another one; or only one denies."""
    for mine, other in zip(_kinds(a.variant), _kinds(b.variant), strict=True):
        if mine and other and mine != other:
            return True
    return any(map(_denies, a.variant)) != any(map(_denies, b.variant))


def _denies(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def _kinds(variant: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    numbers = tuple(v for v in variant if v in NUMBERS or any(c.isdigit() for c in v))
    names = tuple(v for v in variant if v not in numbers and v not in MONTH_NAMES and not _denies(v))
    return numbers, names


def side_by_side(items: Sequence[Candidate]) -> list[Candidate]:
    """Put what a statement says now and what it said before into one line.

    Two statements with the same subject that differ in a number, a name or a negation are shown
    together, the newest first; neither silently replaces the other.
    """
    about: dict[frozenset[str], list[Candidate]] = {}
    for item in items:
        if len(item.subject) > 1:
            about.setdefault(item.subject, []).append(item)
    absorbed: dict[tuple[int, int], None] = {}
    merged: dict[tuple[int, int], Candidate] = {}
    for group in about.values():
        newest = group[-1]
        before = next((c for c in reversed(group[:-1]) if _disagree(newest, c)), None)
        if before is None or newest.length + before.length > 50:
            continue
        when = "" if before.day == newest.day else f", {spell(before.day)}"
        who = "" if before.speaker == newest.speaker or before.speaker is None else f", {before.speaker}"
        merged[newest.place] = newest._replace(
            text=f"{newest.text} (earlier{when}{who}: {before.text})",
            source_ids=(*newest.source_ids, *(i for i in before.source_ids if i not in newest.source_ids)),
            how="merged",
            required=newest.required or before.required,
            length=newest.length + before.length + 4,
            factor=max(newest.factor, before.factor),
            concepts=before.concepts | newest.concepts,
        )
        absorbed[before.place] = None
    return [merged.get(c.place, c) for c in items if c.place not in absorbed]
