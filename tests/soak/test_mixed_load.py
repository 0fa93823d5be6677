"""Mixed load over HTTP, on one host and on two with one database: every answer is right, nothing is 5xx, nothing that
is forgotten is answered or stored, and in a long run nothing grows.

`REVERIE_LOAD_SECONDS` is the length of the run: 600 in `make soak`, 8 in `make test`, where only the answers are judged.
`REVERIE_LOAD_REPORT` names a file for the figures.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest
from tests.crash.served import Client, Served, make_key
from tests.postgres import PostgresServer
from tests.processes import PATIENCE
from tests.soak.load import KINDS, TOKEN, Caller, Load, Quarter, quarters, sample

SOAK = os.environ.get("REVERIE_SOAK") == "1"
SECONDS = float(os.environ.get("REVERIE_LOAD_SECONDS", "600" if SOAK else "8"))
CALLERS = 6
BYTES = re.compile(TOKEN.pattern.encode())
PAUSE = 0.1
"""Seconds between two requests of a caller, on average: the server is busy and never behind."""


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_a_host_under_mixed_load(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    host = Served(tmp_path)
    try:
        load = play([host], key, tmp_path, SECONDS)
        found = quarters(load) if SOAK else []
        report(load, found)
        judge_answers(load, host, key)
        host.stop()
    finally:
        host.kill()
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        stored = {token.decode() for token in BYTES.findall(file.read_bytes())}
        assert load.forgotten.isdisjoint(stored), file
    if SOAK:
        judge_growth(load, found)


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_two_hosts_on_one_database_under_mixed_load(
    tmp_path: Path, postgres: PostgresServer, make_database: Callable[[], str]
) -> None:
    """Forgets, dreams and searches on both: what one host certifies as gone, the other does not answer either."""
    url = make_database()
    key = make_key(tmp_path, url)
    hosts = [Served(tmp_path, url), Served(tmp_path, url)]
    try:
        load = play(hosts, key, tmp_path, SECONDS / 4)
        report(load, [])
        for host in hosts:
            judge_answers(load, host, key)
            host.stop()
        name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        assert postgres.tables_with(sorted(load.forgotten)[:500], name) == []
    finally:
        for host in hosts:
            host.kill()


def play(hosts: list[Served], key: str, data: Path, seconds: float) -> Load:
    """The callers, each at every host, for so long and until everything was done once."""
    load, over = Load(), threading.Event()
    watcher = Client(hosts, key, random.Random(0), may_refuse=False)
    callers = [
        Caller(load, Client(hosts, key, random.Random(number), may_refuse=False), f"load {number}", pause=PAUSE)
        for number in range(CALLERS)
    ]
    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            running = [pool.submit(caller.run, over) for caller in callers]
            until = time.monotonic() + seconds
            try:
                while not any(one.done() for one in running):
                    if time.monotonic() > until and set(load.took) >= KINDS and load.forgotten:
                        break
                    head = watcher.send("GET", "stats").json()["events"]
                    sample(load, hosts[0].pid, data, head)
                    over.wait(max(0.2, seconds / 240))
            finally:
                over.set()
            for one in running:
                one.result(PATIENCE)
    finally:
        for client in (watcher, *(caller.client for caller in callers)):
            client.close()
    return load


def judge_answers(load: Load, host: Served, key: str) -> None:
    """What is kept is readable, what was forgotten is nowhere, and the log holds."""
    watcher = Client([host], key, random.Random(0), may_refuse=False)
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
    watcher.close()


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
