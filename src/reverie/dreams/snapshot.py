"""What a dream starts from: the entries it takes, as of one log position, and what distilling them takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, GivenText
from reverie.core.entry import READABLE, Entry, EntryState, Scope, Source
from reverie.core.errors import Invalid, ReverieError
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.distil.compaction import ELLIPSIS
from reverie.distil.plan import DREAM_KIND, Work, admit, oldest_that_fit, to_source, weigh
from reverie.distil.request import Extractive
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx

DISTILLED_FROM = "distilled-from"
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a dream starts from: everything below is as of `position`."""

    position: int
    entries: Sequence[Entry]
    """Readable entries to be retired."""
    sources: Sequence[Entry]
    """Whose words are distilled: the entries, with earlier dreams replaced by their originals where those rest."""
    left_out: Mapping[str, int]
    later: int = 0


class Snapshots:
    """Takes snapshots. Reads only."""

    def __init__(self, parts: Services, rules: RuleBook, extractive: Extractive) -> None:
        self._parts = parts
        self._rules = rules
        self._extractive = extractive

    def weighed(self, actor: Actor, plan: DreamPlan, budget: int, policy: TenantPolicy) -> tuple[Snapshot, Work]:
        """A snapshot and what distilling it takes: from originals if they fit, else from earlier dreams' own text."""
        snapshot = self.take(actor, plan, policy, expand=plan.originals and not plan.fit)
        if plan.fit:
            return self._fitted(snapshot, plan, budget, policy)
        work = self._weigh(snapshot.sources)
        if not plan.strict:
            return snapshot, self.speaking(work)
        if work.minimum_required > budget and len(snapshot.sources) != len(snapshot.entries):
            again = self.take(actor, plan, policy, expand=False)
            lighter = self._weigh(again.sources)
            if lighter.minimum_required < work.minimum_required:
                return again, lighter
        return snapshot, work

    def given(self, actor: Actor, plan: DreamPlan, texts: Sequence[GivenText]) -> tuple[Snapshot, Work]:
        """The same for texts that are not stored entries: nothing of the ref is taken, and they have no time."""
        position = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head().seq)
        ordered = sorted(texts, key=lambda text: (text.id, text.content))
        entries = self._cleaned(actor, plan, [_stand_in(plan.ref, text) for text in ordered])
        return Snapshot(position, (), entries, {}), self.speaking(self._weigh(entries))

    def speaking(self, work: Work) -> Work:
        """Work that has something to say even when its sources have no statement in them."""
        return work if work.least_output else replace(work, least_output=self.count(ELLIPSIS))

    def _cleaned(self, actor: Actor, plan: DreamPlan, entries: Sequence[Entry]) -> list[Entry]:
        """Entries as the redactor would store them today: a source may be older than a secret's registration."""
        rules = self._rules.current(actor.tenant)
        known = self._rules.known(actor.tenant, plan.run, rules)
        found = self._parts.redactor.many([entry.content for entry in entries], known)
        return [
            entry if redacted.text == entry.content else msgspec.structs.replace(entry, content=redacted.text)
            for entry, redacted in zip(entries, found, strict=True)
        ]

    def _weigh(self, entries: Sequence[Entry]) -> Work:
        return weigh([to_source(entry) for entry in entries], self._extractive.engine, self.count)

    def count(self, text: str) -> int:
        """Tokens of the host's tokenizer."""
        if self._parts.tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        return self._parts.tokens.count(text)

    def take(self, actor: Actor, plan: DreamPlan, policy: TenantPolicy, *, expand: bool) -> Snapshot:
        """What the plan takes now; `expand` replaces earlier dreams by their originals."""

        def body(tx: ReadTx) -> Snapshot:
            head = tx.head()
            gone = not plan.selector.states <= READABLE
            where = Filter(states=plan.selector.states, gone=gone, archived=False)
            found: list[Entry] = []
            cursor: str | None = None
            while True:
                page = tx.scan(where, limit=_PAGE, cursor=cursor, oldest_first=True)
                found += page.items
                cursor = page.cursor
                if cursor is None:
                    break
            if plan.as_of is not None:
                found = [entry for entry in found if entry.born_seq <= plan.as_of]
            taken, left_out = admit(found, plan.selector, now=tx.now, epoch=head.epoch + 1)
            trusted = [entry for entry in taken if entry.source.trust >= policy.dream_trust]
            if len(trusted) < len(taken):
                left_out["trust"] += len(taken) - len(trusted)
            if plan.most_entries is not None:
                trusted = trusted[: plan.most_entries]
            return Snapshot(head.seq, trusted, _originals(tx, trusted) if expand else trusted, left_out)

        snapshot = self._parts.store.read(Scope(actor.tenant, plan.ref), body)
        sources = self._cleaned(actor, plan, snapshot.sources)
        return replace(snapshot, sources=sources, entries=snapshot.entries if expand else sources)

    def _fitted(self, snapshot: Snapshot, plan: DreamPlan, budget: int, policy: TenantPolicy) -> tuple[Snapshot, Work]:
        """The oldest part that fits the budget and can be made smaller; parts that cannot are passed over.

        Fresh entries first, earlier dreams only when nothing fresh is left to take. When no part will do, the oldest
        is returned, and says why.
        """
        fresh = [entry for entry in snapshot.entries if entry.kind != DREAM_KIND]
        pool = fresh if len(fresh) >= plan.least_entries else list(snapshot.entries)
        told = [to_source(entry) for entry in pool]
        first: tuple[Snapshot, Work] | None = None
        start = 0
        while True:
            part, oversize = oldest_that_fit(told[start:], budget, policy.dream_percent, self.count)
            chosen = {source.id for source in part}
            entries = [entry for entry in pool[start:] if entry.id in chosen]
            work = self._weigh(entries)
            while work.minimum_required > budget and len(entries) > plan.least_entries:
                entries = entries[: max(plan.least_entries, len(entries) * 2 // 3)]
                work = self._weigh(entries)
            left_out = {**snapshot.left_out, **({"oversize": oversize} if oversize else {})}
            later = len(pool) - len(entries) - oversize
            found = replace(snapshot, entries=entries, sources=entries, left_out=left_out, later=later), work
            first = first or found
            if len(entries) >= plan.least_entries and work.shrinks and work.minimum_required <= budget:
                return found
            if not entries:
                return first
            start = pool.index(entries[-1], start) + 1


def effective_budget(asked: int | None, policy: TenantPolicy) -> int:
    """What was asked, clamped to the tenant's most; the most when nothing was asked."""
    if asked is None:
        return policy.dream_budget
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise Invalid("A token budget is a whole number of at least 1.", pointer="/budget")
    return min(asked, policy.dream_budget)


def _stand_in(ref: str, text: GivenText) -> Entry:
    """A given text as the engine sees sources."""
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
        created_at=0,
        expires_at=None,
        pinned=False,
    )


def _originals(tx: ReadTx, entries: Sequence[Entry]) -> list[Entry]:
    """Entries with earlier dreams replaced by their originals, where all of those still rest in cold storage."""
    sources: dict[str, Entry] = {}
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
    return sorted(sources.values(), key=lambda source: (source.created_at, source.id))
