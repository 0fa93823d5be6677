"""SIGKILL at random moments under load: what was acknowledged is there, once, and the log holds."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from tests.crash import child
from tests.crash.child import ADA, drafts_of, put
from tests.processes import Child
from tests.stores import open_store

from reverie.core.entry import EntryState, Scope
from reverie.core.errors import NotFound
from reverie.core.query import Filter
from reverie.host import Host
from reverie.redact import load_redactor
from reverie.services import Services
from reverie.store.contract import ReadTx

SOAK = os.environ.get("REVERIE_SOAK") == "1"
KILLS = 1000 if SOAK else 8
REDACTOR = load_redactor()


def acknowledged(process: Child) -> tuple[dict[str, list[str]], set[str]]:
    """Ids by key, and ids that were destroyed; a line cut short was not acknowledged."""
    stored: dict[str, list[str]] = {}
    destroyed: set[str] = set()
    for line in process.said.decode().splitlines(keepends=True):
        if line.endswith("\n") and line not in ("begun\n", "ready\n"):
            key, *ids = line.split()
            if key.startswith("-"):
                destroyed.update(ids)
            else:
                stored[key] = ids
    return stored, destroyed


def check(path: str, stored: dict[str, list[str]], destroyed: set[str], *, retry: bool) -> Host:
    """Open what a killed process left, and look at everything."""
    host = Host(Services(store=open_store(path), redactor=REDACTOR))
    host.parts.store.check()
    verdict = host.audit.verify(ADA)
    assert verdict.ok, verdict
    for key, ids in stored.items():
        for entry_id, draft in zip(ids, drafts_of(key), strict=True):
            if entry_id in destroyed:
                with pytest.raises(NotFound):
                    host.reader.get(ADA, "notes", entry_id, cold=True)
                continue
            try:
                assert host.reader.get(ADA, "notes", entry_id).content == draft.content
            except NotFound:  # killed between destroying it and saying so
                assert entry_id == ids[0]
                assert int(key.rsplit("-", 1)[1]) % 5 == 4
    if retry:
        for key in stored:
            assert put(host, key) == stored[key]  # the same answer, and nothing is stored twice
        for key in unacknowledged(stored):
            first = put(host, key)
            assert put(host, key) == first
    once(host)
    return host


def unacknowledged(stored: dict[str, list[str]]) -> list[str]:
    """The keys each thread was at: in flight when the process ended."""
    last: dict[str, int] = {}
    for key in stored:
        thread, n = key.rsplit("-", 1)
        last[thread] = max(last.get(thread, -1), int(n))
    return [f"{thread}-{n + 1}" for thread, n in last.items()]


def once(host: Host) -> None:
    """No write is there twice or in part: as many entries with a key's tag as the key has drafts."""
    counts: dict[str, int] = {}
    erased = 0

    def count(tx: ReadTx) -> None:
        nonlocal erased
        cursor = None
        while True:
            where = Filter(states=frozenset(EntryState), archived=None, gone=True, expired=None)
            page = tx.scan(where, limit=1000, cursor=cursor)
            for entry in page.items:
                if entry.state is EntryState.ERASED:
                    erased += 1
                else:
                    counts[entry.attributes["key"]] = counts.get(entry.attributes["key"], 0) + 1
            cursor = page.cursor
            if cursor is None:
                return

    host.parts.store.read(Scope("acme", "notes"), count)
    missing = 0
    for key, number in counts.items():
        expected = len(drafts_of(key))
        assert expected - 1 <= number <= expected, key
        missing += expected - number
    assert missing <= erased


def test_killed_at_random_moments(make_target: Callable[..., str]) -> None:
    """One database lives through many deaths; every survivor of each is there at the end."""
    chance = random.Random(20_261_115)
    path = make_target("memory.db")
    stored: dict[str, list[str]] = {}
    destroyed: set[str] = set()
    for number in range(KILLS):
        process = Child(child.main, path, f"run{number}")
        process.listen(until=b"ready\n")
        wanted = chance.choice([0, 1, 4, 12, 30])
        process.listen_for(2 + wanted)  # and a moment more: the kill comes between two answers, not after one
        process.listen(seconds=chance.random() * 0.01)
        assert process.kill() == -9
        new, gone = acknowledged(process)
        assert len(new) + len(gone) >= wanted
        check(path, new, gone, retry=True).close()
        stored |= new
        destroyed |= gone
        if SOAK and number % 50 == 49:  # a thousand lives would fill the disk
            path = make_target(f"memory-{number}.db")
            stored, destroyed = {}, set()
    assert stored
    check(path, stored, destroyed, retry=False).close()


def test_killed_while_opening(make_target: Callable[..., str]) -> None:
    """In the middle of making the schema: the next one opens what is there, or makes it."""
    chance = random.Random(7)
    for number in range(100 if SOAK else 4):
        path = make_target(f"{number}.db", empty=True)
        process = Child(child.main, path, "x")
        process.listen(until=b"begun\n")
        process.listen(seconds=chance.random() * (0.02 if path.endswith(".db") else 0.2))
        assert process.kill() == -9
        new, gone = acknowledged(process)
        check(path, new, gone, retry=True).close()


@pytest.mark.parametrize("point", ["inside-body", "before-commit", "after-commit"])
def test_killed_at_a_named_point(make_target: Callable[..., str], point: str) -> None:
    """Before the commit nothing of it is there; after it all of it is, though nobody was told."""
    path = make_target("memory.db")
    process = Child(child.main, path, point, 1, point)
    assert process.end() == -9
    stored, destroyed = acknowledged(process)
    host = check(path, stored, destroyed, retry=False)
    in_flight = [key for key in unacknowledged(stored) if host.reader.page(ADA, "notes", Filter(tags=(key,))).items]
    assert bool(in_flight) == (point == "after-commit")
    before = host.reader.snapshot(ADA)
    for key in in_flight:
        put(host, key)  # the retry is recognised: it adds nothing
    assert host.reader.snapshot(ADA) == before
    host.close()
    check(path, stored, destroyed, retry=True).close()
