"""A process that runs one pass over a memory as a run and dies at a named step. Run by test_pass_kill.py."""

from __future__ import annotations

from tests.crash.dreamer import arm

import reverie


def main(target: str, workflow: str, step: str) -> None:
    memory = reverie.open(target)
    arm(step, memory.host.parts.store)
    memory.host.runs.start(memory.actor, workflow, inputs={"memoryRef": "bot"})
    memory.close()
