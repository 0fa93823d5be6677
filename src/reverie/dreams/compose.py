"""Texts that replace entries none of which may stay: every must-keep statement is carried into a text.

`texts` makes one text of a group of entries, or several if one cannot hold all must-keep statements. It always returns
texts: entries that cannot be distilled are quoted. The model-free texts decide how a group is divided; a model's text
replaces one of them only if it keeps as much. `compact` makes one text of limited bytes and leaves the entries that do
not fit to a later run. Both work outside any transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from msgspec import structs

from reverie.core.actor import Actor
from reverie.core.dream import After, DreamPlan, RedactionFailed
from reverie.core.entry import Entry, EntryState
from reverie.core.errors import ReverieError
from reverie.core.pause import paced
from reverie.core.policy import TenantPolicy
from reverie.distil.compaction import MOST_DISTILLED, compacted, cut, needs, size, unweighed
from reverie.distil.gates import GateReport
from reverie.distil.plan import Count, Share, Work, to_sources, weigh
from reverie.distil.request import DistilledText, Distiller, Extractive, Request
from reverie.distil.sentences import split
from reverie.distil.source import Source as Distillable
from reverie.distil.source import Statement
from reverie.distil.tokens import tokenize
from reverie.dreams.gates import Distilled, Gates, storable
from reverie.dreams.report import Made, gate_document
from reverie.dreams.snapshot import Snapshot
from reverie.dreams.spend import SpendGuard, SpendLimits
from reverie.memory.policy import Rules
from reverie.services import Services

MOST_BYTES = 64 * 1024
"""Most bytes of one text."""
SHORTENS_FROM = 5
"""Number of entries from which on the text must be shorter than the entries together."""
_SQUEEZES = 6
REPLACED = "Replaced since:"
DISPUTED = "Disputed, not settled:"
_SILENT = frozenset({EntryState.RETRACTED, EntryState.DRAFT})
_NOT_CURRENT = _SILENT | {EntryState.SUPERSEDED}


@dataclass(frozen=True, slots=True)
class _Section:
    text: str
    answer: DistilledText
    work: Work | None = None
    done: Distilled | None = None
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _TextPlan:
    """The parameters shared by every step of one text."""

    actor: Actor
    plan: DreamPlan
    rules: Rules
    guard: SpendGuard
    chosen: Distiller

    @property
    def policy(self) -> TenantPolicy:
        return self.rules.policy


class Composer:
    """Makes texts that replace all of their entries."""

    def __init__(self, parts: Services, gates: Gates, extractive: Extractive, spend: SpendLimits) -> None:
        self._parts = parts
        self._gates = gates
        self._extractive = extractive
        self._spend = spend
        self.count: Count = parts.tokens.count if parts.tokens else _estimate
        """Counts tokens; an estimate if the host has no tokenizer."""

    def room(self, policy: TenantPolicy) -> int:
        """Return the input tokens for one text that leave room for its output in the budget of the tenant."""
        return max(policy.dream_budget * 1000 // (1000 + policy.hot_share(None)) - 200, policy.dream_budget // 2)

    def texts(
        self,
        actor: Actor,
        ref: str,
        entries: Sequence[Entry],
        rules: Rules,
        *,
        model: bool = True,
        instructions: str | None = None,
    ) -> list[Made]:
        """Return redacted texts of these entries, each entry in one. Retracted entries and drafts are only counted.

        There are several texts if one could not hold all must-keep statements. `model`: whether a model may write them,
        with `instructions` in its prompt.
        """
        free = self.text(actor, ref, entries, rules)
        if free.missed and len(entries) > 1:
            half = len(entries) // 2
            halves = (entries[:half], entries[half:])
            made = [self.texts(actor, ref, part, rules, model=model, instructions=instructions) for part in halves]
            return [*made[0], *made[1]]
        chosen = self._chosen(ref, rules.policy)
        if not model or chosen is self._extractive:
            return [free]
        written = self.text(actor, ref, entries, rules, distiller=chosen, instructions=instructions)
        return [written if not written.missed else free]

    def text(
        self,
        actor: Actor,
        ref: str,
        entries: Sequence[Entry],
        rules: Rules,
        *,
        distiller: Distiller | None = None,
        shorter: bool = True,
        instructions: str | None = None,
    ) -> Made:
        """Return one redacted text of these entries; its `missed` names the entries that it could not hold.

        `shorter`: whether the text of many entries must be shorter than the entries together.
        """
        dream_id = self._parts.ids.new()
        plan = structs.replace(_plan(ref, rules.policy), instructions=instructions)
        guard = self._spend.guard(actor, dream_id, rules.policy)
        asked = _TextPlan(actor, plan, rules, guard, distiller or self._extractive)
        replaced = [entry for entry in entries if entry.state is EntryState.SUPERSEDED]
        silent = [entry for entry in entries if entry.state in _SILENT]
        current = [entry for entry in entries if entry.state not in _NOT_CURRENT]
        total = sum(len(entry.content) for entry in entries)
        most = total if shorter and len(entries) >= SHORTENS_FROM else None
        sections: list[tuple[str | None, _Section]] = []
        for head, part in ((None, current), (REPLACED, replaced)):
            if part:
                share = None if most is None else max(sum(len(e.content) for e in part) - (len(head or "") + 2), 1)
                disputed = any(entry.state is EntryState.CONTESTED for entry in part)
                sections.append((DISPUTED if disputed else head, self._section(asked, part, share)))
        shown = [f"{head}\n{section.text}" if head else section.text for head, section in sections]
        text = "\n\n".join(shown)
        noted = _not_repeated(silent)
        if noted and (most is None or len(text) + len(noted) + 2 < most or not text):
            text = f"{text}\n\n{noted}" if text else noted
        text, whole = self._final(asked, text, most, len(shown[0]) if current else 0)
        missed = sections[0][1].missed if current else frozenset()
        if not whole:
            missed = frozenset(entry.id for entry in current)
        return self._made(asked, dream_id, entries, text, [section for _, section in sections], missed)

    def _made(
        self,
        asked: _TextPlan,
        dream_id: str,
        entries: Sequence[Entry],
        text: str,
        sections: Sequence[_Section],
        missed: frozenset[str],
    ) -> Made:
        done = next((section.done for section in sections if section.done is not None), None)
        works = [section.work for section in sections if section.work is not None]
        statements = [statement for section in sections for statement in section.answer.statements]
        fates = {source: own for section in sections for source, own in section.answer.fates.items()}
        return Made(
            id=dream_id,
            sources=tuple(entries),
            text=text,
            answer=DistilledText(text, statements, fates=fates),
            collapsed=[group for work in works for group in work.prepared.collapsed],
            input_tokens=sum(work.input_tokens for work in works),
            output_tokens=self.count(text),
            tokens_before=sum(work.tokens_before for work in works),
            budget=asked.policy.dream_budget,
            distiller=done.distiller.name if done else "extractive",
            fingerprint=done.fingerprint if done else "quoted/1",
            fell_back=done.fell_back if done else None,
            gates=gate_document(done.gates) if done else {},
            spend=asked.guard.document(),
            missed=missed,
        )

    def _final(self, asked: _TextPlan, text: str, shorter: int | None, current: int) -> tuple[str, bool]:
        """Redact the text as a whole (joining may complete a secret), then cut it, never the other way round.

        Also return whether its first `current` characters, which hold the current statements, are intact.
        """
        clean = self._clean(asked, text).strip()
        kept = clean
        if shorter is not None and len(kept) >= shorter:
            kept = _cut(kept, max(shorter - 1, 1))
        while len(kept.encode()) > MOST_BYTES:
            kept = _cut(kept, len(kept) * 3 // 4)
        return kept, kept == clean or len(kept) >= current

    def _clean(self, asked: _TextPlan, text: str) -> str:
        """Redact a text. One that is built never to come to rest becomes `[REDACTED]`: the caller must finish."""
        try:
            return self._gates.clean(asked.actor, text, asked.plan.run, asked.rules)
        except RedactionFailed:
            return "[REDACTED]"

    def _section(self, asked: _TextPlan, entries: Sequence[Entry], shorter: int | None) -> _Section:
        """Distil entries under the gates; quote them if that is impossible or loses must-keep statements."""
        texts = self._gates.clean_each(asked.actor, [entry.content for entry in entries], asked.plan.run, asked.rules)
        cleaned = [
            replace(source, content="[REDACTED]" if text is None else text)
            for source, text in zip(to_sources(entries), texts, strict=True)
        ]
        room = self.room(asked.policy)
        most = room if len(cleaned) == 1 else room // 2
        distilled: _Section | None = None
        work: Work | None = None
        count = cache(self.count)
        if max(map(count, paced([source.content for source in cleaned])), default=0) <= most:
            work = weigh(cleaned, self._extractive.engine, count)
            if work.shrinks and work.minimum_required <= asked.policy.dream_budget:
                done = self._distilled(asked, work, shorter)
                if done is not None:
                    distilled = _Section(done.text, done.answer, work, done, done.stay)
        if distilled is not None and (not distilled.missed or shorter is not None):
            return distilled
        text, missed = compacted(cleaned, lambda given: self._clean(asked, given), most=MOST_BYTES)
        statements = [Statement(piece.text, (one.id,), "quoted") for one in cleaned for piece in split(one.content)]
        return _Section(text, DistilledText(text, statements), work, missed=missed)

    def _distilled(self, asked: _TextPlan, work: Work, shorter: int | None) -> Distilled | None:
        policy, chosen = asked.policy, asked.chosen
        share = Share(policy.hot_share(None))
        limit = work.output_limit(policy.dream_budget, share)
        if shorter is not None:
            limit = min(limit, max(sum(self.count(s.content) for s in work.sources) - 1, work.least_output))
        for _ in range(_SQUEEZES):
            try:
                budget = work.input_tokens + limit
                done = self._gates.distil(asked.actor, asked.plan, work, budget, share, policy, chosen, asked.guard)
            except ReverieError:
                if chosen is self._extractive:
                    return None
                chosen = self._extractive
                continue
            modelled = done.distiller is not self._extractive
            short = len(done.text.encode()) <= MOST_BYTES and (shorter is None or len(done.text) < shorter)
            if short and not (modelled and (done.stay or not keeps_subjects(done.text, work.sources))):
                return done
            if modelled:
                chosen = self._extractive
            elif limit > work.least_output:
                limit = max(limit * 3 // 4, work.least_output)
            else:
                return None
        return None

    def _chosen(self, ref: str, policy: TenantPolicy) -> Distiller:
        try:
            return self._gates.choose(_plan(ref, policy), policy)
        except ReverieError:  # a model that is no longer configured
            return self._extractive

    def compact(
        self, actor: Actor, plan: DreamPlan, snapshot: Snapshot, distiller: Distiller | None, guard: SpendGuard
    ) -> tuple[Snapshot, Work, Distilled] | None:
        """Make one redacted text within the bytes of the plan, by the given distiller if there is one.

        Entries whose must-keep statements do not fit are left to a later run. None if fewer than the plan's least fit.
        """
        most = plan.most_bytes or 0
        cleaned = self._gates.cleaner(actor, plan)
        gates = GateReport(0, 0, 0, 0, (), (), ())
        if distiller is not None:
            work = unweighed(to_sources(snapshot.sources))
            answer = distiller.distil(Request(work, most, size, (), (), clean=cleaned, spend=guard))
            text = cut(cleaned(storable(answer.text)), most, size)
            return (
                snapshot,
                work,
                Distilled(DistilledText(text), text, gates, distiller, self._gates.fingerprint(distiller)),
            )
        sources = fitting(to_sources(snapshot.sources), most, least=plan.least_entries)
        while len(sources) >= plan.least_entries:
            text, missed = compacted(sources, cleaned, most=most)
            if not missed:
                taken = {source.id for source in sources}
                left = snapshot.only(taken)
                made_by = self._gates.fingerprint(self._extractive)
                return left, unweighed(sources), Distilled(DistilledText(text), text, gates, self._extractive, made_by)
            sources = [source for source in sources if source.id not in missed] or sources[: len(sources) * 3 // 4]
        return None


def _estimate(text: str) -> int:
    return len(text) // 3 + 1


def _plan(ref: str, policy: TenantPolicy) -> DreamPlan:
    return DreamPlan(ref, distiller=policy.dream_distiller, after=After.ARCHIVE, operation="COMPACT", index=False)


def fitting(sources: Sequence[Distillable], most: int, *, least: int) -> list[Distillable]:
    """Return the oldest sources whose must-keep statements fit in `most` bytes together, at least `least` of them.

    If the oldest fits with no other, the next oldest begins: an earlier output that is full does not block the others.
    """
    candidates: list[Distillable] = []
    total = 0
    for source in sources:  # more than this would take longer than a caller waits
        total += size(source.content)
        if candidates and total > max(most, MOST_DISTILLED):
            break
        candidates.append(source)
    if sum([size(source.content) + 1 for source in candidates]) <= most:
        return candidates
    needed = needs(candidates)
    for start in range(len(candidates)):
        chosen: list[Distillable] = []
        used = 0
        for source in candidates[start:]:
            need = needed.get(source.id, 0)
            if used + need <= most:
                chosen.append(source)
                used += need
        if len(chosen) >= least:
            return chosen
    return []


def keeps_subjects(text: str, sources: Sequence[Distillable]) -> bool:
    """Whether a text shares informative words with at least half of its sources."""
    said = {token.stem for token in tokenize(text) if token.telling}
    spoken = [{token.stem for token in tokenize(source.content) if token.telling} for source in sources]
    return sum(bool(words & said) or not words for words in spoken) * 2 >= len(spoken)


def _not_repeated(entries: Sequence[Entry]) -> str:
    counts = [
        (sum(entry.state is EntryState.RETRACTED for entry in entries), "retracted"),
        (sum(entry.state is EntryState.DRAFT for entry in entries), "draft"),
    ]
    said = [f"{count} {name} {'unit' if count == 1 else 'units'}" for count, name in counts if count]
    return f"{' and '.join(said)}, not repeated." if said else ""


def _cut(text: str, most: int) -> str:
    """Cut a text to at most `most` characters, between words if possible."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", most // 2, most)
    return text[: end if end > 0 else most].rstrip() or text[:most]
