"""The input of a dream: the entries it takes, as of one log position, and the cost of distilling them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache

import msgspec

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, SourceText
from reverie.core.entry import READABLE, Entry, EntryState, Scope, Source
from reverie.core.errors import Invalid, ReverieError
from reverie.core.pause import paced
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter, each
from reverie.distil.compaction import ELLIPSIS
from reverie.distil.plan import (
    DREAM_KIND,
    Count,
    Share,
    Work,
    admit,
    hot_texts,
    lines,
    oldest_that_fit,
    to_sources,
    weigh,
)
from reverie.distil.request import Extractive
from reverie.distil.source import Source as Distillable
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

DISTILLED_FROM = "distilled-from"
_PAGE = 1000
_DENSE = 20
"""Characters per token of the budget above which no memory fits whole, however many duplicates it has."""


class Replan(Exception):
    """Raised when sources changed during a dream."""

    def __init__(self, changed: int) -> None:
        super().__init__(changed)
        self.changed = changed


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The input of a dream; everything in it is as of `position`."""

    position: int
    entries: Sequence[Entry]
    """Readable entries to be retired."""
    sources: Sequence[Entry]
    """Entries to distil: earlier dreams are replaced by their originals where those are in cold storage."""
    left_out: Mapping[str, int]
    count: Count
    """Counts the tokens of a text; each text of this snapshot is counted once."""
    later: int = 0
    hot_tokens: int | None = None
    """Tokens of the whole memory, if the target for hot memory applies."""
    stayed: Sequence[str] = ()
    """Ids of entries left out because a must-keep statement of theirs did not fit in the text."""
    fitted: bool = False
    """Whether it is a part that fits the budget, not everything selected."""
    held_by: Mapping[str, str] = field(default_factory=dict)
    """Maps the originals of earlier dreams to the entries of these dreams."""
    given: int = 0
    """Number of sources that are not stored entries; these come first."""

    @property
    def stored(self) -> Sequence[Entry]:
        """The sources that are stored entries."""
        return self.sources[self.given :]

    def without(self, stay: Set[str]) -> Snapshot:
        """Return the snapshot without these entries, or without the dreams of these originals."""
        entries = {self.held_by.get(source, source) for source in stay}
        sources = [source for source in self.stored if self.held_by.get(source.id, source.id) not in entries]
        return replace(self._less(entries), sources=[*self.sources[: self.given], *sources])

    def only(self, taken: Set[str]) -> Snapshot:
        """Return the snapshot with these sources only; the others are left to a later run."""
        entries = [entry for entry in self.entries if entry.id in taken]
        sources = [source for source in self.sources if source.id in taken]
        return replace(self, entries=entries, sources=sources, later=self.later + len(self.entries) - len(entries))

    def keeping(self, stay: Set[str]) -> Snapshot:
        """Return the snapshot with the same sources, without retiring these entries."""
        return self._less({self.held_by.get(source, source) for source in stay})

    def _less(self, stay: Set[str]) -> Snapshot:
        entries = [entry for entry in self.entries if entry.id not in stay]
        left_out = {**self.left_out, "must_keep": self.left_out.get("must_keep", 0) + len(stay)}
        return replace(self, entries=entries, left_out=left_out, stayed=(*self.stayed, *sorted(stay)))


