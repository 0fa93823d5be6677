"""Isolation of load: the p99 of tenant B alone, and while tenant A attacks the same host.

    python -m bench.contention              every attack; 100 requests of each kind of B before it, and 100 during it
    python -m bench.contention --quick      15 of each kind, so that a p99 is the maximum
    python -m bench.contention --only NAME  this attack alone; may be repeated
    python -m bench.contention --json       figures as JSON
    python -m bench.contention --processor  processor time of the host while B waits, for machines that do other work

Each attack has a host with default settings on SQLite, in a process of its own, with 5,000 entries of A. B sends on one
connection, in turn: a read of an entry, a search, a put, a liveness probe. A attacks from another process with many
connections and one key, as fast as it is answered; a refusal (413, 429) counts as an answer. A's process yields to the
host and to B (nice 10), since on a machine of its own it would take no processor time from them. The figure is a ratio
within one run: B's p99 during the attack, divided by its p99 before the attacks on all hosts together.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

API = "/v1/host/reverie"
OWN = 5_000
"""Entries of A."""
JOBS = "jobs of the worker"
"""An attack without requests: dreams of 60 memories, which the host's own worker runs."""
STREAMS = "300 streams and puts"
Request = tuple[str, str, bytes]


def _post(path: str, body: Any) -> Request:
    return "POST", path, body if isinstance(body, bytes) else json.dumps(body).encode()


def _envelope(content: str) -> dict[str, Any]:
    payload = {"mode": "committed", "type": "finding", "content": content}
    members = {"protocol": "akashik", "version": "0.1.0", "id": "m", "operation": "RECORD", "agent_id": "a"}
    return {**members, "session_id": None, "epoch": 0, "payload": payload}


def attacks() -> dict[str, tuple[int, Callable[[int], Request]]]:
    """By name: connections, and the request of each."""
    notes = f"{API}/memory/notes"
    text = "the pump was checked, and the valve is closed; " * 100_000
    invalid = _post(f"{notes}/entries", {"entries": [{"content": 1, "more": 2}] * 150_000})
    tiny = _post(f"{notes}/entries", {"entries": [{"content": "a"}] * 200_000})
    unknown = _post(f"{notes}/search", {"query": "pump", "more": text})
    record = _post("/akashik/v1/record", _envelope(text))
    tool = {"name": "remember", "arguments": {"content": text}}
    remember = _post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool})
    batch = _post(f"{notes}/entries", {"entries": [{"content": f"Pump {n} runs at {n} bar."} for n in range(1000)]})
    numbers = count(1)

    turns = [count() for _ in range(64)]

    def dream(at: int) -> Request:
        """Entries, then a dream of them."""
        if next(turns[at]) % 2:
            return _post(f"{API}/memory/d{at}/dreams", {})
        return _post(f"{API}/memory/d{at}/entries", {"entries": [_told(at, n) for n in range(200)]})

    def put(_: int) -> Request:
        return _post(f"{notes}/entries", {"content": f"Note {next(numbers)}: the pump was checked today."})

    return {
        "150,000 invalid entries": (4, lambda _: invalid),
        "200,000 tiny entries": (4, lambda _: tiny),
        "5 MB unknown member": (4, lambda _: unknown),
        "5 MB Akashik payload": (4, lambda _: record),
        "5 MB MCP argument": (4, lambda _: remember),
        "puts": (64, put),
        "puts to 64 memories": (
            64,
            lambda at: _post(f"{API}/memory/m{at}/entries", {"content": "A pump was checked."}),
        ),
        "batches of 1,000": (4, lambda _: batch),
        "searches": (
            64,
            lambda _: _post(f"{notes}/search", {"query": "which pump runs at what pressure", "limit": 50}),
        ),
        "dreams (plans)": (16, lambda _: _post(f"{notes}/dreams", {"plan": True})),
        "dreams": (16, dream),
        "exports": (16, lambda _: ("GET", f"{API}/export", b"")),
        "scans": (16, lambda _: _post(f"{API}/scan", {"dry_run": True})),
        "proofs": (16, lambda _: ("GET", f"{API}/audit/verify", b"")),
    }


def _told(at: int, n: int) -> dict[str, str]:
    """An entry that a dream has something to do with."""
    return {"content": f"On day {n} of round {at} we decided that hall {n % 7} keeps pump {n}, because line {n} leaks."}


