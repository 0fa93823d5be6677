"""A byte that changed on the disk of a PostgreSQL server is noticed, whichever row it is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.postgres import PostgresServer, shared_server

from reverie.app import build_host
from reverie.core.entry import Draft
from reverie.core.errors import StoreCorrupt
from reverie.settings import Settings


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    return shared_server(tmp_path_factory)


@pytest.fixture
def settings(server: PostgresServer) -> Iterator[Settings]:
    """A database with an entry, what it is found by, and a document."""
    url = server.make_database()
    made = Settings(database_url=url, embedder="none")
    host = build_host(made)
    host.entries.put(
        host.system_actor("harbour"),
        "notes",
        [Draft(content="The kettle is blue.", tags=("teapotneedle", "subject:Ada"))],
    )
    assert host.audit.verify(host.system_actor("harbour")).ok
    host.close()
    server.execute(
        "INSERT INTO reverie.link (tenant, ref, from_id, type, to_id, note, n) "
        "SELECT n, 'notes', 'one', 'elaborates', 'linkneedle', NULL, 1 FROM reverie.tenant",
        database=name_of(url),
    )
    server.execute(
        "INSERT INTO reverie.document (tenant, space, key, version, body, meta, updated_at, seq) "
        "SELECT n, 'test', 'page', 1, 'documentneedle'::bytea, '{}', 1, 1 FROM reverie.tenant",
        database=name_of(url),
    )
    yield made
    server.drop_database(url)


def name_of(url: str) -> str:
    return url.split("/")[3].split("?")[0]


def damaged(server: PostgresServer, url: str, table: str, needle: bytes) -> str:
    """A copy of the database in which one byte of `needle` was changed on the disk."""
    server.execute("CHECKPOINT")
    [(path,)] = server.execute(f"SELECT pg_relation_filepath('reverie.{table}')", database=name_of(url))
    file = server.folder / path
    content = file.read_bytes()
    assert content.count(needle) >= 1
    file.write_bytes(content.replace(needle, needle[:-1] + bytes([needle[-1] ^ 1])))
    copy = f"{name_of(url)}_copy"
    server.execute(f"CREATE DATABASE {copy} TEMPLATE {name_of(url)} STRATEGY FILE_COPY OWNER reverie")
    # as on a server whose pages have no checksums
    server.execute(f"ALTER DATABASE {copy} SET ignore_checksum_failure = on")
    return url.replace(name_of(url), copy)


@pytest.mark.parametrize("table", ["entry", "recall", "document", "about", "tag", "link"])
def test_a_changed_byte_is_noticed(server: PostgresServer, settings: Settings, table: str) -> None:
    url = str(settings.postgres)
    needles = {"entry": b"teapotneedle", "tag": b"teapotneedle", "document": b"documentneedle", "link": b"linkneedle"}
    needle = needles.get(table, b"")
    if table == "recall":
        [(words,)] = server.execute("SELECT words FROM reverie.recall", database=name_of(url))
        needle = bytes(words)
    if table == "about":
        [(who,)] = server.execute("SELECT who FROM reverie.about", database=name_of(url))
        needle = bytes(who)
    copy = damaged(server, url, table, needle)
    try:
        host = build_host(replace(settings, database_url=copy))
        verdict = host.audit.verify(host.system_actor("harbour"))
        assert not verdict.ok
        said = {
            "entry": "a stored entry is not as written",
            "about": "entries that are not found by their subject: 1",
            "tag": "entries that are not found by their tags: 1",
        }
        assert verdict.reason in {f"rows of {table} that are not as they were stored: 1", said.get(table)}
        with pytest.raises(StoreCorrupt, match={"about": "subject", "tag": "tags"}.get(table, table)):
            host.parts.store.check()
        host.close()
    finally:
        server.drop_database(copy)
