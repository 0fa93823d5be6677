"""The measured cost of memory on PostgreSQL, and the computed sizes for many tenants.

    python -m bench scale             bytes and processor time of an entry, then the sizing tables of docs/scale.md
    python -m bench scale --quick     from fewer entries
    python -m bench.scale --memory 1000000 --folder DIR    one memory of so many entries on SQLite: made in DIR unless it
                                      is there, and searched by new processes; not part of `make bench`

Bytes come from the server's own tables after real writes. How evenly tenants of very different sizes fall into hash
partitions is a seeded simulation: the same numbers on every machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.corpus import memories, questions, rare, rare_questions

SIZES = (1_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
TENANTS = (1, 100, 10_000)
NODE_BYTES = 2 * 2**40
"""What one node keeps before another is added: 2 TiB of a disk twice as large."""


def measured(entries: int) -> dict[str, Any]:
    """Bytes per entry by table with its indexes, and times per operation, from a real server."""
    import psycopg
    from tests.postgres import start_server

    import reverie

    with tempfile.TemporaryDirectory(prefix="reverie-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = start_server(Path(folder))
        url = server.make_database()
        texts = memories(entries, seed=21)
        with reverie.open(url) as memory:
            notes = memory.ref("notes")
            cpu, wall = time.process_time(), time.perf_counter()
            for at in range(0, entries, 500):
                notes.put_many(texts[at : at + 500])
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            asked = questions(60)
            notes.search(asked[0])
            began = time.process_time()
            for query in asked:
                notes.search(query)
            search = (time.process_time() - began) / len(asked)
        with psycopg.connect(server.url(url.split("/")[3].split("?")[0], "postgres"), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            rows = connection.execute(
                "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = 'reverie'"
            ).fetchall()
        server.drop_database(url)
    tables = {name: size / entries for name, size in rows if size / entries >= 1}
    text = sum(len(one.encode()) for one in texts) / entries
    return {
        "entries": entries,
        "text": text,
        "tables": tables,
        "bytes": sum(tables.values()),
        "write_cpu_us": cpu / entries * 1e6,
        "write_per_second": entries / wall,
        "search_cpu_ms": search * 1000,
    }


def balance(tenants: int, partitions: int, seed: int = 4) -> float:
    """How much fuller the fullest hash partition is than the average, for tenants whose sizes follow Zipf's law."""
    chance = random.Random(seed)
    sizes = [1 / rank for rank in range(1, tenants + 1)]
    chance.shuffle(sizes)
    held = [0.0] * partitions
    for number, size in enumerate(sizes):
        held[int(hashlib.sha256(str(number).encode()).hexdigest(), 16) % partitions] += size
    return max(held) / (sum(held) / partitions)


