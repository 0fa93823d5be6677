"""Processes of the chaos test: one that writes stores numbered notes, one that works runs jobs.

A writer appends a line to its file for every note that was acknowledged, and after a restart goes on behind the last
one: a note that was stored but not acknowledged is stored again under the same idempotency key. SIGTERM ends both.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.jobs import sweep, timetable
from reverie.jobs.procrastinate import EngineQueue, EngineWorker
from reverie.protocols.openwop import runs
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.postgres import PostgresStore

OVER = threading.Event()
BEGUN = b"begun"


def begin() -> None:
    """From here on SIGTERM ends the process in order, and a dead worker is noticed within seconds: the test is short."""
    timetable.TAKEN_MS = sweep.LEASE_MS = 3000
    runs.LEASE_MS = 2000
    signal.signal(signal.SIGTERM, lambda *_: OVER.set())
    print(BEGUN.decode(), flush=True)


def open_host(url: str) -> Host:
    while True:
        try:
            store = PostgresStore(url, pool_size=6)
            break
        except ReverieError:
            time.sleep(0.2)
    queue = EngineQueue(url, per_tenant=2)
    return Host(Services(store=store, tokens=TokenCounter("o200k_base"), jobs=queue))


def write(url: str, tenant: str, name: str, file: Path, pause: float) -> None:
    begin()
    host, actor = open_host(url), Actor(tenant=tenant, id=name)
    at = len(file.read_text().splitlines()) if file.exists() else 0
    with file.open("a") as acknowledged:
        while not OVER.is_set():
            try:
                (receipt,) = host.entries.put(
                    actor, "inbox", [Draft(content=f"Note {name} number {at}.")], idempotency_key=f"{name}-{at}"
                )
            except ReverieError:
                time.sleep(0.05)
                continue
            acknowledged.write(f"{receipt.id}\n")
            acknowledged.flush()
            at += 1
            time.sleep(pause)
    host.close()


def work(url: str) -> None:
    begin()
    host = open_host(url)
    queue = host.parts.jobs
    assert isinstance(queue, EngineQueue)
    worker = EngineWorker(
        host, queue, url, concurrency=2, every_seconds=5, poll_seconds=1, heartbeat_seconds=0.5, stalled_seconds=3.0
    )
    worker.start()
    OVER.wait()
    worker.stop()
    host.close()
