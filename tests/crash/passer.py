"""A child process that runs one pass over a memory as a run and dies at a named step. Run by test_pass_kill.py.

python passer.py FOLDER WORKFLOW STEP
"""

from __future__ import annotations

import sys

from tests.crash.dreamer import arm

import reverie

if __name__ == "__main__":
    folder, workflow, step = sys.argv[1:4]
    memory = reverie.open(folder)
    arm(step, memory.host.parts.store)
    memory.host.runs.start(memory.actor, workflow, inputs={"memoryRef": "bot"})
    memory.close()
