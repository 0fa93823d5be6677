"""Workflows without memory that conformance suites start: nodes that do nothing, wait, repeat or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reverie.core.actor import Actor
from reverie.core.errors import Invalid, ReverieError
from reverie.protocols.openwop.workflow import ActiveRun, Input, Node, Workflow

Body = Callable[[ActiveRun], Mapping[str, Any]]
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]


def plain_fixtures() -> dict[str, Workflow]:
    """The fixtures by id."""
    return {
        "conformance-idempotent": _fixture(
            _steps("noop"), Node("noop", "core.noop", "Nothing"), takes=Input("nonce", "string", required=True)
        ),
        "conformance-identity": _fixture(
            _identity, Node("identity", "core.identity", "The same"), takes=Input("payload", "object", required=True)
        ),
        "conformance-delay": _delay(0, 30_000, default=1000),
        "conformance-cancellable": _delay(1, 60_000, default=30_000),
        "conformance-multi-node": _fixture(
            _steps("a", "b", "c"), *(Node(name, "core.noop", f"Step {name}") for name in "abc")
        ),
        "conformance-failure": _fixture(_failure, Node("fail", "core.fail", "A failure")),
    }


def _fixture(
    body: Body, *nodes: Node, takes: Input | None = None, check: Check = lambda *_: None, background: bool = False
) -> Workflow:
    inputs = () if takes is None else (takes,)

    def checked(_: Actor, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        for item in inputs:
            if item.required and not isinstance(given.get(item.name), _TYPES[item.type]):
                article = "an" if item.type == "object" else "a"
                message = f"inputs.{item.name} is {article} {item.type}."
                raise Invalid(message, pointer=f"/inputs/{item.name}")
        check(given, options)

    return Workflow(
        body, fixture=True, check=checked, nodes=nodes, takes=inputs, background=background, name=nodes[0].name
    )


_TYPES: Mapping[str, type] = {"string": str, "object": dict}


def _steps(*names: str) -> Body:
    def body(work: ActiveRun) -> Mapping[str, Any]:
        for name in names:
            with work.node(name):
                pass
        return {}

    return body


def _identity(work: ActiveRun) -> Mapping[str, Any]:
    with work.node("identity", output=True):
        return {"payload": work.inputs["payload"]}


def _failure(work: ActiveRun) -> Mapping[str, Any]:
    with work.node("fail"):
        raise ReverieError("This workflow always fails.", code="conformance_failure")


def _delay(least: int, most: int, *, default: int) -> Workflow:
    def length(given: Mapping[str, Any]) -> int:
        value = given.get("delayMs", default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Invalid(f"inputs.delayMs is a whole number of {least} to {most}.", pointer="/inputs/delayMs")
        return value

    def body(work: ActiveRun) -> Mapping[str, Any]:
        with work.node("delay"):
            work.wait(length(work.inputs))
        return {}

    def check(given: Mapping[str, Any], _: Mapping[str, Any]) -> None:
        length(given)

    takes = Input("delayMs", "number", default=default)
    return _fixture(body, Node("delay", "core.delay", "A wait"), takes=takes, check=check, background=True)
