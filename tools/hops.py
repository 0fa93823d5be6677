"""Hops: the calls, files and changes of file that one operation takes through the HTTP application.

    python tools/hops.py            every operation, as a table
    python tools/hops.py put        one of them, with its files by number of calls

Counts calls of functions in `src/reverie` with `sys.setprofile`, on every thread, for the second of two equal requests:
the first one imports and fills caches. A change of file is a call whose function is in another file than that of the
call before it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

import reverie
from reverie.app import build_app, build_host
from reverie.host import Host
from reverie.settings import Settings
from reverie.store.sqlite import writer

SOURCE = str(Path(reverie.__file__).parent)
API = "/v1/host/reverie"
TOPICS = ("ferry", "kitchen", "harbour", "library", "workshop", "garden")
BEFORE = {
    "put": (268, 41, 123),
    "search": (471, 36, 186),
    "forget": (503, 35, 229),
    "record": (943, 54, 324),
    "openwop compact": (1501, 65, 628),
    "akashik compact": (5977, 75, 1827),
    "scheduled dream": (10101, 77, 2814),
}
"""(calls, files, changes of file) of the same requests at version 0.1.0, before the packages were rearranged."""


class Profile:
    """Counts while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.calls: Counter[str] = Counter()
        self.changes = 0
        self._last: dict[int, str] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.on or event != "call":
            return
        file = frame.f_code.co_filename
        if not file.startswith(SOURCE):
            return
        self.calls[file] += 1
        thread = threading.get_ident()
        if self._last.get(thread) != file:
            self.changes += 1
            self._last[thread] = file

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Start from nothing and count what the block does."""
        self.calls, self.changes, self._last, self.on = Counter(), 0, {}, True
        try:
            yield
        finally:
            self.on = False

    @property
    def figures(self) -> tuple[int, int, int]:
        """(calls, files, changes of file)."""
        return self.calls.total(), len(self.calls), self.changes


class Server:
    """An application in this process and one caller."""

    def __init__(self, folder: str) -> None:
        settings = Settings.load(SEAMS, data=folder)
        self.host: Host = build_host(settings)
        self.app = build_app(settings, self.host)
        self.key = self.host.keys.create("hops", authority=10).key
        self.number = 0

    def post(self, path: str, body: Any) -> Any:
        """One request that must succeed; its answer."""

        async def go() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.post(path, json=body, headers={"Authorization": f"Bearer {self.key}"})

        answer = asyncio.run(go())
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def fill(self, ref: str, entries: int, **fields: Any) -> None:
        """Entries that differ, about a few topics."""
        texts = [
            f"The {TOPICS[n % 6]} opens at {n % 12 + 1} o'clock on day {n} and closes after {n % 5 + 2} visits."
            for n in range(entries)
        ]
        self.post(f"{API}/memory/{ref}/entries", {"entries": [{"content": text, **fields} for text in texts]})

    def akashik(self, operation: str, payload: dict[str, Any]) -> Any:
        """One message of an agent."""
        self.number += 1
        envelope = {
            "protocol": "akashik",
            "version": "0.1.0",
            "id": f"message-{self.number}",
            "operation": operation,
            "agent_id": "scout",
            "session_id": None,
            "epoch": 0,
            "payload": payload,
        }
        return self.post(f"/akashik/v1/{operation.lower()}", envelope)


SEAMS = {"OPENWOP_MEMORY_COMPACTION": "true", "OPENWOP_TEST_TRIGGER_COMPACTION": "true"}
Operation = Callable[[Server, int], Callable[[], Any]]
"""Prepares round n and returns the one request that is counted."""


def put(server: Server, n: int) -> Callable[[], Any]:
    return lambda: server.post(f"{API}/memory/notes/entries", {"content": f"The ferry leaves at {n} past nine."})


def search(server: Server, n: int) -> Callable[[], Any]:
    if n == 0:
        server.fill("searched", 10)
    return lambda: server.post(f"{API}/memory/searched/search", {"query": f"When does the {TOPICS[n]} open?"})


def forget(server: Server, n: int) -> Callable[[], Any]:
    server.fill("people", 3, subject=f"person-{n}")
    return lambda: server.post(f"{API}/memory/forget", {"subject": f"person-{n}"})


def record(server: Server, n: int) -> Callable[[], Any]:
    if n == 0:
        server.akashik("REGISTER", {"id": "scout", "role": "researcher", "authority_level": 10})
    return lambda: server.akashik("RECORD", _unit(n))


def _unit(n: int) -> dict[str, Any]:
    return {
        "mode": "committed",
        "type": "finding",
        "content": f"Visit {n} to the {TOPICS[n % 6]}: lamp {n * 7} of row {n * 3} was repaired and tested twice.",
        "intent": {"purpose": "describe the buildings"},
        "confidence": {"score": 0.8, "reasoning": "counted"},
    }


def openwop_compact(server: Server, n: int) -> Callable[[], Any]:
    server.fill(f"openwop-{n}", 10)
    return lambda: server.post("/v1/test/memory/compact", {"memoryRef": f"openwop-{n}"})


def akashik_compact(server: Server, n: int) -> Callable[[], Any]:
    for one in range(10):
        server.akashik("RECORD", _unit(n * 10 + one + 10))
    return lambda: server.akashik("COMPACT", {"strategy": "summarize", "reason": "measuring"})


def scheduled_dream(server: Server, n: int) -> Callable[[], Any]:
    ref = f"nightly-{n}"
    server.fill(ref, 30)
    made = server.post(f"{API}/schedules", {"cron": "0 3 * * *", "ref": ref})
    return lambda: server.post(f"{API}/schedules/{made['id']}/run", {})


OPERATIONS: dict[str, Operation] = {
    "put": put,
    "search": search,
    "forget": forget,
    "record": record,
    "openwop compact": openwop_compact,
    "akashik compact": akashik_compact,
    "scheduled dream": scheduled_dream,
}


def measured() -> dict[str, Profile]:
    """A profile of the second round of every operation."""
    writer.SLOW_SECONDS = 60.0  # the way of a put must not depend on how busy the disk is
    found: dict[str, Profile] = {}
    profile = Profile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        with tempfile.TemporaryDirectory() as folder:
            server = Server(folder)
            for name, operation in OPERATIONS.items():
                operation(server, 0)()
                request = operation(server, 1)
                with profile.counting():
                    request()
                kept = Profile()
                kept.calls, kept.changes = profile.calls, profile.changes
                found[name] = kept
            server.host.close()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def main(wanted: str | None) -> None:
    """Print the table, or the files of one operation."""
    found = measured()
    if wanted:
        for file, calls in found[wanted].calls.most_common():
            print(f"{calls:6}  {Path(file).relative_to(SOURCE)}")
        return
    print("| operation | calls | files | changes of file | before | against before |\n|---|--:|--:|--:|---|--:|")
    for name, profile in found.items():
        calls, files, changes = profile.figures
        before = BEFORE[name]
        share = f"{changes / before[2] - 1:+.0%}"
        print(f"| {name} | {calls:,} | {files} | {changes:,} | {before[0]:,} / {before[1]} / {before[2]:,} | {share} |")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or None)
