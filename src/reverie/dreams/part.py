"""One part of a memory, distilled: a text, and the entries it represents.

Hot memory never grows by a dream that fits its part to the budget, as nightly ones do: the entries that leave have more
tokens than the text that takes their place. A dream of all that was selected makes one text of it, whatever that costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Entry
from reverie.core.policy import TenantPolicy
from reverie.distil.plan import Share, Work, require
from reverie.distil.request import Distiller, Extractive
from reverie.dreams.gates import Distilled, Gates
from reverie.dreams.snapshot import Snapshot, Snapshots
from reverie.dreams.spend import SpendGuard

_WORTH = 20
"""A text that saves less than a twentieth of its sources leaves alone those that it would only repeat."""


class NotSmaller(Exception):
    """Raised when nothing can leave without losing must-keep statements, or the text would be no smaller than its
    sources.
    """


@dataclass(frozen=True, slots=True)
class ReadyPart:
    """Input of a dream's transaction. Without a text the entries are only archived or purged."""

    snapshot: Snapshot
    work: Work | None = None
    done: Distilled | None = None
    budget: int = 0


class PartDistillation:
    """Distils parts. Reads and thinks; writes nothing."""

    def __init__(self, snapshots: Snapshots, gates: Gates, extractive: Extractive) -> None:
        self._snapshots = snapshots
        self._gates = gates
        self._extractive = extractive

    def ready(
        self,
        actor: Actor,
        plan: DreamPlan,
        snapshot: Snapshot,
        work: Work,
        budget: int,
        policy: TenantPolicy,
        chosen: Distiller,
        guard: SpendGuard,
    ) -> ReadyPart:
        """A text, and the entries it represents: those whose must-keep statements are all in it.

        The others stay as they are. The model-free distiller works again without them; a model's text is used as it
        is, but where every entry leaves, a model that lost such a statement gives way to the model-free distiller.
        """
        share = self.share(policy, snapshot, work)
        fell_back: str | None = None
        while True:
            require(work, budget)
            if plan.strict and not work.shrinks:
                raise NotSmaller
            done = self._gates.distil(actor, plan, work, budget, share, policy, chosen, guard)
            fell_back = fell_back or done.fell_back
            if not done.stay:
                idle = self._idle(snapshot, done)
                if not idle:
                    break
                done = replace(done, stay=idle)
            if not plan.strict or not snapshot.entries:
                if done.distiller is self._extractive:
                    break
                chosen, fell_back = self._extractive, "must_keep"
                continue
            if done.distiller is not self._extractive:
                snapshot = snapshot.keeping(done.stay)
                break
            chosen, snapshot = done.distiller, snapshot.without(done.stay)
            if len(snapshot.sources) < plan.least_entries:
                raise NotSmaller
            work = self._snapshots.weigh(snapshot.sources)
        if plan.strict and snapshot.stayed and not snapshot.entries:
            raise NotSmaller
        if self._idle(snapshot, done):
            raise NotSmaller
        return ReadyPart(snapshot, work, replace(done, fell_back=fell_back), budget)

    def _idle(self, snapshot: Snapshot, done: Distilled) -> frozenset[str]:
        """Of a part that would hardly become smaller: the entries whose every word the text would repeat, and that no
        other statement is part of. Of one that would grow, at least one, or all.

        As entries of their own they cost no heading and keep their date, their tags and their place in a search.
        """
        tokens, taken = done.gates.tokens, self.tokens(snapshot.entries)
        if not snapshot.fitted or tokens * _WORTH <= taken * (_WORTH - 1):
            return frozenset()
        grows = tokens >= taken
        fates = done.answer.fates if not snapshot.held_by else {}
        if not grows and any(fate == "retired" for own in fates.values() for fate, _ in own):
            return frozenset()  # under pressure the whole part is dreamt once, or every night would take a little of it
        lines = [statement.source_ids for statement in done.answer.statements]
        shared = {source for sources in lines if len(sources) > 1 for source in sources}
        same = [
            entry
            for entry in snapshot.entries
            if entry.id not in shared and {fate for fate, _ in fates.get(entry.id, ())} == {"kept"}
        ]
        idle = {entry.id for entry in same}
        if same and all(map(idle.issuperset, lines)):  # a text needs a statement, or what is left could not leave
            idle.remove(min(same, key=lambda entry: (len(entry.content), entry.id)).id)
        if not idle and grows:
            return frozenset(entry.id for entry in snapshot.entries)
        return frozenset(idle)

    def share(self, policy: TenantPolicy, snapshot: Snapshot, work: Work) -> Share:
        """Return the share of the input that the text may have.

        Where originals replace earlier dreams, the target is a share of the hot memory that those dreams use.
        """
        share, rest = policy.hot_share(snapshot.hot_tokens), policy.hot_rest(snapshot.hot_tokens)
        if not snapshot.held_by or snapshot.hot_tokens is None:
            return Share(share, rest)
        return Share(min(1000, share * self.tokens(snapshot.entries) // max(work.input_tokens, 1)), rest)

    def tokens(self, entries: Sequence[Entry]) -> int:
        """Tokens of hot memory that these entries take."""
        return sum([self._snapshots.count(entry.content) for entry in entries])
