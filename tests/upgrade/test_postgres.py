"""Two releases on one PostgreSQL: code of this release on the schema of the next, before and after it is finished."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres import PostgresServer, shared_server

from reverie.core.entry import Scope
from reverie.core.errors import Busy, StoreError
from reverie.core.subject import subject_hash
from reverie.store import sql
from reverie.store.conformance import Case, HandClock, cases, make_entry
from reverie.store.conformance.case import CAPABILITIES
from reverie.store.conformance.lab import make_event, put
from reverie.store.postgres import PostgresStore, migrate
from reverie.store.postgres.pool import connect

SLOW = {"paging", "concurrency", "snapshots", "transfer"}
"""They look at threads and at other connections, not at the schema."""
NEXT = """
ALTER TABLE reverie.entry ADD COLUMN mood text, ADD COLUMN weight integer NOT NULL DEFAULT 0;
ALTER TABLE reverie.document ADD COLUMN touched bigint;
ALTER TABLE reverie.tenant ADD COLUMN plan text NOT NULL DEFAULT 'plain';
ALTER TABLE reverie.event ADD COLUMN place text;
ALTER TABLE reverie.lease ADD COLUMN why text NOT NULL DEFAULT '';
CREATE TABLE reverie.extra (tenant integer NOT NULL, n bigint NOT NULL, PRIMARY KEY (tenant, n));
ALTER TABLE reverie.extra ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX entry_weight ON reverie.entry (tenant, weight);
"""
"""A made-up migration of the kind that runs before the new code does."""
LAST = "ALTER TABLE reverie.extra DROP COLUMN n"
"""And one of the kind that runs when no old code does."""
PACKAGE = "reverie.store.postgres"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    return shared_server(tmp_path_factory)


def name_of(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def add(server: PostgresServer, url: str, text: str, phase: str) -> None:
    """As if the next release had been here."""
    row = f"INSERT INTO reverie.setting (name, value) VALUES ('migration/9999', 'sum 1 {phase}')"
    for statement in (text, row):
        server.execute(statement, database=name_of(url))


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    made = server.make_database()
    yield made
    server.drop_database(made)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that the next release has added to."""
    server = shared_server(tmp_path_factory)
    made = server.make_database()
    add(server, made, NEXT, "pre")
    yield made
    server.drop_database(made)


@pytest.mark.parametrize("case", cases([name for name in CAPABILITIES if name not in SLOW]), ids=str)
def test_this_release_keeps_its_contract_on_the_schema_of_the_next(
    case: Case, server: PostgresServer, upgraded: str
) -> None:
    assert server.empty_database(upgraded)
    case.run(lambda clock: PostgresStore(upgraded, clock=clock))


def test_a_process_that_runs_goes_on_while_the_next_release_adds(server: PostgresServer, url: str) -> None:
    clock = HandClock()
    store = PostgresStore(url, clock=clock)
    store.control(lambda tx: tx.tenants())
    add(server, url, NEXT, "pre")
    for case in cases(["documents"]):
        case.run(lambda _: Kept(store, clock))
        assert server.empty_database(url)
    store.close()


class Kept:
    """A store that stays open from case to case."""

    def __init__(self, store: PostgresStore, clock: HandClock) -> None:
        self._store, self._clock = store, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        return


@pytest.mark.parametrize("phase", ["post", ""])
def test_a_process_does_not_start_where_the_next_release_has_taken_away(
    server: PostgresServer, url: str, phase: str
) -> None:
    add(server, url, NEXT, phase)
    with pytest.raises(StoreError) as refused:
        PostgresStore(url)
    assert "newer" in refused.value.message


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> int:
    """This code knows two migrations more: one that adds and one that takes away. Returns the number of the first."""
    known, phases = sql.load_migrations(PACKAGE), sql.migration_phases(PACKAGE)
    first = len(known) + 1
    more = [*known, (first, NEXT, "a"), (first + 1, LAST, "b")]
    monkeypatch.setattr(migrate, "load_migrations", lambda _: more)
    monkeypatch.setattr(migrate, "migration_phases", lambda _: {**phases, first: "pre", first + 1: "post"})
    return first


def columns(server: PostgresServer, url: str) -> int:
    found = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'reverie' AND table_name = 'extra'"
    return int(server.execute(found, database=name_of(url))[0][0])


def test_starting_adds_and_only_finishing_takes_away(server: PostgresServer, url: str, next_release: int) -> None:
    PostgresStore(url).close()
    assert columns(server, url) == 2
    PostgresStore(url).close()
    assert columns(server, url) == 2
    with connect(url) as connection:
        assert migrate.schema_version(connection) == next_release
        assert migrate.migrate(connection, 1, create=False, post=True) == [next_release + 1]
        assert migrate.migrate(connection, 1, create=False, post=True) == []
    assert columns(server, url) == 1
    PostgresStore(url).close()


