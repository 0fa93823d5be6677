"""Verifies rows against their stored checksums, and the indexes of subjects and tags against the entries."""

from __future__ import annotations

import orjson
from psycopg import Connection, sql

from reverie.core.subject import index_keys
from reverie.store.postgres.rows import SQL


def all_tenants(connection: Connection) -> list[tuple[int, str]]:
    """Number and name of every tenant. Runs inside the caller's transaction."""
    connection.execute("SELECT set_config('reverie.control', 'on', true)")
    return connection.execute("SELECT n, name FROM reverie.tenant ORDER BY n").fetchall()


def damage(connection: Connection, tenant: int) -> str | None:
    """Describe the first damage that is found; None when there is none. Runs inside the caller's transaction."""
    connection.execute("SELECT set_config('reverie.tenant', %s, true)", (str(tenant),))
    for table, column, made in connection.execute(SQL["sums_of_rows"]).fetchall():
        query = sql.SQL("SELECT count(*) FROM {} WHERE {} IS DISTINCT FROM ({})").format(
            sql.Identifier("reverie", table), sql.Identifier(column), sql.SQL(made)
        )
        found = connection.execute(query).fetchone()
        if found and found[0]:
            return f"rows of {table} that are not as they were stored: {found[0]}"
    for way in ("enable_indexonlyscan", "enable_seqscan"):  # first the table, then its index, which a forget uses
        connection.execute("SELECT set_config(%s, 'off', true)", (way,))
        lost, untagged = _unlabelled(connection, tenant), _untagged(connection, tenant)
        connection.execute("SELECT set_config(%s, 'on', true)", (way,))
        if lost:
            return f"entries that are not found by their subject: {lost}"
        if untagged:
            return f"entries that are not found by their tags: {untagged}"
    return None


def _unlabelled(connection: Connection, tenant: int) -> int:
    """Number of entries that a forget of their subject would not reach, because a row of `about` is damaged."""
    found = connection.execute("SELECT log_key FROM reverie.tenant WHERE n = %s", (tenant,)).fetchone()
    lost = 0
    with connection.cursor(name="labels") as cursor:
        for subject, tags, keys in cursor.execute(SQL["labels"], {"tenant": tenant}):
            wanted = index_keys(bytes(found[0]) if found else b"", subject, orjson.loads(tags))
            stored = {bytes(key) for key in keys or ()}
            lost += b"" not in stored and not stored.issuperset(wanted)  # empty key: by an older release, always found
    return lost


def _untagged(connection: Connection, tenant: int) -> int:
    """Number of entries that are not listed under exactly their tags."""
    with connection.cursor(name="tags") as cursor:
        rows = cursor.execute(SQL["tagged"], {"tenant": tenant})
        return sum(set(listed or ()) != set(orjson.loads(tags or "[]")) for tags, listed in rows)
