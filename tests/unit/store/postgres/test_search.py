"""A search asks the server twice, and its index is in files that hold nothing that any process destroyed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.core.entry import EntryState, Scope
from reverie.core.query import Filter
from reverie.index import cache
from reverie.index.postings import hashed
from reverie.store.conformance import make_entry, make_event
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.postgres import PostgresStore
from reverie.store.postgres.pool import Timed
from reverie.store.postgres.read import PostgresReadTx
from reverie.store.postgres.store import INDEX_IDLE_SECONDS

SCOPE = Scope("acme", "notes")
VECTOR = b"a vector of sixteen bytes only16"
COUNT = 200
ASKED = "note about kettles and teapots on a blue shelf"


class Trips:
    """Round trips that a thread waits for: a statement outside a pipeline, or the end of a pipeline."""

    def __init__(self) -> None:
        self.count = 0
        self.statements: list[str] = []
        self.inside = False
        self.thread = threading.get_ident()

    def __int__(self) -> int:
        return self.count


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Trips:
    counted, execute, pipeline = Trips(), Timed.execute, Timed.pipeline

    def counting(self: Timed, query: Any, *arguments: Any, **options: Any) -> Any:
        if threading.get_ident() == counted.thread:
            counted.count += not counted.inside
            counted.statements.append(query.decode()[:60] if isinstance(query, bytes) else str(query))
        return execute(self, query, *arguments, **options)

    @contextmanager
    def piped(self: Timed) -> Iterator[Any]:
        counted.inside = True
        try:
            with pipeline(self) as made:
                yield made
        finally:
            counted.inside = False
            counted.count += 1

    monkeypatch.setattr(Timed, "execute", counting)
    monkeypatch.setattr(Timed, "pipeline", piped)
    return counted


def talk(memory: reverie.Memory) -> None:
    """A conversation, whose turns have neighbours, and notes."""
    notes = memory.ref("notes")
    for n in range(30):
        notes.put(f"Turn {n}: the kettle of shelf {n} is blue?", source={"actor": "ada" if n % 2 else "bob", "session": f"s{n // 10}"})  # fmt: skip
    notes.put_many([{"content": f"Note {n} about kettles and teapots.", "tags": ["half"] * (n % 2)} for n in range(90)])


@pytest.mark.parametrize("where", [Filter(), Filter(tags=("half",)), Filter(session="s1")], ids=["all", "half", "few"])
def test_a_search_makes_two_round_trips(url: str, trips: Trips, where: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    with reverie.open(url) as memory, reverie.open(url) as other:
        talk(memory)
        notes = memory.ref("notes")
        notes.search(ASKED, where=where, limit=5)
        for more in range(3):
            other.ref("notes").put(f"A newer kettle, number {more}, in blue.")
            trips.count, trips.statements = 0, []
            found = notes.search(ASKED, where=where, limit=5, deep="never")
            assert trips.count == 2, "\n".join(trips.statements)
            trips.count = 0
            assert [hit.text for hit in notes.search(ASKED, where=where, limit=5)] == [hit.text for hit in found]
            assert trips.count <= 5, "an unsure answer asks cold storage: what left, and its rows"
        assert len(found) == 5
        trips.count = 0
        monkeypatch.setattr(PostgresReadTx, "_settled", False)
        assert notes.search(ASKED, where=where, limit=5, deep="never") == found
        assert trips.count > 2, "nothing is fetched ahead, and nothing is different"


def fill(tx: WriteTx) -> None:
    for n in range(COUNT):
        entry = make_entry(id=f"{n}", ref="notes", content="text")
        vector = VECTOR if n == 7 else bytes([n % 50] * 32)
        tx.insert(entry, seq=tx.append(make_event()), terms=["common", f"w{n}"], vector=("m", vector), minted=False)


def found(tx: ReadTx) -> tuple[list[str], list[str]]:
    by_words = [match.entry.id for match in tx.match(["common", "w7"], Filter(), limit=500)]
    return by_words, [match.entry.id for match in tx.nearest(("m", VECTOR), Filter(), limit=3)]


def traces(folder: Path, key: bytes) -> list[str]:
    needles = (hashed("w7", key).to_bytes(8, "little", signed=True), VECTOR)
    return [file.name for file in folder.iterdir() if any(needle in file.read_bytes() for needle in needles)]


Open = Callable[[str], PostgresStore]


@pytest.fixture
def machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a store as a machine of a name would."""
    monkeypatch.setattr(cache, "SMALLEST", 100)
    opened: list[PostgresStore] = []

    def make(name: str) -> PostgresStore:
        opened.append(PostgresStore(url, index=tmp_path / name))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def test_a_process_maps_the_files_of_another(machine: Open, trips: Trips, tmp_path: Path) -> None:
    first = machine("one")
    first.write(SCOPE, fill)
    expected = first.read(SCOPE, found)
    assert expected[0][0] == "7"
    assert any((tmp_path / "one").iterdir())
    second = machine("one")
    trips.statements.clear()
    assert second.read(SCOPE, found) == expected
    index = second._cache._held[(1, "notes")].parts
    assert index is not None
    assert index.nbytes == 0, "all of it is mapped"
    assert not any("recall" in one and "LIMIT" not in one for one in trips.statements if "index" in one)


