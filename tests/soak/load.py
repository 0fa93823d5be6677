"""Mixed load over HTTP, as much stored as forgotten, and what it costs quarter by quarter.

Callers take turns at everything a host does: puts, searches, lists, context, dreams, forgets, MCP calls and bad
requests. Subjects come and go: a new one for each that is forgotten, so that the memory stays as large as it is and
only the log grows. Cost is measured where neighbours on the machine do not count: processor time of the server for
each request, its resident memory, its files for each event of the log. Latency is measured too.
"""

from __future__ import annotations

import random
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from tests.crash.served import Client

KINDS = frozenset({"put", "search", "list", "context", "mcp", "bad", "dream", "forget"})
REFS = ("inbox", "project", "diary")
SUBJECTS = 24
"""How many subjects there are at a time."""
TOKEN = re.compile(r"zq[0-9a-f]{12}")
CHATTER = (
    "Well, the weather was nice and we talked about this and that for a while.",
    "There was coffee as well, as there usually is on such days.",
    "Somebody said that the car park had been quite full again in the morning.",
    "We agreed that it would be good to talk about everything again at some point.",
    "Then the phone rang, and after that there was not much left to say.",
)
"""What people say around the matter: a dream leaves it out."""
BAD: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("POST", "memory/inbox/entries", {"content": b"{not json", "headers": {"Content-Type": "application/json"}}, 400),
    ("POST", "memory/inbox/entries", {"json": {"content": "x", "unknown": 1}}, 400),
    ("POST", "memory/inbox/entries", {"content": b"plain", "headers": {"Content-Type": "text/plain"}}, 415),
    ("POST", "memory/inbox/search", {"json": {"query": ""}}, 400),
    ("GET", "memory/inbox/entries", {"params": {"cursor": "nonsense"}}, 400),
    ("GET", "memory/inbox/entries/none", {}, 404),
    ("GET", "nowhere", {}, 404),
    ("DELETE", "stats", {}, 405),
    ("GET", "stats", {"headers": {"Authorization": "Bearer wrong"}}, 401),
    ("GET", "stats", {"headers": {"Origin": "https://evil.example"}}, 403),
    ("POST", "/mcp", {"content": b"[", "headers": {"Content-Type": "application/json"}}, 400),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment."""

    at: float
    requests: int
    processor: float
    resident: int
    files: int
    events: int


@dataclass
class Load:
    """What the callers share, and what was measured."""

    first_subject: int = 0
    requests: int = 0
    kept: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Word: (memory, id, subject) of what is stored and not forgotten."""
    forgotten: frozenset[str] = frozenset()
    """Words that a certificate says are gone."""
    took: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Kind: (when, seconds)."""
    samples: list[Sample] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    dreams: Counter[int] = field(default_factory=Counter)
    """How dreams were answered: 201 made one, 204 found nothing to do."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def subject(self, chance: random.Random) -> int:
        return self.first_subject + chance.randrange(SUBJECTS)


