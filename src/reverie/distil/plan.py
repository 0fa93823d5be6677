"""Planning: selects and orders the entries of a dream and computes what the budget allows. Pure.

The accounting, exact and the same everywhere: input is the tokens of the source lines handed to the distiller after
exact and near duplicates were collapsed; output is the tokens of the archive's text; the budget caps their sum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reverie.core.clock import from_iso
from reverie.core.dream import Selector, TokenBudgetExceeded
from reverie.core.entry import COMMITMENT_KIND, FILE_KIND, Entry, EntryState, is_for_members, speaker
from reverie.core.errors import Invalid
from reverie.core.pause import paced
from reverie.core.subject import fold, labelled
from reverie.distil.dates import day_of, spell
from reverie.distil.extractive import ExtractiveDistiller, PreparedSources
from reverie.distil.source import Source

Count = Callable[[str], int]
DREAM_KIND = "dream"
DAY_MS = 86_400_000
SMALL = 200
"""Tokens of output below which further squeezing is pointless."""


class Share(NamedTuple):
    """The size that a text may have, per mille of its sources: of all statements, or of those that need not be kept,
    whichever is more."""

    of_input: int
    of_rest: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """Prepared sources, and the tokens that distilling them takes."""

    sources: tuple[Source, ...]
    prepared: PreparedSources
    tokens_before: int
    input_tokens: int
    least_output: int
    rest: int = 0
    """Tokens of the statements that need not be kept."""
    most: int = 0
    """Tokens of the text with every statement unshortened, the longest possible."""

    @property
    def minimum_required(self) -> int:
        """The exact smallest budget with which these sources can be distilled."""
        return self.input_tokens + self.least_output

    @property
    def shrinks(self) -> bool:
        """Whether the least meaningful distillate is smaller than its sources, duplicates included."""
        return 0 < self.least_output < self.tokens_before

    def wanted(self, share: Share) -> int:
        """Return the tokens of a text of this share, whatever the budget."""
        return min(self._share(share), self.most)

    def _share(self, share: Share) -> int:
        rest = self.least_output + self.rest * share.of_rest // 1000
        return max(rest, self.input_tokens * share.of_input // 1000)

    def output_limit(self, budget: int, share: Share, *, shrink: bool = True, floor: int = SMALL) -> int:
        """Return the most tokens of the output: its share, no less than must be kept, within the budget."""
        room = min(max(self._share(share), floor), budget - self.input_tokens)
        return min(room, self.tokens_before - 1) if shrink else room


def lines(sources: Sequence[Source]) -> list[str]:
    """Return sources as the distiller gets them; each day is spelled once."""
    days = {source.created_at // DAY_MS: source.created_at for source in sources if source.created_at}
    spelled = {day: spell(day_of(at)) for day, at in days.items()}
    made = []
    for source in sources:
        label = source.label(source.content) if source.subject else source.speaker
        said = f"{label}: {source.content}" if label else source.content
        made.append(f"[{spelled[source.created_at // DAY_MS]}] {said}\n" if source.created_at else f"{said}\n")
    return made


def hot_texts(entries: Sequence[Entry]) -> list[str]:
    """Return the texts of entries in hot memory, with speaker and subject, as the lines of a dream have them."""
    labels = [
        labelled(who, entry.subject, entry.content) if entry.subject else who
        for entry, who in zip(entries, _speakers(entries), strict=True)
    ]
    return [
        f"{label}: {entry.content}" if label and entry.kind != DREAM_KIND else entry.content
        for entry, label in zip(entries, labels, strict=True)
    ]


def to_sources(entries: Sequence[Entry], earlier: Iterable[Source] = ()) -> list[Source]:
    """Convert entries to sources. Where they have several subjects, each keeps its own, in one spelling.

    `earlier`: sources converted before, perhaps from the same entries. Equal ones are reused with their analysis.
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
    """Return the entries that a selector takes, in canonical order, and the number left out by reason."""
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
    """Return the reason why an entry is left out, or None. Pins and holds come first: no selector overrides them."""
    checks = (
        ("pinned", entry.pinned),
        ("held", entry.held),
        ("state", entry.state not in selector.states),
        ("recent", now - entry.created_at < selector.older_than_ms),
        ("recent", selector.older_than_epochs is not None and epoch - entry.epoch <= selector.older_than_epochs),
        ("kind", selector.kinds is not None and entry.kind not in selector.kinds),
        ("tags", any(tag not in entry.tags for tag in selector.tags)),
        ("session", selector.session is not None and entry.source.session != selector.session),
        ("members", is_for_members(entry) and entry.source.session != selector.session),
        ("dream", entry.kind == DREAM_KIND and not selector.dreams),
        ("draft", entry.state is EntryState.DRAFT),
        ("file", entry.kind == FILE_KIND and FILE_KIND not in (selector.kinds or ())),
        ("commitment", entry.kind == COMMITMENT_KIND and not _is_over(entry, now)),
    )
    return next((name for name, refused in checks if refused), None)


def _is_over(commitment: Entry, now: int) -> bool:
    """Whether a commitment was due a day ago or more, so that it has fired. One that waits for a tag is never over."""
    due = commitment.attributes.get("due")
    try:
        at = from_iso(due) if isinstance(due, str) else due
    except Invalid:
        return True
    return at <= now - DAY_MS if isinstance(at, int) else "when" not in commitment.attributes


def weigh(sources: Sequence[Source], distiller: ExtractiveDistiller, count: Count) -> Work:
    """Prepare sources and count the tokens that distilling them takes."""
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
"""Most parts that are weighed before one is taken."""
_CLOSE = 16
"""A part that could grow by less than a sixteenth is large enough."""
_GROWTH = 4
"""Largest factor by which a part grows at once, where many sources are duplicates."""
_BATCH = 256


class Part(NamedTuple):
    """The oldest sources that fit a budget, the work of distilling them, and the number passed over."""

    sources: Sequence[Source]
    work: Work
    oversize: int


def oldest_that_fit(
    sources: Sequence[Source], budget: int, share: Share, weigh: Callable[[Sequence[Source]], Work], count: Count
) -> Part | None:
    """Return the oldest part of `sources` (in canonical order) that fits a budget together with its text.

    The size of a text is measured: at most `MOST_PLANS` parts are weighed, until one is nearly as large as possible. An
    entry of half the budget is passed over, so that it does not block the others for ever. If no part fits, the
    smallest that was weighed is returned; None if every source was passed over.
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
    """Sources in canonical order, whose lines are counted as far as needed."""

    def __init__(self, sources: Sequence[Source], most: int, count: Count) -> None:
        self.taken: list[Source] = []
        self.upto: list[int] = []
        """Tokens of the lines up to each source."""
        self.passed: list[int] = []
        """Number of sources with more than `most` tokens before each."""
        self._most = most
        self._rest = _sized(sources, count)

    def exceeds(self, room: int) -> bool:
        """Whether the lines take more than `room` tokens."""
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
        """Return the number of sources, at least one, whose lines take at most `room` tokens together.

        The part ends where a session or a day ends, if one does in its last eighth.
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
