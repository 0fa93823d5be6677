"""The model-free distiller: many entries in, one short readable text out.

The same sources, budget and counter give the same bytes, whatever the insertion order, the machine, the
hash seed or the locale. The text never has more tokens than requested, by the caller's own count; every
statement names its sources; no word is added except the dates that replace relative ones, and the fixed
connectives of the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from importlib.metadata import version

from reverie.core.pause import paced
from reverie.distil import cover, score
from reverie.distil.currency import overtake
from reverie.distil.dates import day_of
from reverie.distil.duplicates import collapse, gist
from reverie.distil.layout import render, wording
from reverie.distil.must_keep import declares, reasons_of
from reverie.distil.phrases import phrases_of, values_of
from reverie.distil.rollup import roll_up
from reverie.distil.sentences import Form
from reverie.distil.shorten import vocatives
from reverie.distil.source import CARRIED, FATES, Collapsed, Distillate, Fate, Fates, Phrase, Source, Statement
from reverie.distil.statements import (
    NAMELESS,
    ROUTINE,
    Candidate,
    Into,
    Place,
    answered,
    candidates,
    once,
    points_at_today,
    question_before,
    replies,
    side_by_side,
)
from reverie.distil.value import model

Count = Callable[[str], int]


class OutputTooSmallError(ValueError):
    """The requested tokens cannot hold the declared statements; `minimum` tokens can."""

    def __init__(self, minimum: int) -> None:
        super().__init__(f"a distillate of these sources needs at least {minimum} tokens")
        self.minimum = minimum


@dataclass(frozen=True, slots=True)
class PreparedSources:
    """Sources prepared once, to be distilled to any budget.

    `sources` are those left after duplicates were collapsed, in canonical order: their content counts
    as the input of the distiller.
    """

    sources: tuple[Source, ...]
    collapsed: tuple[Collapsed, ...]
    candidates: tuple[Candidate, ...]
    concepts: Sequence[tuple[int, ...]]
    weights: Sequence[tuple[int, ...]]
    places: Mapping[Place, tuple[str, str]] = field(default_factory=dict)
    """The source and the class of every statement, candidate or not."""
    into: Into = field(default_factory=dict)
    """Statements that became part of another one."""
    length: int | None = None
    """Characters of all sources, duplicates included."""

    @property
    def source_ids(self) -> tuple[str, ...]:
        return (*(s.id for s in self.sources), *(i for c in self.collapsed for i in c.merged))


class ExtractiveDistiller:
    """Distils without a model. Stateless; an instance may be shared between threads."""

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever the same sources could be distilled differently."""
        return f"extractive/17 {model().name} sentencex/{version('sentencex')}"

    def prepare(self, sources: Iterable[Source]) -> PreparedSources:
        """Order, collapse, split, shorten and score the sources: everything that needs no budget."""
        ordered = sorted(sources, key=lambda s: (s.created_at, s.id, s.content))
        said = phrases_of(ordered)
        stands_for = _duplicates(ordered, said)
        copies: dict[int, list[int]] = {}
        for i, kept in enumerate(stands_for):
            copies.setdefault(kept, []).append(i)
        kept_sources = sorted(copies)
        names = vocatives({s.speaker for s in ordered if s.speaker})
        left = [ordered[i] for i in kept_sources]
        values = values_of(left)
        repeated = _repeated(ordered, said)
        ids = [
            (one.id, *(ordered[j].id for j in reversed(copies[i]) if j != i))
            for i, one in zip(kept_sources, left, strict=True)
        ]
        items: list[Candidate] = []
        into: Into = {}
        judged = map(zip, phrases_of(left), values, reasons_of(left))
        for i, source, own, verdicts in paced(zip(kept_sources, left, ids, judged, strict=True)):
            since = ordered[copies[i][0]].created_at
            question = question_before(source, ordered[i - 1], said[i - 1]) if i else None
            reply = replies(said[i], question)
            fresh = candidates(i, source, verdicts, names=names, ids=own, since=since, repeated=repeated, reply=reply)
            if i and fresh:
                fresh[0] = answered(fresh[0], source, ordered[i - 1], said[i - 1], names, reply=reply)
            items.extend(fresh)
            into |= {(i, n): ("", (i, n + 1)) for n, phrase in enumerate(said[i]) if phrase.form is Form.HEAD}
        items = roll_up(once(items, into), into)
        known = {word for item in items for word in item.variant} - NAMELESS
        items = [item for item in items if not item.idle or item.opening in known]
        items = side_by_side(overtake(items, into), into)
        concepts, weights = _weighed(items, sum(map(len, values)))
        return PreparedSources(
            sources=tuple(left),
            collapsed=tuple(Collapsed(kept=own[0], merged=own[1:]) for own in ids if len(own) > 1),
            candidates=tuple(items),
            concepts=concepts,
            weights=weights,
            places={
                (i, n): (source.id, value.kind)
                for i, source, own in zip(kept_sources, left, values, strict=True)
                for n, value in enumerate(own)
            },
            into=into,
            length=sum(len(source.content) for source in ordered),
        )

    def distil(
        self,
        given: PreparedSources | Iterable[Source],
        *,
        output_tokens: int,
        count: Count,
        avoid: Set[str] = frozenset(),
        whole: bool = True,
    ) -> Distillate:
        """Return a text of at most `output_tokens` tokens. Raises `OutputTooSmallError` if the declared ones need more.

        `whole`: must-keep statements come first, if all of them fit; otherwise they compete with the others. Statements
        in `avoid` are left out; their sources count as unkept. Where every statement has room, none is shortened.
        """
        prepared = given if isinstance(given, PreparedSources) else self.prepare(given)
        avoided: list[Candidate] = []
        if avoid:
            avoided = [i for i in prepared.candidates if not avoid.isdisjoint((wording(i), wording(_unshortened(i))))]
            prepared = _without(prepared, avoided)
        items = prepared.candidates
        sizes = _sizes(items, count)
        needs = _needs(items)
        least, text, tokens = _floor(prepared, sizes, count)
        if tokens > output_tokens:
            raise OutputTooSmallError(tokens)
        wanted = _wanted(prepared, sizes, declared=False)
        if whole and len(wanted) > len(least):
            longer, size = _drawn(prepared, wanted, count)
            if size <= output_tokens:  # all must-keep statements fit: they come before more informative ones
                least, text, tokens = wanted, longer, size
        ranked = cover.order(
            prepared.concepts,
            prepared.weights,
            sizes,
            needs=needs,
            first=least,
            # More than requested, since a line may cost less than its statements one by one.
            enough=output_tokens + output_tokens // 20 + 1,
        )
        chosen, beyond = len(least), len(ranked) + 1
        while beyond - chosen > 1:
            middle = (chosen + beyond) // 2
            longer, size = _drawn(prepared, ranked[:middle], count)
            if size <= output_tokens:
                chosen, text, tokens = middle, longer, size
            else:
                beyond = middle
        taken, text, tokens = _filled(prepared, sizes, count, (ranked[:chosen], text, tokens), output_tokens)
        kept = [items[i] for i in sorted(taken)]
        if whole and len(kept) == len(items):
            said = [_unshortened(item) for item in items]
            for apart in (True, False):
                longer, size = _drawn(replace(prepared, candidates=tuple(said)), range(len(items)), count, apart=apart)
                if size <= output_tokens:
                    kept, text, tokens = said, longer, size
                    break
        stated = {i for item in kept for i in item.source_ids}
        chosen_places = {item.place for item in kept}
        missed = [item for item in items if item.must_keep and item.place not in chosen_places] + avoided
        return Distillate(
            text=text,
            tokens=tokens,
            statements=tuple(
                [
                    Statement(line, item.source_ids, item.how, item.times)
                    for item, line in zip(kept, [wording(item) for item in kept], strict=True)
                ]
            ),
            collapsed=prepared.collapsed,
            dropped=tuple(i for i in prepared.source_ids if i not in stated),
            unkept=tuple(dict.fromkeys(i for item in missed for i in item.source_ids)),
            fates=_fates(prepared, {item.place: item.how for item in kept}),
        )

    def minimum(self, given: PreparedSources | Iterable[Source], *, count: Count, declared: bool = False) -> int:
        """Return the exact fewest output tokens that hold every must-keep statement.

        Without any, those of the one statement with the most information per token; 0 without statements. `declared`:
        the least with which `distil` succeeds, when only the declared statements are required.
        """
        prepared = given if isinstance(given, PreparedSources) else self.prepare(given)
        sizes = _sizes(prepared.candidates, count)
        if declared:
            return _floor(prepared, sizes, count)[2]
        return _drawn(prepared, _wanted(prepared, sizes, declared=False), count)[1]

    def needs(self, prepared: PreparedSources, *, count: Count) -> tuple[int, int, int]:
        """Return three token counts: the minimum; the tokens that all other statements add, routine reports left out;
        and those of a text with every statement unshortened.
        """
        items = prepared.candidates
        sizes = _sizes(items, count)
        wanted = _wanted(prepared, sizes, declared=False)
        least = _drawn(prepared, wanted, count)[1]
        telling = {*wanted, *(i for i, item in enumerate(items) if item.kind != ROUTINE)}
        unshortened = replace(prepared, candidates=tuple(map(_unshortened, items)))
        most = _drawn(unshortened, range(len(items)), count, apart=True)[1]
        return least, max(_drawn(prepared, telling, count)[1] - least, 0), most


