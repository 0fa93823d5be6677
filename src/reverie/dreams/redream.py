"""Remakes a dream from its remaining sources, after some of them were forgotten.

The remaining originals are dreamt again while they are in cold storage. If they cannot be made smaller, they become
readable again. If some were destroyed already, only the lines of the old dream remain that no forgotten source
contributed to. A line without known sources counts as contributed to by all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from reverie.core.actor import Actor
from reverie.core.dream import DreamReport, RedactionFailed, SourceTrace
from reverie.core.entry import Draft, Entry, EntryState, Link
from reverie.core.event import NewEvent
from reverie.core.subject import SUBJECT_TAG, fold, named_subjects, subject_hashes
from reverie.distil.archive import archive_bytes, archive_document, index_entry
from reverie.distil.gates import GateReport, verify
from reverie.distil.leaks import clean
from reverie.distil.must_keep import find
from reverie.distil.plan import DREAM_KIND, Share, Work, hot_texts, to_sources, weigh
from reverie.distil.request import DistilledText, Extractive, Request
from reverie.distil.source import Statement
from reverie.dreams.archive import ARCHIVE_SPACE
from reverie.dreams.compose import Composer
from reverie.dreams.gates import fingerprint
from reverie.dreams.report import gate_document, output_draft, roomy, save_report, trace
from reverie.dreams.snapshot import DISTILLED_FROM
from reverie.memory.entries import Entries
from reverie.memory.indexing import terms_and_vectors
from reverie.memory.insertion import PreparedEntry, entry_hash, session_mark
from reverie.memory.policy import Rules
from reverie.services import Services
from reverie.store.contract import WriteTx


@dataclass(frozen=True, slots=True)
class Derived:
    """An entry that was made from something now forgotten."""

    entry: Entry
    """Has no text if it was destroyed before; then only its report and archive are left to remove."""
    report: DreamReport | None
    archive: str | None
    """The checksum of its archive, while that exists."""
    remaining: Sequence[Entry]
    """Sources that are not forgotten and still have text."""
    lost: Sequence[str]
    """Sources that are not forgotten but were destroyed before."""
    forgotten: frozenset[str]
    """Its sources that are forgotten, destroyed before or not."""
    traces: Mapping[str, SourceTrace]
    """State of each remaining source before a dream took it."""
    subject: str

    @property
    def state(self) -> tuple[Any, ...]:
        """Everything that the plan of its remake depends on."""
        report = (self.report.id, self.report.state, self.report.checksum) if self.report else None
        left = tuple(sorted((source.id, source.version) for source in self.remaining))
        return (
            self.entry.id,
            self.entry.ref,
            self.entry.version,
            report,
            self.archive,
            left,
            tuple(sorted(self.lost)),
            tuple(sorted(self.forgotten)),
        )


@dataclass(frozen=True, slots=True)
class RedreamOutcome:
    """The outcome for a derived entry: a new text, its sources restored, or nothing."""

    derived: Derived
    answer: DistilledText | None = None
    work: Work | None = None
    gates: GateReport | None = None
    restore: Sequence[Entry] = ()
    """Sources that become readable again."""
    fingerprint: str = "remaining-lines/1"


@dataclass(frozen=True, slots=True)
class Redone:
    """The replacement of a derived entry."""

    derived: Derived
    restore: Sequence[tuple[Entry, list[str], tuple[str, bytes] | None]] = ()
    output: PreparedEntry | None = None
    report: DreamReport | None = None
    archive: bytes = b""
    index: dict[str, object] | None = None


class Redream:
    """Remakes dreams: prepared outside the transaction, applied inside it."""

    def __init__(self, parts: Services, entries: Entries, composer: Composer) -> None:
        self._parts = parts
        self._entries = entries
        self._extractive = Extractive()
        self._composer = composer

    def outcome(self, actor: Actor, derived: Derived, rules: Rules) -> RedreamOutcome:
        """Compute the remainder of a dream. Deterministic for the same sources: a preview shows what a forget does."""
        report = derived.report
        if derived.entry.gone_seq is not None or report is None:
            return RedreamOutcome(derived)  # it is not readable: destroying its text is enough
        if derived.lost or not derived.remaining:
            lines = self._lines(derived, report)
            return self._cleaned(RedreamOutcome(derived, lines), rules) if lines is not None else _restored(derived)
        if derived.entry.kind != DREAM_KIND:
            return self._synthesis(actor, derived, rules)
        made = self._again(derived, report)
        if made is None:
            return _restored(derived)
        return self._cleaned(made, rules)

    def _cleaned(self, outcome: RedreamOutcome, rules: Rules) -> RedreamOutcome:
        assert outcome.answer is not None
        try:
            text = clean(outcome.answer.text, self._parts.redactor, rules.known)
        except RedactionFailed:  # no text is worth blocking a forget
            return _restored(outcome.derived)
        return replace(outcome, answer=DistilledText(text, outcome.answer.statements))

    def _synthesis(self, actor: Actor, derived: Derived, rules: Rules) -> RedreamOutcome:
        """Make a synthesis of the remaining sources, smaller or not, without a model: it must not fail or wait."""
        ordered = sorted(derived.remaining, key=lambda entry: (entry.epoch, entry.id))
        made = self._composer.text(actor, derived.entry.ref, ordered, rules)
        if made.missed:  # one text replaces it, so it is as long as it must be
            made = self._composer.text(actor, derived.entry.ref, ordered, rules, shorter=False)
        return RedreamOutcome(derived, made.answer, fingerprint=made.fingerprint)

    def prepare(self, actor: Actor, outcome: RedreamOutcome, rules: Rules, log_key: bytes) -> Redone:
        """Prepare everything that the transaction needs to apply an outcome."""
        derived = outcome.derived
        if outcome.restore:
            return Redone(derived, restore=[self._indexed(entry) for entry in outcome.restore])
        if outcome.answer is None or derived.report is None:
            return Redone(derived)
        return self._output(actor, outcome, outcome.answer, derived.report, rules, log_key)

    def _count(self, text: str) -> int:
        return self._parts.tokens.count(text) if self._parts.tokens else len(text)

    def _again(self, derived: Derived, report: DreamReport) -> RedreamOutcome | None:
        sources = sorted(to_sources(derived.remaining), key=lambda source: (source.created_at, source.id))
        work = weigh(sources, self._extractive.engine, self._count)
        if not work.shrinks or work.minimum_required > report.budget:
            return None
        limit = work.output_limit(report.budget, Share(report.share))
        must_keep = find(work.prepared.sources)
        answer = self._extractive.distil(Request(work, limit, self._count, must_keep))
        gates = verify(
            work.sources,
            answer.text,
            must_keep=must_keep,
            budget=report.budget,
            input_tokens=work.input_tokens,
            source_tokens=work.tokens_before,
            count=self._count,
            statements=answer.statements,
        )
        if not gates.passed:
            return None
        return RedreamOutcome(
            derived, answer, work, gates, fingerprint=fingerprint(self._extractive, self._parts.redactor)
        )

    def _lines(self, derived: Derived, report: DreamReport) -> DistilledText | None:
        lines = derived.entry.content.split("\n")
        owed: dict[int, set[str]] = {}
        for item in report.statements:
            owed.setdefault(item.line, set()).update(item.sources)
        kept: list[int] = []
        for number, text in enumerate(lines):
            heading = text.startswith("[") and text.endswith("]") and number not in owed
            if heading or (number in owed and not owed[number] & derived.forgotten):
                kept.append(number)
        kept = [n for at, n in enumerate(kept) if n in owed or (at + 1 < len(kept) and kept[at + 1] in owed)]
        if not any(number in owed for number in kept):
            return None
        statements = [Statement(lines[n], tuple(sorted(owed[n])), "quoted") for n in kept if n in owed]
        return DistilledText("\n".join(lines[number] for number in kept), statements)

    def _indexed(self, entry: Entry) -> tuple[Entry, list[str], tuple[str, bytes] | None]:
        return entry, *terms_and_vectors([entry], self._parts.embedder)[0]

    def _output(
        self,
        actor: Actor,
        outcome: RedreamOutcome,
        answer: DistilledText,
        before: DreamReport,
        rules: Rules,
        log_key: bytes,
    ) -> Redone:
        derived, work, gates = outcome.derived, outcome.work, outcome.gates
        sources = work.sources if work else tuple(to_sources(derived.remaining))
        archive, checksum = b"", None
        if before.checksum is not None:
            tokenizer = self._parts.tokens.name if self._parts.tokens else ""
            archive, checksum = archive_bytes(
                archive_document(sources, answer.text, budget=before.budget, tokenizer=tokenizer)
            )
        dream_id = self._parts.ids.new()
        draft = output_draft(answer.text, derived.remaining or [derived.entry], dream_id=dream_id, checksum=checksum)
        if derived.lost or not derived.remaining:  # also about everyone whom its lost sources were about
            about = _other_subjects(derived.entry, derived.subject, log_key)
            own = [tag for tag in draft.tags if not tag.startswith(SUBJECT_TAG)]
            draft = msgspec.structs.replace(draft, subject=None, tags=(*about, *own))
        if derived.entry.kind != DREAM_KIND:  # a synthesis stays one
            draft = _like(derived.entry, draft)
        output = self._entries.prepare(actor, before.ref, [draft], roomy(rules))[0]
        tokens = gates.tokens if gates else self._count(answer.text)
        hot = before.hot_after
        report = msgspec.structs.replace(
            before,
            id=dream_id,
            sources=[derived.traces[source] for source in sorted(derived.traces)],
            output_id=output.entry.id,
            checksum=checksum,
            input_tokens=work.input_tokens if work else tokens,
            output_tokens=tokens,
            tokens_before=work.tokens_before if work else tokens,
            hot_before=hot,
            hot_after=max(hot - before.output_tokens + tokens, tokens) if hot else 0,
            cold_tokens=self._taken(derived, before, tokens),
            byte_size=output.entry.byte_size,
            statements=trace(answer.text, answer),
            collapsed=[(g.kept, *g.merged) for g in work.prepared.collapsed] if work else [],
            about={source: hashes for source, hashes in before.about.items() if source not in derived.forgotten},
            superseded=(),
            gates=gate_document(gates) if gates else {},
            distiller=self._extractive.name,
            fingerprint=outcome.fingerprint,
            state="done",
        )
        index = None
        if sources and checksum is not None:
            index = index_entry(
                ref=before.ref,
                output_id=output.entry.id,
                checksum=checksum,
                sources=sources,
                text=answer.text,
                byte_size=report.byte_size,
                budget=report.budget,
                tokens_used=report.tokens_used,
                output_tokens=tokens,
                created_at=self._parts.clock.now(),
            )
        return Redone(derived, output=output, report=report, archive=archive, index=index)

    def _taken(self, derived: Derived, before: DreamReport, tokens: int) -> int:
        """Return the tokens of the entries that the new text replaces, superseded dreams among its sources included.

        Where sources were destroyed, they are estimated from the share of the old text that remains.
        """
        if derived.lost or not derived.remaining:
            return before.taken_tokens * tokens // max(before.output_tokens, 1)
        return sum(map(self._count, hot_texts(derived.remaining)))

    def apply(self, tx: WriteTx, actor: Actor, done: Redone) -> None:
        """Store the remainder. The caller purges the old entry."""
        ref, old = done.derived.entry.ref, done.derived.entry
        if done.restore:
            data = {"ref": ref, "from": old.id, "entries": len(done.restore)}
            seq = tx.append(NewEvent("memory.restored", "FORGET", actor.id, data=data))
            for entry, words, vector in done.restore:
                was = done.derived.traces.get(entry.id)
                state = was.state if was else EntryState.ACTIVE
                after = tx.change(entry.id, seq=seq, state=state, archived=was.archived if was else False)
                if after.gone_seq is None:
                    tx.index(entry.id, seq=seq, terms=words, vector=vector)
        if done.output is None or done.report is None:
            return
        entry = done.output.entry
        data = {
            "ref": ref,
            "dream": done.report.id,
            "from": old.id,
            "hash": entry_hash(tx.log_key(), entry),
            "bytes": entry.byte_size,
            "sources": len(done.derived.remaining),
            "checksum": done.report.checksum,
        }
        mark = session_mark(tx, entry)
        seq = tx.append(NewEvent("dream.redone", "FORGET", actor.id, entry_id=entry.id, session=mark, data=data))
        tx.insert(entry, seq=seq, terms=done.output.terms, vector=done.output.vector, minted=True)
        for source in (*(source.id for source in done.derived.remaining), *done.derived.lost):
            tx.link(Link(entry.id, source, DISTILLED_FROM))
            if entry.kind != DREAM_KIND:
                tx.link(Link(entry.id, source, "elaborates"))
        checksum = done.report.checksum
        if checksum is not None and tx.load(ARCHIVE_SPACE, checksum) is None:
            tx.save(ARCHIVE_SPACE, checksum, done.archive, seq=seq, meta={"dream": done.report.id, "ref": ref})
        save_report(tx, msgspec.structs.replace(done.report, seq=seq, created_at=tx.now), seq=seq)


def _restored(derived: Derived) -> RedreamOutcome:
    """The outcome where no text can be made: the remaining sources are readable again."""
    return RedreamOutcome(derived, restore=[entry for entry in derived.remaining if entry.gone_seq is not None])


def _like(old: Entry, draft: Draft) -> Draft:
    """Give a remade dream the kind, the attributes and the author of the one it replaces."""
    source = msgspec.structs.replace(old.source, trust=min(old.source.trust, draft.source.trust))
    return msgspec.structs.replace(
        draft, kind=old.kind, attributes={**old.attributes, **draft.attributes}, source=source
    )


def _other_subjects(entry: Entry, target: str, log_key: bytes) -> list[str]:
    """Return tags for the subjects of an entry, without the forgotten one."""
    named = {fold(name): name for name in named_subjects(entry.subject, entry.tags)}
    return [SUBJECT_TAG + name for name in named.values() if target not in subject_hashes(log_key, name)]
