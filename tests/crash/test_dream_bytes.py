"""The same sources give the same bytes in every process, whatever its hash seed, locale and order of insertion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOAK = bool(os.environ.get("REVERIE_SOAK"))
PROCESSES = 20 if SOAK else 6

SCRIPT = """
import random, sys, reverie
from reverie.core.dream import DreamPlan
notes = [
    {"id": f"n{n}", "content": text, "created_at": 1_700_000_000_000 + n * 7_200_000, "source": {"actor": who}}
    for n, (who, text) in enumerate(
        (("Ann", "Bob")[n % 2], f"The pump {n % 11} in hall {n % 4} ran at {n * 13 % 97} bar; Überprüfung am {n % 28 + 1}. Mai.")
        for n in range(150)
    )
]
random.Random(int(sys.argv[2])).shuffle(notes)
with reverie.open(sys.argv[1]) as memory:
    for at in range(0, len(notes), 37):
        memory.ref("bot").put_many(notes[at : at + 37])
    print(memory.host.dreaming.run(memory.actor, DreamPlan("bot", budget=7000)).checksum)
"""


def test_byte_stability_across_processes(tmp_path: Path) -> None:
    checksums = set()
    for n in range(PROCESSES):
        environment = {**os.environ, "PYTHONHASHSEED": str(n * 7919 + 1), "LC_ALL": ("C", "C.UTF-8", "POSIX")[n % 3]}
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / str(n)), str(n)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)
        checksums.add(done.stdout.strip())
    assert len(checksums) == 1
    assert len(checksums.pop()) == 64
