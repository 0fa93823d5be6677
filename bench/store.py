"""Writing, reading and searching in Reverie, LangGraph's SqliteStore, mem0, and SQLite by hand.

    python -m bench store            the whole comparison
    python -m bench store --quick    fewer rounds, up to 10,000 entries
    python -m bench.store --only reverie,floor

Every peer runs in a process and an environment of its own and is given the same entries. The peers take turns in every
measurement of writing, and the median of the rounds counts, so that a machine that is busy for a while is busy for all
of them. Writes are durable: synchronous=FULL where a peer lets it be set (bench/peers/*.py says where not). Reading is
measured on a store in memory-backed storage where there is one, since loading 100,000 entries is not the question.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peers.environment import Child, NotAvailableError

PEERS = ("reverie", "floor", "langgraph_shipped", "langgraph", "mem0")
TITLES = {
    "reverie": "Reverie",
    "floor": "SQLite + FTS5 by hand",
    "langgraph_shipped": "LangGraph SqliteStore",
    "langgraph": "the same in WAL mode",
    "mem0": "mem0",
}
WRITE_ONLY = frozenset({"langgraph_shipped"})
"""Peers that read as another one does."""
CLIENTS = 64

Results = dict[str, dict[str, Any]]


def measure(peers: list[str], *, quick: bool) -> dict[str, Any]:
    """Figures of every peer, and why some have none."""
    children: dict[str, Child] = {}
    absent: dict[str, str] = {}
    for peer in peers:
        try:
            children[peer] = Child(peer)
        except NotAvailableError as reason:
            absent[peer] = f"not available: {reason}"
    disk = Path(tempfile.mkdtemp(prefix="reverie-bench-"))
    memory = Path(tempfile.mkdtemp(prefix="reverie-bench-", dir=_memory_backed()))
    results: Results = {peer: {} for peer in children}
    try:
        _writing(children, results, disk, rounds=2 if quick else 3)
        for size in (10_000,) if quick else (10_000, 100_000):
            _reading(children, results, memory, size)
    finally:
        for child in children.values():
            child.close()
        shutil.rmtree(disk, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)
    versions = {peer: child.versions for peer, child in children.items()}
    return {"machine": machine(), "versions": versions, "absent": absent, "results": results}


def _writing(children: dict[str, Child], results: Results, disk: Path, *, rounds: int) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "single": {"do": "single", "count": 1500, "seconds": 4},
        "clients": {"do": "clients", "threads": CLIENTS, "count": 25_600, "seconds": 4},
        "tasks": {"do": "tasks", "tasks": CLIENTS, "count": 25_600, "seconds": 4},
        "batches": {"do": "batches", "size": 1000, "count": 20, "seconds": 4},
    }
    for name, command in kinds.items():
        found: dict[str, list[dict[str, Any]]] = {peer: [] for peer in children}
        for number in range(rounds):
            for peer, child in children.items():
                _say(f"{name}, round {number + 1} of {rounds}, {peer}")
                found[peer].append(child.ask(**command, folder=str(disk / f"{peer}-{name}-{number}")))
        for peer, answers in found.items():
            results[peer][name] = _middle(answers)


def _reading(children: dict[str, Child], results: Results, memory: Path, size: int) -> None:
    for peer, child in children.items():
        if peer in WRITE_ONLY:
            continue
        _say(f"{size} entries, {peer}")
        seconds = 240 if size == 10_000 else 300  # who is slow with the first is not waited for with the rest
        loaded = child.ask("load", folder=str(memory / peer), entries=size, seconds=seconds)
        if "error" in loaded or loaded["entries"] < size:
            why = loaded.get("error") or f"only {loaded['entries']:,} entries loaded in the time given"
            results[peer][f"search_{size}"] = {"error": why}
            if size == 10_000:
                results[peer]["get"] = results[peer]["list"] = {"error": why}
            continue
        if size == 10_000:
            read = child.ask("read", gets=2000, lists=100)
            results[peer] |= {"get": read.get("get", read), "list": read.get("list", read)}
        results[peer][f"search_{size}"] = child.ask("find", queries=200, seconds=60)


def _middle(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The median round; the spread beside it."""
    good = [answer for answer in answers if "error" not in answer]
    if not good:
        return answers[0]
    speeds = [answer["per_second"] for answer in good]
    return {
        "per_second": statistics.median(speeds),
        "slowest": min(speeds),
        "fastest": max(speeds),
        "cpu_us": statistics.median(answer["cpu_us"] for answer in good),
    }


