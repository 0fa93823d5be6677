"""A dream made again from what remains of its sources, after some of them were forgotten.

From the remaining originals while they rest in cold storage. If those cannot be made smaller, they simply become
readable again. If they were destroyed already, the lines of the old dream that owe nothing to the forgotten remain.
A line whose sources are not known owes something to all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from reverie.core.actor import Actor
from reverie.core.dream import DreamReport, RedactionFailed
from reverie.core.entry import Draft, Entry, EntryState, Link
from reverie.core.event import NewEvent
from reverie.distil.archive import archive_bytes, archive_document, index_entry
from reverie.distil.gates import GateReport, verify
from reverie.distil.leaks import clean
from reverie.distil.must_keep import find
from reverie.distil.plan import DREAM_KIND, Work, to_source, weigh
from reverie.distil.request import Answer, Extractive, Request
from reverie.distil.source import Statement
from reverie.dreams.archive import ARCHIVE_SPACE
from reverie.dreams.report import gate_document, output_draft, roomy, save_report, trace
from reverie.memory.entries import Entries, Prepared, entry_hash, searchable_text
from reverie.memory.policy import Rules
from reverie.search.analysis import terms
from reverie.services import Services
from reverie.store.contract import WriteTx


@dataclass(frozen=True, slots=True)
class Derived:
    """An entry that was made from something now forgotten."""

    entry: Entry
    report: DreamReport | None
    remaining: Sequence[Entry]
    """Sources that are not forgotten and still have text."""
    lost: int
    """Sources that are not forgotten but were destroyed before."""
    forgotten: frozenset[str]
    """Its sources that are forgotten, destroyed before or not."""


@dataclass(frozen=True, slots=True)
class Redone:
    """What takes the place of a derived entry."""

    derived: Derived
    restore: Sequence[tuple[Entry, list[str], tuple[str, bytes] | None]] = ()
    output: Prepared | None = None
    report: DreamReport | None = None
    archive: bytes = b""
    index: dict[str, object] | None = None


class Redream:
    """Prepares outside the transaction, applies inside it."""

    def __init__(self, parts: Services, writing: Entries) -> None:
        self._parts = parts
        self._writing = writing
        self._extractive = Extractive()

    def prepare(self, actor: Actor, derived: Derived, rules: Rules) -> Redone:
        """Work out what remains of a dream."""
        report = derived.report
        if derived.entry.gone_seq is not None or report is None:
            return Redone(derived)  # nobody reads it: destroying its text is enough
        if not derived.lost and derived.remaining:
            made = self._again(derived, report, rules)
            if made is None:
                return Redone(derived, restore=[self._indexed(entry) for entry in derived.remaining])
        else:
            made = self._lines(derived, report)
        if made is None:
            return Redone(derived)
        answer, work, gates = made
        try:
            text = clean(answer.text, self._parts.redactor, rules.known)
        except RedactionFailed:  # no text is worth keeping a forget from its end
            return Redone(derived)
        return self._output(actor, derived, report, rules, Answer(text, answer.statements), work, gates)

    def _count(self, text: str) -> int:
        return self._parts.tokens.count(text) if self._parts.tokens else len(text)

    def _again(
        self, derived: Derived, report: DreamReport, rules: Rules
    ) -> tuple[Answer, Work | None, GateReport | None] | None:
        told = sorted((to_source(e) for e in derived.remaining), key=lambda source: (source.created_at, source.id))
        work = weigh(told, self._extractive.engine, self._count)
        if not work.shrinks or work.minimum_required > report.budget:
            return None
        limit = work.output_limit(report.budget, rules.policy.dream_percent)
        must_keep = find(work.prepared.sources)
        answer = self._extractive.distil(Request(work, limit, self._count, must_keep))
        gates = verify(
            work.sources,
            answer.text,
            must_keep=must_keep,
            budget=report.budget,
            input_tokens=work.input_tokens,
            count=self._count,
        )
        return (answer, work, gates) if gates.passed else None

    def _lines(self, derived: Derived, report: DreamReport) -> tuple[Answer, Work | None, GateReport | None] | None:
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
        return Answer("\n".join(lines[number] for number in kept), statements), None, None

    def _indexed(self, entry: Entry) -> tuple[Entry, list[str], tuple[str, bytes] | None]:
        text, embedder = searchable_text(entry), self._parts.embedder
        return entry, terms(text), (embedder.name, embedder.embed([text])[0]) if embedder else None

    def _output(
        self,
        actor: Actor,
        derived: Derived,
        before: DreamReport,
        rules: Rules,
        answer: Answer,
        work: Work | None,
        gates: GateReport | None,
    ) -> Redone:
        told = work.sources if work else tuple(to_source(entry) for entry in derived.remaining)
        tokenizer = self._parts.tokens.name if self._parts.tokens else ""
        archive, checksum = archive_bytes(
            archive_document(told, answer.text, budget=before.budget, tokenizer=tokenizer)
        )
        dream_id = self._parts.ids.new()
        sources = derived.remaining or [derived.entry]
        draft = output_draft(answer.text, sources, dream_id=dream_id, checksum=checksum)
        if not derived.remaining:  # its own tags may name the forgotten
            draft = msgspec.structs.replace(draft, subject=None, tags=tuple(t for t in draft.tags if ":" in t)[-2:])
        if derived.entry.kind != DREAM_KIND:  # a synthesis stays one
            draft = _like(derived.entry, draft)
        output = self._writing.prepare(actor, before.ref, [draft], roomy(rules))[0]
        alive = {entry.id for entry in derived.remaining}
        tokens = gates.tokens if gates else self._count(answer.text)
        report = msgspec.structs.replace(
            before,
            id=dream_id,
            sources=[source for source in before.sources if source.id in alive],
            output_id=output.entry.id,
            checksum=checksum,
            input_tokens=work.input_tokens if work else tokens,
            output_tokens=tokens,
            tokens_before=work.tokens_before if work else tokens,
            byte_size=output.entry.byte_size,
            statements=trace(answer.text, answer),
            collapsed=[(g.kept, *g.merged) for g in work.prepared.collapsed] if work else [],
            about={source: hashes for source, hashes in before.about.items() if source not in derived.forgotten},
            superseded=(),
            gates=gate_document(gates) if gates else {},
            distiller=self._extractive.name,
            fingerprint=self._extractive.fingerprint if work else "remaining-lines/1",
            state="done",
        )
        index = None
        if told:
            index = index_entry(
                ref=before.ref,
                output_id=output.entry.id,
                checksum=checksum,
                sources=told,
                text=answer.text,
                byte_size=report.byte_size,
                budget=report.budget,
                tokens_used=report.tokens_used,
                output_tokens=tokens,
                created_at=self._parts.clock.now(),
            )
        return Redone(derived, output=output, report=report, archive=archive, index=index)

    def apply(self, tx: WriteTx, actor: Actor, done: Redone) -> None:
        """Put what remains in place. The old entry is purged by the caller."""
        ref, old = done.derived.entry.ref, done.derived.entry
        if done.restore:
            data = {"ref": ref, "from": old.id, "entries": len(done.restore)}
            seq = tx.append(NewEvent("memory.restored", "FORGET", actor.id, data=data))
            states = {s.id: s for s in done.derived.report.sources} if done.derived.report else {}
            for entry, words, vector in done.restore:
                if entry.gone_seq is not None:
                    was = states.get(entry.id)
                    state = was.state if was else EntryState.ACTIVE
                    tx.change(entry.id, seq=seq, state=state, archived=was.archived if was else False)
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
        seq = tx.append(NewEvent("dream.redone", "FORGET", actor.id, entry_id=entry.id, data=data))
        tx.insert(entry, seq=seq, terms=done.output.terms, vector=done.output.vector, minted=True)
        for source in done.derived.remaining:
            tx.link(Link(entry.id, source.id, "distilled-from"))
            if entry.kind != DREAM_KIND:
                tx.link(Link(entry.id, source.id, "elaborates"))
        checksum = str(done.report.checksum)
        if tx.load(ARCHIVE_SPACE, checksum) is None:
            tx.save(ARCHIVE_SPACE, checksum, done.archive, seq=seq, meta={"dream": done.report.id, "ref": ref})
        save_report(tx, msgspec.structs.replace(done.report, seq=seq, created_at=tx.now), seq=seq)


def _like(old: Entry, draft: Draft) -> Draft:
    """A dream made again keeps the kind, the attributes and the author of the one it stands for."""
    source = msgspec.structs.replace(old.source, trust=min(old.source.trust, draft.source.trust))
    return msgspec.structs.replace(
        draft, kind=old.kind, attributes={**old.attributes, **draft.attributes}, source=source
    )


def has_text(entry: Entry | None) -> bool:
    """Whether an entry exists and its text was not destroyed."""
    return entry is not None and entry.state is not EntryState.ERASED
