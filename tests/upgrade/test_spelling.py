"""Entries stored when subjects were compared as they are written are found by every spelling after an upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from tests.postgres import PostgresServer, shared_server

from reverie.core.entry import Scope
from reverie.core.event import keyed_hash
from reverie.core.subject import index_key, subject_hash
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.postgres import PostgresStore, migrate
from reverie.store.sqlite import SqliteStore

SPELLED = "A\u200bda"


def fill(store: Any) -> tuple[bytes, bytes]:
    """Two spellings of one subject; the key of the plain one, and the only key that the other had before."""
    scope = Scope("acme", "notes")
    store.write(scope, lambda tx: put(tx, make_entry(id="odd", subject=SPELLED)))
    store.write(scope, lambda tx: put(tx, make_entry(id="tagged", tags=(f"subject:{SPELLED}",))))
    store.write(scope, lambda tx: put(tx, make_entry(id="plain", subject="ada")))
    key = store.read(Scope("acme"), lambda tx: tx.log_key())
    store.close()
    return index_key(subject_hash(key, "ada")), index_key(keyed_hash(key, "a\u200bda"))


def found(store: Any, subject: str = "ADA") -> list[str]:
    return [entry.id for entry in store.read(Scope("acme"), lambda tx: tx.about(subject_hash(tx.log_key(), subject)))]


def test_a_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "reverie.db")
    plain, odd = fill(store)
    db = apsw.Connection(store.path)
    last = db.execute("PRAGMA user_version").get
    db.execute("DELETE FROM about WHERE who = ? AND n IN (SELECT n FROM about WHERE who = ?)", (plain, odd))
    assert db.changes() == 2
    db.execute(
        "DROP INDEX entry_task; DROP INDEX entry_left; DROP INDEX recall_cold; ALTER TABLE recall DROP COLUMN cold"
    )
    db.execute("DELETE FROM setting WHERE name >= 'migration/0012'")
    db.execute("PRAGMA user_version = 11")
    db.close()
    assert last == 14
    store = SqliteStore(store.path)
    assert found(store) == found(store, SPELLED) == ["odd", "tagged", "plain"]
    store.check()
    store.close()


def test_a_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    server: PostgresServer = shared_server(tmp_path_factory)
    url = server.make_database()
    plain, odd = fill(PostgresStore(url))
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    lose = (
        f"DELETE FROM reverie.about WHERE who = '\\x{plain.hex()}'"
        f" AND n IN (SELECT n FROM reverie.about WHERE who = '\\x{odd.hex()}')"
    )

    def forget_step(number: int) -> None:
        server.execute(lose, database=name)
        server.execute(f"DELETE FROM reverie.setting WHERE name = 'migration/{number:04d}'", database=name)

    forget_step(13)
    store = PostgresStore(url)
    assert found(store) == found(store, SPELLED) == ["odd", "tagged", "plain"]
    store.check()
    store.close()
    forget_step(14)  # as if a process of the release before had stored them since
    with psycopg.connect(url, autocommit=True) as connection:
        assert migrate.migrate(connection, 1, create=False, post=True) == [14]
    store = PostgresStore(url)
    assert found(store) == ["odd", "tagged", "plain"]
    store.close()
    server.drop_database(url)