class Connection:
    """One connection of a caller, opened again when the host closes it."""

    def __init__(self, url: str, key: str) -> None:
        self._place = urlsplit(url).netloc
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._http = http.client.HTTPConnection(self._place, timeout=120)

    def ask(self, request: Request) -> tuple[int, bytes]:
        method, path, body = request
        for _ in range(2):
            try:
                self._http.request(method, path, body, self._headers)
                answer = self._http.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self._http.close()
        return 0, b""

    def stream(self) -> int:
        """Open an event stream and leave it open."""
        self._http.request("GET", f"{API}/events", headers=self._headers | {"Accept": "text/event-stream"})
        return self._http.getresponse().status


def attack(name: str, url: str, key: str) -> None:
    """Attack until standard input closes; then print how often the host answered what."""
    os.nice(10)
    answers: Counter[int] = Counter()
    over = threading.Event()
    streams: list[Connection] = []
    if name == STREAMS:
        for _ in range(300):
            streams.append(Connection(url, key))
            answers[streams[-1].stream()] += 1
        connections, request = attacks()["puts"]
    else:
        connections, request = attacks()[name]

    def go(at: int) -> None:
        connection = Connection(url, key)
        while not over.is_set():
            answers[connection.ask(request(at))[0]] += 1

    for at in range(connections):
        threading.Thread(target=go, args=(at,), daemon=True).start()
    print("attacking", flush=True)
    sys.stdin.read()
    over.set()
    print(json.dumps(dict(answers.copy())), flush=True)
    os._exit(0)


