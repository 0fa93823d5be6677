"""Passes over one memory that are runs of host workflows: compaction, distillation, consolidation.

Each is a plan for the dream engine (or the consolidator) under the id of its run: one transaction, one event that
names the run, and the run's secrets redacted in addition to the tenant's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.dream import DreamPlan, DreamReport, Selector, SourceText
from reverie.core.entry import Scope
from reverie.core.errors import Busy, Invalid
from reverie.core.run import COMPACT, CONSOLIDATE, DISTILL
from reverie.distil.request import SuppliedText
from reverie.dreams.archive import Archives
from reverie.dreams.consolidate import Consolidated, Consolidator
from reverie.dreams.engine import Check, DreamEngine
from reverie.memory.policy import RuleBook, check_ref
from reverie.memory.read import Reader
from reverie.services import Services

T = TypeVar("T")
Secrets = Sequence[tuple[str, str]]
"""(id, value) of each secret a run knows; one id may have several values."""
WORKFLOWS = (COMPACT, DISTILL, CONSOLIDATE)
"""The workflows of the host itself; their inputs are `{"memoryRef": ...}`."""
MOST_ENTRIES = 1000
"""Maximum number of entries in one compaction, which takes the oldest."""
BUDGET_KEY = "distillation.tokenBudget"
_PATIENCE_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 0.05


class PassResult(Struct, frozen=True):
    """Result of a compaction or distillation, for callers that may read text."""

    run_id: str
    report: DreamReport
    content: str
    """The text as stored."""
    archive: Mapping[str, Any] | None = None


class PassRunner:
    """Runs one pass now. While another pass holds the memory, it waits, at most 20 seconds."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        reader: Reader,
        dreams: DreamEngine,
        consolidator: Consolidator,
        archives: Archives,
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._reader = reader
        self._dreams = dreams
        self._consolidator = consolidator
        self._archives = archives

    def compact(
        self,
        actor: Actor,
        ref: str,
        *,
        run_id: str | None = None,
        max_input: int | None = None,
        max_output_bytes: int | None = None,
        secrets: Secrets | None = None,
        summarizer_output: str | None = None,
        as_of: int | None = None,
        check: Check | None = None,
    ) -> PassResult | None:
        """Collapse many entries into one. None when fewer than two live entries can be taken, or another pass stays
        busy.

        Must-keep statements are in the output. Entries that do not fit into `max_output_bytes` are left for a later
        run. `summarizer_output` replaces the joined sources before redaction. `check` is called in the transaction;
        an exception from it cancels the pass. Raises RedactionFailed with nothing stored.
        """
        run = run_id or self._parts.ids.new()
        plan = DreamPlan(
            ref=ref,
            operation="COMPACT",
            run=run,
            index=False,
            most_entries=_integer("maxInputEntries", max_input, least=1, most=MOST_ENTRIES),
            most_bytes=_integer("maxOutputBytes", max_output_bytes, least=1, most=self.most_bytes(actor)),
            originals=False,
            strict=False,
            as_of=as_of,
        )
        return self._dream(actor, plan, run, secrets, summarizer_output, check)

    def distil(
        self,
        actor: Actor,
        ref: str,
        *,
        run_id: str | None = None,
        budget: int | None = None,
        sources: Sequence[SourceText] | None = None,
        index: bool = True,
        secrets: Secrets | None = None,
        summarizer_output: str | None = None,
        as_of: int | None = None,
        check: Check | None = None,
    ) -> PassResult | None:
        """Distil a memory (or `sources` instead) within a token budget. None when there is nothing to distil.

        Raises TokenBudgetExceeded with nothing changed.
        """
        run = run_id or self._parts.ids.new()
        if budget is not None:
            check_budget(budget)
        plan = DreamPlan(
            ref=ref,
            selector=Selector() if sources is None else None,
            given=tuple(sources or ()),
            operation="DISTILL",
            budget=budget,
            run=run,
            index=index,
            least_entries=1,
            originals=False,
            strict=False,
            as_of=as_of,
        )
        return self._dream(actor, plan, run, secrets, summarizer_output, check)

    def consolidate(
        self,
        actor: Actor,
        ref: str,
        *,
        run_id: str | None = None,
        trigger: str = "on-demand",
        as_of: int | None = None,
        check: Check | None = None,
    ) -> Consolidated:
        """Reconcile a memory. The event is appended even when nothing changed; its two counts are then equal."""
        runner = replace(actor, run=run_id or self._parts.ids.new())
        consolidate = partial(self._consolidator.run, runner, ref, trigger=trigger, as_of=as_of, check=check)
        return self._patiently(actor, consolidate, check)

    def check(self, workflow_id: str, inputs: Mapping[str, Any], configurable: Mapping[str, Any]) -> None:
        """Raise Invalid for inputs or options that no run of this workflow can use."""
        ref = inputs.get("memoryRef")
        if not isinstance(ref, str):
            raise Invalid("Name the memory: inputs.memoryRef.", pointer="/inputs/memoryRef")
        check_ref(ref)
        if workflow_id == DISTILL:
            budget_option(configurable)
            _index_option(inputs)
        if workflow_id == COMPACT:
            _integer("maxInputEntries", inputs.get("maxInputEntries"), least=1, most=MOST_ENTRIES)
            _integer("maxOutputBytes", inputs.get("maxOutputBytes"), least=1, most=2**31)

    def execute(
        self,
        actor: Actor,
        workflow_id: str,
        inputs: Mapping[str, Any],
        configurable: Mapping[str, Any],
        run_id: str,
        snapshot_seq: int | None,
        *,
        check: Check | None = None,
    ) -> dict[str, Any]:
        """Execute one run of a host workflow and return its variables. Errors of the pass are raised, with nothing
        changed.
        """
        self.check(workflow_id, inputs, configurable)
        ref = str(inputs["memoryRef"])
        if workflow_id == CONSOLIDATE:
            done = self.consolidate(actor, ref, run_id=run_id, as_of=snapshot_seq, check=check)
            return {"memoryRef": ref, "inputCount": done.input_count, "outputCount": done.output_count}
        if workflow_id == DISTILL:
            passed = self.distil(
                actor,
                ref,
                run_id=run_id,
                budget=budget_option(configurable),
                index=_index_option(inputs),
                as_of=snapshot_seq,
                check=check,
            )
        elif workflow_id == COMPACT:
            passed = self.compact(
                actor,
                ref,
                run_id=run_id,
                max_input=inputs.get("maxInputEntries"),
                max_output_bytes=inputs.get("maxOutputBytes"),
                as_of=snapshot_seq,
                check=check,
            )
        else:
            raise Invalid("There is no such workflow.", pointer="/workflowId")
        if passed is None:
            return {"memoryRef": ref, "sourceCount": 0}
        report = passed.report
        variables = {"memoryRef": ref, "outputId": report.output_id, "byteSize": report.byte_size}
        variables["sourceCount"] = source_count(report)
        if report.checksum is not None:
            variables |= {"archiveChecksum": report.checksum, "tokenBudget": report.budget}
            variables["tokensUsed"] = report.tokens_used
        return variables

    def most_bytes(self, actor: Actor) -> int:
        """The largest output of a compaction: as large as an entry may be."""
        return self._rules.current(actor.tenant).policy.max_entry_bytes

    def _dream(
        self,
        actor: Actor,
        plan: DreamPlan,
        run: str,
        secrets: Secrets | None,
        supplied: str | None,
        check: Check | None,
    ) -> PassResult | None:
        actor.require(Right.DREAM)
        self._rules.check_ref(actor.tenant, plan.ref)
        runner = replace(actor, run=run)
        distiller = None if supplied is None else SuppliedText(supplied, work=run)
        if secrets:
            self._rules.register_run(actor, run, secrets)
        try:
            dream = partial(self._dreams.run, runner, plan, distiller=distiller, dream_id=run, check=check)
            report = self._patiently(actor, dream, check)
        except Busy:
            if plan.most_bytes is None:
                raise
            return None  # another pass is at work: there is nothing to do here
        finally:
            if secrets:
                self._rules.end_run(actor, run)
        if report is None:
            return None
        entry = self._reader.get(actor, plan.ref, str(report.output_id), cold=True)
        archive = None
        if report.checksum is not None:
            archive = orjson.loads(self._archives.get(actor, report.checksum))
        return PassResult(run, report, entry.content, archive)

    def _patiently(self, actor: Actor, attempt: Callable[[], T], check: Check | None) -> T:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return attempt()
            except Busy:
                if time.monotonic() >= until:
                    raise
            if check is not None:
                self._parts.store.read(Scope(actor.tenant), check)
            time.sleep(_LOOK_AGAIN_SECONDS)


def source_count(report: DreamReport) -> int:
    """Count the entries or texts that became one."""
    return len(report.sources) or int(report.given)


def budget_option(configurable: Mapping[str, Any]) -> int | None:
    """The token budget in a run's options, under the dotted key or nested; None when absent."""
    value = configurable.get(BUDGET_KEY)
    if value is None:
        nested = configurable.get("distillation")
        value = nested.get("tokenBudget") if isinstance(nested, dict) else None
    if value is not None:
        check_budget(value)
    return value


def _index_option(inputs: Mapping[str, Any]) -> bool:
    """Whether a run writes the index: it does unless its inputs say otherwise."""
    value = inputs.get("indexEmitted", True)
    if not isinstance(value, bool):
        raise Invalid("inputs.indexEmitted is true or false.", pointer="/inputs/indexEmitted")
    return value


def check_budget(value: Any) -> None:
    """Refuse a value that is not a token budget."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Invalid("A token budget is a whole number of at least 1.", pointer="/tokenBudget")


def _integer(name: str, value: Any, *, least: int, most: int) -> int:
    """`value` as a whole number, never above `most`; `most` when it is not given."""
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Invalid(f"{name} is a whole number of at least {least}.", pointer=f"/{name}")
    return min(value, most)