class Snapshots:
    """Takes snapshots. Reads only."""

    def __init__(self, parts: Services, rules: RuleBook, extractive: Extractive) -> None:
        self._parts = parts
        self._rules = rules
        self._extractive = extractive
        self.count: Count = parts.tokens.count if parts.tokens is not None else _no_tokenizer
        """Counts tokens with the tokenizer of the host."""

    def weighed(self, actor: Actor, plan: DreamPlan, budget: int, policy: TenantPolicy) -> tuple[Snapshot, Work]:
        """Return the first part that can be distilled; if none can, the first part, whose work shows the reason."""
        first: tuple[Snapshot, Work] | None = None
        for snapshot, work in self.parts(actor, plan, budget, policy):
            first = first or (snapshot, work)
            if len(snapshot.entries) >= plan.least_entries and work.shrinks and work.minimum_required <= budget:
                return snapshot, work
        if first is not None:
            return first
        empty = self.take(actor, plan, policy, expand=False)
        empty = replace(empty, entries=(), sources=())
        return empty, self.weigh(empty)

    def parts(
        self, actor: Actor, plan: DreamPlan, budget: int, policy: TenantPolicy
    ) -> Iterator[tuple[Snapshot, Work]]:
        """Yield the entries of the plan with the work of distilling them: all at once, or with `fit` part by part."""
        if plan.fit and not plan.given:
            yield from self._fitted(actor, plan, budget, policy)
            return
        snapshot = self.take(actor, plan, policy, expand=plan.originals)
        open_ended = plan.budget is None and plan.strict and not plan.given
        if open_ended and sum(len(entry.content) for entry in snapshot.sources) > budget * _DENSE:
            yield from self._fitted(actor, plan, budget, policy)
            return
        work = self.weigh(snapshot)
        if open_ended and work.input_tokens + work.wanted(_share(policy, snapshot)) > budget:
            yield from self._fitted(actor, plan, budget, policy)
            return
        if not plan.strict or plan.given:
            work = self.speaking(work)
        elif work.minimum_required > budget and len(snapshot.sources) != len(snapshot.entries):
            again = self.take(actor, plan, policy, expand=False)
            lighter = self.weigh(again, work.sources)
            if lighter.minimum_required < work.minimum_required:
                snapshot, work = again, lighter
        yield snapshot, work

    def speaking(self, work: Work) -> Work:
        """Give work without statements a least output, so that a text can be made of it."""
        return work if work.least_output else replace(work, least_output=self.count(ELLIPSIS))

    def _cleaned(self, actor: Actor, plan: DreamPlan, entries: Sequence[Entry]) -> list[Entry]:
        """Redact entries by today's rules: a source may be older than the registration of a secret."""
        rules = self._rules.current(actor.tenant)
        known = self._rules.known(actor.tenant, plan.run, rules)
        found = self._parts.redactor.many([entry.content for entry in entries], known)
        return [
            entry if redacted.text == entry.content else msgspec.structs.replace(entry, content=redacted.text)
            for entry, redacted in zip(entries, found, strict=True)
        ]

    def weigh(self, snapshot: Snapshot, earlier: Sequence[Distillable] = ()) -> Work:
        """Prepare the sources of a snapshot. `earlier`: prepared sources of the same memory, which are reused."""
        return weigh(to_sources(snapshot.sources, earlier), self._extractive.engine, snapshot.count)

    def take(self, actor: Actor, plan: DreamPlan, policy: TenantPolicy, *, expand: bool) -> Snapshot:
        """Take a snapshot of the plan's entries; `expand` replaces earlier dreams by their originals."""

        count = cache(self.count)

        def body(tx: ReadTx) -> Snapshot:
            head = tx.head()
            if plan.selector is None:
                return Snapshot(head.seq, (), (), {}, count)
            gone = not plan.selector.states <= READABLE
            where = Filter(states=plan.selector.states, gone=gone, archived=False)
            found = list(each(lambda cursor: tx.scan(where, limit=_PAGE, cursor=cursor, oldest_first=True)))
            if plan.as_of is not None:
                found = [entry for entry in found if entry.born_seq <= plan.as_of]
            taken, left_out = admit(found, plan.selector, now=tx.now, epoch=head.epoch + 1)
            trusted = [entry for entry in taken if entry.source.trust >= policy.dream_trust]
            if len(trusted) < len(taken):
                left_out["trust"] += len(taken) - len(trusted)
            if plan.most_entries is not None:
                trusted = trusted[: plan.most_entries]
            sources, held_by = _originals(tx, trusted) if expand else (trusted, {})
            counted = plan.strict and self._parts.tokens is not None
            hot = sum(map(count, paced(hot_texts(found)))) if counted else None
            return Snapshot(head.seq, trusted, sources, left_out, count, hot_tokens=hot, held_by=held_by)

        snapshot = self._parts.store.read(Scope(actor.tenant, plan.ref), body)
        sources = self._cleaned(actor, plan, snapshot.sources)
        entries = snapshot.entries if expand else sources
        texts = sorted(plan.given, key=lambda text: (text.id, text.content))
        given = self._cleaned(actor, plan, [stand_in(plan.ref, text) for text in texts])
        return replace(snapshot, sources=[*given, *sources], entries=entries, given=len(given))

    def _fitted(
        self, actor: Actor, plan: DreamPlan, budget: int, policy: TenantPolicy
    ) -> Iterator[tuple[Snapshot, Work]]:
        """Parts that fit the budget, the oldest first.

        Fresh entries come first. Earlier dreams are dreamt again from their originals only while the memory is above a
        target in tokens: a second dream over unchanged memory changes nothing.
        """
        snapshot = replace(self.take(actor, plan, policy, expand=False), fitted=True)
        share = _share(policy, snapshot)
        pool = [entry for entry in snapshot.entries if entry.kind != DREAM_KIND]
        distillable = to_sources(pool)
        by_id = {entry.id: entry for entry in pool}

        def weigh_part(part: Sequence[Distillable]) -> Work:
            return self.weigh(replace(snapshot, sources=[by_id[source.id] for source in part]), part)

        start = 0
        while len(pool) - start >= plan.least_entries:
            part = oldest_that_fit(distillable[start:], budget, share, weigh_part, snapshot.count)
            if part is None or len(part.sources) < plan.least_entries:
                break
            entries = [by_id[source.id] for source in part.sources]
            taken, oversize = replace(snapshot, entries=entries, sources=entries), part.oversize
            left_out = {**snapshot.left_out, **({"oversize": oversize} if oversize else {})}
            later = len(pool) - start - len(entries) - oversize
            yield replace(taken, left_out=left_out, later=later), part.work
            start = pool.index(entries[-1], start) + 1
        if plan.least_entries <= len(snapshot.entries) and policy.is_crowded(snapshot.hot_tokens):
            yield from self._dreams(actor, plan, snapshot, budget)

    def _dreams(
        self, actor: Actor, plan: DreamPlan, snapshot: Snapshot, budget: int
    ) -> Iterator[tuple[Snapshot, Work]]:
        """Yield earlier dreams, oldest first, as many together as fit, by their originals where all of these exist."""
        dreams = [entry for entry in snapshot.entries if entry.kind == DREAM_KIND]
        most = budget * 2 // 3
        while dreams:
            entries: list[Entry] = []
            sources: list[Entry] = []
            holders: dict[str, str] = {}
            used = 0
            for dream in dreams:

                def body(tx: ReadTx, dream: Entry = dream) -> tuple[list[Entry], dict[str, str]]:
                    return _originals(tx, [dream])

                found, held_by = self._parts.store.read(Scope(actor.tenant, plan.ref), body)
                size = sum(map(snapshot.count, lines(to_sources(found))))
                if entries and used + size > most:
                    break
                entries.append(dream)
                sources += found
                holders |= held_by
                used += size
            dreams = dreams[len(entries) :]
            cleaned = sorted(self._cleaned(actor, plan, sources), key=lambda entry: (entry.created_at, entry.id))
            taken = replace(snapshot, entries=entries, sources=cleaned, held_by=holders, later=0)
            yield taken, self.weigh(taken)