def purge(tx: WriteTx) -> None:
    tx.purge("7", seq=tx.append(make_event()))


def clean(tx: WriteTx) -> None:
    entry = make_entry(id="7", ref="notes", content="less")
    tx.rewrite(entry, seq=tx.append(make_event()), terms=["common"], vector=("m", bytes(32)))


@pytest.mark.parametrize("destroy", [purge, clean])
@pytest.mark.parametrize("left", [False, True], ids=["readable", "left before"])
@pytest.mark.parametrize("restarted", [False, True], ids=["held", "restarted"])
def test_what_one_machine_destroys_no_other_answers_with(
    machine: Open, tmp_path: Path, destroy: Callable[[WriteTx], None], left: bool, restarted: bool
) -> None:
    here, there = machine("here"), machine("there")
    here.write(SCOPE, fill)
    key = here.read(SCOPE, lambda tx: tx.log_key())
    if left:
        here.read(SCOPE, found)
        there.read(SCOPE, found)
        here.write(SCOPE, lambda tx: tx.change("7", seq=tx.append(make_event()), state=EntryState.DELETED))
    here.read(SCOPE, found)
    there.read(SCOPE, found)
    assert traces(tmp_path / "here", key)
    assert traces(tmp_path / "there", key)
    here.write(SCOPE, destroy)
    assert not traces(tmp_path / "here", key), "the machine that destroys clears its files before it answers"
    assert traces(tmp_path / "there", key)
    if restarted:
        there = machine("there")
    words, near = there.read(SCOPE, found)
    assert not traces(tmp_path / "there", key), "another one before its next answer"
    assert words == here.read(SCOPE, found)[0]
    assert near[0] != "7"
    parts = there._cache._held[(1, "notes")].parts
    assert parts is not None
    assert not any(hashed("w7", key) in part.segment.words for part in parts.parts)


def test_files_that_no_search_compares_are_removed(machine: Open, tmp_path: Path) -> None:
    store = machine("idle")
    store.write(SCOPE, fill)
    store.read(SCOPE, found)
    key = store.read(SCOPE, lambda tx: tx.log_key())
    long_ago = time.time() - INDEX_IDLE_SECONDS - 10
    for lock in (tmp_path / "idle").glob("*.lock"):
        os.utime(lock, (long_ago, long_ago))
    assert traces(tmp_path / "idle", key)
    machine("idle")
    assert not traces(tmp_path / "idle", key)
    assert store.read(SCOPE, found)[0][0] == "7"
