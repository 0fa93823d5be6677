"""Writes a backup in SQL: schema and rows of one snapshot, in a file that `psql` reads.

`pg_dump` needs a role that row security does not bind. This does not: the transaction names one tenant after the other
and copies the rows that it then sees. Restoring with `psql` does need such a role: see docs/postgres.md.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import IO

from psycopg import sql

from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL
from reverie.store.postgres.writer import limits

OWN = ("entry", "absence", "tag", "link", "about", "event", "recall", "document", "answer", "searches", "lease")
"""The tables of a tenant's rows."""
ABOVE = ("setting", "api_key")


def dump(connection: Connection, file: IO[bytes], progress: Callable[[int, int], None] | None) -> None:
    """Write everything in the snapshot of `connection`. The caller has begun the transaction, and ends it."""
    connection.execute(SQL["bind"], limits("", control=True))
    connection.execute(b"SET LOCAL statement_timeout = 0")
    names = [row[0] for row in connection.execute(SQL["tenants"])]
    total = len(ABOVE) + len(names) * (len(OWN) + 1)
    steps = iter(range(1, total + 1))

    def copy(table: str) -> None:
        _copy(connection, file, table)
        if progress:
            progress(next(steps), total)

    _head(connection, file)
    for table in ABOVE:
        copy(table)
    for name in names:
        connection.execute(SQL["bind"], limits(name))
        connection.execute(b"SET LOCAL statement_timeout = 0")
        connection.execute(SQL["head"], {"name": name})
        for table in ("tenant", *OWN):
            copy(table)
    file.write(
        b"SELECT setval(pg_get_serial_sequence('reverie.tenant', 'n'), coalesce(max(n), 0) + 1, false)"
        b" FROM reverie.tenant;\nCOMMIT;\n"
    )


def _head(connection: Connection, file: IO[bytes]) -> None:
    owner = sql.Identifier(connection.info.user).as_bytes(connection)
    schema = files("reverie.store.postgres").joinpath("schema.sql").read_bytes()
    file.write(b"-- A backup of Reverie. psql -v ON_ERROR_STOP=1 -f FILE, as a superuser, into an empty database.\n")
    file.write(b"BEGIN;\nCREATE SCHEMA reverie AUTHORIZATION " + owner + b";\nSET LOCAL ROLE " + owner + b";\n")
    file.write(schema + b"RESET ROLE;\n")


def _copy(connection: Connection, file: IO[bytes], table: str) -> None:
    name = sql.Identifier("reverie", table)
    # generated columns, such as checksums of rows, are computed again when the rows are restored
    found = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = '' ORDER BY attnum",
        (name.as_string(connection),),
    )
    columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in found.fetchall())
    into = sql.SQL("COPY {} ({}) FROM stdin;\n").format(name, columns)
    file.write(into.as_bytes(connection))
    # a query and not the table: under row security, COPY of a table is refused
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, name)) as rows,
    ):
        for part in rows:
            file.write(part)
    file.write(b"\\.\n\n")
