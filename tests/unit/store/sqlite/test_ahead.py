"""Heavy bodies make their rows before the transaction, so that others do not wait for the making."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Receipt, Scope
from reverie.core.errors import Conflict, QuotaExceeded
from reverie.host import Host
from reverie.memory import entries
from reverie.memory.insertion import PreparedEntry
from reverie.store.contract import WriteTx
from reverie.store.sqlite.store import SqliteStore
from reverie.store.sqlite.writer import HEAVY

MANY = HEAVY + 44


def drafts(word: str, **more: Any) -> list[Draft]:
    return [Draft(f"Pump {n} is {word}.", subject="pumps", tags=("hall",), **more) for n in range(MANY)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "reverie.db")
    yield made
    made.close()


@pytest.fixture
def host(make_host: Callable[..., Host], store: SqliteStore, ada: Actor) -> Host:
    made = make_host(store=store)
    made.entries.put(ada, "notes", [Draft("The hall has pumps.")])  # the tenant exists
    return made


@pytest.fixture
def writing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the writer was at work, for each entry of `notes` that a body stored."""
    found: list[bool] = []
    real = entries.insert

    def insert(tx: WriteTx, actor: Actor, item: PreparedEntry, **named: Any) -> Receipt:
        if item.entry.ref == "notes":
            assert store._writer is not None
            found.append(store._writer._turn.locked())
        return real(tx, actor, item, **named)

    monkeypatch.setattr(entries, "insert", insert)
    return found


def test_the_writer_is_free_while_a_batch_is_made(host: Host, ada: Actor, writing: list[bool]) -> None:
    writing.clear()
    receipts = host.entries.put(ada, "notes", drafts("open"))
    assert writing == [False] * MANY
    assert [receipt.seq for receipt in receipts] == list(range(2, MANY + 2))
    assert host.reader.get(ada, "notes", receipts[-1].id).content == f"Pump {MANY - 1} is open."
    assert host.search.search(ada, "notes", "Pump 17 is open").hits[0].entry.content == "Pump 17 is open."
    assert host.audit.verify(ada).ok


def test_a_write_of_the_same_tenant_in_between_is_seen(
    host: Host, ada: Actor, writing: list[bool], store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = store._submit

    def late(*arguments: Any) -> Any:
        monkeypatch.undo()
        host.entries.put(ada, "other", [Draft("In between.")])
        return submit(*arguments)

    monkeypatch.setattr(store, "_submit", late)
    writing.clear()
    receipts = host.entries.put(ada, "notes", drafts("open"))
    assert [receipt.seq for receipt in receipts] == list(range(3, MANY + 3))
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.head().entries) == MANY + 2
    assert host.audit.verify(ada).ok


def test_a_retry_at_the_same_time_stores_nothing_twice(host: Host, ada: Actor) -> None:
    found: list[list[Any]] = []

    def put() -> None:
        found.append(host.entries.put(ada, "notes", drafts("open"), idempotency_key="once"))

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len({tuple(receipt.id for receipt in receipts) for receipts in found}) == 1
    assert sorted(receipts[0].replayed for receipts in found) == [False, True, True, True]
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.head().entries) == MANY + 1


def test_a_refused_batch_leaves_nothing(host: Host, ada: Actor) -> None:
    same = [*drafts("open")[:-1], Draft("The last.", id="twice"), Draft("The same.", id="twice")]
    with pytest.raises(Conflict):
        host.entries.put(ada, "notes", same)
    host.rules.set_policy(ada, {"max_entries": MANY})
    with pytest.raises(QuotaExceeded):
        host.entries.put(ada, "notes", drafts("open"))
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.head().entries) == 1
    assert host.audit.verify(ada).ok


def test_a_batch_that_changes_entries_runs_in_its_transaction(host: Host, ada: Actor) -> None:
    stored = host.entries.put(ada, "notes", drafts("open"))
    changes = [("notes", receipt.id, Draft(f"{receipt.id} is closed."), None) for receipt in stored]
    host.entries.supersede_many(ada, changes)
    assert {entry.content[-7:] for entry in host.reader.page(ada, "notes", limit=50).items} == {"closed."}
    assert host.audit.verify(ada).ok