def machine() -> dict[str, str]:
    """What it was measured on."""
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        names = [line.split(":", 1)[1].strip() for line in facts.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load at the end": load,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


ROWS: tuple[tuple[str, str, str, bool], ...] = (
    ("durable writes, 1 client", "single", "per_second", True),
    (f"durable writes, {CLIENTS} clients", "clients", "per_second", True),
    (f"durable writes, {CLIENTS} asyncio tasks", "tasks", "per_second", True),
    ("durable writes, batches of 1,000", "batches", "per_second", True),
    ("get by id, 10,000 entries", "get", "per_second", True),
    ("list of 100, 10,000 entries", "list", "per_second", True),
    ("search p50, 10,000 entries", "search_10000", "p50_ms", False),
    ("search p99, 10,000 entries", "search_10000", "p99_ms", False),
    ("search p50, 100,000 entries", "search_100000", "p50_ms", False),
    ("search p99, 100,000 entries", "search_100000", "p99_ms", False),
)


def table(report: dict[str, Any]) -> str:
    """The figures as Markdown: absolute, and in brackets how many times better Reverie is (below 1: worse)."""
    results: Results = report["results"]
    peers = [peer for peer in PEERS if peer in results]
    lines = [
        "| | " + " | ".join(TITLES[peer] for peer in peers) + " |",
        "|---|" + "---:|" * len(peers),
    ]
    notes: list[str] = []
    for title, name, figure, more_is_better in ROWS:
        if not any(name in results[peer] for peer in peers):
            continue
        own = results.get("reverie", {}).get(name, {}).get(figure)
        cells = []
        for peer in peers:
            value = results[peer].get(name, {})
            if figure not in value:
                cells.append("-")
                if peer in WRITE_ONLY:
                    continue
                notes.append(f"{TITLES[peer]}, {title}: {value.get('error', 'not measured')}")
                continue
            text = f"{value[figure]:,.0f}/s" if more_is_better else f"{value[figure]:.1f} ms"
            if peer != "reverie" and own:
                ratio = own / value[figure] if more_is_better else value[figure] / own
                text += f" ({ratio:.2f})" if ratio < 10 else f" ({ratio:.0f})"
            cells.append(text)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    cpu = [
        f"{TITLES[p]} {results[p]['single']['cpu_us']:.0f}" for p in peers if "cpu_us" in results[p].get("single", {})
    ]
    lines += ["", "In brackets: how many times better Reverie is (below 1: worse)."]
    if cpu:
        lines.append(f"Processor time of a single write, in microseconds: {', '.join(cpu)}.")
    lines += [f"- {note}" for note in dict.fromkeys(notes)]
    lines += [f"- {TITLES[peer]}: {reason}" for peer, reason in report["absent"].items()]
    lines += ["", "Machine: " + "; ".join(f"{name} {value}" for name, value in report["machine"].items()) + "."]
    for peer in peers:
        versions = ", ".join(f"{name} {value}" for name, value in report["versions"][peer].items())
        lines.append(f"{TITLES[peer]}: {versions}.")
    return "\n".join(lines)


def _memory_backed() -> str | None:
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and shutil.disk_usage(shared).free > 4 * 2**30 else None


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, up to 10,000 entries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--only", default=",".join(PEERS), help="peers, separated by commas")
    given = parser.parse_args()
    wanted = [peer for peer in PEERS if peer in given.only.split(",")]
    report = measure(wanted, quick=given.quick)
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
