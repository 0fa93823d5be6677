"""Several real processes on one file: nothing is lost, the log has no gap, a lease has one holder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.crash import neighbour
from tests.processes import Child
from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.errors import TooLarge
from reverie.host import Host
from reverie.services import Services

SOAK = os.environ.get("REVERIE_SOAK") == "1"
APART = 0.5 if SOAK else 0.3
"""Seconds between two races: enough to make a schema four times at once."""
ADA = Actor(tenant="acme", id="ada")


def together(main: Callable[..., None], paths: list[str], argument: float) -> list[Any]:
    """Run four processes that begin at one instant; what each of them printed."""
    start = time.time() + 1
    processes = [Child(main, paths, f"p{n}", start, argument) for n in range(4)]
    assert [process.end(seconds=600) for process in processes] == [0] * 4
    return [json.loads(process.said) for process in processes]


def test_processes_that_open_a_new_database_at_one_instant_and_write(make_target: Callable[..., str]) -> None:
    """The race for the schema included; this process reads and writes too."""
    for round_ in range(30 if SOAK else 1):
        path = make_target(f"memory-{round_}.db", empty=True)
        answers = together(neighbour.write_many, [path], 200 if SOAK else 40)
        host = Host(Services(store=open_store(path)))
        host.entries.put(ADA, "notes", [Draft("the last word")])
        ids = {entry_id for answer in answers for entry_id in answer}
        assert len(ids) == sum(len(answer) for answer in answers)
        for entry_id in ids:
            host.reader.get(ADA, "notes", entry_id)
        assert host.reader.snapshot(ADA) == len(ids) + 1
        verdict = host.audit.verify(ADA)
        assert (verdict.ok, verdict.events, verdict.entries) == (True, len(ids) + 1, len(ids) + 1), verdict
        host.parts.store.check()
        host.close()


def test_processes_that_race_for_a_new_database_and_a_lease(make_target: Callable[..., str]) -> None:
    """Nothing but the race for the schema; then exactly one of them has the lease."""
    rounds = 200 if SOAK else 6
    paths = [make_target(f"memory-{number}.db", empty=True) for number in range(rounds)]
    answers = together(neighbour.take_leases, paths, APART)
    for number in range(rounds):
        assert sorted(answer[number] for answer in answers) == [False, False, False, True]


def test_a_process_sees_what_another_changed(make_target: Callable[..., str]) -> None:
    """Two stores on one file, as two processes have them: rules, vectors and erasure are never stale."""
    path = make_target("memory.db")
    one, two = (Host(Services(store=open_store(path))) for _ in range(2))
    first = one.entries.put(ADA, "notes", [Draft("the kettle is hot", subject="kettle")])[0]
    assert [h.entry.id for h in two.search.search(ADA, "notes", "kettle").hits] == [first.id]
    two.rules.set_policy(ADA, {"max_entry_bytes": 40})
    with pytest.raises(TooLarge):
        one.entries.put(ADA, "notes", [Draft("x" * 41)])
    one.forget.forget(ADA, "kettle")
    assert list(two.search.search(ADA, "notes", "kettle").hits) == []
    assert two.audit.verify(ADA).ok
    one.close()
    two.close()