@contextmanager
def attacked(name: str, url: str, key: str) -> Iterator[Counter[str]]:
    """A under way, in a process of its own; afterwards, how it was answered."""
    answers: Counter[str] = Counter()
    command = [sys.executable, "-m", "bench.contention", "--attack", name, "--url", url, "--key", key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield answers
        finally:
            child.stdin.close()
            with suppress(ValueError):
                answers.update(json.loads(child.stdout.readline()))


class Victim:
    """Tenant B: asks, and measures."""

    def __init__(self, url: str, key: str, now: Callable[[], float]) -> None:
        self._connection = Connection(url, key)
        self._now = now
        stored = self._connection.ask(_post(f"{API}/memory/mine/entries", {"content": "The valve is closed."}))[1]
        one = f"{API}/memory/mine/entries/{json.loads(stored)['id']}"
        self._asks: dict[str, Request] = {
            "get": ("GET", one, b""),
            "search": _post(f"{API}/memory/mine/search", {"query": "valve"}),
            "put": _post(f"{API}/memory/mine/entries", {"content": "The valve is open."}),
            "healthz": ("GET", "/healthz", b""),
        }

    def ask(self, rounds: int) -> dict[str, list[float]]:
        """Milliseconds of each request, by kind."""
        took: dict[str, list[float]] = {kind: [] for kind in self._asks}
        for _ in range(rounds):
            for kind, request in self._asks.items():
                started = self._now()
                status, _body = self._connection.ask(request)
                took[kind].append((self._now() - started) * 1000)
                if status not in (200, 201):
                    raise AssertionError(f"B was answered {status} to {kind}")
        return took


def p(share: float, values: list[float]) -> float:
    """The value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def processor_of(pid: int) -> Callable[[], float]:
    """Seconds of processor time a process has used (Linux: its clock, as clock_getcpuclockid(3) names it)."""
    clock = (~pid << 3) | 2
    return lambda: time.clock_gettime(clock)


def measure(*, rounds: int, names: list[str], processor: bool = False) -> dict[str, Any]:
    """Figures by attack, each on a host of its own; `idle` is B alone, on all of them, before the attack."""
    idle: dict[str, list[float]] = {}
    under: dict[str, tuple[dict[str, list[float]], Counter[str]]] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            url, keys, server = _started(Path(folder))
            try:
                _fill(url, keys["a"])
                victim = Victim(url, keys["b"], processor_of(server.pid) if processor else time.perf_counter)
                victim.ask(10)
                for kind, values in victim.ask(rounds).items():
                    idle.setdefault(kind, []).extend(values)
                with ExitStack() as stack:
                    answers = stack.enter_context(attacked(name, url, keys["a"])) if name != JOBS else Counter()
                    if name == JOBS:
                        answers["jobs"] = _queue_jobs(Path(folder))
                    time.sleep(0.5)
                    victim.ask(1)
                    under[name] = victim.ask(rounds), answers
            finally:
                server.kill()
                server.wait()
    found: dict[str, Any] = {"idle": _figures(idle), "load": os.getloadavg()[0], "attacks": {}}
    for name, (took, answers) in under.items():
        ratios = {kind: round(p(0.99, took[kind]) / p(0.99, idle[kind]), 2) for kind in took}
        found["attacks"][name] = {**_figures(took), "ratio of p99": ratios, "answers": dict(answers)}
    return found


def _figures(took: dict[str, list[float]]) -> dict[str, Any]:
    return {kind: {"p50": round(p(0.5, values), 2), "p99": round(p(0.99, values), 2)} for kind, values in took.items()}


def _started(folder: Path) -> tuple[str, dict[str, str], subprocess.Popen[str]]:
    from reverie.app import build_host
    from reverie.core.actor import Actor
    from reverie.settings import Settings

    host = build_host(Settings.load({}, data=str(folder)))
    keys = {tenant: host.keys.create(tenant).key for tenant in ("a", "b")}
    for tenant in keys:  # the figures do not depend on the hour
        host.rules.set_policy(Actor(tenant, "bench"), {"nightly": "off"})
    host.close()
    command = [sys.executable, "-m", "reverie.http", "--port", "0", "--data", str(folder)]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=quiet | {"REVERIE_LOG_LEVEL": "error"},
    )
    assert server.stdout is not None
    for line in server.stdout:
        if found := re.match(r"listening on (\S+)", line):
            return found[1], keys, server
    raise AssertionError("the server did not start")


def _queue_jobs(folder: Path) -> int:
    """Add dreams to the queue of A; returns how many, once the worker has begun."""
    from reverie.app import build_host
    from reverie.core.actor import Actor
    from reverie.core.entry import Draft
    from reverie.settings import Settings

    host, actor = build_host(Settings.load({}, data=str(folder))), Actor("a", "bench")
    try:
        for at in range(60):
            host.entries.put(actor, f"j{at}", [Draft(_told(at, n)["content"]) for n in range(400)])
            host.jobs.add(actor, "dream", {"ref": f"j{at}"})
        while len(left := host.jobs.all(actor)) == 60 and all(job.status == "waiting" for job in left):
            time.sleep(0.1)
        return len(left)
    finally:
        host.close()


def _fill(url: str, key: str) -> None:
    connection = Connection(url, key)
    for start in range(0, OWN, 1000):
        notes = [{"content": f"Pump {n} of hall {n % 7} runs at {n % 90} bar."} for n in range(start, start + 1000)]
        status, _ = connection.ask(_post(f"{API}/memory/notes/entries", {"entries": notes}))
        assert status == 201, status
    # The first dream of a process loads its modules and the tables of the tokenizer: half a second, once.
    connection.ask(_post(f"{API}/memory/first/entries", {"entries": [_told(7, n // 2) for n in range(20)]}))
    connection.ask(_post(f"{API}/memory/first/dreams", {}))


def show(found: dict[str, Any]) -> None:
    """The figures as a table of Markdown."""
    idle = found["idle"]
    kinds = list(idle)
    print(f"Load of the machine at the end: {found['load']:.1f}\n")
    print(f"| B, p99 in ms (ratio to idle) | {' | '.join(kinds)} | A was answered |")
    print(f"|---|{'---:|' * len(kinds)}---|")
    alone = [f"{idle[kind]['p99']:.1f}" for kind in kinds]
    print(f"| alone | {' | '.join(alone)} | |")
    for name, row in found["attacks"].items():
        cells = [f"{row[kind]['p99']:.1f} ({row['ratio of p99'][kind]:.1f})" for kind in kinds]
        said = ", ".join(f"{count} x {status}" for status, count in sorted(row["answers"].items()))
        print(f"| {name} | {' | '.join(cells)} | {said} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="15 requests of each kind instead of 100")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--processor", action="store_true", help="processor time of the host while B waits")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this attack; may be repeated")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attack:
        return attack(given.attack, given.url, given.key)
    every = [*attacks(), STREAMS, JOBS]
    if unknown := [name for name in given.only if name not in every]:
        parser.error(f"no attack is called {', '.join(unknown)}. There are: {'; '.join(every)}")
    names = given.only or every
    found = measure(rounds=15 if given.quick else 100, names=names, processor=given.processor)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return None


if __name__ == "__main__":
    main()
