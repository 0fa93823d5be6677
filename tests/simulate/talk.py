"""One turn of a window with a provider that always answers."""

from __future__ import annotations

from typing import Any

import orjson

from reverie.core.actor import Actor
from reverie.host import Host
from reverie.window import Base
from reverie.window.engine import Engine
from reverie.window.steps import Keep, RequestOutcome


def talk(host: Host, actor: Actor, scope: str, asked: str, told: str, *, subject: str | None) -> Any:
    """Say something with the word `asked` and hear something with the word `told`."""
    keeper = host.windows.keeper(actor, scope, subject=subject)
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1", "api"), account="simulated")
    engine = Engine(keeper, state, clock=keeper.clock)
    steps = engine.turn(f"What of {asked}?", "items", {"model": "gpt-test"})
    output = {
        "id": f"msg_{told}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": f"It is {told}.", "annotations": []}],
    }
    body = {"id": f"resp_{told}", "object": "response", "status": "completed", "model": "gpt-test", "output": [output]}
    answer = RequestOutcome(200, orjson.dumps({**body, "usage": {"input_tokens": 9, "output_tokens": 5}}).decode())
    value: Any = None
    while True:
        try:
            step = steps.send(value)
        except StopIteration as end:
            return end.value
        value = step.call() if isinstance(step, Keep) else answer
