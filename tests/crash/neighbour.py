"""One of several processes on one file. Prints one line of JSON when it is done.

python -m tests.crash.neighbour PATH NAME START write COUNT     puts COUNT entries, reading in between
python -m tests.crash.neighbour PATH,PATH... NAME START lease COUNT     opens one after another, and claims a lease
"""

from __future__ import annotations

import json
import sys
import time

from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host, Parts
from reverie.redact import Redactor

REDACTOR = Redactor()


def main(path: str, name: str, start: float, what: str, count: int) -> None:
    answer: list[object] = []
    if what == "write":
        host = meet(path, start)
        answer += write(host, Actor(tenant="acme", id=name), name, count)
        host.close()
    for number in range(count if what == "lease" else 0):
        host = meet(path.split(",")[number % len(path.split(","))], start + number * 0.5)
        answer.append(host.leases.take(Actor(tenant="acme", id=name), "dream", name, for_ms=600_000))
        host.close()
    print(json.dumps(answer))


def meet(path: str, start: float) -> Host:
    """Open the file at an instant, together with the others."""
    while time.time() < start:
        time.sleep(0.0005)
    return Host(Parts(store=open_store(path), redactor=REDACTOR))


def write(host: Host, ada: Actor, name: str, count: int) -> list[str]:
    seen, ids = 0, []
    for n in range(count):
        receipt = host.writing.put(ada, "notes", [Draft(f"{name} writes {n}")], idempotency_key=f"{name}-{n}")[0]
        ids.append(receipt.id)
        assert host.reading.get(ada, "notes", receipt.id).content == f"{name} writes {n}"
        now = host.reading.snapshot(ada)
        assert now >= receipt.seq >= seen, "the log went back"
        seen = now
        if n % 10 == 0:
            events = host.reading.events(ada, limit=10_000)
            assert [e.seq for e in events] == list(range(1, len(events) + 1)), "a gap in the log"
    return ids


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
