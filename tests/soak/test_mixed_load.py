"""Mixed load over HTTP on one host: every answer is right, nothing is 5xx, and in a long run nothing grows.

`REVERIE_LOAD_SECONDS` is the length of the run: 600 in `make soak`, 8 in `make test`, where only the answers are judged.
`REVERIE_LOAD_REPORT` names a file for the figures.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.crash.served import Client, Served, make_key
from tests.processes import PATIENCE
from tests.soak.load import KINDS, TOKEN, Caller, Load, Quarter, quarters, sample

SOAK = os.environ.get("REVERIE_SOAK") == "1"
SECONDS = float(os.environ.get("REVERIE_LOAD_SECONDS", "600" if SOAK else "8"))
CALLERS = 6
PAUSE = 0.1
"""Seconds between two requests of a caller, on average: the server is busy and never behind."""


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_a_host_under_mixed_load(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    host = Served(tmp_path)
    load, over = Load(), threading.Event()
    watcher = Client([host], key, random.Random(0), may_refuse=False)
    callers = [
        Caller(load, Client([host], key, random.Random(number), may_refuse=False), f"load {number}", pause=PAUSE)
        for number in range(CALLERS)
    ]
    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            running = [pool.submit(caller.run, over) for caller in callers]
            until = time.monotonic() + SECONDS
            try:
                while not any(one.done() for one in running):
                    if time.monotonic() > until and set(load.took) >= KINDS:
                        break
                    head = watcher.send("GET", "stats").json()["events"]
                    sample(load, host.pid, tmp_path, head)
                    over.wait(max(0.2, SECONDS / 240))
            finally:
                over.set()
            for one in running:
                one.result(PATIENCE)
        found = quarters(load) if SOAK else []
        report(load, found)
        judge_answers(load, watcher)
        host.stop()
    finally:
        host.kill()
        for client in (watcher, *(caller.client for caller in callers)):
            client.close()
    if SOAK:
        judge_growth(load, found)


def judge_answers(load: Load, watcher: Client) -> None:
    """What is kept is readable, what was forgotten is nowhere, and the log holds."""
    assert set(load.statuses) <= {200, 201, 204, 400, 401, 403, 404, 405, 409, 415, 422}
    assert set(load.took) == KINDS
    shown = set(TOKEN.findall(watcher.send("GET", "export").text))
    assert not shown & load.forgotten
    for ref, entry, subject in load.kept.values():
        if subject < load.first_subject:
            continue  # stored while its subject was being forgotten: it may have come before or after
        answer = watcher.send("GET", f"memory/{ref}/entries/{entry}", params={"cold": "true"})
        assert answer.status_code == 200, (ref, entry, answer.text)
    verdict = watcher.send("GET", "audit/verify").json()
    assert verdict["ok"], verdict


def judge_growth(load: Load, found: list[Quarter]) -> None:
    """The last quarter costs what the second did: the first fills the memory and the caches."""
    early, late = found[1], found[3]
    assert late.processor_ms < 1.3 * early.processor_ms, (early, late)
    assert late.resident_mb < 1.15 * early.resident_mb + 16, (early, late)
    for kind in ("put", "search", "list", "context", "mcp", "forget"):
        assert late.median_ms[kind] < 2 * early.median_ms[kind] + 5, (kind, early, late)
    middle, last = load.samples[len(load.samples) // 2], load.samples[-1]
    per_event = (last.files - middle.files) / max(1, last.events - middle.events)
    assert per_event < 1500, f"{per_event:.0f} bytes of files for each event of the log"


def report(load: Load, found: list[Quarter]) -> None:
    """The figures, to be read and to be kept."""
    for number, quarter in enumerate(found, 1):
        print(
            f"quarter {number}: {quarter.requests} requests, {quarter.processor_ms:.1f} ms of processor time each, "
            f"{quarter.resident_mb:.0f} MB resident, {quarter.file_mb:.1f} MB of files"
        )
        print("  median ms: " + ", ".join(f"{kind} {ms:.1f}" for kind, ms in sorted(quarter.median_ms.items())))
    print(f"events {load.samples[-1].events}, kept {len(load.kept)}, forgotten {len(load.forgotten)}")
    print(f"dreams by status: {dict(sorted(load.dreams.items()))}")
    if path := os.environ.get("REVERIE_LOAD_REPORT"):
        dreams = {str(status): times for status, times in sorted(load.dreams.items())}
        figures = {"seconds": SECONDS, "dreams": dreams, "quarters": [asdict(quarter) for quarter in found]}
        Path(path).write_text(json.dumps(figures, indent=2))
