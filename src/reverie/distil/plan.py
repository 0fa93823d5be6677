"""Planning: which entries a dream takes, in what order, and what the budget allows. Pure; touches nothing.

The accounting, exact and the same everywhere: input is the tokens of the source lines handed to the distiller after
exact and near duplicates were collapsed; output is the tokens of the archive's text; the budget caps their sum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reverie.core.dream import Selector, TokenBudgetExceeded
from reverie.core.entry import FILE_KIND, Entry, EntryState, speaker
from reverie.core.pause import paced
from reverie.core.subject import fold, labelled
from reverie.distil.dates import day_of, spell
from reverie.distil.extractive import ExtractiveDistiller, PreparedSources
from reverie.distil.source import Source

Count = Callable[[str], int]
DREAM_KIND = "dream"
DAY_MS = 86_400_000
SMALL = 200
"""Below this many tokens of output there is no point in squeezing further."""


class Share(NamedTuple):
    """The share of its sources that a text may have, per mille: of all statements, or of those that need not be kept,
    whichever is more."""

    of_input: int
    of_rest: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """Sources made ready, and what distilling them takes."""

    sources: tuple[Source, ...]
    prepared: PreparedSources
    tokens_before: int
    input_tokens: int
    least_output: int
    rest: int = 0
    """Tokens of the statements that need not be kept."""
    most: int = 0
    """Tokens of the text with every statement unshortened: no text is longer."""

    @property
    def minimum_required(self) -> int:
        """The smallest budget with which these sources can be distilled, exactly."""
        return self.input_tokens + self.least_output

    @property
    def shrinks(self) -> bool:
        """Whether the least meaningful distillate is smaller than its sources, duplicates included."""
        return 0 < self.least_output < self.tokens_before

    def wanted(self, share: Share) -> int:
        """Tokens of a text that has its share, without regard to a budget."""
        return min(self._share(share), self.most)

    def _share(self, share: Share) -> int:
        rest = self.least_output + self.rest * share.of_rest // 1000
        return max(rest, self.input_tokens * share.of_input // 1000)

    def output_limit(self, budget: int, share: Share, *, shrink: bool = True, floor: int = SMALL) -> int:
        """The most tokens the output may have: its share, never below what must be kept."""
        room = min(max(self._share(share), floor), budget - self.input_tokens)
        return min(room, self.tokens_before - 1) if shrink else room


def line(source: Source) -> str:
    """A source as it is handed to a distiller: when, who, what."""
    return lines([source])[0]


def lines(sources: Sequence[Source]) -> list[str]:
    """Sources as they are handed to a distiller, each day spelled once."""
    days = {source.created_at // DAY_MS: source.created_at for source in sources if source.created_at}
    spelled = {day: spell(day_of(at)) for day, at in days.items()}
    made = []
    for source in sources:
        label = source.label(source.content) if source.subject else source.speaker
        said = f"{label}: {source.content}" if label else source.content
        made.append(f"[{spelled[source.created_at // DAY_MS]}] {said}\n" if source.created_at else f"{said}\n")
    return made


def hot_texts(entries: Sequence[Entry]) -> list[str]:
    """Entries as hot memory reads: their words with speaker and subject, which the lines of a dream name too."""
    labels = [
        labelled(who, entry.subject, entry.content) if entry.subject else who
        for entry, who in zip(entries, _speakers(entries), strict=True)
    ]
    return [
        f"{label}: {entry.content}" if label and entry.kind != DREAM_KIND else entry.content
        for entry, label in zip(entries, labels, strict=True)
    ]


def to_sources(entries: Sequence[Entry], earlier: Iterable[Source] = ()) -> list[Source]:
    """Entries as a distiller sees them, each with its subject where there are several; one spelling for each.

    `earlier`: sources that were made before, perhaps of the same entries. What was read of these is not read again.
    """
    names: dict[str, str] = {}
    for name in sorted({entry.subject or "" for entry in entries}):
        names.setdefault(fold(name), name)
    several = len(names) > 1
    known = {source: source for source in earlier}
    made = [
        Source(
            id=entry.id,
            content=entry.content,
            created_at=entry.created_at,
            speaker=who,
            subject=(names[fold(entry.subject or "")] or None) if several else None,
            kind=entry.kind,
            pinned=entry.pinned,
            tags=entry.tags,
            session=entry.source.session,
            trust=entry.source.trust,
        )
        for entry, who in zip(entries, _speakers(entries), strict=True)
    ]
    return [known.get(source, source) for source in made] if known else made


def _speakers(entries: Sequence[Entry]) -> list[str | None]:
    return [speaker(entry.source) for entry in entries]


def admit(entries: Iterable[Entry], selector: Selector, *, now: int, epoch: int) -> tuple[list[Entry], Counter[str]]:
    """The entries a selector takes, in canonical order, and why the others stay out."""
    taken: list[Entry] = []
    left_out: Counter[str] = Counter()
    for entry in paced(entries):
        reason = _refusal(entry, selector, now, epoch)
        if reason is None:
            taken.append(entry)
        else:
            left_out[reason] += 1
    taken.sort(key=lambda entry: (entry.created_at, entry.id))
    return taken, left_out


def _refusal(entry: Entry, selector: Selector, now: int, epoch: int) -> str | None:
    """Return the reason why an entry is left out, or None. Pins and holds come first: nothing overrides them."""
    checks = (
        ("pinned", entry.pinned),
        ("held", entry.held),
        ("state", entry.state not in selector.states),
        ("recent", now - entry.created_at < selector.older_than_ms),
        ("recent", selector.older_than_epochs is not None and epoch - entry.epoch <= selector.older_than_epochs),
        ("kind", selector.kinds is not None and entry.kind not in selector.kinds),
        ("tags", any(tag not in entry.tags for tag in selector.tags)),
        ("session", selector.session is not None and entry.source.session != selector.session),
        ("dream", entry.kind == DREAM_KIND and not selector.dreams),
        ("draft", entry.state is EntryState.DRAFT),
        ("file", entry.kind == FILE_KIND and FILE_KIND not in (selector.kinds or ())),
    )
    return next((name for name, refused in checks if refused), None)


def weigh(sources: Sequence[Source], distiller: ExtractiveDistiller, count: Count) -> Work:
    """Make sources ready and count what distilling them takes."""
    prepared = distiller.prepare(sources)
    sizes = dict(zip(map(id, sources), map(count, lines(sources)), strict=True))
    merged = [source for source in prepared.sources if id(source) not in sizes]
    sizes |= zip(map(id, merged), map(count, lines(merged)), strict=True)
    least, rest, most = distiller.needs(prepared, count=count)
    return Work(
        sources=tuple(sources),
        prepared=prepared,
        tokens_before=sum([sizes[id(source)] for source in sources]),
        input_tokens=sum([sizes[id(source)] for source in prepared.sources]),
        least_output=least,
        rest=rest,
        most=most,
    )


def require(work: Work, budget: int) -> None:
    """Raise TokenBudgetExceeded when the budget cannot hold the least meaningful dream of these sources."""
    if work.minimum_required > budget:
        raise TokenBudgetExceeded(
            f"A budget of {budget} tokens cannot hold this memory; it takes at least {work.minimum_required}. "
            "Raise the budget, or choose fit (--fit on the command line) to begin with the oldest part that fits.",
            details={"budget": budget, "minimumRequired": work.minimum_required},
        )


MOST_PLANS = 6
"""Parts that are weighed before one is taken."""
_CLOSE = 16
"""A part that could grow by less than a sixteenth is large enough."""
_GROWTH = 4
"""Times by which a part grows at once, at most, where many sources say the same."""
_BATCH = 256


class Part(NamedTuple):
    """The oldest sources that fit a budget, what distilling them takes, and how many were passed over."""

    sources: Sequence[Source]
    work: Work
    oversize: int


def oldest_that_fit(
    sources: Sequence[Source], budget: int, share: Share, weigh: Callable[[Sequence[Source]], Work], count: Count
) -> Part | None:
    """The oldest part of `sources` (in canonical order) that a budget can hold with its text.

    What a text takes is measured: parts are weighed until one is nearly as large as can be, at most `MOST_PLANS`. An
    entry that takes half of the budget is passed over, so that it does not stop the rest for ever. Where no part was
    found to fit, it is the smallest that was weighed.
    """
    pool = _Pool(sources, max(budget // 2, min(SMALL, budget * 3 // 4)), count)
    below, above = 0, len(sources) + 1
    end = pool.end(budget * 2 // 3) if pool.exceeds(budget) else pool.end(budget)
    part: Part | None = None
    for _ in range(MOST_PLANS):
        if not below < end < above:
            break
        work = weigh(pool.taken[:end])
        used = work.input_tokens + work.wanted(share)
        fits = used <= budget
        if fits or not below:
            part = Part(pool.taken[:end], work, pool.passed[end - 1])
        below, above = (end, above) if fits else (below, end)
        size = pool.upto[end - 1]
        end = pool.end(min(size * budget // max(used, 1), size * _GROWTH))
        if below and (end - below) * _CLOSE < below:
            break
    return part


class _Pool:
    """Sources in canonical order, their lines counted as far as needed."""

    def __init__(self, sources: Sequence[Source], most: int, count: Count) -> None:
        self.taken: list[Source] = []
        self.upto: list[int] = []
        """Tokens of the lines up to each source."""
        self.passed: list[int] = []
        """Sources with more than `most` tokens that came before each."""
        self._most = most
        self._rest = _sized(sources, count)

    def exceeds(self, room: int) -> bool:
        """True if the lines take more than `room`."""
        passed = self.passed[-1] if self.passed else 0
        while not self.upto or self.upto[-1] <= room:
            source, size = next(self._rest, (None, 0))
            if source is None:
                return False
            if size > self._most:
                passed += 1
                continue
            self.taken.append(source)
            self.upto.append(size + (self.upto[-1] if self.upto else 0))
            self.passed.append(passed)
        return True

    def end(self, room: int) -> int:
        """The number of sources whose lines take at most `room` tokens together, one at least.

        It is where a session or a day ends, if one ends in the last eighth of them.
        """
        if not self.exceeds(room):
            return len(self.taken)
        most = max(bisect_right(self.upto, room), 1)
        for end in range(most, most * 7 // 8, -1):
            before, after = self.taken[end - 1], self.taken[end]
            if before.session != after.session or day_of(before.created_at) != day_of(after.created_at):
                return end
        return most


def _sized(sources: Sequence[Source], count: Count) -> Iterator[tuple[Source, int]]:
    for start in range(0, len(sources), _BATCH):
        batch = sources[start : start + _BATCH]
        yield from zip(batch, map(count, lines(batch)), strict=True)