class Caller:
    """One program among several."""

    def __init__(self, load: Load, client: Client, seed: str, *, pause: float) -> None:
        self.load, self.client, self.pause = load, client, pause
        self.chance = random.Random(seed)
        self._numbers = count()

    def run(self, over: threading.Event) -> None:
        moves: list[tuple[Callable[[], None], int]] = [
            (self.put, 34),
            (self.search, 20),
            (self.list, 12),
            (self.context, 6),
            (self.remember, 6),
            (self.recall, 6),
            (self.bad, 10),
            (self.dream, 2),
            (self.forget, 4),
        ]
        while not over.wait(self.pause * self.chance.random() * 2):
            move = self.chance.choices([move for move, _ in moves], [weight for _, weight in moves])[0]
            move()

    def _send(self, kind: str, method: str, path: str, *allowed: int, **options: Any) -> Any:
        gone = self.load.forgotten
        began = time.monotonic()
        answer = self.client.send(method, path, **options)
        ended = time.monotonic()
        with self.load.lock:
            self.load.requests += 1
            self.load.statuses[answer.status_code] += 1
            self.load.took.setdefault(kind, []).append((ended, ended - began))
        assert answer.status_code in allowed, (kind, answer.status_code, answer.text[:300])
        assert gone.isdisjoint(TOKEN.findall(answer.text)), (kind, "what a certificate says is gone")
        return answer

    def _words(self, subject: int) -> tuple[str, str]:
        token = f"zq{self.chance.getrandbits(48):012x}"
        part, port = next(self._numbers), self.chance.randrange(1000, 9000)
        said = f"Customer {subject} asked on day {part} for {token}: the pump at port {port} is to be replaced."
        return token, " ".join((said, *self.chance.sample(CHATTER, 3)))

    def put(self) -> None:
        subject, ref = self.load.subject(self.chance), self.chance.choice(REFS)
        token, words = self._words(subject)
        body = {"content": words, "subject": f"customer-{subject}", "tags": ["load"]}
        answer = self._send("put", "POST", f"memory/{ref}/entries", 201, json=body)
        self.load.kept[token] = (ref, answer.json()["id"], subject)

    def search(self) -> None:
        query = f"pump of customer {self.load.subject(self.chance)}"
        self._send("search", "POST", f"memory/{self.chance.choice(REFS)}/search", 200, json={"query": query})

    def list(self) -> None:
        self._send("list", "GET", f"memory/{self.chance.choice(REFS)}/entries", 200, params={"limit": 50})

    def context(self) -> None:
        body = {"purpose": "which pumps are to be replaced", "budget": 600}
        self._send("context", "POST", f"memory/{self.chance.choice(REFS)}/context", 200, json=body)

    def _tool(self, name: str, arguments: dict[str, Any]) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {"Accept": "application/json, text/event-stream"}
        answer = self._send("mcp", "POST", "/mcp", 200, json=body, headers=headers).json()
        assert not answer["result"].get("isError"), answer

    def remember(self) -> None:
        subject = self.load.subject(self.chance)
        _, words = self._words(subject)
        self._tool("remember", {"content": TOKEN.sub("it", words), "subject": f"customer-{subject}", "ref": "inbox"})

    def recall(self) -> None:
        self._tool("recall", {"query": "which pump is to be replaced", "ref": "project"})

    def bad(self) -> None:
        method, path, options, status = self.chance.choice(BAD)
        self._send("bad", method, path, status, **options)

    def dream(self) -> None:
        ref = self.chance.choice(REFS)
        answer = self._send("dream", "POST", f"memory/{ref}/dreams", 200, 201, 204, 409, 422, json={"fit": True})
        with self.load.lock:
            self.load.dreams[answer.status_code] += 1

    def forget(self) -> None:
        """Forget the oldest subject; from here on nothing new is stored about it."""
        with self.load.lock:
            subject = self.load.first_subject
            self.load.first_subject += 1
        gone = [token for token, (_, _, about) in list(self.load.kept.items()) if about == subject]
        self._send("forget", "POST", "memory/forget", 200, json={"subject": f"customer-{subject}"})
        with self.load.lock:
            for token in gone:
                self.load.kept.pop(token, None)
            self.load.forgotten = self.load.forgotten.union(gone)


def sample(load: Load, pid: int, data: Path, events: int) -> Sample:
    """Measure the server."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    files = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    made = Sample(time.monotonic(), load.requests, (int(fields[11]) + int(fields[12])) / 100, resident, files, events)
    load.samples.append(made)
    return made


@dataclass(frozen=True, slots=True)
class Quarter:
    """One quarter of a run, by medians."""

    requests: int
    processor_ms: float
    """Processor time of the server for one request."""
    resident_mb: float
    file_mb: float
    """At its end."""
    median_ms: dict[str, float]
    p95_ms: dict[str, float]


def quarters(load: Load) -> list[Quarter]:
    """The run in four parts of the same length."""
    began, ended = load.samples[0].at, load.samples[-1].at
    made: list[Quarter] = []
    for number in range(4):
        first, last = began + (ended - began) * number / 4, began + (ended - began) * (number + 1) / 4
        within = [one for one in load.samples if first <= one.at <= last]
        busy = [
            (after.processor - before.processor) / (after.requests - before.requests)
            for before, after in pairwise(within)
            if after.requests > before.requests
        ]
        took = {
            kind: sorted(seconds for at, seconds in times if first <= at <= last) for kind, times in load.took.items()
        }
        made.append(
            Quarter(
                requests=within[-1].requests - within[0].requests,
                processor_ms=1000 * statistics.median(busy),
                resident_mb=statistics.median(one.resident for one in within) / 2**20,
                file_mb=within[-1].files / 2**20,
                median_ms={kind: 1000 * statistics.median(times) for kind, times in took.items() if times},
                p95_ms={kind: 1000 * times[int(len(times) * 0.95)] for kind, times in took.items() if times},
            )
        )
    return made
