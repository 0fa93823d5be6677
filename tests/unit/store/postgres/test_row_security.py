"""The second wall: a query that forgets the tenant, or is written wrongly on purpose, sees nothing of others."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from tests.postgres import PostgresServer

from reverie.core.entry import EntryState, Link, Scope
from reverie.core.query import Filter
from reverie.index.cache import IndexCache
from reverie.store.conformance import make_entry, make_event
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.postgres import PostgresStore
from reverie.store.postgres.dump import OWN
from reverie.store.postgres.rows import SQL

TABLES = ("tenant", *OWN)
TENANTS = ("acme", "rival")


@pytest.fixture(autouse=True)
def _filled(store: PostgresStore) -> None:
    """Two tenants with a row in every table."""

    def body(tx: WriteTx) -> None:
        put(
            tx,
            make_entry(id="a", content=f"kettle of {tx.scope.tenant}", tags=("t",), subject="s"),
            vector=("m", bytes([1, 2])),
        )
        put(tx, make_entry(id="b"))
        tx.link(Link("a", "b", "supports"))
        seq = tx.append(make_event())
        tx.change("b", seq=seq, archived=True)
        tx.change("b", seq=tx.append(make_event()), archived=False)
        tx.save("files", "k", b"x", seq=seq)
        tx.remember_answer("k", "d", b"a", until=2**50)
        tx.keep_searches(b"s")
        tx.claim("lease", "me", until=2**50)

    for tenant in TENANTS:
        store.write(Scope(tenant, "notes"), body)


def count(connection: psycopg.Connection, table: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("reverie", table))
    return int(connection.execute(query).fetchall()[0][0])


def bind(connection: psycopg.Connection, tenant: str) -> None:
    connection.execute("SELECT set_config('reverie.name', %s, true)", (tenant,))
    connection.execute(SQL["head"], {"name": tenant})


def test_every_table_of_tenants_forces_it(connection: psycopg.Connection) -> None:
    found = connection.execute(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = 'reverie'::regnamespace AND relkind IN ('r', 'p')"
    ).fetchall()
    open_to_all = {name for name, forced in found if not forced}
    assert open_to_all <= {"setting", "api_key"} | {name for name in open_to_all if name.startswith("job")}
    assert {name for name, forced in found if forced} >= set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_without_a_tenant_nothing_is_seen_or_changed(connection: psycopg.Connection, table: str) -> None:
    name = sql.Identifier("reverie", table)
    assert count(connection, table) == 0
    for setting in ("", "0", "1"):
        with connection.transaction():
            connection.execute("SELECT set_config('reverie.name', %s, true)", (setting,))
            assert count(connection, "tenant") == 0
    assert connection.execute(sql.SQL("DELETE FROM {}").format(name)).rowcount == 0
    with connection.transaction():
        connection.execute("SET LOCAL reverie.control = 'on'")
        assert connection.execute("UPDATE reverie.tenant SET seq = 99").rowcount == 0
        assert table == "tenant" or count(connection, table) == 0


@pytest.mark.parametrize("table", TABLES)
def test_a_condition_that_is_always_true_shows_the_own_tenant_only(connection: psycopg.Connection, table: str) -> None:
    name = sql.Identifier("reverie", table)
    for tenant in TENANTS:
        with connection.transaction():
            bind(connection, tenant)
            number = connection.execute("SELECT n FROM reverie.tenant").fetchall()[0][0]
            column = sql.Identifier("n" if table == "tenant" else "tenant")
            query = sql.SQL("SELECT DISTINCT {} FROM {} WHERE {} > 0 OR true").format(column, name, column)
            assert connection.execute(query).fetchall() == [(number,)]
            joined = sql.SQL("SELECT a.{} FROM {} AS a CROSS JOIN {} AS b UNION SELECT {} FROM {}")
            assert connection.execute(joined.format(column, name, name, column, name)).fetchall() == [(number,)]


def test_a_row_for_another_tenant_is_refused(connection: psycopg.Connection) -> None:
    for statement in (
        "INSERT INTO reverie.lease (tenant, name, holder, until) VALUES (2, 'x', 'x', 1)",
        "UPDATE reverie.lease SET tenant = 2",
        "UPDATE reverie.tenant SET name = 'rival2'",
    ):
        with connection.transaction(force_rollback=True):
            bind(connection, "acme")
            with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
                connection.execute(statement.encode())


def test_the_binding_ends_with_the_transaction(connection: psycopg.Connection) -> None:
    with connection.transaction():
        bind(connection, "acme")
        assert count(connection, "entry") == 2
    assert count(connection, "entry") == 0


@pytest.mark.parametrize("name", ["read_log", "refs", "links_from", "load", "answer", "scan_cold", "index_rows"])
def test_a_query_of_the_store_that_forgets_the_tenant_stays_inside(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The first wall taken away: the answers are the same."""
    calls: dict[str, Any] = {
        "read_log": lambda tx: tx.read_log(),
        "refs": lambda tx: tx.refs(),
        "links_from": lambda tx: tx.links("a"),
        "load": lambda tx: tx.load("files", "k"),
        "answer": lambda tx: tx.recall_answer("k"),
        "scan_cold": lambda tx: tx.cold(EntryState.DELETED, before=2**50, limit=10),
        "index_rows": lambda tx: tx.nearest(("m", bytes([1, 2])), Filter(), limit=5),
    }
    before = {tenant: store.read(Scope(tenant, "notes"), calls[name]) for tenant in TENANTS}
    careless = re.sub(rb"(?:e\.)?tenant = %(?:\(tenant\))?s", rb"(\g<0> OR true)", SQL[name])
    assert careless != SQL[name]
    monkeypatch.setitem(SQL, name, careless)
    store._cache = IndexCache()
    assert {tenant: store.read(Scope(tenant, "notes"), calls[name]) for tenant in TENANTS} == before


def test_the_check_says_whether_the_wall_stands(store: PostgresStore, url: str, postgres: PostgresServer) -> None:
    assert store.check()["row_security"] is True
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    above = PostgresStore(postgres.url(str(name), "postgres"))
    assert above.check()["row_security"] is False
    above.close()


def test_control_sees_names_and_nothing_else(store: PostgresStore) -> None:
    def look(tx: Any) -> int:
        return int(tx._connection.execute("SELECT count(*) FROM reverie.entry").fetchall()[0][0])

    assert store.control(lambda tx: tx.tenants()) == list(TENANTS)
    assert store.control(look) == 0
