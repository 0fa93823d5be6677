"""Hostile clients of a host: another tenant's key, no key, huge bodies, bad JSON, foreign pages, slow bodies, idle lines.

Each sends over sockets of its own and reads what comes back as bytes. A host that is away, or that hangs up on them, is
no fault; an answer of 5xx is, and so is a word of the attacked tenant in any answer.
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from tests.crash.served import API, Served

TOKEN = re.compile(rb"zq[0-9a-f]{12}")
"""A word of the attacked tenant."""
MARK = "hostileword"
"""A word that only attackers send."""
HUGE = 5_000_000
FOREIGN: tuple[dict[str, str], ...] = (
    {"Host": "evil.example"},
    {"Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "null"},
)
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})[^\r\n]*\r\n")


@dataclass
class Notes:
    """Everything that the attackers share, and what they saw."""

    host: Served
    key: str
    """Of another tenant than the one attacked."""
    ids: list[str] = field(default_factory=list)
    """Entries of the attacked tenant."""
    statuses: Counter[int] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Attacker:
    """One hostile client, which takes turns at everything."""

    def __init__(self, notes: Notes, seed: str, *, lines: int) -> None:
        """`lines`: connections that it keeps open without finishing a request."""
        self._notes = notes
        self._chance = random.Random(seed)
        self._lines = lines
        self._idle: list[socket.socket] = []

    def run(self, over: threading.Event) -> None:
        moves = (self.steal, self.huge, self.mangled, self.foreign, self.no_key, self.slow, self.garbage, self.hold)
        try:
            while not over.is_set():
                move = self._chance.choice(moves)
                self._notes.sent[move.__name__] += 1
                with suppress(OSError):
                    move()
        finally:
            for line in self._idle:
                line.close()

    def _line(self) -> socket.socket:
        place, _, port = self._notes.host.url.removeprefix("http://").rpartition(":")
        return socket.create_connection((place, int(port)), timeout=60)

    def _send(self, *pieces: bytes, what: str) -> bytes:
        """Send on a connection of its own; everything that is answered until the host hangs up."""
        answer = b""
        try:
            with self._line() as line:
                for piece in pieces:
                    line.sendall(piece)
                while part := line.recv(1 << 20):
                    answer += part
        except OSError:
            if not answer:
                self._notes.unanswered += 1
        self._judge(answer, what)
        return answer

    def _judge(self, answer: bytes, what: str) -> None:
        found = [int(status) for status in _STATUS.findall(answer)]
        with self._notes.lock:
            self._notes.statuses.update(found)
            if any(status >= 500 for status in found):
                self._notes.faults.append(f"{what}: {answer[:300]!r}")
            if TOKEN.search(answer):
                self._notes.faults.append(f"{what} shows a word of another tenant: {answer[-300:]!r}")

    def _request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        given = {"Host": self._notes.host.url.removeprefix("http://"), "Connection": "close", **headers}
        given.setdefault("Authorization", f"Bearer {self._notes.key}")
        if body is not None:
            given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **given}
        lines = (f"{name}: {value}\r\n" for name, value in given.items())
        return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + (body or b"")

    def _ask(self, method: str, path: str, document: Any = None, **headers: str) -> bytes:
        body = None if document is None else json.dumps(document).encode()
        return self._send(self._request(method, path, body, **headers), what=f"{method} {path}")

    def steal(self) -> None:
        """Ask with a key of its own for what another tenant has."""
        entry = self._chance.choice(self._notes.ids) if self._notes.ids else "none"
        ref, query = f"{API}/memory/notes", {"query": "which note is about a pump"}
        moves: list[Callable[[], bytes]] = [
            lambda: self._ask("GET", f"{ref}/entries/{entry}"),
            lambda: self._ask("DELETE", f"{ref}/entries/{entry}"),
            lambda: self._ask("PATCH", f"{ref}/entries/{entry}", {"pinned": True}),
            lambda: self._ask("GET", f"{ref}/entries?limit=100"),
            lambda: self._ask("POST", f"{ref}/search", query),
            lambda: self._ask("POST", f"{ref}/context", {"purpose": "pumps", "budget": 500}),
            lambda: self._ask("POST", f"{ref}/dreams", {}),
            lambda: self._ask("POST", f"{API}/memory/forget", {"subject": "pump"}),
            lambda: self._ask("GET", f"{API}/export"),
            lambda: self._ask("GET", f"{API}/events?limit=1000"),
            lambda: self._ask("GET", f"{API}/audit/verify"),
            lambda: self._ask("POST", f"{ref}/entries", {"content": f"{MARK} {entry}", "supersedes": [entry]}),
        ]
        self._chance.choice(moves)()

    def huge(self) -> None:
        """Large bodies, with and without a length, of a form that no handler wants."""
        bodies: list[Callable[[], Any]] = [
            lambda: {"entries": [{"content": 1, "more": 2}] * (HUGE // 30)},
            lambda: {"query": "pump", "more": "the pump " * (HUGE // 9)},
            lambda: {"content": MARK * (HUGE // len(MARK))},
            lambda: {str(n): n for n in range(HUGE // 20)},
        ]
        body = json.dumps(self._chance.choice(bodies)()).encode()
        path = f"{API}/memory/notes/{self._chance.choice(('entries', 'search'))}"
        if self._chance.random() < 0.5:
            self._send(self._request("POST", path, body), what="a huge body")
            return
        head = self._request("POST", path, **{"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
        chunks = (
            b"%x\r\n%s\r\n" % (len(body[at : at + 65_536]), body[at : at + 65_536])
            for at in range(0, len(body), 65_536)
        )
        self._send(*chain((head,), chunks, (b"0\r\n\r\n",)), what="a huge body in chunks")

    def mangled(self) -> None:
        """JSON with something wrong in it."""
        body = bytearray(json.dumps({"content": f"{MARK} \u00fc \U0001f600", "tags": ["a"], "weight": 1.5}).encode())
        for _ in range(self._chance.randint(1, 4)):
            body[self._chance.randrange(len(body))] = self._chance.randrange(256)
        nested = self._chance.choice(
            (b"[" * 100_000, b'{"a":' * 5_000, bytes(body), bytes(body[:20]), b"", b"\xff\xfe{")
        )
        path = self._chance.choice((f"{API}/memory/notes/entries", "/mcp", "/akashik/v1/record", f"{API}/scan"))
        self._send(self._request("POST", path, nested), what=f"mangled JSON at {path}")

    def foreign(self) -> None:
        """What a page in a browser could send, and a foreign name."""
        headers = dict(self._chance.choice(FOREIGN))
        answer = self._ask("POST", f"{API}/memory/notes/entries", {"content": MARK}, **headers)
        if answer and not answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 421")):
            self._notes.faults.append(f"{headers} was answered {answer[:100]!r}")

    def no_key(self) -> None:
        """No key, a key that is none, and one that is nearly right."""
        known = self._notes.key
        key = self._chance.choice(("", "x", known[:-1] + ("a" if known[-1] != "a" else "b"), known.swapcase()))
        answer = self._ask("GET", f"{API}/export", Authorization=f"Bearer {key}")
        if answer and not answer.startswith(b"HTTP/1.1 401"):
            self._notes.faults.append(f"a wrong key was answered {answer[:100]!r}")

    def slow(self) -> None:
        """A body that never ends: the head announces more than is sent."""
        head = self._request("POST", f"{API}/memory/notes/entries", **{"Content-Length": "1000000"})
        line = self._line()
        line.sendall(head + b'{"content": "' + MARK.encode())
        self._keep(line)

    def hold(self) -> None:
        """Connections that send half a head, or nothing."""
        for _ in range(20):
            line = self._line()
            self._keep(line)
            line.sendall(self._chance.choice((b"", b"GET /v1", b"POST /v1/host HTTP/1.1\r\nHost: x\r\nX: ")))

    def _keep(self, line: socket.socket) -> None:
        self._idle.append(line)
        if len(self._idle) > self._lines:
            self._idle.pop(0).close()

    def garbage(self) -> None:
        """Bytes that are no request."""
        self._send(self._chance.randbytes(self._chance.randint(1, 2000)) + b"\r\n\r\n", b"\r\n\r\n", what="garbage")
