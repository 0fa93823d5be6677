"""The job engine's tables, in a schema of their own: made and kept up to date by the first process that needs them."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
from procrastinate.schema import SchemaManager

SCHEMA = "reverie_jobs"
_LOCK = 0x52564533


def install(connection: psycopg.Connection[Any]) -> None:
    """Make the engine's schema, or apply what its newer version adds. One transaction; does nothing when all is there.

    The connection's search path names the schema.
    """
    wanted = _migrations()
    if _applied(connection) >= wanted.keys():
        connection.commit()
        return
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    have = _applied(connection)
    if not have:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute("CREATE TABLE job_schema (name text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
        connection.execute(SchemaManager.get_schema().encode())
        have = {name for name in wanted if name.endswith(".sql")}
        _record(connection, have)
    for name, sql in wanted.items():
        if name not in have or name.startswith("engine/"):  # ours comes last, also after a newer engine's own
            connection.execute(sql)
            _record(connection, {name})
    connection.commit()


def _migrations() -> dict[str, bytes]:
    """The engine's migrations by file name, in order, and then our own file under its checksum."""
    folder = Path(SchemaManager.get_migrations_path())
    own = resources.files("reverie.jobs").joinpath("engine.sql").read_bytes()
    found = {file.name: file.read_bytes() for file in sorted(folder.glob("*.sql"))}
    return {**found, f"engine/{hashlib.sha256(own).hexdigest()[:16]}": own}


def _applied(connection: psycopg.Connection[Any]) -> set[str]:
    # not to_regclass: that may answer from a cache that is older than the lock
    known = connection.execute(
        "SELECT count(*) > 0 AS known FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace "
        "WHERE s.nspname = %s AND c.relname = 'job_schema'",
        (SCHEMA,),
    ).fetchone()
    if not known or not known["known"]:
        return set()
    return {row["name"] for row in connection.execute("SELECT name FROM job_schema").fetchall()}


def _record(connection: psycopg.Connection[Any], names: set[str]) -> None:
    for name in sorted(names):
        connection.execute("INSERT INTO job_schema (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
