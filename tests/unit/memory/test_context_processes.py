"""context gives the same text in every process: no order of a set or of a hash reaches it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import reverie

_ASK = """
import sys, reverie
with reverie.open(sys.argv[1]) as memory:
    notes = memory.ref("desk")
    for purpose in ("what is known about the harbour", "who answers for the boats"):
        made = notes.context(purpose, budget=300)
        print(made.text, made.tokens, list(made.included), list(made.shortened), [one.id for one in made.left_out])
        print([(hit.entry.id, hit.score, hit.passage.start) for hit in notes.search(purpose, limit=50)])
"""


def test_context_is_the_same_in_processes_with_other_hash_seeds(tmp_path: Path) -> None:
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("desk")
        for number in range(40):
            notes.put(f"The harbour has berth {number} and {['Ada', 'Ben', 'Cleo'][number % 3]} answers for its boats.")
        notes.dream()
        for number in range(40, 60):
            notes.put(f"The harbour has berth {number}; its boats are inspected on day {number % 7}.")
    said = set()
    for seed in ("1", "2", "31337"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        made = subprocess.run(
            [sys.executable, "-c", _ASK, str(tmp_path)], env=environment, check=True, capture_output=True, text=True
        )
        said.add(made.stdout)
    assert len(said) == 1
    assert "berth" in said.pop()
