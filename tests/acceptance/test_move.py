"""Memory moved from one store to another and back: the same in every respect, while it is in use, killed or not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until
from tests.postgres import shared_server

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.errors import Conflict, ReadOnly
from reverie.host import Host
from reverie.memory.idempotency import Claim, StoredAnswer
from reverie.ops.move import move
from reverie.providers.static import StaticEmbedder
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.cipher import FileCipher
from reverie.store.contract import Store
from reverie.store.postgres import PostgresStore
from reverie.store.sqlite import SqliteStore
from reverie.store.transfer import TABLES

ADA = Actor(tenant="acme", id="ada")
BOB = Actor(tenant="other", id="bob")
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."
EMBEDDER, TOKENS = StaticEmbedder(), TokenCounter("o200k_base")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    made: list[Store] = []

    def make() -> Store:
        made.append(SqliteStore(tmp_path / f"{len(made)}.db"))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Store]]:
    server, made = shared_server(tmp_path_factory), []

    def make() -> Store:
        url = server.make_database()
        made.append((url, PostgresStore(url)))
        return made[-1][1]

    yield make
    for url, store in made:
        store.close()
        server.drop_database(url)


def host_on(store: Store) -> Host:
    return Host(Services(store=store, embedder=EMBEDDER, tokens=TOKENS))


def fill(store: Store) -> None:
    """One of everything: entries in every state, links, dreams, documents with versions, answers, keys."""
    host = host_on(store)
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    host.entries.put(ADA, "notes", [Draft(content=text, tags=("plan", f"n{n % 3}")) for n, text in enumerate(texts)])
    host.dreams.run(ADA, DreamPlan("notes", fit=True))
    kept = host.entries.put(
        ADA, "rest/u", [Draft(content=f"Zoë said {n} things, \x00 too.".replace("\x00", "")) for n in range(5)]
    )
    host.lifecycle.delete(ADA, "rest/u", kept[0].id)
    host.entries.put(
        ADA, "people", [Draft(content="Carol likes tea.", subject="carol"), Draft(content="Dan likes tea.")]
    )
    host.forget.forget(ADA, "carol")
    host.entries.put(ADA, "rest/u", [Draft(content="once", id="a" * 200)], idempotency_key="k1")
    host.schedules.save(ADA, {"cron": "0 3 * * *", "ref": "notes"})
    host.rules.set_policy(ADA, {"dream_budget": 5000})
    host.keys.create(ADA.tenant, name="bot")
    host.entries.put(BOB, "notes", [Draft(content="A neighbour lives here.")])


def content(store: Store) -> dict[str, Any]:
    """Everything a store holds, row by row."""
    transfer = store.transfer()
    try:
        found: dict[str, Any] = {"tenants": transfer.tenants()}
        settings, keys = transfer.above()
        found["settings"], found["keys"] = [row for row in settings if row[0] != "moving"], keys
        for tenant in transfer.tenants():
            for table in TABLES:
                found[f"{tenant.name}/{table.name}"] = [
                    tuple(map(_plain, row)) for row in transfer.stream(tenant, table)
                ]
        return found
    finally:
        transfer.close()


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def answers(store: Store) -> Any:
    host = host_on(store)
    found = [host.search.search(ADA, ref, text) for ref in ("notes", "rest/u") for text in ("port 7003", "Zoë", "tea")]
    return [[(hit.entry.id, round(hit.score, 9)) for hit in result.hits] for result in found]


def test_there_and_back_nothing_has_changed(sqlite: Callable[[], Store], postgres: Callable[[], Store]) -> None:
    first, second, third = sqlite(), postgres(), sqlite()
    fill(first)
    before, ranked = content(first), answers(first)
    there = move(first, second)
    assert there.closed
    assert content(second) == before
    assert answers(second) == ranked
    with pytest.raises(ReadOnly):
        host_on(first).entries.put(ADA, "notes", [Draft(content="too late")])
    host_on(second).entries.put(ADA, "notes", [Draft(content="A thing that happened there.")])
    after = content(second)
    move(second, third)
    assert content(third) == after
    assert host_on(third).audit.verify(ADA).ok
    with pytest.raises(ReadOnly):
        host_on(second).entries.put(ADA, "notes", [Draft(content="too late")])
    again = host_on(third).entries.put(ADA, "rest/u", [Draft(content="once", id="a" * 200)], idempotency_key="k1")
    assert again[0].replayed
    move(third, first)  # what it once was is no stranger
    assert content(first) == content(third)
    assert host_on(first).entries.put(ADA, "notes", [Draft(content="Home again.")])


def test_a_target_with_other_memory_is_refused_and_left_alone(
    sqlite: Callable[[], Store], postgres: Callable[[], Store]
) -> None:
    source = sqlite()
    fill(source)
    for target in (postgres(), sqlite()):
        host_on(target).entries.put(ADA, "notes", [Draft(content="Mine.")])
        before = content(target)
        with pytest.raises(Conflict) as refused:
            move(source, target)
        assert refused.value.reason == "target_not_empty"
        assert content(target) == before
    assert host_on(source).entries.put(ADA, "notes", [Draft(content="Still open.")])


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_move_that_was_cut_off_goes_on_where_it_was(
    sqlite: Callable[[], Store], postgres: Callable[[], Store], monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    source, target = sqlite(), postgres()
    fill(source)
    transfer, left = type(target.transfer()), cut
    put = transfer.put

    def failing(self: Any, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        put(self, *arguments)

    monkeypatch.setattr(transfer, "put", failing)
    with pytest.raises(KeyboardInterrupt):
        move(source, target)
    monkeypatch.undo()
    host_on(source).entries.put(ADA, "notes", [Draft(content="Meanwhile.")])
    host_on(source).forget.forget(ADA, "dan")
    move(source, target)
    assert content(target) == content(source)


@pytest.mark.parametrize("there", ["sqlite", "postgres"])
def test_an_answer_to_a_request_that_was_copied_without_one_is_copied_by_the_next_pass(
    request: pytest.FixtureRequest, sqlite: Callable[[], Store], there: str, tmp_path: Path
) -> None:
    """Neither it nor a recorded question has an event."""
    source, target = sqlite(), request.getfixturevalue(there)()
    host, moved = (Host(Services(store=store, cipher=FileCipher(tmp_path / "key"))) for store in (source, target))
    host.entries.put(ADA, "notes", [Draft("The tank holds 30 litres.")])
    host.search.search(ADA, "notes", "How much does the tank hold?")
    host.searches.flush()
    claim = host.idempotency.claim(ADA, "PUT", "key", "request")
    assert isinstance(claim, Claim)
    move(source, target, close_source=False)
    host.idempotency.keep(ADA, claim, 201, b"made")
    host.search.search(ADA, "notes", "Who holds the tank?")
    host.searches.flush()
    move(source, target)
    assert moved.idempotency.claim(ADA, "PUT", "key", "request") == StoredAnswer(claim.id, 201, b"made")
    assert moved.searches.last(ADA.tenant, "notes", 9) == ["Who holds the tank?", "How much does the tank hold?"]


def test_writers_go_on_while_memory_moves_and_lose_nothing(
    sqlite: Callable[[], Store], postgres: Callable[[], Store]
) -> None:
    for source, target in ((sqlite(), postgres()), (postgres(), sqlite())):
        fill(source)
        host, over, stored, refused = host_on(source), threading.Event(), [], []

        def write(host: Host = host, over: Any = over, stored: Any = stored, refused: Any = refused) -> None:
            while not over.is_set():
                try:
                    stored.append(host.entries.put(ADA, "notes", [Draft(content=f"Note {len(stored)}.")])[0].id)
                except ReadOnly:
                    refused.append(1)
                    return
                over.wait(0.005)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            until(stored.__len__, "the first note")
            move(source, target)
        finally:
            over.set() if not stored else None
            writer.join(120)
            over.set()
        assert refused == [1]
        assert stored
        there = host_on(target)
        assert [i for i in stored if there.reader.get(ADA, "notes", i) is None] == []
        assert content(target) == content(source)
        assert there.audit.verify(ADA).ok
