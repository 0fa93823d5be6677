"""Migrations: each once, each in one transaction, safe when many processes start at one instant."""

from __future__ import annotations

import psycopg

from reverie.core.errors import StoreError, StoreUnavailable
from reverie.store.sql import load_migrations

_LOCK = 0x52564531
"""Of the advisory lock that migrating processes take turns by."""


def schema_version(connection: psycopg.Connection) -> int:
    """The number of the last migration the database has."""
    # the catalogue itself and not `to_regclass`, which may remember what it looked up before another process migrated
    made = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'reverie' AND tablename = 'setting'"
    if not connection.execute(made).fetchall():
        return 0
    found = connection.execute("SELECT count(*) FROM reverie.setting WHERE name LIKE 'migration/%'").fetchall()
    return int(found[0][0])


def migrate(connection: psycopg.Connection, now: int, *, create: bool) -> None:
    """Bring a database to this version's schema. The connection commits by itself."""
    migrations = load_migrations("reverie.store.postgres")
    have = schema_version(connection)
    if have == len(migrations):
        return
    if not have and not create:
        raise StoreUnavailable("There is no database of Reverie at this URL.")
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        have = schema_version(connection)
        if have > len(migrations):
            raise StoreError(
                f"This database has schema {have}, this Reverie knows {len(migrations)}. Install the newer Reverie."
            )
        for number, sql, checksum in migrations[have:]:
            connection.execute(sql.encode())
            row = (f"migration/{number:04d}", f"{checksum} {now}".encode())
            connection.execute("INSERT INTO reverie.setting (name, value) VALUES (%s, %s)", row)
        connection.execute("COMMIT")
    except BaseException:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise
