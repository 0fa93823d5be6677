"""Puts and searches through HTTP, next to a bare route that stores the same JSON in SQLite.

    python -m bench http             5 rounds
    python -m bench http --quick     2 short rounds
    python -m bench http --json      figures as JSON

One server is Reverie with default settings, apart from the limits of a key. The other is a single Starlette route under
the same uvicorn that parses the body and commits one row, durably (WAL, synchronous=FULL), before it answers. Both take
puts from 1, 16 and 64 clients, in turn within each round, so that other load on the machine affects both; the figure is
the median of the rounds' ratios. Processor time is that of the server process alone. Searches run over 10,000 entries,
through HTTP and then in this process on the same file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.peers.corpus import memories, questions

API = "/v1/host/reverie"
CLIENTS = (1, 16, 64)
ENTRIES = 10_000
SERVERS = ("reverie", "bare")
_HEADER_END = b"\r\n\r\n"
_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server process, and the requests it is sent."""

    def __init__(self, process: subprocess.Popen[str], url: str, path: str, key: str) -> None:
        self.process = process
        host, port = url.removeprefix("http://").split(":")
        self.address = host, int(port)
        self._head = f"Host: {host}:{port}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        self._put = path

    def put(self, text: str) -> bytes:
        """The request that stores a text."""
        return self.post(self._put, {"content": text, "tags": ["bench"]})

    def post(self, path: str, body: Any) -> bytes:
        """A request as bytes."""
        sent = json.dumps(body).encode()
        return f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent

    def cpu(self) -> float:
        """Seconds of processor time the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """The body of the answer to one request, which must succeed."""
    writer.write(request)
    head = await reader.readuntil(_HEADER_END)
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    if not head.startswith(b"HTTP/1.1 2"):
        raise AssertionError(f"answered {head[:16]!r} {body[:300]!r}")
    return body


async def _puts(server: Server, clients: int, seconds: float) -> tuple[int, float, float]:
    texts = cycle(memories(2000))
    requests = cycle([server.put(text) for text in islice(texts, 2000)])
    until, done = 0.0, 0

    async def client() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(*server.address)
        await answered(reader, writer, next(requests))
        await ready.wait()
        while time.perf_counter() < until:
            await answered(reader, writer, next(requests))
            done += 1
        writer.close()

    ready = asyncio.Event()
    tasks = [asyncio.ensure_future(client()) for _ in range(clients)]
    await asyncio.sleep(0.2)
    spent, started = server.cpu(), time.perf_counter()
    until = started + seconds
    ready.set()
    await asyncio.gather(*tasks)
    return done, time.perf_counter() - started, server.cpu() - spent


def puts(server: Server, clients: int, seconds: float) -> dict[str, float]:
    """Answered puts a second, and milliseconds of processor time for each."""
    done, took, cpu = asyncio.run(_puts(server, clients, seconds))
    return {"per_second": done / took, "cpu_ms": cpu / max(done, 1) * 1000}


async def _searches(server: Server, asked: list[str]) -> list[float]:
    reader, writer = await asyncio.open_connection(*server.address)
    took: list[float] = []
    for question in asked:
        request = server.post(f"{API}/memory/searched/search", {"query": question})
        started = time.perf_counter()
        await answered(reader, writer, request)
        took.append((time.perf_counter() - started) * 1000)
    writer.close()
    return took


def searches(server: Server, folder: Path, count: int) -> dict[str, float]:
    """Milliseconds of a search through HTTP and in the library, on the same entries: the clock and the processor.

    In turns of twenty, so that a machine that is busy is busy for both.
    """
    import reverie

    asked = questions(count)
    taken: dict[str, list[float]] = {"http_ms": [], "library_ms": [], "http_cpu_ms": [], "library_cpu_ms": []}
    with reverie.open(folder, tenant="bench") as memory:
        notes = memory.ref("searched")
        for start in range(-20, count, 20):  # the first turn warms both and is not counted
            turn = asked[max(start, 0) : max(start, 0) + 20]
            before = server.cpu()
            through = asyncio.run(_searches(server, turn))
            server_cpu = (server.cpu() - before) / len(turn) * 1000
            direct: list[float] = []
            spent = time.process_time()
            for question in turn:
                started = time.perf_counter()
                notes.search(question)
                direct.append((time.perf_counter() - started) * 1000)
            own_cpu = (time.process_time() - spent) / len(turn) * 1000
            if start >= 0:
                taken["http_ms"] += through
                taken["library_ms"] += direct
                taken["http_cpu_ms"].append(server_cpu)
                taken["library_cpu_ms"].append(own_cpu)
    return {name: statistics.median(values) for name, values in taken.items()}


def _started(command: list[str], path: str, key: str) -> Server:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    quiet |= {"REVERIE_RATE_PER_SECOND": "0", "REVERIE_ENTRIES_PER_SECOND": "0"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=quiet, bufsize=1
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"listening on (\S+)", line):
            return Server(process, found[1], path, key)
    raise AssertionError("the server did not start")


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, Server]]:
    """Both, each on a database of its own on the same disk."""
    from reverie.app import build_host
    from reverie.settings import Settings

    host = build_host(Settings.load({}, data=str(folder / "reverie")))
    key = host.keys.create("bench").key
    host.close()
    ours = [sys.executable, "-m", "reverie.http", "--port", "0", "--data", str(folder / "reverie")]
    bare = [sys.executable, "-m", "bench.http", "--bare", str(folder / "bare.db")]
    running: dict[str, Server] = {}
    try:
        running["reverie"] = _started(ours, f"{API}/memory/notes/entries", key)
        running["bare"] = _started(bare, "/entries", key)
        yield running
    finally:
        for server in running.values():
            server.process.terminate()
            server.process.wait()


def bare(path: str) -> None:
    """Serve the bare route until a signal comes."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from reverie.http.run import bind

    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(
        "CREATE TABLE entry (n INTEGER PRIMARY KEY, content TEXT NOT NULL, tags TEXT NOT NULL, at REAL NOT NULL)"
    )

    async def put(request: Request) -> JSONResponse:
        body = json.loads(await request.body())
        row = (body["content"], json.dumps(body["tags"]), time.time())
        made = db.execute("INSERT INTO entry (content, tags, at) VALUES (?, ?, ?)", row)
        return JSONResponse({"id": made.lastrowid}, 201)

    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        Starlette(routes=[Route("/entries", put, methods=["POST"])]), log_config=None, access_log=False
    )
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


def _fill(server: Server) -> None:
    async def go() -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        texts = memories(ENTRIES)
        for start in range(0, ENTRIES, 1000):
            entries = [{"content": text} for text in texts[start : start + 1000]]
            await answered(reader, writer, server.post(f"{API}/memory/searched/entries", {"entries": entries}))
        writer.close()

    asyncio.run(go())


def measure(*, rounds: int, seconds: float, queries: int) -> dict[str, Any]:
    """Figures by number of clients, and those of searches."""
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as name, servers(Path(name)) as running:
        found: dict[str, Any] = {}
        for clients in CLIENTS:
            taken: dict[str, list[dict[str, float]]] = {server: [] for server in SERVERS}
            for _ in range(rounds):
                for server in SERVERS:
                    taken[server].append(puts(running[server], clients, seconds))
            found[str(clients)] = _compared(taken)
        _fill(running["reverie"])
        found["search"] = searches(running["reverie"], Path(name) / "reverie", queries)
        found["load"] = os.getloadavg()[0]
        return found


def _compared(taken: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    middle: Callable[[str, str], float] = lambda server, figure: statistics.median(  # noqa: E731
        row[figure] for row in taken[server]
    )
    pairs = list(zip(taken["reverie"], taken["bare"], strict=True))
    return {
        "reverie_per_second": middle("reverie", "per_second"),
        "bare_per_second": middle("bare", "per_second"),
        "ratio": statistics.median(ours["per_second"] / other["per_second"] for ours, other in pairs),
        "reverie_cpu_ms": middle("reverie", "cpu_ms"),
        "bare_cpu_ms": middle("bare", "cpu_ms"),
        "cpu_ratio": statistics.median(other["cpu_ms"] / ours["cpu_ms"] for ours, other in pairs),
    }


def show(found: dict[str, Any]) -> None:
    """The figures as tables of Markdown."""
    print(f"Load of the machine at the end: {found['load']:.1f}\n")
    print("| puts | ours, a second | bare route | ratio | ours, processor ms | bare route | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for clients in CLIENTS:
        row = found[str(clients)]
        print(
            f"| {clients} client{'s' if clients > 1 else ''} | {row['reverie_per_second']:,.0f} "
            f"| {row['bare_per_second']:,.0f} | {row['ratio']:.2f} | {row['reverie_cpu_ms']:.2f} "
            f"| {row['bare_cpu_ms']:.2f} | {row['cpu_ratio']:.2f} |"
        )
    row = found["search"]
    print("\n| a search over 10,000 entries | through HTTP | library | more |\n|---|---:|---:|---:|")
    for name, figure in (("median, ms", "ms"), ("processor, ms", "cpu_ms")):
        http, library = row[f"http_{figure}"], row[f"library_{figure}"]
        print(f"| {name} | {http:.2f} | {library:.2f} | {http - library:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--bare", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        return bare(given.bare)
    found = measure(
        rounds=2 if given.quick else 5, seconds=1.0 if given.quick else 3.0, queries=100 if given.quick else 400
    )
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return None


if __name__ == "__main__":
    main()
