"""Workflows that conformance suites start. They do what their names say, through the same paths as everything else."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from reverie.core.actor import Actor
from reverie.core.entry import Entry, Scope, valid_ref
from reverie.core.errors import Invalid
from reverie.core.query import Filter
from reverie.memory.read import MAX_PAGE
from reverie.protocols.openwop.conformance.injection import (
    DEFAULT_BUDGET,
    NODE,
    QUERY,
    SECRET,
    InjectionProbe,
    budget_of,
)
from reverie.protocols.openwop.conformance.plain import plain_fixtures
from reverie.protocols.openwop.workflow import ActiveRun, Input, Node, Workflow
from reverie.services import Services

_HOUR_MS = 3_600_000


def fixtures(parts: Services, probe: InjectionProbe) -> dict[str, Workflow]:
    """Every fixture by id."""
    actions: dict[str, tuple[str, Callable[[ActiveRun], Mapping[str, Any]], Mapping[str, Any]]] = {
        "roundtrip": ("write-then-read", _roundtrip, {}),
        "ttl": ("ttl-probe", lambda work: _ttl(work, parts.clock.now()), {}),
        "redaction": ("redaction-probe", _redaction, {"byokSecretId": SECRET}),
        "cross-tenant": ("cross-tenant-probe", lambda work: _cross_tenant(work, parts), {}),
    }
    made = {f"conformance-agent-memory-{name}": _memory(name, *action) for name, action in actions.items()}
    if parts.tokens is not None:
        name = "conformance-agent-memory-injection-budget"
        asked = {"tokenBudget": DEFAULT_BUDGET, "rank": "recency", "query": QUERY}
        made[name] = dataclasses.replace(
            _memory("injection-budget", NODE, probe.run, asked),
            check=_check_budget,
            takes=(Input("memoryRef", "string"), Input("tokenBudget", "number"), Input("query", "string")),
        )
    noop = Workflow(_noop, fixture=True, ref=_ref_of("conformance-noop"), nodes=(Node("noop", "core.noop", "Nothing"),))
    return {"conformance-noop": noop} | made | plain_fixtures()


def _check_budget(_: Actor, inputs: Mapping[str, Any], configurable: Mapping[str, Any]) -> None:
    del configurable
    budget_of(inputs)


def _memory(
    name: str, action: str, body: Callable[[ActiveRun], Mapping[str, Any]], config: Mapping[str, Any]
) -> Workflow:
    node = Node(action, "core.identity", action, {"memoryAction": action, **config})
    ref = _ref_of(f"conformance-agent-memory-{name}")
    return Workflow(body, fixture=True, ref=ref, nodes=(node,), takes=(Input("memoryRef", "string"),))


def _ref_of(name: str) -> Callable[[Mapping[str, Any]], str]:
    fixed = name.replace("conformance-", "conformance/", 1)

    def ref(inputs: Mapping[str, Any]) -> str:
        asked = inputs.get("memoryRef")
        if asked is None:
            return fixed
        if not isinstance(asked, str) or not valid_ref(asked):
            raise Invalid("inputs.memoryRef names a memory.", pointer="/inputs/memoryRef")
        return asked

    return ref


def _ref(work: ActiveRun) -> str:
    return str(work.run.ref)


def _noop(work: ActiveRun) -> Mapping[str, Any]:
    """Do nothing but write the summary of the run."""
    work.put(_ref(work), "A run without steps took place.", name="summary", tags=["source:run"])
    return {}


def _roundtrip(work: ActiveRun) -> Mapping[str, Any]:
    ref = _ref(work)
    written = work.put(ref, "What is written in a run can be read in it.", name="note", node="write-then-read")
    return {"memoryReadback": work.get(ref, written.id)}


def _ttl(work: ActiveRun, now: int) -> Mapping[str, Any]:
    ref = _ref(work)
    work.plant(ref, "This note's time is over.", name="expired", expires_at=now - 1, node="ttl-probe")
    fresh = work.put(ref, "This note has an hour.", name="fresh", expires_at=now + _HOUR_MS, node="ttl-probe")
    own = {work.id("expired"), fresh.id}
    results = [entry for entry in work.list(ref) if entry.id in own]
    return {"memoryList": results, "expiredId": work.id("expired"), "freshId": fresh.id}


def _redaction(work: ActiveRun) -> Mapping[str, Any]:
    ref, value = _ref(work), f"byok{secrets.token_hex(16)}"
    work.register({SECRET: value})
    written = work.put(ref, f"The vault resolved {value} for this run.", name="note", node="redaction-probe")
    return {"memoryReadback": work.get(ref, written.id)}


def _cross_tenant(work: ActiveRun, parts: Services) -> Mapping[str, Any]:
    """Show that the owner reads its entry, and that no other tenant does, under the same name or another."""
    ref = _ref(work)
    written = work.put(ref, "Only its own tenant reads this.", name="note", node="cross-tenant-probe")
    named = work.inputs.get("probeMemoryRef")
    if isinstance(named, str) and named != ref:
        found = work.list(named)
    else:
        found = _as_another(parts, work.actor, ref)
    own = [entry for entry in work.list(ref) if entry.id == written.id]
    return {"ownerEntryId": written.id, "ownerProbe": own, "crossTenantProbe": found}


def _as_another(parts: Services, actor: Actor, ref: str) -> list[Entry]:
    """Read the memory of the same name as another tenant."""
    other = Scope(f"not-{actor.tenant}"[:60], ref)
    return list(parts.store.read(other, lambda tx: tx.scan(Filter(), limit=MAX_PAGE)).items)