def sizing(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Disk and nodes for so many tenants with so many entries together."""
    rows = []
    for entries in SIZES:
        for tenants in TENANTS:
            disk = entries * found["bytes"]
            nodes = max(1, -(-int(disk) // NODE_BYTES))
            most = entries / tenants
            rows.append(
                {
                    "entries": entries,
                    "tenants": tenants,
                    "per_tenant": most,
                    "disk": disk,
                    "nodes": nodes,
                    "fits": _fits(most * found["bytes"]),
                }
            )
    return rows


def _fits(disk: float) -> str:
    if disk > NODE_BYTES:
        return "no: a tenant stays on one node; make it several tenants"
    return "yes"


def table(report: dict[str, Any]) -> str:
    """The figures as Markdown."""
    found = report["measured"]
    lines = [f"Measured with {found['entries']:,} entries of {found['text']:.0f} bytes of text:", ""]
    lines += ["| table with its indexes | bytes per entry |", "|---|---:|"]
    for name, size in sorted(found["tables"].items(), key=lambda item: -item[1]):
        lines.append(f"| {name} | {size:,.0f} |")
    lines.append(f"| **together** | **{found['bytes']:,.0f}** |")
    lines += ["", f"A write in batches takes {found['write_cpu_us']:,.0f} us of a host's processor; a search "
              f"{found['search_cpu_ms']:.1f} ms.", ""]  # fmt: skip
    lines += ["| entries | tenants | each | disk | nodes of 2 TiB | fits |", "|---:|---:|---:|---:|---:|---|"]
    for row in report["sizing"]:
        disk = f"{row['disk'] / 2**30:,.0f} GiB" if row["disk"] < 2**40 else f"{row['disk'] / 2**40:,.1f} TiB"
        lines.append(
            f"| {row['entries']:,} | {row['tenants']:,} | {row['per_tenant']:,.0f} | {disk} | {row['nodes']} | {row['fits']} |"
        )
    lines += ["", "| tenants | partitions | fullest against average |", "|---:|---:|---:|"]
    lines += [f"| {one['tenants']:,} | {one['partitions']} | {one['ratio']:.2f} |" for one in report["balance"]]
    return "\n".join(lines)


def one_memory(entries: int, folder: Path) -> dict[str, Any]:
    """A large memory, searched. Times are processor time; of threads and processes, searches a second by the clock."""
    import reverie

    found: dict[str, Any] = {"entries": entries}
    if not (folder / "reverie.db").exists():
        cpu = 0.0
        with reverie.open(folder) as memory:
            for at in range(0, entries, 20_000):
                texts = rare(min(20_000, entries - at), seed=1000 + at)
                began = time.process_time()
                for start in range(0, len(texts), 1000):
                    memory.ref("notes").put_many(texts[start : start + 1000])
                cpu += time.process_time() - began
            began = time.process_time()
            memory.ref("notes").search("the first search makes the files")
            found |= {"write_us": cpu / entries * 1e6, "index_s": time.process_time() - began}
    found |= _child(folder, "alone")
    one, four = _child(folder, "threads", "1")["per_second"], _child(folder, "threads", "4")["per_second"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: _child(folder, "threads", "1")["per_second"], range(2)))
    sizes = {path.suffix: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    files = sum(path.stat().st_size for path in folder.rglob("*.segment"))
    return {
        **found,
        "four_threads": four / one,
        "two_processes": sum(both) / one,
        "index_bytes": files / entries,
        "database_bytes": sizes[".db"] / entries,
    }


def _child(folder: Path, *what: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale", "--child", *what, "--folder", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def _searched(folder: Path, what: str, threads: int) -> dict[str, Any]:
    """In a process of its own: the first search and those after it, or searches by several threads."""
    import reverie

    asked = rare_questions(rare(200, seed=1000), 40)
    with tempfile.TemporaryDirectory() as empty, reverie.open(empty) as memory:
        memory.ref("notes").put("an empty store, and the embedder loaded")
        memory.ref("notes").search("embedder")
    before = _resident()
    with reverie.open(folder) as memory:
        notes = memory.ref("notes")
        began, clock = time.process_time(), time.perf_counter()
        notes.search(asked[0])
        first = {
            "first_ms": (time.process_time() - began) * 1000,
            "first_clock_ms": (time.perf_counter() - clock) * 1e3,
        }
        first["resident_mb"] = _resident() - before
        if what == "threads":
            clock = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(notes.search, asked * 3))
            return {"per_second": len(asked) * 3 / (time.perf_counter() - clock)}
        hybrid = statistics.median(_best(partial(notes.search, query)) for query in asked)
        words = statistics.median(_best(partial(notes.search, query, mode="words")) for query in asked)
        return {**first, "hybrid_ms": hybrid, "words_ms": words, "resident_after_mb": _resident() - before}


def _best(act: Callable[[], object]) -> float:
    """Milliseconds of processor time, the least of five: other work on the machine only ever adds."""
    took = []
    for _ in range(5):
        began = time.process_time()
        act()
        took.append(time.process_time() - began)
    return min(took) * 1000


def _resident() -> float:
    """Resident memory of this process, in MB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="from fewer entries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--memory", type=int, metavar="ENTRIES", help="one memory of so many entries, on SQLite")
    parser.add_argument("--folder", type=Path, help="where it is, or is made")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_searched(given.folder, given.child[0], int((given.child[1:] or ["1"])[0]))))
        return
    if given.memory:
        for name, value in one_memory(given.memory, given.folder).items():
            print(f"{name:20} {value:,.2f}")
        return
    found = measured(2_000 if given.quick else 20_000)
    spread = [
        {"tenants": tenants, "partitions": parts, "ratio": balance(tenants, parts)}
        for tenants in (100, 10_000)
        for parts in (16, 64)
    ]
    report = {"measured": found, "sizing": sizing(found), "balance": spread}
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
