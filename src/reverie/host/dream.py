"""The dream engine: plan, snapshot, distil, redact, verify, and one transaction.

Everything slow happens outside the transaction, on a snapshot. The transaction checks that every source is still as
it was seen, then writes output, links, archive, index, report and events together. A crash before it leaves only a
lease that ends by itself; a crash after it leaves a whole dream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.dream import (
    After,
    DreamPlan,
    DreamReport,
    Estimate,
    GateFailed,
    ModelFailed,
    RedactionFailed,
    SourceTrace,
    SpendExceeded,
    StatementTrace,
    TokenBudgetExceeded,
)
from reverie.core.entry import READABLE, Draft, Entry, EntryState, Link, Scope, Source
from reverie.core.errors import Busy, Invalid, NotFound, ReadOnly, ReverieError
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.dream.archive import archive_bytes, archive_document, index_entry, work_key
from reverie.dream.leaks import clean
from reverie.dream.mustkeep import find
from reverie.dream.plan import DREAM_KIND, Work, admit, oldest_that_fit, require, to_source, weigh
from reverie.dream.request import Answer, Distiller, Extractive, Request
from reverie.dream.source import Source as Told
from reverie.dream.source import Statement
from reverie.dream.verify import GateReport, verify
from reverie.host.archives import ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE, Archives
from reverie.host.lifecycle import purge
from reverie.host.parts import Parts
from reverie.host.read import ANYTHING
from reverie.host.rules import RuleBook, Rules
from reverie.host.spend import SpendGuard, Spending
from reverie.host.write import SUBJECT_TAG, Prepared, Writing, check_ref, entry_hash
from reverie.redact.markers import CANONICAL
from reverie.store.contract import ReadTx, WriteTx

LEASE_MS = 15 * 60_000
MOST_NAMED = 100
"""Up to this many sources are named in the event; the links name them all."""
_TRIES = 5
_PAGE = 1000
Progress = Callable[[str, int, int], None]
_DISTILLED_FROM = "distilled-from"
FATES = {"quoted": "kept", "shortened": "shortened", "merged": "merged"}
"""What became of a source, by how its statement was made."""


class Replan(Exception):
    """A source changed while the dream was on its way."""

    def __init__(self, changed: int) -> None:
        super().__init__(changed)
        self.changed = changed


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


@dataclass(frozen=True, slots=True)
class Distilled:
    """A text that passed the gates."""

    answer: Answer
    text: str
    gates: GateReport
    distiller: Distiller
    fell_back: str | None = None
    reused: bool = False


class Dreaming:
    """The only code that turns many entries into fewer."""

    def __init__(self, parts: Parts, rules: RuleBook, writing: Writing, archives: Archives) -> None:
        self._parts = parts
        self._rules = rules
        self._writing = writing
        self._archives = archives
        self._extractive = Extractive()
        self._models = parts.distillers
        self._model_names = frozenset({"llm", *parts.distillers})
        self._spending = Spending(parts)

    # planning

    def plan(self, actor: Actor, plan: DreamPlan) -> Estimate:
        """What `run` would do with this plan now. Touches nothing."""
        actor.require(Right.READ)
        check_ref(plan.ref)
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        snapshot, work = self._weighed(actor, plan, budget, policy)
        limit = work.output_limit(budget, policy.dream_percent)
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
            distiller=self._distiller(plan, policy).name if plan.distiller != "none" else "none",
            feasible=len(snapshot.entries) >= plan.least_entries
            and (plan.distiller == "none" or (work.minimum_required <= budget and work.shrinks)),
        )

    def _weighed(self, actor: Actor, plan: DreamPlan, budget: int, policy: TenantPolicy) -> tuple[Snapshot, Work]:
        """A snapshot and what distilling it takes: from originals if they fit, else from earlier dreams' own text."""
        snapshot = self._snapshot(actor, plan, policy, budget, expand=not plan.fit)
        work = self._weigh(snapshot)
        if work.minimum_required > budget and len(snapshot.sources) != len(snapshot.entries):
            again = self._snapshot(actor, plan, policy, budget, expand=False)
            lighter = self._weigh(again)
            if lighter.minimum_required < work.minimum_required:
                return again, lighter
        return snapshot, work

    def _weigh(self, snapshot: Snapshot) -> Work:
        return weigh([to_source(entry) for entry in snapshot.sources], self._extractive.engine, self._count)

    def _count(self, text: str) -> int:
        if self._parts.tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        return self._parts.tokens.count(text)

    def _snapshot(self, actor: Actor, plan: DreamPlan, policy: TenantPolicy, budget: int, *, expand: bool) -> Snapshot:
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
            taken, left_out = admit(found, plan.selector, now=tx.now, epoch=head.epoch + 1)
            trusted = [entry for entry in taken if entry.source.trust >= policy.dream_trust]
            if len(trusted) < len(taken):
                left_out["trust"] += len(taken) - len(trusted)
            taken, later = (trusted, 0) if not plan.fit else self._fitting(trusted, plan, budget, policy, left_out)
            sources = _originals(tx, taken) if expand else taken
            return Snapshot(head.seq, taken, sources, left_out, later)

        return self._parts.store.read(Scope(actor.tenant, plan.ref), body)

    def _fitting(
        self, entries: list[Entry], plan: DreamPlan, budget: int, policy: TenantPolicy, left_out: dict[str, int]
    ) -> tuple[list[Entry], int]:
        """The oldest part that fits; fresh entries first, earlier dreams only when nothing fresh is left to take."""
        fresh = [entry for entry in entries if entry.kind != DREAM_KIND]
        pool = fresh if len(fresh) >= plan.least_entries else entries
        told = [to_source(entry) for entry in pool]
        part, oversize = oldest_that_fit(told, budget, policy.dream_percent, self._count)
        if oversize:
            left_out["oversize"] = oversize
        chosen = {source.id for source in part}
        return [entry for entry in pool if entry.id in chosen], len(pool) - len(part) - oversize

    # running

    def run(
        self,
        actor: Actor,
        plan: DreamPlan,
        *,
        progress: Progress | None = None,
        distiller: Distiller | None = None,
        dream_id: str | None = None,
    ) -> DreamReport | None:
        """Dream. None when there is nothing to do (fewer entries than the plan's least).

        All of it happens, or nothing. Raises Busy when the ref is being dreamt already, TokenBudgetExceeded,
        GateFailed or RedactionFailed with nothing written.
        """
        actor.require(Right.DREAM)
        check_ref(plan.ref)
        if self._parts.read_only:
            raise ReadOnly()
        dream_id = dream_id or self._parts.ids.new()
        lease = f"dream/{plan.ref}"
        policy = self._rules.current(actor.tenant).policy
        guard = self._spending.guard(actor, dream_id, policy)
        until = self._parts.clock.now() + LEASE_MS + policy.model_seconds_per_dream * 1000
        scope = Scope(actor.tenant, plan.ref)
        if not self._parts.store.write(scope, lambda tx: tx.claim(lease, dream_id, until=until)):
            raise Busy("This memory is being dreamt right now. Its report will show the result.")
        try:
            changed = 0
            for _ in range(_TRIES):
                try:
                    return self._attempt(actor, plan, dream_id, changed, progress or _silent, distiller, guard)
                except Replan as moved:
                    changed += moved.changed
            raise Busy("This memory changes faster than it can be dreamt. Try again later.")
        finally:
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
    ) -> DreamReport | None:
        policy = self._rules.current(actor.tenant).policy
        budget = effective_budget(plan.budget, policy)
        progress("snapshot", 0, 1)
        if plan.distiller == "none":
            snapshot = self._snapshot(actor, plan, policy, budget, expand=False)
            return self._shelve(actor, plan, dream_id, snapshot) if snapshot.entries else None
        snapshot, work = self._weighed(actor, plan, budget, policy)
        if len(snapshot.entries) < plan.least_entries:
            return None
        require(work, budget)
        if not work.shrinks:
            raise GateFailed(
                "This memory cannot be made smaller without losing what must be kept.", details={"gates": ["smaller"]}
            )
        progress("distil", 0, len(snapshot.sources))
        chosen = distiller or self._distiller(plan, policy)
        done = self._distil(actor, plan, work, budget, policy, chosen, guard)
        progress("commit", len(snapshot.sources), len(snapshot.sources))
        report = self._commit(actor, plan, dream_id, snapshot, work, budget, done, changed, guard)
        progress("done", len(snapshot.sources), len(snapshot.sources))
        return report

    def _distiller(self, plan: DreamPlan, policy: TenantPolicy) -> Distiller:
        name = plan.distiller if plan.distiller != "extractive" else policy.dream_distiller
        if name == "extractive":
            return self._extractive
        model = self._models.get(name)
        if model is None:
            has = ", ".join(["extractive", *sorted(self._models)])
            raise Invalid(f"This host has no distiller '{name[:32]}'. It has: {has}.", pointer="/distiller")
        return model

    def _distil(
        self,
        actor: Actor,
        plan: DreamPlan,
        work: Work,
        budget: int,
        policy: TenantPolicy,
        distiller: Distiller,
        guard: SpendGuard,
    ) -> Distilled:
        """A text that passes the gates: one repair, then (for a model, by policy) the model-free distiller."""
        may_fall_back = distiller.name in self._model_names and policy.model_fallback == "extractive"
        try:
            return self._gated(actor, plan, work, budget, policy, distiller, guard)
        except (GateFailed, RedactionFailed, SpendExceeded, ModelFailed) as refused:
            if not may_fall_back:
                raise
            reason = why_not(refused)
        except ReverieError:
            raise
        except Exception as fault:  # a distiller that breaks never costs a dream, nor shows what it was working on
            reason = type(fault).__name__
        if not may_fall_back:
            raise ReverieError(f"The distiller failed ({reason}). Nothing was stored.", code="distiller_failed")
        done = self._gated(actor, plan, work, budget, policy, self._extractive, guard)
        return replace(done, fell_back=reason)

    def _gated(
        self,
        actor: Actor,
        plan: DreamPlan,
        work: Work,
        budget: int,
        policy: TenantPolicy,
        distiller: Distiller,
        guard: SpendGuard,
    ) -> Distilled:
        def cleaned(text: str) -> str:
            return self._clean(actor, text, plan.run, self._rules.current(actor.tenant))

        must_keep = find(work.prepared.sources)
        limit = work.output_limit(budget, policy.dream_percent)
        earlier = self._earlier(actor, work, budget, distiller)
        complaints: tuple[str, ...] = ()
        for attempt in range(2):
            request = Request(work, limit, self._count, must_keep, complaints, cleaned, guard)
            answer = earlier if earlier is not None and attempt == 0 else honest(distiller.distil(request), work)
            text = cleaned(answer.text)
            gates = self._verify(work, text, budget, cleaned if text != answer.text else None)
            leaks = distiller.name in self._model_names and new_markers(text, work.sources, cleaned)
            if gates.passed and text.strip() and not leaks:
                return Distilled(answer, text, gates, distiller, reused=answer is earlier)
            complaints = gates.failures if text.strip() else ("empty",)
            if leaks:
                complaints = ("secret", *complaints)
            over = gates.tokens + work.input_tokens - budget
            limit = max(work.least_output, limit - max(over, 0))
        details = {"gates": list(complaints), "missing": len(gates.missing)}
        if "secret" in complaints:
            raise RedactionFailed(details=details)
        raise GateFailed(
            f"The distilled text did not pass: {', '.join(complaints)}. Nothing was stored.", details=details
        )

    def _verify(self, work: Work, text: str, budget: int, cleaned: Callable[[str], str] | None) -> GateReport:
        """The gates. A text that had to be cleaned is held against sources that are clean in the same way.

        A secret that was registered after a source was stored is still in that source, and its marker in the text is
        then nothing new.
        """
        sources, kept = work.sources, work.prepared.sources
        if cleaned is not None:
            sources = tuple(replace(source, content=cleaned(source.content)) for source in sources)
            told = {source.id: source for source in sources}
            kept = tuple(told[source.id] for source in kept)
        return verify(
            sources, text, must_keep=find(kept), budget=budget, input_tokens=work.input_tokens, count=self._count
        )

    def _clean(self, actor: Actor, text: str, run: str | None, rules: Rules) -> str:
        """The same redactor as a fresh write, over the whole text; never skipped because the sources were clean."""
        return clean(text, self._parts.redactor, self._rules.known(actor.tenant, run, rules))

    def _earlier(self, actor: Actor, work: Work, budget: int, distiller: Distiller) -> Answer | None:
        """The answer an identical piece of work had, so that even a model's output is stable."""
        if distiller is self._extractive:
            return None
        key = self._work_key(work, budget, distiller)
        return self._archives.answer(actor, key)

    def _work_key(self, work: Work, budget: int, distiller: Distiller) -> str:
        tokenizer = self._parts.tokens.name if self._parts.tokens else ""
        return work_key(work.sources, budget=budget, fingerprint=distiller.fingerprint, tokenizer=tokenizer)

    # committing

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
            text = self._clean(actor, done.text, plan.run, rules)
            gates = done.gates
            if text != done.text:  # the rules know more than when the text was checked
                gates = self._verify(work, text, budget, lambda t: self._clean(actor, t, plan.run, rules))
                if not gates.passed:
                    raise GateFailed(details={"gates": list(gates.failures)})
            document = archive_document(work.sources, text, budget=budget, tokenizer=self._tokenizer())
            archive, checksum = archive_bytes(document)
            draft = output_draft(text, snapshot.sources, dream_id=dream_id, checksum=checksum)
            output = self._writing.prepare(actor, plan.ref, [draft], roomy(rules))[0]

            def body(tx: WriteTx) -> DreamReport:
                self._unchanged(tx, snapshot.entries)
                seq = self._append(tx, actor, plan, dream_id, snapshot, output, budget, gates, checksum)
                tx.insert(output.entry, seq=seq, terms=output.terms, vector=output.vector, minted=True)
                for entry in snapshot.sources:
                    tx.link(Link(output.entry.id, entry.id, _DISTILLED_FROM))
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
                self._keep(tx, plan, report, archive, work, budget, done, snapshot.sources, text)
                tx.release(f"dream/{plan.ref}", dream_id)
                return report

            return body

        return self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant, plan.ref))

    def _unchanged(self, tx: WriteTx, entries: Sequence[Entry]) -> None:
        """Every source is still the version that was read, still readable, not pinned or held since."""
        changed = 0
        for entry in entries:
            current = tx.get(entry.id, where=ANYTHING)
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
        checksum: str,
    ) -> int:
        entry = output.entry
        data: dict[str, Any] = {
            "ref": plan.ref,
            "dream": dream_id,
            "hash": entry_hash(tx.log_key(), entry),
            "bytes": entry.byte_size,
            "sources": len(snapshot.sources),
            "trigger": plan.trigger,
            "budget": budget,
            "tokens": gates.input_tokens + gates.tokens,
            "checksum": checksum,
            "index": plan.index,
            "after": plan.after.value,
        }
        if len(snapshot.sources) <= MOST_NAMED:
            data["source_ids"] = [source.id for source in snapshot.sources]
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
        checksum: str,
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
        )

    def _keep(
        self,
        tx: WriteTx,
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
        seq, checksum = report.seq, str(report.checksum)
        if tx.load(ARCHIVE_SPACE, checksum) is None:
            tx.save(ARCHIVE_SPACE, checksum, archive, seq=seq, meta={"dream": report.id, "ref": plan.ref})
        if done.distiller is not self._extractive:
            body = orjson.dumps({"checksum": checksum, "dream": report.id})
            tx.save(WORK_SPACE, self._work_key(work, budget, done.distiller), body, seq=seq)
        save_report(tx, report, seq=seq)
        for earlier in report.superseded:
            mark(tx, earlier, "superseded", seq=seq)
        if plan.index:
            added = index_entry(
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
            self._archives.reindex(tx, report.id, add=[added], remove=report.superseded)

    def _tokenizer(self) -> str:
        return self._parts.tokens.name if self._parts.tokens else ""

    # without a distiller

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


def effective_budget(asked: int | None, policy: TenantPolicy) -> int:
    """What was asked, clamped to the tenant's most; the most when nothing was asked."""
    if asked is None:
        return policy.dream_budget
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise Invalid("A token budget is a whole number of at least 1.", pointer="/budget")
    return min(asked, policy.dream_budget)


def why_not(refused: ReverieError) -> str:
    """Why a model's work was not used, in a word or two: for the report."""
    if isinstance(refused, SpendExceeded):
        return f"spend: {refused.details.get('limit', 'limit')}"
    if isinstance(refused, ModelFailed):
        return f"model: {refused.details.get('fault', 'failed')}"
    if isinstance(refused, RedactionFailed):
        return "redaction"
    return f"gates: {', '.join(refused.details.get('gates', ()))}"


def honest(answer: Answer, work: Work) -> Answer:
    """An answer as far as it can be believed: text that can be stored, statements of sources there are.

    Ids and words of a distiller's own making would reach the report, which passes no redactor.
    """
    known = set(work.prepared.source_ids)
    statements = []
    for statement in answer.statements:
        ids = tuple(i for i in statement.source_ids if i in known)
        if ids:
            how = statement.how if statement.how in FATES else "merged"
            statements.append(Statement(storable(statement.text), ids, how, max(int(statement.count), 1)))
    return Answer(storable(answer.text), statements)


def storable(text: str) -> str:
    """Text without what no store takes: null characters and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def new_markers(text: str, sources: Sequence[Told], cleaned: Callable[[str], str]) -> bool:
    """Whether a clean text has a marker that no source has: its writer made up a secret, or knew one.

    Redaction made it harmless; but a model that tells secrets is not believed in the rest of its sentence.
    """
    found = set(CANONICAL.findall(text.encode("utf-8", "surrogatepass")))
    for source in sources:
        if not found:
            break
        found -= set(CANONICAL.findall(cleaned(source.content).encode("utf-8", "surrogatepass")))
    return bool(found)


def roomy(rules: Rules) -> Rules:
    """The rules without the entry size limit: a dream may be longer than one entry may be."""
    return replace(rules, policy=rules.policy.changed({"max_entry_bytes": 16 * 2**20, "max_tags": 100_000}))


def output_draft(text: str, sources: Sequence[Entry], *, dream_id: str, checksum: str) -> Draft:
    """The entry a dream becomes: no more trusted than its weakest source, about everyone its sources are about."""
    subjects = {entry.subject for entry in sources}
    about = sorted({tag for entry in sources for tag in entry.tags if tag.startswith(SUBJECT_TAG)})
    about += [
        SUBJECT_TAG + subject for subject in sorted(s for s in subjects if s) if SUBJECT_TAG + subject not in about
    ]
    expiries = [entry.expires_at for entry in sources]
    sessions = {entry.source.session for entry in sources}
    return Draft(
        content=text,
        kind=DREAM_KIND,
        tags=(*about, f"compacted-from:{dream_id}", f"archive:{checksum}"),
        subject=next(iter(subjects)) if len(subjects) == 1 else None,
        attributes={"dream": dream_id, "sources": len(sources)},
        source=Source(
            session=next(iter(sessions)) if len(sessions) == 1 else None,
            trust=min(entry.source.trust for entry in sources),
        ),
        expires_at=max(e for e in expiries if e is not None) if all(e is not None for e in expiries) else None,
    )


def subjects_of(entry: Entry) -> list[str]:
    """Whom an entry is about: its field, and its `subject:` tags."""
    tagged = [tag.removeprefix(SUBJECT_TAG) for tag in entry.tags if tag.startswith(SUBJECT_TAG)]
    return [*([entry.subject] if entry.subject else []), *tagged]


def about(entries: Sequence[Entry], key: bytes) -> dict[str, list[str]]:
    """The keyed hashes of whom each entry is about."""
    found = {entry.id: [keyed_hash(key, subject) for subject in subjects_of(entry)] for entry in entries}
    return {entry_id: hashes for entry_id, hashes in found.items() if hashes}


def trace(text: str, answer: Answer) -> list[StatementTrace]:
    """The line of each statement in the final text. A statement that redaction changed is traced by its place."""
    traces = []
    at = 0
    for statement in answer.statements:
        found = text.find(statement.text, at)
        if found >= 0:
            at = found
        line = text.count("\n", 0, at)
        traces.append(StatementTrace(line, statement.source_ids, statement.how, statement.count))
    return traces


def source_traces(entries: Sequence[Entry], statements: Sequence[StatementTrace], work: Work) -> list[SourceTrace]:
    """What became of each retired entry."""
    fate: dict[str, str] = {}
    for statement in statements:
        for source_id in statement.sources:
            fate.setdefault(source_id, FATES[statement.how])
    for group in work.prepared.collapsed:
        for merged in group.merged:
            fate[merged] = "merged"
    return [SourceTrace(e.id, e.version, e.state, e.archived, fate.get(e.id, "retired")) for e in entries]


def gate_document(gates: GateReport) -> dict[str, Any]:
    """The gates as stored: counts and verdicts, no text."""
    states = [kept.state for kept in gates.must_keep]
    return {
        "passed": gates.passed,
        "must_keep": {name: states.count(name) for name in ("kept", "quoted", "missing")},
        "invented": len(gates.invented),
        "negations_flipped": len(gates.flipped),
        "smaller": gates.smaller,
        "within_budget": gates.within_budget,
    }


def save_report(tx: WriteTx, report: DreamReport, *, seq: int) -> None:
    """Store a report as it is now."""
    tx.save(DREAM_SPACE, report.id, msgspec.json.encode(report), seq=seq, meta={"ref": report.ref}, keep=1)


def load_report(tx: ReadTx, dream_id: str) -> DreamReport:
    """A stored report. Raises NotFound."""
    document = tx.load(DREAM_SPACE, dream_id)
    if document is None or document.body is None:
        raise NotFound("There is no dream of that id. `reverie dream list` shows them.")
    return msgspec.json.decode(document.body, type=DreamReport)


def mark(tx: WriteTx, output_id: str, state: str, *, seq: int) -> None:
    """Set the state of the dream that made an entry."""
    entry = tx.get(output_id, where=ANYTHING)
    dream_id = str(entry.attributes.get("dream", "")) if entry else ""
    document = tx.load(DREAM_SPACE, dream_id) if dream_id else None
    if document is not None and document.body is not None:
        report = msgspec.json.decode(document.body, type=DreamReport)
        save_report(tx, msgspec.structs.replace(report, state=state), seq=seq)


def _originals(tx: ReadTx, entries: Sequence[Entry]) -> list[Entry]:
    """Entries with earlier dreams replaced by their originals, where all of those still rest in cold storage."""
    sources: dict[str, Entry] = {}
    for entry in entries:
        found: list[Entry] = []
        if entry.kind == DREAM_KIND:
            links = tx.links(entry.id, type=_DISTILLED_FROM)
            for link in links:
                original = tx.get(link.to_id, where=msgspec.structs.replace(ANYTHING, expired=False))
                if original is not None and original.state is not EntryState.ERASED:
                    found.append(original)
            if not links or len(found) < len(links):
                found = []
        for source in found or [entry]:
            sources[source.id] = source
    return sorted(sources.values(), key=lambda source: (source.created_at, source.id))


def _silent(step: str, done: int, total: int) -> None:
    """Progress nobody watches."""


__all__ = ["Dreaming", "Replan", "Snapshot", "TokenBudgetExceeded", "Told", "effective_budget", "load_report"]
