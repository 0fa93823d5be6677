"""Makes a text that may be stored: distilled, redacted, and checked by the gates. Outside any transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, GateFailed, ModelFailed, RedactionFailed, SpendExceeded
from reverie.core.errors import Invalid, ReverieError
from reverie.core.policy import TenantPolicy
from reverie.distil.archive import work_key
from reverie.distil.compaction import ELLIPSIS, cut, joined, size
from reverie.distil.gates import GateReport, verify
from reverie.distil.leaks import clean, clean_each
from reverie.distil.must_keep import find
from reverie.distil.phrases import phrases_of
from reverie.distil.plan import SMALL, Share, Work
from reverie.distil.request import DistilledText, Distiller, Extractive, Request
from reverie.distil.source import CARRIED, FATES, Fates, Statement
from reverie.distil.source import Source as Distillable
from reverie.distil.value import CLASSES
from reverie.dreams.archive import Archives
from reverie.dreams.spend import SpendGuard
from reverie.memory.policy import RuleBook, Rules
from reverie.redact import Redactor
from reverie.redact.markers import CANONICAL
from reverie.services import Services

_REPAIRS = 6
"""Attempts of the model-free distiller: each leaves out the statements that a gate refused."""
_MARKER = re.compile(CANONICAL.pattern.decode())
_KNOWN_FATES = CARRIED | {"chatter", "retired"}


@dataclass(frozen=True, slots=True)
class Distilled:
    """A text that passed the gates."""

    answer: DistilledText
    text: str
    gates: GateReport
    distiller: Distiller
    fingerprint: str
    """Of the distiller and the redactor: with either changed, the same sources may give another text."""
    fell_back: str | None = None
    reused: bool = False
    stay: frozenset[str] = frozenset()
    """Sources that must stay as they are: a must-keep statement of theirs is not in the text."""
    limit: int = 0
    """The token limit of the text."""


class Gates:
    """Chooses the distiller and returns only texts that pass."""

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
        """Return the distiller of the plan, or that of the tenant. Raises Invalid for an unknown name."""
        name = policy.dream_distiller if plan.distiller is None else plan.distiller
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
        share: Share,
        policy: TenantPolicy,
        distiller: Distiller,
        guard: SpendGuard,
    ) -> Distilled:
        """Return a text that passes the gates: after repairs, then (for a model, by policy) without a model."""
        may_fall_back = distiller.name in self._model_names and policy.model_fallback == "extractive"
        try:
            return self._gated(actor, plan, work, budget, share, distiller, guard)
        except (GateFailed, RedactionFailed, SpendExceeded, ModelFailed) as refused:
            if not may_fall_back:
                raise
            reason = why_not(refused)
        except ReverieError:
            raise
        except Exception as fault:  # a distiller that breaks costs no dream and leaks no text
            reason = type(fault).__name__
        if not may_fall_back:
            raise ReverieError(f"The distiller failed ({reason}). Nothing was stored.", code="distiller_failed")
        done = self._gated(actor, plan, work, budget, share, self._extractive, guard)
        return replace(done, fell_back=reason)

    def _gated(
        self,
        actor: Actor,
        plan: DreamPlan,
        work: Work,
        budget: int,
        share: Share,
        distiller: Distiller,
        guard: SpendGuard,
    ) -> Distilled:
        cleaned = self.cleaner(actor, plan)
        if not plan.strict and distiller.name not in self._model_names:
            return self._ungated(work, budget, share, distiller, guard, cleaned)
        must_keep = find(work.prepared.sources)
        # the part of a night may be small: a floor for each would keep all of a memory that grows little by little
        limit = work.output_limit(budget, share, floor=0 if plan.fit else SMALL)
        earlier = self._earlier(actor, plan, work, budget, distiller)
        complaints: tuple[str, ...] = ()
        avoid: frozenset[str] = frozenset()
        for attempt in range(_REPAIRS if distiller is self._extractive else 2):
            request = Request(
                work, limit, self._count, must_keep, complaints, avoid, cleaned, guard, plan.instructions or ""
            )
            answer = earlier if earlier is not None and attempt == 0 else honest(distiller.distil(request), work)
            text = cleaned(answer.text)
            gates = self.verify(work, answer, text, budget, cleaned if text != answer.text else None)
            leaks = distiller.name in self._model_names and new_markers(text, work.sources, cleaned)
            if gates.passed and text.strip() and not leaks:
                stay = frozenset(answer.unkept) | _missed(gates)
                reused, made_by = answer is earlier, self.fingerprint(distiller)
                return Distilled(answer, text, gates, distiller, made_by, reused=reused, stay=stay, limit=limit)
            avoid |= set(gates.faulty)
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
        share: Share,
        distiller: Distiller,
        guard: SpendGuard,
        cleaned: Callable[[str], str],
    ) -> Distilled:
        """Return a text that is only redacted and within the budget, for a plan that is not strict."""
        limit = work.output_limit(budget, share, shrink=False)
        must_keep = find(work.prepared.sources)
        answer = honest(
            distiller.distil(Request(work, limit, self._count, must_keep, (), clean=cleaned, spend=guard)), work
        )
        text = cleaned(answer.text)
        if not text.strip():
            text = cleaned(joined(work.sources)) if any(s.content.strip() for s in work.sources) else ELLIPSIS
        room = budget - work.input_tokens
        text = cut(text, room, self._count)
        if distiller is self._extractive:
            text = with_markers(text, work.sources, room, self._count)
        gates, made_by = self.unasked(work, text, budget), self.fingerprint(distiller)
        return Distilled(answer, text, gates, distiller, made_by, limit=limit)

    def unasked(self, work: Work, text: str, budget: int) -> GateReport:
        """Return the report of gates that were not applied: token counts only."""
        return GateReport(self._count(text), work.input_tokens, work.tokens_before, budget, (), (), ())

    def verify(
        self, work: Work, answer: DistilledText, text: str, budget: int, cleaned: Callable[[str], str] | None
    ) -> GateReport:
        """Apply the gates. A text that redaction changed is compared with sources that are redacted in the same way.

        A secret registered after a source was stored is still in that source; its marker in the text is then not new.
        """
        sources, kept = work.sources, work.prepared.sources
        if cleaned is not None:
            sources = tuple(replace(source, content=cleaned(source.content)) for source in sources)
            by_id = {source.id: source for source in sources}
            kept = tuple(by_id[source.id] for source in kept)
        return verify(
            sources,
            text,
            must_keep=find(kept, _replaced(kept, answer.fates)),
            budget=budget,
            input_tokens=work.input_tokens,
            source_tokens=work.tokens_before,
            count=self._count,
            statements=answer.statements,
        )

    def final(
        self, actor: Actor, plan: DreamPlan, work: Work, budget: int, done: Distilled, rules: Rules
    ) -> tuple[str, GateReport]:
        """Redact the text by the rules in force when it is stored. If that changes it, the gates are applied again."""
        text = self.clean(actor, done.text, plan.run, rules)
        if text == done.text:
            return text, done.gates
        if plan.most_bytes is not None:
            return cut(text, plan.most_bytes, size), done.gates
        if not plan.strict and done.distiller.name not in self._model_names:
            text = cut(text, budget - work.input_tokens, self._count)
            return text, self.unasked(work, text, budget)
        gates = self.verify(work, done.answer, text, budget, lambda t: self.clean(actor, t, plan.run, rules))
        if not gates.passed:
            raise GateFailed(details={"gates": list(gates.failures)})
        return text, gates

    def is_model_free(self, plan: DreamPlan, policy: TenantPolicy, distiller: Distiller | None) -> bool:
        """Whether the dream needs no model."""
        if distiller is not None:
            return distiller.name not in self._model_names
        return plan.distiller == "none" or self.choose(plan, policy) is self._extractive

    def clean(self, actor: Actor, text: str, run: str | None, rules: Rules) -> str:
        """Redact the whole text like a fresh write; never skipped because the sources were clean."""
        return clean(text, self._parts.redactor, self._rules.known(actor.tenant, run, rules))

    def clean_each(self, actor: Actor, texts: Sequence[str], run: str | None, rules: Rules) -> list[str | None]:
        """Apply `clean` to every text; None for one that never comes to rest."""
        known = self._rules.known(actor.tenant, run, rules)
        return clean_each(texts, self._parts.redactor, known)

    def cleaner(self, actor: Actor, plan: DreamPlan) -> Callable[[str], str]:
        """Return `clean` for the texts of a plan, by the rules in force at each call."""
        return lambda text: self.clean(actor, text, plan.run, self._rules.latest(actor.tenant))

    def _earlier(
        self, actor: Actor, plan: DreamPlan, work: Work, budget: int, distiller: Distiller
    ) -> DistilledText | None:
        """Return the stored answer to an identical piece of work, so that even the output of a model is stable."""
        if distiller is self._extractive:
            return None
        key = self.work_key(plan, work, budget, distiller)
        return self._archives.answer(actor, key)

    def work_key(self, plan: DreamPlan, work: Work, budget: int, distiller: Distiller) -> str:
        """Return the key of a piece of work, instructions included."""
        tokenizer = self._parts.tokens.name if self._parts.tokens else ""
        made_by = self.fingerprint(distiller)
        if plan.instructions:
            made_by += f" instructions/{hashlib.sha256(plan.instructions.encode()).hexdigest()}"
        return work_key(work.sources, budget=budget, fingerprint=made_by, tokenizer=tokenizer)

    def fingerprint(self, distiller: Distiller) -> str:
        """Return the fingerprint of everything that shapes a text of this distiller here."""
        return fingerprint(distiller, self._parts.redactor)


def fingerprint(distiller: Distiller, redactor: Redactor) -> str:
    """Combine the versions of distiller and redactor: with another of either, the text may differ."""
    return f"{distiller.fingerprint} redact/{redactor.version}"


_REPLACED = frozenset({"outdated", "rolled"})


def _replaced(sources: Sequence[Distillable], fates: Fates) -> frozenset[tuple[str, str]]:
    """Return the statements that were overtaken or rolled up, each with the id of its source."""
    return frozenset(
        (source.id, phrase.original)
        for source, said in zip(sources, phrases_of(sources), strict=True)
        for phrase, (fate, _) in zip(said, fates.get(source.id, ()), strict=False)
        if fate in _REPLACED
    )


def _missed(gates: GateReport) -> frozenset[str]:
    """Return the sources with a must-keep statement that the text lacks."""
    return frozenset(kept.item.source_id for kept in gates.must_keep if kept.state == "missing")


def why_not(refused: ReverieError) -> str:
    """Return the reason why a model's text was rejected, in a word or two, for the report."""
    if isinstance(refused, SpendExceeded):
        return f"spend: {refused.details.get('limit', 'limit')}"
    if isinstance(refused, ModelFailed):
        return f"model: {refused.details.get('fault', 'failed')}"
    if isinstance(refused, RedactionFailed):
        return "redaction"
    return f"gates: {', '.join(refused.details.get('gates', ()))}"


