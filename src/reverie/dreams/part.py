"""One part of a memory, distilled: a text, and the entries it represents.

A dream never makes hot memory grow: the entries that leave have more tokens than the text that replaces them. Only
where a protocol demands one text of all sources is it made whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Entry
from reverie.core.pause import paced
from reverie.core.policy import TenantPolicy
from reverie.distil.plan import Share, Work, hot_texts, require
from reverie.distil.request import Distiller, Extractive
from reverie.dreams.gates import Distilled, Gates
from reverie.dreams.snapshot import Snapshot, Snapshots
from reverie.dreams.spend import SpendGuard

_ALL = 1000
"""Per mille: the share of a memory without a target."""
_WHOLE = Share(_ALL, _ALL)
_WORTH = 20
"""Under a target, a text that saves less than a twentieth of its sources leaves alone what it would only repeat."""
_LITTLE = 50
"""A part that a target in per cent would shrink by less than a fiftieth loses no statement to it."""
_HEADING = 8
"""Tokens of a heading and the line below it, where a text has few lines."""


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
    """Distils parts. Reads only."""

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
        """Return a text and the entries that it represents: those whose must-keep statements are all in it.

        The other entries stay as they are. The model-free distiller works again without them; a model's text is used
        unchanged. Where every entry must leave, a model that lost such a statement is replaced by the model-free
        distiller. Raises NotSmaller.
        """
        share = self.share(policy, snapshot, work)
        fell_back: str | None = None
        while True:
            require(work, budget)
            if plan.strict and not work.shrinks:
                raise NotSmaller
            done = self._gates.distil(actor, plan, work, budget, share, policy, chosen, guard)
            fell_back = fell_back or done.fell_back
            if 0 < share.of_rest < _ALL and self._gains_little(plan, snapshot, done):
                share = _WHOLE
                continue
            if not done.stay:
                idle = self._idle(plan, snapshot, done, share)
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
            work = self._snapshots.weigh(snapshot, work.sources)
        if plan.strict and snapshot.stayed and not snapshot.entries:
            raise NotSmaller
        if self._idle(plan, snapshot, done, share):
            raise NotSmaller
        return ReadyPart(snapshot, work, replace(done, fell_back=fell_back), budget)

    def _gains_little(self, plan: DreamPlan, snapshot: Snapshot, done: Distilled) -> bool:
        """Whether a part would lose statements to a target in per cent and save less than a fiftieth of its tokens.

        Such a part loses none, or the entries that stay would lose one more every night.
        """
        if plan.may_grow or not plan.strict or not snapshot.fitted or done.distiller is not self._extractive:
            return False
        taken = sum(_sizes(snapshot).values())
        return done.gates.tokens * _LITTLE > taken * (_LITTLE - 1) and _retires(done)

    def _idle(self, plan: DreamPlan, snapshot: Snapshot, done: Distilled, share: Share) -> frozenset[str]:
        """Return the entries that would not become smaller: alone, or together with those that share a line with them.
        All of them, if the whole text would be no smaller than the entries that leave.

        As entries they cost no heading and keep date, tags and rank in a search. While statements leave because of a
        target, the whole part is dreamt at once, or every night would take a little of it. A plan without `fit` gets
        one text of all selected entries, as long as that is smaller.
        """
        if plan.may_grow or not plan.strict or not snapshot.entries:
            return frozenset()
        everything = frozenset(entry.id for entry in snapshot.entries)
        sizes = _sizes(snapshot)
        tokens, taken = done.gates.tokens, sum(sizes.values())
        grows = tokens >= taken
        fates = done.answer.fates
        pressed = _retires(done) or (share.of_input < _ALL and tokens * _WORTH <= taken * (_WORTH - 1))
        if not grows and (pressed or not snapshot.fitted or done.distiller is not self._extractive):
            return frozenset()
        if done.distiller is not self._extractive or snapshot.held_by:
            return everything if grows else frozenset()
        lines = done.answer.statements
        groups = list(_together([line.source_ids for line in lines]))
        same = {
            one
            for group, _ in groups
            for one in group
            if len(group) == 1 and {fate for fate, _ in fates.get(one, ())} == {"kept"}
        }
        idle = set(everything.intersection(same))
        if not idle:  # without the entries above, a text may be short enough
            for group, numbers in groups:
                cost = sum(snapshot.count(lines[number].text) + 1 for number in numbers) + grows * _HEADING
                if (grows or len(group) == 1) and cost >= sum(sizes.get(source, 0) for source in group):
                    idle |= everything.intersection(group)
        asked = _questions(snapshot.entries, idle)
        if idle and all(idle.issuperset(line.source_ids) for line in lines) and len(idle | asked) < len(everything):
            # a text needs a statement, or the remaining entries could not leave
            stated = idle.intersection(source for line in lines for source in line.source_ids)
            idle.remove(min(stated, key=lambda one: (sizes[one], one)))
            asked = _questions(snapshot.entries, idle)
        return everything if grows and not idle else frozenset(idle | asked)

    def share(self, policy: TenantPolicy, snapshot: Snapshot, work: Work) -> Share:
        """Return the share of the input that the text may have.

        Where originals replace earlier dreams, the target is a share of the hot memory that these dreams take.
        """
        share, rest = policy.hot_share(snapshot.hot_tokens), policy.hot_rest(snapshot.hot_tokens)
        if not snapshot.held_by or snapshot.hot_tokens is None:
            return Share(share, rest)
        return Share(min(1000, share * tokens(snapshot) // max(work.input_tokens, 1)), rest)


def _retires(done: Distilled) -> bool:
    return any(fate == "retired" for own in done.answer.fates.values() for fate, _ in own)


def _sizes(snapshot: Snapshot) -> dict[str, int]:
    """Return the tokens of each entry. In a fitted part only the bare words count: its text must be smaller than these,
    or it would make lines of entries that may stay.
    """
    words = [entry.content for entry in snapshot.entries] if snapshot.fitted else hot_texts(snapshot.entries)
    counts = map(snapshot.count, paced(words))
    return {entry.id: tokens for entry, tokens in zip(snapshot.entries, counts, strict=True)}


def tokens(snapshot: Snapshot) -> int:
    """Return the tokens of hot memory that the entries of a snapshot take."""
    return sum(map(snapshot.count, paced(hot_texts(snapshot.entries))))


def _questions(entries: Sequence[Entry], stay: Set[str]) -> set[str]:
    """Return the questions whose answer, the next entry of another speaker, stays: a search finds it by both."""
    return {
        one.id
        for one, after in pairwise(entries)
        if after.id in stay
        and one.content.rstrip().endswith("?")
        and one.source.session == after.source.session
        and one.source.actor != after.source.actor
    }


def _together(lines: Sequence[Sequence[str]]) -> Iterator[tuple[frozenset[str], list[int]]]:
    """Yield groups of sources that share lines, each with the numbers of its lines."""
    at: dict[str, int] = {}
    groups: dict[int, tuple[set[str], list[int]]] = {}
    for number, sources in enumerate(lines):
        group: set[str] = set(sources)
        numbers = [number]
        for other in sorted({at[source] for source in sources if source in at}):
            joined, more = groups.pop(other)
            group |= joined
            numbers += more
        groups[number] = (group, numbers)
        at |= dict.fromkeys(group, number)
    for group, numbers in groups.values():
        yield frozenset(group), numbers
