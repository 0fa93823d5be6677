"""The dream engine: plan, snapshot, distil, redact, verify, and one transaction.

Everything slow happens outside the transaction, on a snapshot. The transaction checks that no source has changed
since, then writes output, links, archive, index, report and events together. A crash before it leaves only a lease,
which expires; a crash after it leaves a whole dream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.dream import After, DreamPlan, DreamReport, Estimate, GateFailed, Nothing, TokenBudgetExceeded
from reverie.core.entry import Draft, Entry, EntryState, Link, Scope
from reverie.core.errors import Busy, Invalid, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.core.retry import retry
from reverie.core.run import mark as run_mark
from reverie.distil.archive import archive_bytes, archive_document, index_entry
from reverie.distil.plan import DREAM_KIND
from reverie.distil.probes import probe
from reverie.distil.request import DistilledText, Distiller, Extractive
from reverie.distil.value import model
from reverie.dreams.archive import ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE, Archives
from reverie.dreams.compose import Composer
from reverie.dreams.gates import Gates
from reverie.dreams.part import NotSmaller, PartDistillation, ReadyPart, tokens
from reverie.dreams.replay import Rehearsal, Replays
from reverie.dreams.report import (
    Made,
    above_target,
    leaving,
    load_report,
    mark,
    overall,
    report_of,
    roomy,
    save_report,
)
from reverie.dreams.snapshot import DISTILLED_FROM, Replan, Snapshot, Snapshots, effective_budget, unchanged
from reverie.dreams.spend import SpendGuard, SpendLimits
from reverie.memory.entries import Entries
from reverie.memory.insertion import PreparedEntry, entry_hash
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook, Rules, check_ref
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

LEASE_MS = 15 * 60_000
QUICK_LEASE_MS = 15_000
"""Lease of a dream without a model, short so that the next one does not wait long for one that was killed. A lease
only avoids wasted work: the version of an entry, checked in the transaction, decides which dream may retire it."""
MOST_NAMED = 100
"""Most sources named in the event; the links name them all."""
_TRIES = 5
Progress = Callable[[str, int, int], None]
Check = Callable[[ReadTx], None]
T = TypeVar("T")
M = TypeVar("M")
Body = Callable[[WriteTx], T]


@dataclass(frozen=True, slots=True)
class _Dream:
    """One dream in progress."""

    actor: Actor
    plan: DreamPlan
    id: str
    distiller: Distiller | None
    guard: SpendGuard
    progress: Progress
    check: Check | None
    replay: Rehearsal


class DreamEngine:
    """The only code that turns many entries into fewer.

    A protocol gives a plan to `run`. One whose outcome has its own form, or belongs to its own transaction, makes texts
    with `compose`, commits with `settle` or in its own transaction, and stores links and report with `keep`.
    """

    def __init__(
        self, parts: Services, rules: RuleBook, entries: Entries, archives: Archives, replays: Replays
    ) -> None:
        self._parts = parts
        self._replays = replays
        self._rules = rules
        self._entries = entries
        self._archives = archives
        self._extractive = Extractive()
        self._snapshots = Snapshots(parts, rules, self._extractive)
        self._spend = SpendLimits(parts)
        self._gates = Gates(parts, rules, archives, self._extractive, self._snapshots.count)
        self._part = PartDistillation(self._snapshots, self._gates, self._extractive)
        self.composer = Composer(parts, self._gates, self._extractive, self._spend)

    def load(self) -> None:
        """Load the tokenizer and the value model, which every dream needs: some 0.2 s in which no other thread runs."""
        if self._parts.tokens is not None:
            self._parts.tokens.count("")
        model()

    def plan(self, actor: Actor, plan: DreamPlan) -> Estimate:
        """Estimate the effect of `run` with this plan now. Changes nothing."""
        actor.require(Right.READ)
        check_ref(plan.ref)
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        snapshot, work = self._snapshots.weighed(actor, plan, budget, policy)
        limit = work.output_limit(budget, self._part.share(policy, snapshot, work), shrink=plan.strict)
        feasible = len(snapshot.entries) >= plan.least_entries and (
            plan.distiller == "none" or (work.minimum_required <= budget and (work.shrinks or not plan.strict))
        )
        made, least = DistilledText(""), work.minimum_required
        if feasible and work.prepared.candidates and plan.distiller != "none":
            guard = self._spend.guard(actor, "", policy)
            try:
                ready = self._first(actor, plan, budget, policy, self._extractive, guard, _silent)
            except (NotSmaller, GateFailed):
                ready = None
            if ready is not None and ready.done is not None and ready.work is not None:
                snapshot, work, made = ready.snapshot, ready.work, ready.done.answer
                limit = ready.done.limit or limit
            feasible = bool(made.text)
        hot = snapshot.hot_tokens or 0
        taken = tokens(snapshot) if made.text else 0
        return Estimate(
            ref=plan.ref,
            position=snapshot.position,
            sources=len(snapshot.sources),
            collapsed=len(snapshot.sources) - len(work.prepared.sources),
            input_tokens=work.input_tokens,
            output_tokens=max(limit, 0),
            budget=budget,
            minimum_required=least,
            left_out=dict(snapshot.left_out),
            left_for_later=snapshot.later,
            distiller=self._gates.choose(plan, policy).name if plan.distiller != "none" else "none",
            feasible=feasible,
            fates=dict(Counter(overall(own) for own in made.fates.values())),
            leaving=leaving(work.sources, made.fates),
            hot_before=hot,
            hot_after=max(hot - taken, 0) + self._snapshots.count(made.text) if made.text else hot,
        )

    def attempt(
        self, actor: Actor, plan: DreamPlan, *, progress: Progress | None = None, dream_id: str | None = None
    ) -> DreamReport | Nothing:
        """Dream as `run` does; return the reason if there is nothing to do."""
        try:
            report = self._run(actor, plan, progress, None, dream_id, None)
        except NotSmaller:
            return Nothing.CANNOT_BE_SMALLER
        return Nothing.TOO_FEW if report is None else report

    def run(
        self,
        actor: Actor,
        plan: DreamPlan,
        *,
        progress: Progress | None = None,
        distiller: Distiller | None = None,
        dream_id: str | None = None,
        check: Check | None = None,
    ) -> DreamReport | None:
        """Dream; return the report. None if there is nothing to do: fewer entries than the plan's least, or none that
        can leave.

        Atomic. Raises Busy if the ref is being dreamt already, and TokenBudgetExceeded, GateFailed or RedactionFailed
        with nothing written. `check` is called first in the transaction of the dream and may cancel it by raising.
        """
        try:
            return self._run(actor, plan, progress, distiller, dream_id, check)
        except NotSmaller:
            return None

    def _run(
        self,
        actor: Actor,
        plan: DreamPlan,
        progress: Progress | None,
        distiller: Distiller | None,
        dream_id: str | None,
        check: Check | None,
    ) -> DreamReport | None:
        actor.require(Right.DREAM)
        self._rules.check_ref(actor.tenant, plan.ref)
        if self._parts.read_only:
            raise ReadOnly()
        if actor.run is not None and not self._parts.workspace_files:
            plan = msgspec.structs.replace(plan, index=False)  # a run writes no file that is not served
        dream_id = dream_id or self._parts.ids.new()
        lease = f"dream/{plan.ref}"
        policy = self._rules.latest(actor.tenant).policy
        guard = self._spend.guard(actor, dream_id, policy)
        quick = plan.most_bytes is not None or self._gates.is_model_free(plan, policy, distiller)
        lasting = QUICK_LEASE_MS if quick else LEASE_MS + policy.model_seconds_per_dream * 1000
        until = self._parts.clock.now() + lasting
        scope = Scope(actor.tenant, plan.ref)
        if not self._parts.store.write(scope, lambda tx: tx.claim(lease, dream_id, until=until)):
            raise Busy("This memory is being dreamt right now. Its report will show the result.")
        replay = self._replays.of(actor, plan)
        dream = _Dream(actor, plan, dream_id, distiller, guard, progress or _silent, check, replay)
        report: DreamReport | None = None
        try:
            report = self.settle(actor, plan.ref, lambda: self._make(dream), lambda *made: self._store(dream, *made))
        finally:
            if report is None:  # else its transaction released the lease
                self._parts.store.write(scope, lambda tx: tx.release(lease, dream_id))
        if report is not None:
            total = len(report.sources) + report.given
            dream.progress("done", total, total)
            report = dream.replay.after(report)
        return report

    def settle(
        self, actor: Actor, ref: str, make: Callable[[], M | None], store: Callable[[M, int, Rules], Body[T]]
    ) -> T | None:
        """Call `make` outside any transaction, then `store` in one; again while a source changes in between.

        Returns the result of `store`, None if `make` returns None. `store` is given the result of `make`, the number of
        sources that changed meanwhile, and the rules of the moment. Raises Busy if sources change faster than they can
        be dreamt.
        """
        changed = 0

        def attempt(_: int) -> T | None:
            nonlocal changed
            made = make()
            if made is None:
                return None
            try:
                return self._rules.guard(
                    actor.tenant, lambda rules: store(made, changed, rules), Scope(actor.tenant, ref)
                )
            except Replan as moved:
                changed += moved.changed
                raise

        late = "This memory changes faster than it can be dreamt. Try again later."
        return retry(attempt, on=Replan, busy=lambda: Busy(late), tries=_TRIES)

    def compose(
        self,
        actor: Actor,
        ref: str,
        entries: Sequence[Entry],
        rules: Rules,
        *,
        model: bool = True,
        instructions: str | None = None,
    ) -> list[Made]:
        """Compose texts that replace these entries, all of which leave. See `Composer.texts`."""
        return self.composer.texts(actor, ref, entries, rules, model=model, instructions=instructions)

    def prepare(self, actor: Actor, ref: str, draft: Draft, rules: Rules) -> PreparedEntry:
        """Prepare a composed text as an entry, redacted and indexed like a fresh write."""
        return self._entries.prepare(actor, ref, [draft], roomy(rules))[0]

    def keep(self, tx: WriteTx, report: DreamReport, links: Mapping[str, Sequence[str]]) -> None:
        """Store the report, and links from every output to its sources, in the caller's transaction: for lineage,
        forget and undo."""
        for output, sources in links.items():
            tx.link(*(Link(output, source, DISTILLED_FROM) for source in sources))
        save_report(tx, report, seq=report.seq)

    def _make(self, dream: _Dream) -> ReadyPart | None:
        """Make the text; return it with the entries that it represents."""
        actor, plan, guard = dream.actor, dream.plan, dream.guard
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        dream.progress("snapshot", 0, 1)
        if plan.distiller == "none" or plan.most_bytes is not None:
            snapshot = self._snapshots.take(actor, plan, policy, expand=False)
            if plan.distiller == "none":
                return ReadyPart(snapshot) if snapshot.entries else None
            if len(snapshot.entries) < plan.least_entries:
                return None
            compacted = self.composer.compact(actor, plan, snapshot, dream.distiller, guard)
            return ReadyPart(*compacted) if compacted is not None else None
        chosen = dream.distiller or self._gates.choose(plan, policy)
        return self._first(actor, plan, budget, policy, chosen, guard, dream.progress)

    def _first(
        self,
        actor: Actor,
        plan: DreamPlan,
        budget: int,
        policy: TenantPolicy,
        chosen: Distiller,
        guard: SpendGuard,
        progress: Progress,
    ) -> ReadyPart | None:
        """Return the first part that can be dreamt. If none can, raises the reason of the first."""
        refused: Exception | None = None
        for snapshot, work in self._snapshots.parts(actor, plan, budget, policy):
            taken = snapshot.sources if plan.given or snapshot.fitted else snapshot.entries
            if len(taken) < plan.least_entries:
                continue
            progress("distil", 0, len(snapshot.sources))
            try:
                return self._part.ready(actor, plan, snapshot, work, budget, policy, chosen, guard)
            except (GateFailed, TokenBudgetExceeded, NotSmaller) as error:
                if not snapshot.fitted:
                    raise
                refused = refused or error  # a part that cannot be dreamt does not block the others
        if refused is not None:
            raise refused
        return None

    def _store(self, dream: _Dream, ready: ReadyPart, changed: int, rules: Rules) -> Body[DreamReport]:
        """Prepare the transaction of a dream."""
        snapshot = ready.snapshot
        if ready.done is None or ready.work is None:
            return lambda tx: self._shelve(tx, dream, snapshot)
        actor, plan, work, done = dream.actor, dream.plan, ready.work, ready.done
        total = len(snapshot.sources)
        dream.progress("commit", total, total)
        dream.replay.before()
        text, gates = self._gates.final(actor, plan, work, ready.budget, done, rules)
        archive, checksum = b"", None
        if plan.most_bytes is None:
            document = archive_document(work.sources, text, budget=ready.budget, tokenizer=self._tokenizer())
            archive, checksum = archive_bytes(document)
        made = replace(Made.of(dream.id, snapshot.sources, text, work, done, gates), budget=ready.budget)
        output = self.prepare(actor, plan.ref, made.draft(checksum=checksum, run=plan.run), rules)
        probed = probe(work.sources, text, done.answer.fates)
        cold = tokens(snapshot) if checksum is not None else 0

        def body(tx: WriteTx) -> DreamReport:
            if dream.check is not None:
                dream.check(tx)
            if tx.load(DREAM_SPACE, dream.id) is not None:  # another process that took this dream over was faster
                tx.release(f"dream/{plan.ref}", dream.id)
                return load_report(tx, dream.id)
            unchanged(tx, snapshot.entries)
            seq = self._append(tx, dream, snapshot, output.entry, made, checksum)
            tx.insert(output.entry, seq=seq, terms=output.terms, vector=output.vector, minted=True)
            earlier = [entry.id for entry in snapshot.entries if entry.kind == DREAM_KIND]
            tx.link(*(Link(output.entry.id, superseded, "supersedes") for superseded in earlier))
            reclaimed = self._retire(tx, actor, plan, snapshot.entries, seq)
            hot = snapshot.hot_tokens or 0
            report = msgspec.structs.replace(
                report_of(tx, plan, made, output.entry, retired=snapshot.entries, position=snapshot.position, seq=seq),
                checksum=checksum,
                left_for_later=snapshot.later,
                stayed=snapshot.stayed,
                given=snapshot.given,
                superseded=tuple(earlier),
                changed_meanwhile=changed,
                reclaimed_bytes=reclaimed,
                cold_tokens=cold,
                hot_before=hot,
                hot_after=max(hot - cold, 0) + gates.tokens if hot else 0,
                probes=probed.counts,
                unanswered=probed.unanswered,
                spend=dream.guard.document(),
                instructions_applied=done.distiller is not self._extractive if plan.instructions else None,
            )
            goal, reason = above_target(rules.policy, report, work.least_output)
            report = msgspec.structs.replace(report, hot_target=goal, above_target=reason)
            self.keep(tx, report, {output.entry.id: [entry.id for entry in snapshot.stored]})
            self._archive(tx, actor, plan, report, archive, ready, text)
            tx.release(f"dream/{plan.ref}", dream.id)
            return report

        return body

    def _append(
        self, tx: WriteTx, dream: _Dream, snapshot: Snapshot, output: Entry, made: Made, checksum: str | None
    ) -> int:
        plan = dream.plan
        data: dict[str, Any] = {
            "ref": plan.ref,
            "dream": dream.id,
            "hash": entry_hash(tx.log_key(), output),
            "bytes": output.byte_size,
            "sources": len(snapshot.sources),
            "trigger": plan.trigger,
            "after": plan.after.value,
        }
        if checksum is not None:
            tokens = made.input_tokens + made.output_tokens
            data |= {"budget": made.budget, "tokens": tokens, "checksum": checksum, "index": plan.index}
        if len(snapshot.sources) <= MOST_NAMED:
            data["source_ids"] = [source.id for source in snapshot.sources]
        data |= run_mark(tx, dream.actor)
        return tx.append(NewEvent("memory.compacted", plan.operation, dream.actor.id, entry_id=output.id, data=data))

    def _retire(self, tx: WriteTx, actor: Actor, plan: DreamPlan, entries: Sequence[Entry], seq: int) -> int:
        if plan.after is After.PURGE:
            return purge(tx, actor, *entries, operation=plan.operation)
        versions = {entry.id: entry.version for entry in entries}
        if plan.after is After.ARCHIVE:
            tx.change_each(versions, seq=seq, archived=True)
        else:
            tx.change_each(versions, seq=seq, state=EntryState.DREAMT)
        return 0

    def _archive(
        self,
        tx: WriteTx,
        actor: Actor,
        plan: DreamPlan,
        report: DreamReport,
        archive: bytes,
        ready: ReadyPart,
        text: str,
    ) -> None:
        """Store archive and index in the transaction of the dream."""
        seq, checksum = report.seq, report.checksum
        for earlier in report.superseded:
            mark(tx, earlier, "superseded", seq=seq)
        if checksum is not None and tx.load(ARCHIVE_SPACE, checksum) is None:
            tx.save(ARCHIVE_SPACE, checksum, archive, seq=seq, meta={"dream": report.id, "ref": plan.ref})
        work, done = ready.work, ready.done
        assert work is not None
        assert done is not None
        if checksum is not None and done.distiller is not self._extractive:
            body = orjson.dumps({"checksum": checksum, "dream": report.id})
            tx.save(WORK_SPACE, self._gates.work_key(plan, work, ready.budget, done.distiller), body, seq=seq)
        added = []
        if checksum is not None and plan.index:
            added = [
                index_entry(
                    ref=plan.ref,
                    output_id=str(report.output_id),
                    checksum=checksum,
                    sources=work.sources,
                    text=text,
                    byte_size=report.byte_size,
                    budget=report.budget,
                    tokens_used=report.tokens_used,
                    output_tokens=report.output_tokens,
                    created_at=report.created_at,
                )
            ]
        quiet = checksum is not None and not plan.index  # the plan leaves the index alone
        if added or (not quiet and self._archives.lists(tx, report.superseded)):
            self._archives.reindex(tx, report.id, add=added, remove=report.superseded, run=actor.run)

    def _tokenizer(self) -> str:
        return self._parts.tokens.name if self._parts.tokens else ""

    def _shelve(self, tx: WriteTx, dream: _Dream, snapshot: Snapshot) -> DreamReport:
        """Archive or purge the selected entries, with one event each, in one transaction; no text is made."""
        actor, plan = dream.actor, dream.plan
        if plan.after is After.COLD:
            raise Invalid("Without a distiller the sources are archived or purged.", pointer="/after")
        if dream.check is not None:
            dream.check(tx)
        unchanged(tx, snapshot.entries)
        if plan.after is After.PURGE:
            reclaimed = purge(tx, actor, *snapshot.entries, operation=plan.operation)
        else:
            reclaimed, data = 0, {"ref": plan.ref, "dream": dream.id}
            for entry in snapshot.entries:
                seq = tx.append(NewEvent("memory.archived", plan.operation, actor.id, entry_id=entry.id, data=data))
                tx.change(entry.id, seq=seq, expected=entry.version, archived=True)
        seq = tx.head().seq if snapshot.entries else 0
        made = Made(dream.id, snapshot.entries, "", distiller="none", fingerprint="none")
        report = report_of(tx, plan, made, None, retired=snapshot.entries, position=snapshot.position, seq=seq)
        report = msgspec.structs.replace(report, about={}, reclaimed_bytes=reclaimed)
        save_report(tx, report, seq=seq)
        tx.release(f"dream/{plan.ref}", dream.id)
        return report


def _silent(step: str, done: int, total: int) -> None:
    """Progress callback that does nothing."""