def honest(answer: DistilledText, work: Work) -> DistilledText:
    """Reduce an answer to what can be trusted: storable text, statements of existing sources, known fates.

    Ids and labels that a distiller invents would reach the report, which passes no redactor.
    """
    known = set(work.prepared.source_ids)
    statements = []
    for statement in answer.statements:
        ids = tuple(i for i in statement.source_ids if i in known)
        if ids:
            how = statement.how if statement.how in FATES else "merged"
            statements.append(Statement(storable(statement.text), ids, how, max(int(statement.count), 1)))
    fates = {
        source: [
            (fate if fate in _KNOWN_FATES else "retired", kind if kind in CLASSES else "fact") for fate, kind in own
        ]
        for source, own in answer.fates.items()
        if source in known
    }
    return DistilledText(storable(answer.text), statements, tuple(i for i in answer.unkept if i in known), fates)


def storable(text: str) -> str:
    """Return the text without characters that no store accepts: null characters and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def with_markers(text: str, sources: Sequence[Distillable], room: int, count: Callable[[str], int]) -> str:
    """Append the markers of the sources that `text` lacks, if there is room for all of them.

    A marker alone carries no information, so no distiller keeps it; but readers must see that something was removed.
    """
    markers = dict.fromkeys(marker[0] for source in sources for marker in _MARKER.finditer(source.content))
    longer = "\n".join([text, *(marker for marker in markers if marker not in text)])
    return longer if count(longer) <= room else text


def new_markers(text: str, sources: Sequence[Distillable], cleaned: Callable[[str], str]) -> bool:
    """Whether a clean text has a marker that no source has: its writer invented a secret, or knew one.

    Redaction made it harmless; but the rest of a text that revealed a secret is not trusted.
    """
    found = set(CANONICAL.findall(text.encode("utf-8", "surrogatepass")))
    for source in sources:
        if not found:
            break
        found -= set(CANONICAL.findall(cleaned(source.content).encode("utf-8", "surrogatepass")))
    return bool(found)
