"""Several dreams in one transaction: each group of entries becomes one text, and nothing is left half done.

`compose` works outside any transaction with the engine's own parts: the distiller of the tenant, the model-free one
behind it, the redactor and the gates. It always comes back with a text, because here entries are taken whether or not
they can be made smaller: what cannot be distilled is quoted. `write` is part of the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reverie.core.actor import Actor
from reverie.core.dream import After, DreamPlan, DreamReport, RedactionFailed, SourceTrace
from reverie.core.entry import Draft, Entry, EntryState, Link
from reverie.core.errors import ReverieError
from reverie.core.policy import TenantPolicy
from reverie.distil.plan import Work, to_source, weigh
from reverie.distil.request import Answer, Distiller, Extractive
from reverie.distil.source import Source as Told
from reverie.distil.source import Statement
from reverie.distil.tokens import tokenize
from reverie.dreams.archive import Archives
from reverie.dreams.gates import FATES, Distilled, Gates
from reverie.dreams.report import about, gate_document, output_draft, save_report, trace
from reverie.dreams.snapshot import DISTILLED_FROM
from reverie.dreams.spend import SpendGuard, SpendLimits
from reverie.memory.entries import Entries, Prepared
from reverie.memory.policy import RuleBook, Rules
from reverie.services import Services
from reverie.store.contract import WriteTx

MOST_BYTES = 64 * 1024
"""Of one text."""
SHORTENS_FROM = 5
"""From this many entries on, the text is shorter than they are together."""
_SQUEEZES = 6
REPLACED = "Replaced since:"
DISPUTED = "Disputed, not settled:"


@dataclass(frozen=True, slots=True)
class Composed:
    """A text that may be stored, and how it came to be."""

    id: str
    """Of the dream."""
    entries: tuple[Entry, ...]
    text: str
    statements: Sequence[Statement] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_before: int = 0
    budget: int = 0
    distiller: str = "extractive"
    fingerprint: str = "quoted/1"
    fell_back: str | None = None
    gates: Mapping[str, Any] = field(default_factory=dict)
    spend: Mapping[str, Any] = field(default_factory=dict)

    def draft(self) -> Draft:
        """The entry every dream becomes; the caller gives it the fields of its protocol."""
        return output_draft(self.text, self.entries, dream_id=self.id, checksum="")


@dataclass(slots=True)
class _Section:
    text: str
    statements: Sequence[Statement] = ()
    work: Work | None = None
    done: Distilled | None = None


class Condenser:
    """The dream engine for groups that are dreamt together."""

    def __init__(self, parts: Services, rules: RuleBook, writing: Entries, archives: Archives) -> None:
        self._parts = parts
        self._rules = rules
        self._writing = writing
        self._extractive = Extractive()
        self._gating = Gates(parts, rules, archives, self._extractive, self._count)
        self._spending = SpendLimits(parts)

    def _count(self, text: str) -> int:
        return self._parts.tokens.count(text) if self._parts.tokens else len(text) // 3 + 1

    def tokens(self, entry: Entry) -> int:
        """What an entry takes of a budget."""
        return self._count(entry.content) + 12

    def room(self, policy: TenantPolicy) -> int:
        """Tokens of input for one text, so that the output fits the tenant's budget beside it."""
        return max(policy.dream_budget * 100 // (100 + policy.dream_percent) - 200, policy.dream_budget // 2)

    def compose(self, actor: Actor, ref: str, entries: Sequence[Entry], rules: Rules) -> Composed:
        """One text of these entries, redacted. Text of retracted entries and of drafts is not used."""
        policy = rules.policy
        dream_id = self._parts.ids.new()
        guard = self._spending.guard(actor, dream_id, policy)
        plan = DreamPlan(ref, distiller=policy.dream_distiller, after=After.ARCHIVE, operation="COMPACT", index=False)
        replaced = [entry for entry in entries if entry.state is EntryState.SUPERSEDED]
        silent = [entry for entry in entries if entry.state in (EntryState.RETRACTED, EntryState.DRAFT)]
        standing = [entry for entry in entries if entry not in replaced and entry not in silent]
        total = sum(len(entry.content) for entry in entries)
        shorter = total if len(entries) >= SHORTENS_FROM else None
        sections: list[tuple[str | None, _Section]] = []
        for head, part in ((None, standing), (REPLACED, replaced)):
            if part:
                share = None if shorter is None else max(sum(len(e.content) for e in part) - (len(head or "") + 2), 1)
                section = self._section(actor, plan, part, share, policy, guard, rules)
                disputed = any(entry.state is EntryState.CONTESTED for entry in part)
                sections.append((DISPUTED if disputed else head, section))
        text = "\n\n".join(f"{head}\n{section.text}" if head else section.text for head, section in sections)
        noted = _not_repeated(silent)
        if noted and (shorter is None or len(text) + len(noted) + 2 < shorter or not text):
            text = f"{text}\n\n{noted}" if text else noted
        text = self._final(actor, text, plan, rules, shorter)
        first = next((section for _, section in sections if section.done is not None), None)
        done = first.done if first else None
        works = [section.work for _, section in sections if section.work is not None]
        return Composed(
            id=dream_id,
            entries=tuple(entries),
            text=text,
            statements=[statement for _, section in sections for statement in section.statements],
            input_tokens=sum(work.input_tokens for work in works),
            output_tokens=self._count(text),
            tokens_before=sum(work.tokens_before for work in works),
            budget=policy.dream_budget,
            distiller=done.distiller.name if done else "extractive",
            fingerprint=done.distiller.fingerprint if done else "quoted/1",
            fell_back=done.fell_back if done else None,
            gates=gate_document(done.gates) if done else {},
            spend=guard.document(),
        )

    def _final(self, actor: Actor, text: str, plan: DreamPlan, rules: Rules, shorter: int | None) -> str:
        """Redacted as a whole (joining may complete a secret), then cut, never the other way round."""
        text = self._clean(actor, text, plan, rules).strip()
        if shorter is not None and len(text) >= shorter:
            text = _cut(text, max(shorter - 1, 1))
        while len(text.encode()) > MOST_BYTES:
            text = _cut(text, len(text) * 3 // 4)
        return text

    def _clean(self, actor: Actor, text: str, plan: DreamPlan, rules: Rules) -> str:
        """Text that is built never to come to rest is not worth keeping a COMPACT from its end."""
        try:
            return self._gating.clean(actor, text, plan.run, rules)
        except RedactionFailed:
            return "[REDACTED]"

    def _section(
        self,
        actor: Actor,
        plan: DreamPlan,
        entries: Sequence[Entry],
        shorter: int | None,
        policy: TenantPolicy,
        guard: SpendGuard,
        rules: Rules,
    ) -> _Section:
        """Distilled under the gates; quoted where that is impossible."""
        told = self._told(actor, plan, entries, policy, rules)
        chosen = self._chosen(plan, policy)
        for sources in (told, [replace(source, kind="note", pinned=False) for source in told]):
            work = weigh(sources, self._extractive.engine, self._count)
            if work.shrinks and work.minimum_required <= policy.dream_budget:
                done = self._distilled(actor, plan, work, shorter, policy, guard, chosen)
                if done is not None:
                    return _Section(done.text, done.answer.statements, work, done)
        text = "\n".join(source.content for source in told)
        statements = [Statement(s.content.split("\n")[0], (s.id,), "quoted") for s in told if s.content]
        return _Section(text, statements, work)

    def _told(
        self, actor: Actor, plan: DreamPlan, entries: Sequence[Entry], policy: TenantPolicy, rules: Rules
    ) -> list[Told]:
        """The entries as a distiller sees them: clean by today's rules, then cut to what one text may take in."""
        most = self.room(policy) // 2 if len(entries) > 1 else self.room(policy)
        told = []
        for entry in entries:
            source = to_source(entry)
            content = self._clean(actor, source.content, plan, rules)
            while self._count(content) > most:
                content = _cut(content, len(content) * 3 // 4)
            told.append(replace(source, content=content))
        return told

    def _chosen(self, plan: DreamPlan, policy: TenantPolicy) -> Distiller:
        try:
            return self._gating.choose(plan, policy)
        except ReverieError:  # a model that was configured once and is gone
            return self._extractive

    def _distilled(
        self,
        actor: Actor,
        plan: DreamPlan,
        work: Work,
        shorter: int | None,
        policy: TenantPolicy,
        guard: SpendGuard,
        chosen: Distiller,
    ) -> Distilled | None:
        limit = work.output_limit(policy.dream_budget, policy.dream_percent)
        if shorter is not None:
            limit = min(limit, max(sum(self._count(s.content) for s in work.sources) - 1, work.least_output))
        for _ in range(_SQUEEZES):
            try:
                done = self._gating.distil(actor, plan, work, work.input_tokens + limit, policy, chosen, guard)
            except ReverieError:
                if chosen is self._extractive:
                    return None
                chosen = self._extractive
                continue
            modelled = done.distiller is not self._extractive
            short = len(done.text.encode()) <= MOST_BYTES and (shorter is None or len(done.text) < shorter)
            if short and (not modelled or keeps_subjects(done.text, work.sources)):
                return done
            if modelled:
                chosen = self._extractive
                continue
            limit = limit * 3 // 4
            if limit < work.least_output:
                return None
        return None

    def prepare(self, actor: Actor, ref: str, draft: Draft, rules: Rules) -> Prepared:
        """A composed text as an entry, redacted and indexed like a fresh write."""
        from reverie.dreams.report import roomy

        return self._writing.prepare(actor, ref, [draft], roomy(rules))[0]

    def keep(self, tx: WriteTx, ref: str, composed: Composed, output: Entry, *, position: int, seq: int) -> DreamReport:
        """Links to every source and the report, in the caller's transaction, for lineage, forget and undo."""
        for entry in composed.entries:
            tx.link(Link(output.id, entry.id, DISTILLED_FROM))
        statements = trace(output.content, Answer(output.content, composed.statements))
        fates = {source: FATES[item.how] for item in reversed(statements) for source in item.sources}
        report = DreamReport(
            id=composed.id,
            ref=ref,
            position=position,
            seq=seq,
            created_at=tx.now,
            distiller=composed.distiller,
            fingerprint=composed.fingerprint,
            after=After.ARCHIVE,
            trigger="host-managed",
            sources=[
                SourceTrace(e.id, e.version, e.state, e.archived, fates.get(e.id, "retired")) for e in composed.entries
            ],
            output_id=output.id,
            checksum=None,
            budget=composed.budget,
            input_tokens=composed.input_tokens,
            output_tokens=composed.output_tokens,
            tokens_before=composed.tokens_before,
            bytes_before=sum(entry.byte_size for entry in composed.entries),
            byte_size=output.byte_size,
            statements=statements,
            about=about(composed.entries, tx.log_key()),
            gates=composed.gates,
            fell_back=composed.fell_back,
            spend=composed.spend,
        )
        save_report(tx, report, seq=seq)
        return report


def keeps_subjects(text: str, sources: Sequence[Told]) -> bool:
    """Whether a model's text still speaks of what most of its sources speak of."""
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
    """At most that many characters, cut between words where there are any."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", most // 2, most)
    return text[: end if end > 0 else most].rstrip() or text[:most]
