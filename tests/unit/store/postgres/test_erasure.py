"""What was destroyed: gone for every query at once, from the tables after VACUUM, from the files after a rewrite."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.patience import until
from tests.postgres import PostgresServer
from tests.processes import Child, die

from reverie.core.entry import Scope
from reverie.store.conformance import make_entry, make_event
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.postgres import PostgresStore, scrub

SCOPE = Scope("acme", "notes")
WORD = "marzipanfjord"


def test_destroyed_text_leaves_tables_and_files(make_database: Callable[[], str], postgres: PostgresServer) -> None:
    url = make_database()
    store = PostgresStore(url)
    long = f"{WORD} " + "padding that makes it long enough to be stored apart " * 400

    def fill(tx: WriteTx) -> None:
        for n in range(20):
            put(tx, make_entry(id=f"{n}", content=long if n % 2 else WORD, tags=(WORD,), subject=WORD))

    def destroy(tx: WriteTx) -> None:
        for n in range(20):
            tx.purge(f"{n}", seq=tx.append(make_event()))

    store.write(SCOPE, fill)
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    postgres.execute("CHECKPOINT")
    assert traces(postgres, name)
    store.write(SCOPE, destroy)
    store.close()  # does the VACUUM that is owed
    dead = postgres.execute(
        "SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'reverie' AND relname IN ('entry', 'tag')",
        database=name,
    )
    postgres.execute("VACUUM FULL", database=name)
    postgres.execute("CHECKPOINT")
    assert not traces(postgres, name)
    assert dead == [(0,)]


def test_a_table_that_is_locked_is_cleared_up_later(
    make_database: Callable[[], str], postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "PAUSE_SECONDS", 0.1)
    url = make_database()
    store = PostgresStore(url)
    store.write(SCOPE, lambda tx: put(tx, make_entry(id="a", content=WORD)))
    tried, vacuum = threading.Semaphore(0), scrub.Scrubber._vacuum

    def watched(scrubber: scrub.Scrubber, tables: set[str], **options: bool) -> set[str]:
        skipped = vacuum(scrubber, tables, **options)
        tried.release()
        return skipped

    monkeypatch.setattr(scrub.Scrubber, "_vacuum", watched)

    def times() -> dict[str, int]:
        counted = "SELECT relname, vacuum_count FROM pg_stat_user_tables WHERE relname IN ('entry', 'tag')"
        return dict(postgres.execute(counted, database=str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])))

    before = times()
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE reverie.entry IN SHARE UPDATE EXCLUSIVE MODE")
        store.write(SCOPE, lambda tx: tx.purge("a", seq=tx.append(make_event())))
        for _ in range(3):
            assert tried.acquire(timeout=30)
        assert times() == {"entry": before["entry"], "tag": before["tag"] + 1}
    once = {name: count + 1 for name, count in before.items()}
    until(lambda: times() == once, "the vacuum that was owed")
    store.close()


def test_what_a_cut_connection_left_is_cleared_up_later(
    make_database: Callable[[], str], postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "PAUSE_SECONDS", 0.1)
    store, left = PostgresStore(make_database()), []
    vacuum, connect = scrub.Scrubber._vacuum, scrub.connect

    def cut(url: str) -> psycopg.Connection[object]:
        monkeypatch.setattr(scrub, "connect", connect)
        raise psycopg.OperationalError("the server ended the session")

    def watched(scrubber: scrub.Scrubber, tables: set[str], **options: bool) -> set[str]:
        left.append(vacuum(scrubber, tables, **options))
        return left[-1]

    monkeypatch.setattr(scrub, "connect", cut)
    monkeypatch.setattr(scrub.Scrubber, "_vacuum", watched)
    store.write(SCOPE, lambda tx: put(tx, make_entry(id="a", content=WORD)))
    store.write(SCOPE, lambda tx: tx.purge("a", seq=tx.append(make_event())))
    until(lambda: len(left) > 1)
    assert left[0] == set(scrub._TABLES)
    assert left[-1] == set()
    store.close()


def test_a_store_that_closes_waits_for_a_locked_table(make_database: Callable[[], str]) -> None:
    url = make_database()
    scrubber, done = scrub.Scrubber(url), threading.Event()
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE reverie.entry IN SHARE UPDATE EXCLUSIVE MODE")
        scrubber.owe()
        closing = threading.Thread(target=lambda: (scrubber.close(), done.set()))
        closing.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'VACUUM%entry'"
        with psycopg.connect(url, autocommit=True) as other:
            until(lambda: other.execute(waiting).fetchone() is not None)
        assert not done.is_set()
        holder.rollback()
    closing.join(60)
    assert done.is_set()


def destroy_and_die(url: str) -> None:
    """Destroy text, and be killed before the VACUUM."""
    scrub.PAUSE_SECONDS = 600.0
    store = PostgresStore(url)
    store.write(SCOPE, lambda tx: [tx.purge(f"{n}", seq=tx.append(make_event())) for n in range(20)])
    die()


def test_a_process_that_is_killed_leaves_its_vacuum_to_the_next(
    make_database: Callable[[], str], postgres: PostgresServer
) -> None:
    url = make_database()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])

    def noted() -> list[tuple[str]]:
        return postgres.execute("SELECT name FROM reverie.setting WHERE name LIKE 'vacuum/%'", database=name)

    store = PostgresStore(url)
    store.write(SCOPE, lambda tx: [put(tx, make_entry(id=f"{n}", content=f"{WORD} {n % 3}")) for n in range(20)])
    store.close()
    postgres.execute("ANALYZE", database=name)  # as the server does by itself, some time
    assert Child(destroy_and_die, url).end() == -signal.SIGKILL
    assert postgres.tables_with([WORD], name) == [("pg_catalog.pg_statistic", WORD)]
    assert len(noted()) == 1
    PostgresStore(url).close()
    assert postgres.tables_with([WORD], name) == []
    assert noted() == []


def traces(postgres: PostgresServer, database: str) -> list[Path]:
    """Files of a database that hold the word."""
    number = postgres.execute(f"SELECT oid FROM pg_database WHERE datname = '{database}'")[0][0]
    files = (postgres.folder / "base" / str(number)).iterdir()
    return [file for file in files if WORD.encode() in file.read_bytes()]
