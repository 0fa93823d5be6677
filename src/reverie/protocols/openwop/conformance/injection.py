"""The fixture of the injection budget: every promise of a bounded read, demonstrated on its own entries."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Entry
from reverie.core.errors import Invalid, NotFound, ReverieError
from reverie.memory.entries import Entries
from reverie.memory.lifecycle import Lifecycle
from reverie.memory.read import Reader
from reverie.protocols.openwop.injection import Injection
from reverie.protocols.openwop.workflow import ActiveRun
from reverie.services import Services

NODE = "list-budgeted"
SECRET = "conformance-test-secret"
QUERY = "Which kites fly over the beach?"
DEFAULT_BUDGET = 64
_LEAST, _MOST = 40, 4000


class InjectionProbe:
    """Seeds a memory of the run's own, reads it under a budget, and empties it."""

    def __init__(
        self, parts: Services, injection: Injection, entries: Entries, reader: Reader, lifecycle: Lifecycle
    ) -> None:
        self._parts = parts
        self._injection = injection
        self._entries = entries
        self._reader = reader
        self._lifecycle = lifecycle

    def run(self, work: ActiveRun) -> Mapping[str, Any]:
        """The variables of the run, all of them from bounded reads."""
        budget = budget_of(work.inputs)
        ref = f"{work.run.ref}/{work.run.id}"
        alone, foreign = f"{ref}/alone", f"{ref}/foreign"
        other = dataclasses.replace(work.actor, tenant=_other(work.actor.tenant), run=None)
        try:
            sample = self._seed(work, ref, budget)
            work.put(alone, self._text("word", budget + 8), name="alone", node=NODE)
            theirs = self._entries.put(other, foreign, [Draft("A note of another tenant.")])[0].id
            self._reader.get(other, foreign, theirs)  # it is there, for its owner
            kept = self._within_budget(work, ref, budget)
            document = {
                "tokenBudget": budget,
                "tokenCounter": self._tokens().name,
                "budgetedEntries": kept,
                "budgetedTokenTotal": sum(self._tokens().count(entry.content) for entry in kept),
                "overBudgetEntryId": work.id("over"),
                "overBudgetEntryOmitted": all(entry.id != work.id("over") for entry in kept),
                "redactedContentSample": next(entry.content for entry in kept if entry.id == sample),
                "crossTenantBudgetedProbe": self._within_budget(work, foreign, budget),
            }
            if self._within_budget(work, alone, budget) or not any(
                entry.id not in {one.id for one in kept} and self._tokens().count(entry.content) <= budget
                for entry in work.list(ref)
            ):
                raise ReverieError("The bounded read did not keep to its rule.", code="internal_error")
            if self._parts.embedder is not None:
                document |= self._orders(work, ref, 4 * budget)
            return document
        finally:
            for memory in (ref, alone):
                self._empty(work.actor, memory)
            self._empty(other, foreign)

    def _seed(self, work: ActiveRun, ref: str, budget: int) -> str:
        """Four notes, oldest first: the most relevant, a plain one, one over the budget, one with a secret; its id."""
        value = f"byok{secrets.token_hex(16)}"
        work.register({SECRET: value})
        half = budget // 2
        texts = {
            "relevant": self._text("Kites fly over the beach.", half),
            "plain": self._text("The ledger was audited on Monday.", half),
            "over": self._text("word", budget + 8),
            "secret": f"The vault resolved {value} today.",
        }
        for name, text in texts.items():
            work.put(ref, text, name=name, node=NODE)
        return work.id("secret")

    def _orders(self, work: ActiveRun, ref: str, budget: int) -> dict[str, Any]:
        """The same ids by recency and by relevance."""
        relevant = self._injection.relevant(work.actor, ref, str(work.inputs.get("query") or QUERY))
        by_relevance = [entry.id for entry in self._injection.within(relevant, budget)]
        by_recency = [entry.id for entry in self._within_budget(work, ref, budget) if entry.id in set(by_relevance)]
        return {"recencyOrder": by_recency, "relevanceOrder": by_relevance}

    def _within_budget(self, work: ActiveRun, ref: str, budget: int) -> list[Entry]:
        return self._injection.within(work.list(ref), budget)

    def _text(self, words: str, least: int) -> str:
        """Repeat words until they count at least this many tokens."""
        times = max(1, least // max(1, self._tokens().count(words)))
        while self._tokens().count(text := " ".join([words] * times)) < least:
            times += 1
        return text

    def _tokens(self) -> Any:
        return self._parts.tokens

    def _empty(self, actor: Actor, ref: str) -> None:
        for entry in self._reader.page(actor, ref, limit=100).items:
            try:
                self._lifecycle.delete(actor, ref, entry.id)
            except NotFound:
                continue


def budget_of(inputs: Mapping[str, Any]) -> int:
    """The budget a run is asked for. Raises Invalid."""
    value = inputs.get("tokenBudget", DEFAULT_BUDGET)
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST <= value <= _MOST:
        raise Invalid(f"inputs.tokenBudget is a whole number of {_LEAST} to {_MOST}.", pointer="/inputs/tokenBudget")
    return value


def _other(tenant: str) -> str:
    """A tenant that exists only for this fixture."""
    return f"conformance-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"
