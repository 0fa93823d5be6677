"""Reverie on PostgreSQL, LangGraph's PostgresStore and a naive single-table host, all on one server.

    python -m bench postgres             durable writes, search up to 100,000 entries, dreams by 1, 2 and 4 workers
    python -m bench postgres --quick     fewer rounds, up to 10,000 entries

The server is a real one, started for the purpose, with its durability on. The naive host has one table; it stores no
log, redacts nothing and dreams by cutting. Dreams are run by worker processes that share the jobs of many tenants.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.peers.environment import Child, NotAvailableError
from bench.store import CLIENTS, Results, machine
from bench.store import _reading as read_all
from bench.store import _writing as write_all

PEERS = ("reverie_postgres", "langgraph_postgres", "floor_postgres")
TITLES = {"reverie_postgres": "Reverie", "langgraph_postgres": "LangGraph PostgresStore", "floor_postgres": "one table"}
TENANTS = 8
CONFIGURATION = "max_connections = 200\nshared_buffers = 256MB\nmax_wal_size = 1GB\n"


def measure(*, quick: bool) -> dict[str, Any]:
    """Every figure, from one server."""
    from tests.postgres import start_server

    results: Results = {}
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="reverie-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = start_server(Path(folder), configuration=CONFIGURATION)
        os.environ["BENCH_POSTGRES"] = f"postgresql://postgres@/postgres?host={server.socket}"
        children: dict[str, Child] = {}
        versions: dict[str, Any] = {}
        for peer in PEERS:
            try:
                children[peer] = Child(peer)
                versions[peer] = children[peer].versions
                results[peer] = {}
            except (NotAvailableError, OSError) as fault:
                absent[peer] = str(fault)
        write_all(children, results, Path(folder), rounds=1 if quick else 3)
        for size in (10_000,) if quick else (10_000, 100_000):
            read_all(children, results, Path(folder), size)
        for child in children.values():
            child.close()
        dreams = {
            str(entries): {
                str(workers): dreams_per_second(server, workers, entries=entries, quick=quick) for workers in (1, 2, 4)
            }
            for entries in (60, 600)
        }
    return {"results": results, "absent": absent, "versions": versions, "dreams": dreams, "machine": machine()}


def dreams_per_second(server: Any, workers: int, *, entries: int, quick: bool) -> float:
    """Dreams a second that so many worker processes make, of so many entries for each of several tenants."""
    import reverie
    from reverie.core.job import Job
    from reverie.jobs.procrastinate import EngineQueue

    url = server.make_database()
    count = 6 if quick else 25
    for number in range(TENANTS):
        with reverie.open(url, tenant=f"tenant-{number}") as memory:
            for at in range(count):
                memory.ref(f"memory-{at}").put_many([
                    f"Service {n} of team {number} listens on port {7000 + n * 7 + at}; we decided it on day {n}. "
                    "Thanks everyone for the good and long talk about it, which was a pleasure for all of us."
                    for n in range(entries)
                ])  # fmt: skip
    queue = EngineQueue(url, per_tenant=4)
    command = [sys.executable, "-m", "reverie.api.cli.main", "worker", "--concurrency", "2", "--database-url", url]
    environment = {**os.environ, "REVERIE_SWEEP_SECONDS": "3600", "REVERIE_LOG_LEVEL": "error"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(workers)]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "working"
        time.sleep(2)  # their models are loaded
        jobs = [
            Job("", "dream", f"tenant-{number}", {"ref": f"memory-{at}"}, unique=f"memory-{at}")
            for at in range(count)
            for number in range(TENANTS)
        ]
        began = time.perf_counter()
        queue.add_all(jobs)
        while any(queue.counts()[status] for status in ("waiting", "running")):
            if time.perf_counter() - began > 300:
                raise RuntimeError("the dreams did not end")
            time.sleep(0.05)
        return len(jobs) / (time.perf_counter() - began)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(60)
        server.drop_database(url)


def table(report: dict[str, Any]) -> str:
    """The figures as Markdown."""
    rows = (
        ("durable writes, 1 client", "single", "per_second"),
        (f"durable writes, {CLIENTS} clients", "clients", "per_second"),
        ("durable writes, batches of 1,000", "batches", "per_second"),
        ("search p50, 10,000 entries", "search_10000", "p50_ms"),
        ("search p99, 10,000 entries", "search_10000", "p99_ms"),
        ("search p50, 100,000 entries", "search_100000", "p50_ms"),
        ("search p99, 100,000 entries", "search_100000", "p99_ms"),
    )
    peers = list(report["results"])
    lines = ["| | " + " | ".join(TITLES[peer] for peer in peers) + " |", "|---|" + "---:|" * len(peers)]
    for title, name, figure in rows:
        cells = []
        for peer in peers:
            value = report["results"][peer].get(name, {}).get(figure)
            cells.append("-" if value is None else f"{value:,.0f}/s" if figure == "per_second" else f"{value:.1f} ms")
        if any(cell != "-" for cell in cells):
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines.append("")
    for entries, speed in report["dreams"].items():
        by_workers = ", ".join(f"{speed[n]:.1f}/s with {n} workers" for n in speed)
        share = f"{speed['2'] / speed['1'] / 2:.0%}"
        lines.append(f"Dreams of {entries} entries: {by_workers}; from 1 to 2 workers {share} of twice as many.")
    lines += [f"- {TITLES[peer]}: {reason}" for peer, reason in report["absent"].items()]
    lines += ["", "Machine: " + "; ".join(f"{name} {value}" for name, value in report["machine"].items()) + "."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, up to 10,000 entries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    report = measure(quick=given.quick)
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