_CRUMB, _FILLS = 6, 8
"""Fewest spare tokens worth filling with more statements, and most attempts to do so."""


def _floor(prepared: PreparedSources, sizes: Sequence[int], count: Count) -> tuple[list[int], str, int]:
    """Return the statements, text and tokens of the smallest distillate.

    It has the declared statements; or all must-keep statements, where these take fewer tokens: a text that would be
    longer than its sources has fewer headings.
    """
    both = [_wanted(prepared, sizes, declared) for declared in (True, False)]
    return min(((chosen, *_drawn(prepared, chosen, count)) for chosen in both), key=lambda one: one[2])


def _filled(
    prepared: PreparedSources, sizes: Sequence[int], count: Count, made: tuple[list[int], str, int], most: int
) -> tuple[list[int], str, int]:
    """Fill the remaining room with shorter statements: return the statements, text and tokens."""
    taken, _, tokens = made
    if most - tokens < _CRUMB or len(taken) == len(prepared.candidates):
        return made
    enough = sum(sizes[i] for i in taken) + most - tokens
    needs = _needs(prepared.candidates)
    filled = cover.order(prepared.concepts, prepared.weights, sizes, needs=needs, first=taken, enough=enough)
    for end in range(len(filled), max(len(taken), len(filled) - _FILLS), -1):
        longer, size = _drawn(prepared, filled[:end], count)
        if size <= most:
            return filled[:end], longer, size
    return made


