"""Migrations: each is applied once and in one transaction, even when many processes start at the same time.

The file name of a step gives its phase. `NNNN_pre_...` only adds: the first process of a release applies it, and
processes of the previous release continue, and may even start, alongside it. `NNNN_post_...` removes what this release
no longer uses: it is applied when the operator says that no older process runs. A new database gets all steps.
"""

from __future__ import annotations

import orjson
import psycopg

from reverie.core.errors import Busy, StoreError, StoreUnavailable
from reverie.core.subject import index_keys
from reverie.store.sql import load_migrations, migration_phases

PACKAGE = "reverie.store.postgres"
_LOCK = 0x52564531
"""Key of the advisory lock that lets processes migrate one at a time."""
_KEYING = {5: "", 6: "", 13: "[^ -~]", 14: "[^ -~]"}
"""Steps after which entries are listed under their subjects: all entries, or those whose subject or tags match."""
_UNKEYED = """
SELECT n, subject, tags FROM reverie.entry AS e
WHERE tenant = %(tenant)s AND n > %(after)s AND state <> 'erased' AND (subject IS NOT NULL OR tags LIKE '%%"subject:%%')
AND concat(subject, tags) ~ %(odd)s
ORDER BY n LIMIT 1000
"""
_OLDER = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND application_name LIKE 'reverie%%' AND coalesce(substring(application_name FROM '/(\\d+)$')::integer, 0) < %s
"""


def applied(connection: psycopg.Connection) -> dict[int, str]:
    """The migrations that the database has, each with its recorded phase: `pre`, `post` or empty."""
    # the catalogue and not `to_regclass`, which may have cached its answer before another process migrated
    made = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'reverie' AND tablename = 'setting'"
    if not connection.execute(made).fetchall():
        return {}
    found = connection.execute("SELECT name, value FROM reverie.setting WHERE name LIKE 'migration/%'").fetchall()
    return {int(name[-4:]): [*bytes(value).decode().split(), "", "", ""][2] for name, value in found}


def schema_version(connection: psycopg.Connection) -> int:
    """The number of the last migration the database has."""
    return max(applied(connection), default=0)


def pending(have: dict[int, str], *, post: bool) -> list[tuple[int, str, str]]:
    """The steps to apply now. A new database has no older processes, so it gets all steps."""
    phases = migration_phases(PACKAGE)
    wanted = load_migrations(PACKAGE)
    return [step for step in wanted if step[0] not in have and (post or not have or phases[step[0]] != "post")]


def migrate(connection: psycopg.Connection, now: int, *, create: bool, post: bool = False) -> list[int]:
    """Bring a database to this version's schema. Returns the applied steps. The connection is in autocommit mode.

    `post`: also remove what only older releases need. Raises Busy while a process of an older release is connected.
    """
    have = applied(connection)
    phases = migration_phases(PACKAGE)
    if not pending(have, post=post) and have.keys() <= phases.keys():
        return []
    if not have and not create:
        raise StoreUnavailable("There is no Reverie database at this URL.")
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        have = applied(connection)
        if any(have[number] != "pre" for number in have.keys() - phases.keys()):
            raise StoreError(
                f"This database has schema {max(have)}, and this release of Reverie supports up to {len(phases)}. "
                "Install a newer release."
            )
        steps = pending(have, post=post)
        if have and any(phases[number] == "post" for number, _, _ in steps):
            older = connection.execute(_OLDER, (max(number for number, _, _ in steps),)).fetchall()[0][0]
            if older:
                raise Busy(f"Connections from an older release: {older}. Stop its processes, then try again.")
        for number, sql, checksum in steps:
            connection.execute(sql.encode())
            if number in _KEYING:
                key_subjects(connection, _KEYING[number])
            row = (f"migration/{number:04d}", f"{checksum} {now} {phases[number]}".rstrip().encode())
            connection.execute("INSERT INTO reverie.setting (name, value) VALUES (%s, %s)", row)
        connection.execute("COMMIT")
    except BaseException:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise
    return [number for number, _, _ in steps]


def key_subjects(connection: psycopg.Connection, odd: str = "") -> None:
    """List entries under the keys of their subjects, and remove rows without a key. Inside the caller's transaction."""
    connection.execute("SELECT set_config('reverie.control', 'on', true)")
    tenants = connection.execute("SELECT n, log_key FROM reverie.tenant").fetchall()
    for tenant, log_key in tenants:
        connection.execute("SELECT set_config('reverie.tenant', %s, true)", (str(tenant),))
        after = 0
        while True:
            rows = connection.execute(_UNKEYED, {"tenant": tenant, "after": after, "odd": odd}).fetchall()
            made = [
                (tenant, key, n)
                for n, subject, tags in rows
                for key in index_keys(bytes(log_key), subject, orjson.loads(tags))
            ]
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO reverie.about (tenant, who, n) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", made
                )
            if not rows:
                break
            after = rows[-1][0]
        connection.execute("DELETE FROM reverie.about WHERE tenant = %s AND who = ''", (tenant,))
    connection.execute("SELECT set_config('reverie.control', 'off', true), set_config('reverie.tenant', '', true)")