def _share(policy: TenantPolicy, snapshot: Snapshot) -> Share:
    """Return the share of its input that a text may have."""
    return Share(policy.hot_share(snapshot.hot_tokens), policy.hot_rest(snapshot.hot_tokens))


def _no_tokenizer(_: str) -> int:
    raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")


def unchanged(tx: WriteTx, entries: Sequence[Entry]) -> None:
    """Raise Replan unless every source has the version that was read and is neither pinned nor held."""
    changed = 0
    # one read for all readable entries, and one for each of the others
    readable = tx.at([entry.position for entry in entries], ANYTHING) if entries else {}
    for entry in entries:
        current = readable.get(entry.position) or tx.get(entry.id, where=ANYTHING)
        if current is None or current.version != entry.version or current.pinned or current.held:
            changed += 1
    if changed:
        raise Replan(changed)


def effective_budget(asked: int | None, policy: TenantPolicy) -> int:
    """Return the requested budget, capped at the tenant's maximum; the maximum when none was requested."""
    if asked is None:
        return policy.dream_budget
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise Invalid("A token budget is a whole number of at least 1.", pointer="/budget")
    return min(asked, policy.dream_budget)


def stand_in(ref: str, text: SourceText, at: int = 0) -> Entry:
    """Convert a given text to an entry for the engine, without a time unless `at` is given."""
    return Entry(
        ref=ref,
        id=text.id,
        kind="note",
        content=text.content,
        tags=(),
        subject=None,
        attributes={},
        source=Source(),
        state=EntryState.ACTIVE,
        created_at=at,
        expires_at=None,
        pinned=False,
    )


def _originals(tx: ReadTx, entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """Replace earlier dreams by their originals, if all of these still exist; also map originals to dreams."""
    sources: dict[str, Entry] = {}
    held_by: dict[str, str] = {}
    for entry in entries:
        found: list[Entry] = []
        if entry.kind == DREAM_KIND:
            links = tx.links(entry.id, type=DISTILLED_FROM)
            for link in links:
                original = tx.get(link.to_id, where=msgspec.structs.replace(ANYTHING, expired=False))
                if original is not None and original.state is not EntryState.ERASED:
                    found.append(original)
            if not links or len(found) < len(links):
                found = []
        for source in found or [entry]:
            sources[source.id] = source
            if found:
                held_by[source.id] = entry.id
    return sorted(sources.values(), key=lambda source: (source.created_at, source.id)), held_by