def _wanted(prepared: PreparedSources, sizes: Sequence[int], declared: bool) -> list[int]:
    """Return the must-keep statements, or only the declared ones; at least one statement."""
    items = prepared.candidates
    needs = _needs(items)
    least = _least(prepared, sizes, needs)
    return least if declared else _with_needed((i for i, item in enumerate(items) if item.must_keep), needs) or least


def _unshortened(item: Candidate) -> Candidate:
    return item._replace(text=item.whole, how="quoted") if item.whole else item


def _fates(prepared: PreparedSources, chosen: Mapping[Place, str]) -> Fates:
    """Return the fate of every statement."""
    known = {item.place for item in prepared.candidates}
    found: dict[str, list[Fate]] = {}
    for place, (source_id, kind) in prepared.places.items():
        label, at = "", place
        while at in prepared.into:
            how, at = prepared.into[at]
            label = label or how
        if at in chosen:
            fate = label or FATES[chosen[at]]
        else:
            fate = "retired" if at in known else "chatter"
        found.setdefault(source_id, []).append((fate, kind))
    for group in prepared.collapsed:
        for merged in group.merged:
            found[merged] = [("merged" if fate in CARRIED else fate, kind) for fate, kind in found.get(group.kept, ())]
    return found


def _without(prepared: PreparedSources, avoided: Sequence[Candidate]) -> PreparedSources:
    places = {item.place for item in avoided}
    rows = [i for i, item in enumerate(prepared.candidates) if item.place not in places]
    return replace(
        prepared,
        candidates=tuple(prepared.candidates[i] for i in rows),
        concepts=[prepared.concepts[i] for i in rows],
        weights=[prepared.weights[i] for i in rows],
    )


