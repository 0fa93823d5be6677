"""One of several processes on one store. Prints one line of JSON when it is done."""

from __future__ import annotations

import json
import time

from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.redact import load_redactor
from reverie.services import Services

REDACTOR = load_redactor()


def write_many(paths: list[str], name: str, start: float, count: int) -> None:
    """Put `count` entries, reading in between."""
    host = meet(paths[0], start)
    print(json.dumps(write(host, Actor(tenant="acme", id=name), name, count)))
    host.close()


def take_leases(paths: list[str], name: str, start: float, apart: float) -> None:
    """Open one after another, and claim a lease in each."""
    answer = []
    for number, path in enumerate(paths):
        host = meet(path, start + number * apart)
        answer.append(host.leases.take(Actor(tenant="acme", id=name), "dream", name, for_ms=600_000))
        host.close()
    print(json.dumps(answer))


def meet(path: str, start: float) -> Host:
    """Open the file at an instant, together with the others."""
    while time.time() < start:
        time.sleep(0.0005)
    return Host(Services(store=open_store(path), redactor=REDACTOR))


def write(host: Host, ada: Actor, name: str, count: int) -> list[str]:
    seen, ids = 0, []
    for n in range(count):
        receipt = host.entries.put(ada, "notes", [Draft(f"{name} writes {n}")], idempotency_key=f"{name}-{n}")[0]
        ids.append(receipt.id)
        assert host.reader.get(ada, "notes", receipt.id).content == f"{name} writes {n}"
        now = host.reader.snapshot(ada)
        assert now >= receipt.seq >= seen, "the log went back"
        seen = now
        if n % 10 == 0:
            events = host.reader.events(ada, limit=10_000)
            assert [e.seq for e in events] == list(range(1, len(events) + 1)), "a gap in the log"
    return ids
