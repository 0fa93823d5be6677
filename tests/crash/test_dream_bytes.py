"""The same sources give the same bytes on every store and in every process, whatever its hash seed, locale and order
of insertion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SOAK = bool(os.environ.get("REVERIE_SOAK"))
PROCESSES = 20 if SOAK else 3

SCRIPT = """
import random, sys, reverie
from reverie.core.dream import DreamPlan
notes = [
    {"id": f"n{n}", "content": text, "created_at": 1_700_000_000_000 + n * 7_200_000, "source": {"actor": who}}
    for n, (who, text) in enumerate(
        (("Ann", "Bob")[n % 2], f"The pump {n % 11} in hall {n % 4} ran at {n * 13 % 97} bar – Zoë measured it on {n % 28 + 1} May.")
        for n in range(150)
    )
]
chance = random.Random(int(sys.argv[1]))
for target in sys.argv[2:]:
    chance.shuffle(notes)
    with reverie.open(target) as memory:
        for at in range(0, len(notes), 37):
            memory.ref("bot").put_many(notes[at : at + 37])
        print(memory.host.dreams.run(memory.actor, DreamPlan("bot", budget=7000)).checksum)
"""


def test_byte_stability_across_processes_and_stores(tmp_path: Path, make_database: Callable[[], str]) -> None:
    checksums = []
    for n in range(PROCESSES):
        environment = {**os.environ, "PYTHONHASHSEED": str(n * 7919 + 1), "LC_ALL": ("C", "C.UTF-8", "POSIX")[n % 3]}
        environment["REVERIE_DATA"] = str(tmp_path / "keys")
        command = [sys.executable, "-c", SCRIPT, str(n), str(tmp_path / str(n)), make_database()]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)
        checksums += done.stdout.split()
    assert len(checksums) == 2 * PROCESSES
    assert len(set(checksums)) == 1
    assert len(checksums[0]) == 64