def test_a_later_step_that_adds_does_not_wait_for_an_earlier_one_that_takes_away(
    server: PostgresServer, url: str, next_release: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresStore(url).close()
    later = next_release + 2
    more = [*migrate.load_migrations(PACKAGE), (later, "ALTER TABLE reverie.extra ADD COLUMN m text", "c")]
    phases = {**migrate.migration_phases(PACKAGE), later: "pre"}
    monkeypatch.setattr(migrate, "load_migrations", lambda _: more)
    monkeypatch.setattr(migrate, "migration_phases", lambda _: phases)
    PostgresStore(url).close()
    assert columns(server, url) == 3
    with connect(url) as connection:
        assert migrate.migrate(connection, 1, create=False, post=True) == [next_release + 1]
    assert columns(server, url) == 2


def test_finishing_is_refused_while_a_process_of_the_older_release_is_connected(
    server: PostgresServer, url: str, next_release: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresStore(url).close()
    older = PostgresStore(url)  # its connections say how many migrations it knows
    older.control(lambda tx: tx.tenants())
    with connect(url) as connection:
        with pytest.raises(Busy):
            migrate.migrate(connection, 1, create=False, post=True)
        older.close()
        for _ in range(100):  # the server takes a moment to see that it left
            try:
                assert migrate.migrate(connection, 1, create=False, post=True) == [next_release + 1]
                break
            except Busy:
                time.sleep(0.05)
        assert columns(server, url) == 1


def test_a_new_database_gets_everything(server: PostgresServer, next_release: int) -> None:
    made = server.make_database(template="empty_reverie")
    PostgresStore(made).close()
    assert columns(server, made) == 1
    server.drop_database(made)


def test_the_schema_is_the_sum_of_the_migrations(server: PostgresServer) -> None:
    """Columns, indexes and policies of schema.sql are those that the migrations lead to."""
    shapes = []
    folder = Path(str(migrate.__file__)).parent
    texts = [[(folder / "schema.sql").read_text("utf-8")], [text for _, text, _ in sql.load_migrations(PACKAGE)]]
    for parts in texts:
        made = server.make_database(template="empty_reverie")
        for part in parts:
            server.execute(part, database=name_of(made))
        shapes.append(
            [
                server.execute(query, database=name_of(made))
                for query in (
                    "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
                    "FROM information_schema.columns WHERE table_schema = 'reverie' ORDER BY 1, 2",
                    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'reverie' ORDER BY 1",
                    "SELECT tablename, policyname, cmd, qual FROM pg_policies WHERE schemaname = 'reverie' ORDER BY 1, 2",
                    "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
                    "WHERE relnamespace = 'reverie'::regnamespace AND relkind = 'r' ORDER BY 1",
                )
            ]
        )
        server.drop_database(made)
    assert shapes[0] == shapes[1]


def test_entries_of_older_releases_are_found_by_their_subjects(server: PostgresServer, url: str) -> None:
    """Those stored before the keys of subjects came, and those that an older process stores beside the new one."""
    scope = Scope("acme", "notes")
    store = PostgresStore(url)
    store.write(scope, lambda tx: put(tx, make_entry(id="early", subject="Ada ")))
    store.write(scope, lambda tx: put(tx, make_entry(id="tagged", tags=("subject:ADA",))))
    store.close()
    server.execute("DROP TABLE reverie.about", database=name_of(url))
    server.execute(
        "DELETE FROM reverie.setting WHERE name IN ('migration/0005', 'migration/0006')", database=name_of(url)
    )

    def found(of: PostgresStore) -> list[str]:
        return [e.id for e in of.read(Scope("acme"), lambda tx: tx.about(subject_hash(tx.log_key(), "ada")))]

    store = PostgresStore(url)
    assert found(store) == ["early", "tagged"]
    names = (
        "n, ref, id, kind, content, tags, subject, attributes, actor, door, trust, state, created_at, pinned, archived"
    )
    names += ", held, version, born_seq, epoch"
    late = names.replace("n, ref, id", "n + 10, ref, 'late'", 1)
    server.execute(
        f"INSERT INTO reverie.entry (tenant, {names}) SELECT tenant, {late} FROM reverie.entry WHERE id = 'early'",
        database=name_of(url),
    )
    assert found(store) == ["early", "tagged", "late"]
    store.close()
    with connect(url) as connection:
        for _ in range(100):  # the server takes a moment to see that it left
            try:
                assert migrate.migrate(connection, 1, create=False, post=True) == [6]
                break
            except Busy:
                time.sleep(0.05)
    assert server.execute("SELECT count(*) FROM reverie.about WHERE who = ''", database=name_of(url)) == [(0,)]
    store = PostgresStore(url)
    assert found(store) == ["early", "tagged", "late"]
    store.write(scope, lambda tx: tx.purge("early", seq=tx.append(make_event("memory.purged", entry_id="early"))))
    assert found(store) == ["tagged", "late"]
    store.close()


@pytest.mark.parametrize(
    ("name", "phase"), [("0007_pre_wider.sql", "pre"), ("0007_post_narrower.sql", "post"), ("0007_preface.sql", "")]
)
def test_a_step_says_its_phase_in_its_name(name: str, phase: str) -> None:
    found = sql._MIGRATION.fullmatch(name)
    assert found is not None
    assert (found[2] or "") == phase
