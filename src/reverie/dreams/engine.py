"""The dream engine: plan, snapshot, distil, redact, verify, and one transaction.

Everything slow happens outside the transaction, on a snapshot. The transaction checks that every source is still as
it was seen, then writes output, links, archive, index, report and events together. A crash before it leaves only a
lease that ends by itself; a crash after it leaves a whole dream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.dream import After, DreamPlan, DreamReport, Estimate, GateFailed, GivenText, SourceTrace
from reverie.core.entry import Entry, EntryState, Link, Scope
from reverie.core.errors import Busy, Invalid, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.run import mark as run_mark
from reverie.distil.archive import archive_bytes, archive_document, index_entry
from reverie.distil.gates import GateReport
from reverie.distil.plan import DREAM_KIND, Work, require, to_source
from reverie.distil.request import Distiller, Extractive
from reverie.dreams.archive import ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE, Archives
from reverie.dreams.gates import Distilled, Gates
from reverie.dreams.report import (
    about,
    gate_document,
    load_report,
    mark,
    output_draft,
    roomy,
    save_report,
    source_traces,
    trace,
)
from reverie.dreams.snapshot import DISTILLED_FROM, Snapshot, Snapshots, effective_budget
from reverie.dreams.spend import SpendGuard, SpendLimits
from reverie.memory.entries import Entries, Prepared, entry_hash
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook, Rules, check_ref
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import WriteTx

LEASE_MS = 15 * 60_000
QUICK_LEASE_MS = 15_000
"""Without a model nobody waits long for one that was killed. A lease only spares work: who may retire an entry is
settled by its version, in the transaction."""
MOST_NAMED = 100
"""Up to this many sources are named in the event; the links name them all."""
_TRIES = 5
Progress = Callable[[str, int, int], None]


class Replan(Exception):
    """A source changed while the dream was on its way."""

    def __init__(self, changed: int) -> None:
        super().__init__(changed)
        self.changed = changed


class DreamEngine:
    """The only code that turns many entries into fewer."""

    def __init__(self, parts: Services, rules: RuleBook, writing: Entries, archives: Archives) -> None:
        self._parts = parts
        self._rules = rules
        self._writing = writing
        self._archives = archives
        self._extractive = Extractive()
        self._snapshots = Snapshots(parts, rules, self._extractive)
        self._gating = Gates(parts, rules, archives, self._extractive, self._snapshots.count)
        self._spending = SpendLimits(parts)

    def plan(self, actor: Actor, plan: DreamPlan) -> Estimate:
        """What `run` would do with this plan now. Touches nothing."""
        actor.require(Right.READ)
        check_ref(plan.ref)
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        snapshot, work = self._snapshots.weighed(actor, plan, budget, policy)
        limit = work.output_limit(budget, policy.dream_percent, shrink=plan.strict)
        return Estimate(
            ref=plan.ref,
            position=snapshot.position,
            sources=len(snapshot.sources),
            collapsed=len(snapshot.sources) - len(work.prepared.sources),
            input_tokens=work.input_tokens,
            output_tokens=max(limit, 0),
            budget=budget,
            minimum_required=work.minimum_required,
            left_out=dict(snapshot.left_out),
            left_for_later=snapshot.later,
            distiller=self._gating.choose(plan, policy).name if plan.distiller != "none" else "none",
            feasible=len(snapshot.entries) >= plan.least_entries
            and (plan.distiller == "none" or (work.minimum_required <= budget and (work.shrinks or not plan.strict))),
        )

    def run(
        self,
        actor: Actor,
        plan: DreamPlan,
        *,
        progress: Progress | None = None,
        distiller: Distiller | None = None,
        dream_id: str | None = None,
        given: Sequence[GivenText] | None = None,
    ) -> DreamReport | None:
        """Dream. None when there is nothing to do (fewer entries than the plan's least).

        All of it happens, or nothing. Raises Busy when the ref is being dreamt already, TokenBudgetExceeded,
        GateFailed or RedactionFailed with nothing written. `given`: these texts instead of the ref's entries, which
        stay as they are.
        """
        actor.require(Right.DREAM)
        self._rules.check_ref(actor.tenant, plan.ref)
        if self._parts.read_only:
            raise ReadOnly()
        dream_id = dream_id or self._parts.ids.new()
        lease = f"dream/{plan.ref}"
        policy = self._rules.current(actor.tenant).policy
        guard = self._spending.guard(actor, dream_id, policy)
        quick = plan.most_bytes is not None or self._gating.is_model_free(plan, policy, distiller)
        lasting = QUICK_LEASE_MS if quick else LEASE_MS + policy.model_seconds_per_dream * 1000
        until = self._parts.clock.now() + lasting
        scope = Scope(actor.tenant, plan.ref)
        if not self._parts.store.write(scope, lambda tx: tx.claim(lease, dream_id, until=until)):
            raise Busy("This memory is being dreamt right now. Its report will show the result.")
        report: DreamReport | None = None
        try:
            changed = 0
            for _ in range(_TRIES):
                try:
                    report = self._attempt(actor, plan, dream_id, changed, progress or _silent, distiller, guard, given)
                    return report
                except Replan as moved:
                    changed += moved.changed
            raise Busy("This memory changes faster than it can be dreamt. Try again later.")
        finally:
            if report is None:  # else its transaction gave the lease back
                self._parts.store.write(scope, lambda tx: tx.release(lease, dream_id))

    def _attempt(
        self,
        actor: Actor,
        plan: DreamPlan,
        dream_id: str,
        changed: int,
        progress: Progress,
        distiller: Distiller | None,
        guard: SpendGuard,
        given: Sequence[GivenText] | None,
    ) -> DreamReport | None:
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        progress("snapshot", 0, 1)
        if plan.distiller == "none" or plan.most_bytes is not None:
            snapshot = self._snapshots.take(actor, plan, policy, expand=False)
            if plan.distiller == "none":
                return self._shelve(actor, plan, dream_id, snapshot) if snapshot.entries else None
            if len(snapshot.entries) < plan.least_entries:
                return None
            work, done = self._gating.compact(actor, plan, snapshot.sources, distiller, guard)
            return self._commit(actor, plan, dream_id, snapshot, work, 0, done, changed, guard)
        if given is not None:
            snapshot, work = self._snapshots.given(actor, plan, given)
        else:
            snapshot, work = self._snapshots.weighed(actor, plan, budget, policy)
        if len(snapshot.sources if given is not None else snapshot.entries) < plan.least_entries:
            return None
        require(work, budget)
        if plan.strict and not work.shrinks:
            raise GateFailed(
                "This memory cannot be made smaller without losing what must be kept.", details={"gates": ["smaller"]}
            )
        progress("distil", 0, len(snapshot.sources))
        chosen = distiller or self._gating.choose(plan, policy)
        done = self._gating.distil(actor, plan, work, budget, policy, chosen, guard)
        progress("commit", len(snapshot.sources), len(snapshot.sources))
        report = self._commit(actor, plan, dream_id, snapshot, work, budget, done, changed, guard)
        progress("done", len(snapshot.sources), len(snapshot.sources))
        return report

    def _commit(
        self,
        actor: Actor,
        plan: DreamPlan,
        dream_id: str,
        snapshot: Snapshot,
        work: Work,
        budget: int,
        done: Distilled,
        changed: int,
        guard: SpendGuard,
    ) -> DreamReport:
        def prepare(rules: Rules) -> Callable[[WriteTx], DreamReport]:
            text, gates = self._gating.final(actor, plan, work, budget, done, rules)
            archive, checksum = b"", None
            if plan.most_bytes is None:
                document = archive_document(work.sources, text, budget=budget, tokenizer=self._tokenizer())
                archive, checksum = archive_bytes(document)
            draft = output_draft(text, snapshot.sources, dream_id=dream_id, checksum=checksum, run=plan.run)
            output = self._writing.prepare(actor, plan.ref, [draft], roomy(rules))[0]

            def body(tx: WriteTx) -> DreamReport:
                if tx.load(DREAM_SPACE, dream_id) is not None:  # whoever took this dream over was faster
                    tx.release(f"dream/{plan.ref}", dream_id)
                    return load_report(tx, dream_id)
                self._unchanged(tx, snapshot.entries)
                seq = self._append(tx, actor, plan, dream_id, snapshot, output, budget, gates, checksum)
                tx.insert(output.entry, seq=seq, terms=output.terms, vector=output.vector, minted=True)
                for entry in snapshot.sources if snapshot.entries else ():
                    tx.link(Link(output.entry.id, entry.id, DISTILLED_FROM))
                earlier = [entry for entry in snapshot.entries if entry.kind == DREAM_KIND]
                for entry in earlier:
                    tx.link(Link(output.entry.id, entry.id, "supersedes"))
                reclaimed = self._retire(tx, actor, plan, snapshot.entries, seq)
                report = self._report(
                    tx, plan, dream_id, snapshot, work, budget, done, gates, text, output, checksum, seq
                )
                report = msgspec.structs.replace(
                    report,
                    superseded=tuple(entry.id for entry in earlier),
                    changed_meanwhile=changed,
                    reclaimed_bytes=reclaimed,
                    spend=guard.document(),
                )
                self._keep(tx, actor, plan, report, archive, work, budget, done, snapshot.sources, text)
                tx.release(f"dream/{plan.ref}", dream_id)
                return report

            return body

        return self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant, plan.ref))

    def _unchanged(self, tx: WriteTx, entries: Sequence[Entry]) -> None:
        """Every source is still the version that was read, still readable, not pinned or held since."""
        changed = 0
        # one look at all that can be read, and one at each of the others
        readable = tx.at([entry.position for entry in entries], ANYTHING) if entries else {}
        for entry in entries:
            current = readable.get(entry.position) or tx.get(entry.id, where=ANYTHING)
            if current is None or current.version != entry.version or current.pinned or current.held:
                changed += 1
        if changed:
            raise Replan(changed)

    def _append(
        self,
        tx: WriteTx,
        actor: Actor,
        plan: DreamPlan,
        dream_id: str,
        snapshot: Snapshot,
        output: Prepared,
        budget: int,
        gates: GateReport,
        checksum: str | None,
    ) -> int:
        entry = output.entry
        data: dict[str, Any] = {
            "ref": plan.ref,
            "dream": dream_id,
            "hash": entry_hash(tx.log_key(), entry),
            "bytes": entry.byte_size,
            "sources": len(snapshot.sources),
            "trigger": plan.trigger,
            "after": plan.after.value,
        }
        if checksum is not None:
            data |= {"budget": budget, "tokens": gates.input_tokens + gates.tokens, "checksum": checksum}
            data["index"] = plan.index
        if len(snapshot.sources) <= MOST_NAMED:
            data["source_ids"] = [source.id for source in snapshot.sources]
        data |= run_mark(tx, actor)
        event = NewEvent("memory.compacted", plan.operation, actor.id, entry_id=entry.id, data=data)
        return tx.append(event)

    def _retire(self, tx: WriteTx, actor: Actor, plan: DreamPlan, entries: Sequence[Entry], seq: int) -> int:
        reclaimed = 0
        for entry in entries:
            if plan.after is After.PURGE:
                reclaimed += purge(tx, actor, entry, operation=plan.operation)
            elif plan.after is After.ARCHIVE:
                tx.change(entry.id, seq=seq, expected=entry.version, archived=True)
            else:
                tx.change(entry.id, seq=seq, expected=entry.version, state=EntryState.DREAMT)
        return reclaimed

    def _report(
        self,
        tx: WriteTx,
        plan: DreamPlan,
        dream_id: str,
        snapshot: Snapshot,
        work: Work,
        budget: int,
        done: Distilled,
        gates: GateReport,
        text: str,
        output: Prepared,
        checksum: str | None,
        seq: int,
    ) -> DreamReport:
        statements = trace(text, done.answer)
        return DreamReport(
            id=dream_id,
            ref=plan.ref,
            position=snapshot.position,
            seq=seq,
            created_at=tx.now,
            distiller=done.distiller.name,
            fingerprint=done.distiller.fingerprint,
            after=plan.after,
            trigger=plan.trigger,
            sources=source_traces(snapshot.entries, statements, work),
            output_id=output.entry.id,
            checksum=checksum,
            budget=budget,
            input_tokens=work.input_tokens,
            output_tokens=gates.tokens,
            tokens_before=work.tokens_before,
            bytes_before=sum(entry.byte_size for entry in snapshot.sources),
            byte_size=output.entry.byte_size,
            statements=statements,
            collapsed=[(group.kept, *group.merged) for group in work.prepared.collapsed],
            about=about(snapshot.sources, tx.log_key()),
            gates=gate_document(gates),
            fell_back=done.fell_back,
            reused=done.reused,
            left_for_later=snapshot.later,
            given=0 if snapshot.entries else len(snapshot.sources),
        )

    def _keep(
        self,
        tx: WriteTx,
        actor: Actor,
        plan: DreamPlan,
        report: DreamReport,
        archive: bytes,
        work: Work,
        budget: int,
        done: Distilled,
        sources: Sequence[Entry],
        text: str,
    ) -> None:
        """Archive, report and index, in the transaction of the dream."""
        seq, checksum = report.seq, report.checksum
        save_report(tx, report, seq=seq)
        for earlier in report.superseded:
            mark(tx, earlier, "superseded", seq=seq)
        if checksum is not None and tx.load(ARCHIVE_SPACE, checksum) is None:
            tx.save(ARCHIVE_SPACE, checksum, archive, seq=seq, meta={"dream": report.id, "ref": plan.ref})
        if checksum is not None and done.distiller is not self._extractive:
            body = orjson.dumps({"checksum": checksum, "dream": report.id})
            tx.save(WORK_SPACE, self._gating.work_key(work, budget, done.distiller), body, seq=seq)
        added = []
        if checksum is not None and plan.index:
            added = [
                index_entry(
                    ref=plan.ref,
                    output_id=str(report.output_id),
                    checksum=checksum,
                    sources=[to_source(entry) for entry in sources],
                    text=text,
                    byte_size=report.byte_size,
                    budget=report.budget,
                    tokens_used=report.tokens_used,
                    output_tokens=report.output_tokens,
                    created_at=report.created_at,
                )
            ]
        quiet = checksum is not None and not plan.index  # whoever asked wants the index left alone
        if added or (not quiet and self._archives.lists(tx, report.superseded)):
            self._archives.reindex(tx, report.id, add=added, remove=report.superseded, run=actor.run)

    def _tokenizer(self) -> str:
        return self._parts.tokens.name if self._parts.tokens else ""

    def _shelve(self, actor: Actor, plan: DreamPlan, dream_id: str, snapshot: Snapshot) -> DreamReport:
        """Archive or purge the selected entries: one event each, one transaction, no text made."""
        if plan.after is After.COLD:
            raise Invalid("Without a distiller the sources are archived or purged.", pointer="/after")

        def body(tx: WriteTx) -> DreamReport:
            self._unchanged(tx, snapshot.entries)
            reclaimed, seq = 0, 0
            for entry in snapshot.entries:
                if plan.after is After.PURGE:
                    reclaimed += purge(tx, actor, entry, operation=plan.operation)
                    seq = tx.head().seq
                else:
                    data = {"ref": plan.ref, "dream": dream_id}
                    event = NewEvent("memory.archived", plan.operation, actor.id, entry_id=entry.id, data=data)
                    seq = tx.append(event)
                    tx.change(entry.id, seq=seq, expected=entry.version, archived=True)
            report = DreamReport(
                id=dream_id,
                ref=plan.ref,
                position=snapshot.position,
                seq=seq,
                created_at=tx.now,
                distiller="none",
                fingerprint="none",
                after=plan.after,
                trigger=plan.trigger,
                sources=[SourceTrace(e.id, e.version, e.state, e.archived, "retired") for e in snapshot.entries],
                output_id=None,
                checksum=None,
                budget=0,
                input_tokens=0,
                output_tokens=0,
                tokens_before=0,
                bytes_before=sum(entry.byte_size for entry in snapshot.entries),
                byte_size=0,
                reclaimed_bytes=reclaimed,
            )
            save_report(tx, report, seq=seq)
            tx.release(f"dream/{plan.ref}", dream_id)
            return report

        return self._parts.store.write(Scope(actor.tenant, plan.ref), body)


def _silent(step: str, done: int, total: int) -> None:
    """Progress nobody watches."""
