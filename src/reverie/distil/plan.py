"""Planning: which entries a dream takes, in what order, and what the budget allows. Pure; touches nothing.

The accounting, exact and the same everywhere: input is the tokens of the source lines handed to the distiller after
exact and near duplicates were collapsed; output is the tokens of the archive's text; the budget caps their sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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

    @property
    def minimum_required(self) -> int:
        """The smallest budget with which these sources can be distilled, exactly."""
        return self.input_tokens + self.least_output

    @property
    def shrinks(self) -> bool:
        """Whether the least meaningful distillate is smaller than its sources, duplicates included."""
        return 0 < self.least_output < self.tokens_before

    def output_limit(self, budget: int, share: Share, *, shrink: bool = True, floor: int = SMALL) -> int:
        """The most tokens the output may have: its share, never below what must be kept."""
        rest = self.least_output + self.rest * share.of_rest // 1000
        wanted = max(rest, self.input_tokens * share.of_input // 1000, floor)
        room = min(wanted, budget - self.input_tokens)
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
    least, rest = distiller.needs(prepared, count=count)
    return Work(
        sources=tuple(sources),
        prepared=prepared,
        tokens_before=sum([sizes[id(source)] for source in sources]),
        input_tokens=sum([sizes[id(source)] for source in prepared.sources]),
        least_output=least,
        rest=rest,
    )


def require(work: Work, budget: int) -> None:
    """Raise TokenBudgetExceeded when the budget cannot hold the least meaningful dream of these sources."""
    if work.minimum_required > budget:
        raise TokenBudgetExceeded(
            f"A budget of {budget} tokens cannot hold this memory; it takes at least {work.minimum_required}. "
            "Raise the budget, or choose fit (--fit on the command line) to begin with the oldest part that fits.",
            details={"budget": budget, "minimumRequired": work.minimum_required},
        )


def oldest_that_fit(sources: Sequence[Source], budget: int, share: int, count: Count) -> tuple[list[Source], int]:
    """The oldest coherent part of `sources` (in canonical order) that a budget can hold, and how many were oversize.

    Coherent: the part ends where a session or a day ends, if one ends in its last third. A single entry that could
    never fit is passed over, so that it does not stop the rest for ever.
    """
    room = budget * 1000 // (1000 + share) - SMALL if budget > 4 * SMALL else budget * 3 // 4
    part: list[Source] = []
    used = oversize = 0
    for source, text in zip(sources, lines(sources), strict=True):
        size = count(text)
        if size > room // 2 and size > SMALL:
            oversize += 1
            continue
        if used + size > room:
            break
        part.append(source)
        used += size
    else:
        return part, oversize
    for end in range(len(part) - 1, len(part) * 2 // 3, -1):
        before, after = part[end - 1], part[end]
        if before.session != after.session or day_of(before.created_at) != day_of(after.created_at):
            return part[:end], oversize
    return part, oversize
