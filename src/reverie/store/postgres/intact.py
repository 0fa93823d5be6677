"""Rows against the sums that the server stored with them."""

from __future__ import annotations

from psycopg import Connection, sql

from reverie.store.postgres.rows import SQL


def all_tenants(connection: Connection) -> list[tuple[int, str]]:
    """Number and name of every tenant. Inside the caller's transaction."""
    connection.execute("SELECT set_config('reverie.control', 'on', true)")
    return connection.execute("SELECT n, name FROM reverie.tenant ORDER BY n").fetchall()


def damage(connection: Connection, tenant: int) -> str | None:
    """Count the rows of the first table with rows that differ from their checksums. Inside the caller's transaction."""
    connection.execute("SELECT set_config('reverie.tenant', %s, true)", (str(tenant),))
    for table, column, made in connection.execute(SQL["sums_of_rows"]).fetchall():
        query = sql.SQL("SELECT count(*) FROM {} WHERE {} IS DISTINCT FROM ({})").format(
            sql.Identifier("reverie", table), sql.Identifier(column), sql.SQL(made)
        )
        found = connection.execute(query).fetchone()
        if found and found[0]:
            return f"{found[0]} rows of {table} are not as they were stored"
    return None
