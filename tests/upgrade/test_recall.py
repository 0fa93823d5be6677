"""The word index of older releases becomes rows of recall, and both are kept in step while two releases run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from tests.postgres import PostgresServer, shared_server

from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.index.postings import hashed
from reverie.store import sql
from reverie.store.conformance import make_event
from reverie.store.postgres import PostgresStore, migrate
from reverie.store.postgres.pool import connect

KEY = b"k" * 32
HERE = Scope("acme", "notes")
MODEL = "m"


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database as the older release left it."""
    server: PostgresServer = shared_server(tmp_path_factory)
    made = server.make_database(template="empty_reverie")
    with connect(made) as connection:
        for number, text, checksum in sql.load_migrations(migrate.PACKAGE)[:2]:
            connection.execute(text.encode())
            row = (f"migration/{number:04d}", f"{checksum} 1".encode())
            connection.execute("INSERT INTO reverie.setting (name, value) VALUES (%s, %s)", row)
        with bound(connection):
            connection.execute(
                "INSERT INTO reverie.tenant (name, log_key, seq, epoch, hash, entries, bytes, rules_seq, position, "
                "indexed, tokens, created_at) VALUES ('acme', %s, 3, 3, %s, 3, 9, 0, 3, 0, 0, 1)",
                (KEY, hashlib.sha256(b"").digest()),
            )
        for position, words in enumerate((["kettle", "shelf"], ["kettle", "kettle"], ["port"]), 1):
            write_as_before(connection, position, words)
    yield made
    server.drop_database(made)


@contextmanager
def bound(connection: psycopg.Connection) -> Iterator[None]:
    with connection.transaction():
        connection.execute("SELECT set_config('reverie.name', 'acme', true), set_config('reverie.tenant', '1', true)")
        yield


def write_as_before(connection: psycopg.Connection, position: int, words: list[str]) -> None:
    """What the older release does for a new entry: entry, words, postings, vector."""
    with bound(connection):
        connection.execute(
            "INSERT INTO reverie.entry (tenant, n, ref, id, kind, content, tags, attributes, actor, door, trust, state, "
            "created_at, pinned, archived, held, version, born_seq, epoch) VALUES (1, %s, 'notes', %s, 'note', %s, '[]', "
            "'{}', 'ada', 'rest', 10, 'active', %s, false, false, false, 1, %s, 1)",
            (position, f"e{position}", " ".join(words), position, position),
        )
        numbers = {word: hashed(word, KEY) for word in words}
        connection.execute(
            "INSERT INTO reverie.words (tenant, n, length, words) VALUES (1, %s, %s, %s)",
            (position, len(words) + 1, list(numbers.values())),
        )
        for word, number in numbers.items():
            connection.execute(
                "INSERT INTO reverie.posting (tenant, memory, word, n, times, length) VALUES (1, 1, %s, %s, %s, %s)",
                (number, position, words.count(word), len(words) + 1),
            )
        connection.execute(
            "INSERT INTO reverie.vector (tenant, ref, seq, n, model, data) VALUES (1, 'notes', %s, %s, %s, %s)",
            (position, position, MODEL, bytes([position, 1])),
        )
        connection.execute("UPDATE reverie.tenant SET seq = %s, position = %s", (position, position))


def found(store: PostgresStore, *words: str) -> list[str]:
    return [match.entry.id for match in store.read(HERE, lambda tx: tx.match(words, Filter(), limit=9))]


def near(store: PostgresStore) -> list[str]:
    return sorted(
        m.entry.id for m in store.read(HERE, lambda tx: tx.nearest((MODEL, bytes([1, 1])), Filter(), limit=9))
    )


def left_behind(connection: psycopg.Connection, position: int) -> int:
    with bound(connection):
        counts = [
            connection.execute(f"SELECT count(*) FROM reverie.{table} WHERE n = %s".encode(), (position,)).fetchall()
            for table in ("words", "posting", "vector")
        ]
    return sum(int(rows[0][0]) for rows in counts)


def test_two_releases_find_and_forget_the_same(url: str) -> None:
    store = PostgresStore(url)
    assert found(store, "kettle") == ["e2", "e1"]
    assert near(store) == ["e1", "e2", "e3"]
    with connect(url) as older:
        write_as_before(older, 4, ["kettle", "lisbon"])
        assert found(store, "lisbon") == ["e4"]
        with bound(older):  # the older release takes an entry out
            older.execute("UPDATE reverie.entry SET gone_seq = 5, gone_at = 5, state = 'deleted' WHERE n = 1")
            older.execute("DELETE FROM reverie.vector WHERE tenant = 1 AND n = 1")
            older.execute("DELETE FROM reverie.words WHERE tenant = 1 AND n = 1")
            older.execute("DELETE FROM reverie.posting WHERE tenant = 1 AND n = 1")
            older.execute("UPDATE reverie.tenant SET seq = 5")
        assert found(store, "kettle") == ["e2", "e4"]
        assert near(store) == ["e2", "e3", "e4"]
        assert left_behind(older, 2) == 3
        store.write(HERE, lambda tx: tx.purge("e2", seq=tx.append(make_event())))  # and the newer one another
        assert left_behind(older, 2) == 0
    store.close()
    with connect(url) as connection:
        assert 4 in migrate.migrate(connection, 1, create=False, post=True)
    store = PostgresStore(url)
    assert found(store, "kettle", "port") == ["e3", "e4"]
    assert near(store) == ["e3", "e4"]
    store.close()
