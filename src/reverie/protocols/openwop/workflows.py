"""The available workflows: passes over memory, dispatch, and fixtures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.core.event import Event
from reverie.core.run import COMPACT, DISPATCH, DISTILL
from reverie.protocols.openwop.conformance.fixtures import fixtures
from reverie.protocols.openwop.conformance.injection import InjectionProbe
from reverie.protocols.openwop.dispatch import Dispatcher
from reverie.protocols.openwop.passes import WORKFLOWS, PassRunner
from reverie.protocols.openwop.workflow import ActiveRun, Input, Node, Workflow, memory_ref
from reverie.services import Services

_TAKES = {
    COMPACT: (Input("maxInputEntries", "number"), Input("maxOutputBytes", "number")),
    DISTILL: (Input("indexEmitted", "boolean", default=True),),
}
_RIGHTS = (Right.READ, Right.WRITE, Right.DREAM)


def workflows(
    parts: Services, passes: PassRunner, dispatcher: Dispatcher, probe: InjectionProbe
) -> dict[str, Workflow]:
    """Every workflow by id."""
    own = {name: _pass(name, parts, passes) for name in WORKFLOWS}
    return own | {DISPATCH: dispatcher.workflow()} | fixtures(parts, probe)


def _pass(name: str, parts: Services, passes: PassRunner) -> Workflow:
    def check(_: Actor, inputs: Mapping[str, Any], configurable: Mapping[str, Any]) -> None:
        passes.check(name, inputs, configurable)

    step = name.rpartition(".")[2]
    takes = (Input("memoryRef", "string", required=True), *_TAKES.get(name, ()))
    node = Node(step, f"vendor.{name}", f"{step.capitalize()} a memory")
    return Workflow(
        _body(name, parts, passes),
        rights=_RIGHTS,
        ref=memory_ref,
        check=check,
        name=node.name,
        nodes=(node,),
        takes=takes,
    )


def _body(name: str, parts: Services, passes: PassRunner) -> Callable[[ActiveRun], Mapping[str, Any]]:
    def body(work: ActiveRun) -> Mapping[str, Any]:
        run = work.run
        if run.attempts > 1:  # the process before us may have got as far as the commit
            before = parts.store.read(Scope(work.actor.tenant), lambda tx: tx.read_run(run.id))
            done = next((event for event in before if event.type in _VARIABLES), None)
            if done is not None:
                return _VARIABLES[done.type](done)
        return passes.execute(work.actor, name, run.inputs, run.configurable, run.id, run.snapshot, check=work.check)

    return body


def _compaction(event: Event) -> dict[str, Any]:
    data = event.data
    variables = {"memoryRef": data["ref"], "outputId": event.entry_id, "byteSize": data["bytes"]}
    variables["sourceCount"] = data["sources"]
    if data.get("checksum"):
        variables |= {"archiveChecksum": data["checksum"], "tokenBudget": data["budget"], "tokensUsed": data["tokens"]}
    return variables


def _consolidation(event: Event) -> dict[str, Any]:
    data = event.data
    return {"memoryRef": data["ref"], "inputCount": data["input_count"], "outputCount": data["output_count"]}


_VARIABLES: Mapping[str, Callable[[Event], dict[str, Any]]] = {
    "memory.compacted": _compaction,
    "agent.memory.consolidated": _consolidation,
}
"""Functions that read a pass's variables from its event, for a resumed run whose work was committed before."""