def _sizes(items: Sequence[Candidate], count: Count) -> list[int]:
    """Return the cost of each statement: its tokens, and one for the separator."""
    texts = [wording(item) for item in items]
    return [tokens + 1 for tokens in map(count, paced(texts))]


def _needs(items: Sequence[Candidate]) -> list[int | None]:
    index = {c.place: i for i, c in enumerate(items)}
    return [index.get(c.needs) if c.needs else None for c in items]


def _least(prepared: PreparedSources, sizes: Sequence[int], needs: Sequence[int | None]) -> list[int]:
    """Return the statements that every distillate has: the declared ones, else the most informative one."""
    required = _with_needed((i for i, item in enumerate(prepared.candidates) if item.required), needs)
    if not required and prepared.candidates:
        alone = [i for i, needed in enumerate(needs) if needed is None]
        return [cover.densest(prepared.weights, sizes, alone)]
    return required


def _with_needed(chosen: Iterable[int], needs: Sequence[int | None]) -> list[int]:
    """Return the statements and their prerequisites, in order."""
    out: dict[int, None] = {}
    for i in chosen:
        at: int | None = i
        while at is not None and at not in out:
            out[at] = None
            at = needs[at]
    return sorted(out)


def _drawn(prepared: PreparedSources, chosen: Iterable[int], count: Count, *, apart: bool = False) -> tuple[str, int]:
    text = render([prepared.candidates[i] for i in sorted(chosen)], prepared.length, apart=apart)
    return text, count(text)


def _duplicates(ordered: Sequence[Source], said: Sequence[Sequence[Phrase]]) -> list[int]:
    today = [any(points_at_today(p.tokens) for p in pieces) for pieces in paced(said)]
    groups: list[tuple[object, ...]] = [
        (source.speaker, source.subject, source.kind, source.pinned, day_of(source.created_at) if dated else None)
        for source, dated in zip(ordered, today, strict=True)
    ]
    # A source that its author declared binding is merged only with the same words.
    words = [
        [] if binding else [token for phrase in pieces for token in phrase.tokens]
        for binding, pieces in zip([declares(source) for source in ordered], said, strict=True)
    ]
    for i in range(1, len(ordered)):
        question = question_before(ordered[i], ordered[i - 1], said[i - 1])
        if question is not None and replies(said[i], question):
            groups[i] = (*groups[i], question.text)  # the same answer to another question is another statement
    gists = [gist(*each) for each in paced(zip(words, groups, strict=True))]
    return collapse(gists, [" ".join([p.text.casefold() for p in pieces]).strip(" .!") for pieces in said])


def _repeated(ordered: Sequence[Source], said: Sequence[Sequence[Phrase]]) -> frozenset[str]:
    """Return texts used by several speakers, or by one on several days."""
    first: dict[str, tuple[str | None, date]] = {}
    out = set()
    for source, pieces in zip(ordered, said, strict=True):
        mark = (source.speaker, day_of(source.created_at))
        for phrase in pieces:
            text = phrase.text.casefold()
            if first.setdefault(text, mark) != mark:
                out.add(text)
    return frozenset(out)


def _weighed(items: Sequence[Candidate], total: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return for each statement the numbers and the weights of its concepts. `total`: all statements, with chatter.

    A name or a number is a concept by itself: one mention is enough. Any other word is a concept
    together with the word before it, so that a second `pottery class` counts less, while `pottery` may
    still begin a new fact.
    """
    seen = score.frequencies([item.concepts for item in items])
    numbers: dict[tuple[str, str], int] = {}
    concepts: list[tuple[int, ...]] = []
    weights: list[tuple[int, ...]] = []
    for item in paced(items):
        row = []
        before = ""
        for key, tenths in item.concepts.items():
            pair = ("", key) if tenths > score.PLAIN else (before, key)
            row.append(numbers.setdefault(pair, len(numbers)))
            before = key
        concepts.append(tuple(row))
        weights.append(
            tuple(tenths * score.rarity(total, seen[key]) * item.factor // 100 for key, tenths in item.concepts.items())
        )
    return concepts, weights


__all__ = [
    "Collapsed",
    "Count",
    "Distillate",
    "ExtractiveDistiller",
    "OutputTooSmallError",
    "PreparedSources",
    "Source",
    "Statement",
]
