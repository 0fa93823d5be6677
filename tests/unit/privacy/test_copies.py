"""forget while a copy is being made: backups, exports and restores, on both stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import PATIENCE

from reverie.app import open_store
from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.ops import backup
from reverie.privacy.ledger import FileLedger
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.contract import Store

REF = "bot"
MakeHost = Callable[..., Host]


def word(n: int) -> str:
    return f"Quix{n}ticon"


@pytest.fixture
def host(make_host: MakeHost, tmp_path: Path, ada: Actor) -> Host:
    """Three people, each in entries of their own and in one dream over all."""
    made = make_host(ledger=FileLedger(tmp_path / "forgotten.jsonl"), tokens=TokenCounter())
    for n in range(3):
        drafts = [Draft(f"{word(n)} ordered crate {k} for hall {k * 7} on day {k}.", subject=f"p{n}") for k in range(8)]
        made.entries.put(ada, REF, drafts)
    made.entries.put(ada, "plain", [Draft(f"Gate {k} of dock {k % 9} opens at {k % 24}. " * 40) for k in range(150)])
    made.dreams.run(ada, DreamPlan(ref=REF, budget=4000))
    for n in range(3):
        made.entries.put(ada, REF, [Draft(f"{word(n)} paid invoice {n}.", subject=f"p{n}")])
    return made


class Held:
    """Progress of a copy that stops at its first step until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, done: int, total: int) -> None:
        self.begun.set()
        assert self.go_on.wait(PATIENCE)


def test_a_backup_under_way_is_sound_and_one_made_after_the_certificate_has_no_word(
    host: Host, ada: Actor, tmp_path: Path
) -> None:
    held, faults = Held(), []

    def copy() -> None:
        try:
            backup.create(host, tmp_path / "under-way", open_store=open_store, progress=held)
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        assert held.begun.wait(PATIENCE)
        assert host.forget.forget(ada, "p1").certificate is not None
        backup.create(host, tmp_path / "after", open_store=open_store)
        assert word(1).encode() not in (tmp_path / "after").read_bytes()
        assert word(2).encode() in (tmp_path / "after").read_bytes()
    finally:
        held.go_on.set()
        thread.join(PATIENCE)
    assert not faults
    backup.verify(tmp_path / "under-way", open_store=open_store)
    # it shows the moment at which it began; the ledger, which is not in it, forgets again
    assert word(1).encode() in (tmp_path / "under-way").read_bytes()


def test_the_file_is_wiped_when_the_backup_that_held_its_pages_ends(
    host: Host, ada: Actor, tmp_path: Path, engine: str
) -> None:
    if engine != "sqlite":
        return  # a server frees old row versions itself: docs/privacy.md
    held = Held()
    thread = threading.Thread(target=host.parts.store.backup, args=(str(tmp_path / "copy"),), kwargs={"progress": held})
    thread.start()
    assert held.begun.wait(PATIENCE)
    assert host.forget.forget(ada, "p1").certificate is not None
    held.go_on.set()
    thread.join(PATIENCE)
    files = [tmp_path / "memory.db", tmp_path / "memory.db-wal"]
    until = time.monotonic() + PATIENCE
    while any(word(1).encode() in file.read_bytes() for file in files if file.exists()):
        assert time.monotonic() < until, "the text is still in the file"
        time.sleep(0.02)


def test_an_export_under_way_shows_at_most_the_page_it_had_read(host: Host, ada: Actor) -> None:
    lines = host.bundles.export(ada)
    next(lines)
    for n in range(3):
        assert host.forget.forget(ada, f"p{n}").certificate is not None
    rest = b"".join(lines)
    assert not any(word(n).encode() in rest for n in range(3))  # no page had been read
    assert host.bundles.check(b"".join([*host.bundles.export(ada)]).splitlines(keepends=True))["entries"] > 100


def test_a_forget_during_a_restore_is_repeated_in_what_is_restored(host: Host, ada: Actor, tmp_path: Path) -> None:
    copy, ledger, into = tmp_path / "copy", tmp_path / "forgotten.jsonl", tmp_path / "restored"
    backup.create(host, copy, open_store=open_store)
    host.forget.forget(ada, "p0")
    waiting = [f"p{n}" for n in (1, 2)]

    def again(database: Path, lines: Path) -> int:
        done = replayed(open_store(str(database)), lines)
        if waiting:  # the live host goes on forgetting meanwhile
            host.forget.forget(ada, waiting.pop())
        return done

    facts = backup.restore(copy, into, open_store=open_store, ledger=ledger, forget_again=again)
    assert facts["forgotten_again"] == 3
    found = b"".join(path.read_bytes() for path in into.iterdir())
    assert not any(word(n).encode() in found for n in range(3))
    assert b"Gate 7 of dock 7" in found
    assert {line.subject for line in FileLedger(into / "forgotten.jsonl").all()} == {
        line.subject for line in FileLedger(ledger).all()
    }


def replayed(store: Store, ledger: Path) -> int:
    host = Host(Services(store=store, ledger=FileLedger(ledger), tokens=TokenCounter()))
    try:
        return host.forget.replay(Actor(tenant="acme", id="host"))
    finally:
        store.close()
