"""From sources to a text that may be stored: distilled, redacted, and through the gates. Outside any transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, GateFailed, ModelFailed, RedactionFailed, SpendExceeded
from reverie.core.entry import Entry
from reverie.core.errors import Invalid, ReverieError
from reverie.core.policy import TenantPolicy
from reverie.distil.archive import work_key
from reverie.distil.compaction import ELLIPSIS, compacted, cut, joined, size, unweighed
from reverie.distil.gates import GateReport, verify
from reverie.distil.leaks import clean
from reverie.distil.must_keep import find
from reverie.distil.plan import Work, to_source
from reverie.distil.request import Answer, Distiller, Extractive, Request
from reverie.distil.source import Source as Told
from reverie.distil.source import Statement
from reverie.dreams.archive import Archives
from reverie.dreams.spend import SpendGuard
from reverie.memory.policy import RuleBook, Rules
from reverie.redact.markers import CANONICAL
from reverie.services import Services

_MARKER = re.compile(CANONICAL.pattern.decode())
FATES = {"quoted": "kept", "shortened": "shortened", "merged": "merged", "rolled": "merged"}
"""What became of a source, by how its statement was made."""


@dataclass(frozen=True, slots=True)
class Distilled:
    """A text that passed the gates."""

    answer: Answer
    text: str
    gates: GateReport
    distiller: Distiller
    fell_back: str | None = None
    reused: bool = False


class Gates:
    """Chooses the distiller and lets through only what passes."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        archives: Archives,
        extractive: Extractive,
        count: Callable[[str], int],
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._archives = archives
        self._extractive = extractive
        self._count = count
        self._models = parts.distillers
        self._model_names = frozenset({"llm", *parts.distillers})

    def choose(self, plan: DreamPlan, policy: TenantPolicy) -> Distiller:
        """The distiller a plan asks for, or the tenant's."""
        name = plan.distiller if plan.distiller != "extractive" else policy.dream_distiller
        if name == "extractive":
            return self._extractive
        model = self._models.get(name)
        if model is None:
            has = ", ".join(["extractive", *sorted(self._models)])
            raise Invalid(f"This host has no distiller '{name[:32]}'. It has: {has}.", pointer="/distiller")
        return model

    def distil(
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
            return self.clean(actor, text, plan.run, self._rules.current(actor.tenant))

        if not plan.strict and distiller.name not in self._model_names:
            return self._ungated(work, budget, policy, distiller, guard, cleaned)
        must_keep = find(work.prepared.sources)
        limit = work.output_limit(budget, policy.dream_percent)
        earlier = self._earlier(actor, work, budget, distiller)
        complaints: tuple[str, ...] = ()
        for attempt in range(2):
            request = Request(work, limit, self._count, must_keep, complaints, cleaned, guard)
            answer = earlier if earlier is not None and attempt == 0 else honest(distiller.distil(request), work)
            text = cleaned(answer.text)
            gates = self.verify(work, text, budget, cleaned if text != answer.text else None)
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

    def _ungated(
        self,
        work: Work,
        budget: int,
        policy: TenantPolicy,
        distiller: Distiller,
        guard: SpendGuard,
        cleaned: Callable[[str], str],
    ) -> Distilled:
        """Redacted and within the budget: all that is asked of a text when the plan is not strict."""
        limit = work.output_limit(budget, policy.dream_percent, shrink=False)
        must_keep = find(work.prepared.sources)
        answer = honest(distiller.distil(Request(work, limit, self._count, must_keep, (), cleaned, guard)), work)
        text = cleaned(answer.text)
        if not text.strip():
            text = cleaned(joined(work.sources)) if any(s.content.strip() for s in work.sources) else ELLIPSIS
        room = budget - work.input_tokens
        text = cut(text, room, self._count)
        if distiller is self._extractive:
            text = with_markers(text, work.sources, room, self._count)
        return Distilled(answer, text, self.unasked(work, text, budget), distiller)

    def unasked(self, work: Work, text: str, budget: int) -> GateReport:
        """The report of gates that were not asked: only the tokens."""
        return GateReport(self._count(text), work.input_tokens, budget, (), (), ())

    def verify(self, work: Work, text: str, budget: int, cleaned: Callable[[str], str] | None) -> GateReport:
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

    def final(
        self, actor: Actor, plan: DreamPlan, work: Work, budget: int, done: Distilled, rules: Rules
    ) -> tuple[str, GateReport]:
        """The text under the rules of the moment it is stored. If they know more than before, it is checked again."""
        text = self.clean(actor, done.text, plan.run, rules)
        if text == done.text:
            return text, done.gates
        if plan.most_bytes is not None:
            return cut(text, plan.most_bytes, size), done.gates
        if not plan.strict and done.distiller.name not in self._model_names:
            text = cut(text, budget - work.input_tokens, self._count)
            return text, self.unasked(work, text, budget)
        gates = self.verify(work, text, budget, lambda t: self.clean(actor, t, plan.run, rules))
        if not gates.passed:
            raise GateFailed(details={"gates": list(gates.failures)})
        return text, gates

    def compact(
        self, actor: Actor, plan: DreamPlan, entries: Sequence[Entry], distiller: Distiller | None, guard: SpendGuard
    ) -> tuple[Work, Distilled]:
        """The entries as one redacted text within the plan's bytes, or a distiller's text in its place."""
        most = plan.most_bytes or 0
        work = unweighed([to_source(entry) for entry in entries])

        def cleaned(text: str) -> str:
            return self.clean(actor, text, plan.run, self._rules.current(actor.tenant))

        if distiller is None:
            text = compacted(work.sources, cleaned, most=most)
        else:
            answer = distiller.distil(Request(work, most, size, (), (), cleaned, guard))
            text = cut(cleaned(storable(answer.text)), most, size)
        gates = GateReport(0, 0, 0, (), (), ())
        return work, Distilled(Answer(text), text, gates, distiller or self._extractive)

    def is_model_free(self, plan: DreamPlan, policy: TenantPolicy, distiller: Distiller | None) -> bool:
        """Whether no model will be waited for."""
        if distiller is not None:
            return distiller.name not in self._model_names
        return plan.distiller == "none" or self.choose(plan, policy) is self._extractive

    def clean(self, actor: Actor, text: str, run: str | None, rules: Rules) -> str:
        """The same redactor as a fresh write, over the whole text; never skipped because the sources were clean."""
        return clean(text, self._parts.redactor, self._rules.known(actor.tenant, run, rules))

    def _earlier(self, actor: Actor, work: Work, budget: int, distiller: Distiller) -> Answer | None:
        """The answer an identical piece of work had, so that even a model's output is stable."""
        if distiller is self._extractive:
            return None
        key = self.work_key(work, budget, distiller)
        return self._archives.answer(actor, key)

    def work_key(self, work: Work, budget: int, distiller: Distiller) -> str:
        """Names this piece of work."""
        tokenizer = self._parts.tokens.name if self._parts.tokens else ""
        return work_key(work.sources, budget=budget, fingerprint=distiller.fingerprint, tokenizer=tokenizer)


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


def with_markers(text: str, sources: Sequence[Told], room: int, count: Callable[[str], int]) -> str:
    """`text` and, where there is room, the markers of its sources that it left out.

    A marker alone tells nothing, so no distiller keeps it; but that something was taken out there is to be seen.
    """
    told = dict.fromkeys(marker[0] for source in sources for marker in _MARKER.finditer(source.content))
    longer = "\n".join([text, *(marker for marker in told if marker not in text)])
    return longer if count(longer) <= room else text


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
