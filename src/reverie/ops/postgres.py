"""The doctor's checks on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import psycopg

from reverie.core.errors import StoreUnavailable
from reverie.ops.checks import Check
from reverie.settings import Settings
from reverie.store.sql import load_queries, migration_phases

QUERIES = load_queries("reverie.ops")
_LAG = 64 * 2**20
_WORKER_CONNECTIONS = 5
"""Connections of a process in addition to its pool: those of the job engine, and one that listens."""


def examine_postgres(settings: Settings) -> Iterator[Check]:
    """Check role, row security, migrations, indexes, dead rows, replicas and connections. Reads catalogues only."""
    assert settings.postgres
    try:
        with psycopg.connect(settings.postgres, autocommit=True, connect_timeout=5) as connection:

            def ask(name: str) -> list[tuple[Any, ...]]:
                return connection.execute(QUERIES[name].encode()).fetchall()

            yield from _walls(ask("role"), ask("unguarded"))
            yield _migrations(ask("migrations"))
            yield _indexes(ask("indexes"))
            yield _bloat(ask("bloat"))
            yield _replication([] if ask("replica") == [(True,)] else ask("replication"), ask("replica"))
            yield _connections(ask("connections"), settings)
            version = ask("extension")
    except psycopg.Error as fault:
        code = fault.sqlstate or type(fault).__name__
        raise StoreUnavailable(f"PostgreSQL cannot be examined ({code}). Check REVERIE_DATABASE_URL.") from fault
    found = f"pgvector {version[0][0]}" if version else "pgvector is not installed, and not needed: search is exact"
    yield Check("extensions", "ok", found)


def _walls(role: list[tuple[Any, ...]], unguarded: list[tuple[Any, ...]]) -> Iterator[Check]:
    if role == [(False,)]:
        yield Check("role", "ok", "neither a superuser nor exempt from row security")
    else:
        step = "Let Reverie use a role made with CREATE ROLE reverie LOGIN, which owns the database."
        yield Check("role", "fail", "a superuser, or exempt from row security: row security protects nothing", step)
    if unguarded:
        names = ", ".join(str(row[0]) for row in unguarded)
        step = "ALTER TABLE reverie.NAME ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY for each."
        yield Check("row security", "fail", f"off or not forced on {names}", step)
    else:
        yield Check("row security", "ok", "on and forced on every table of tenants' rows")


def _migrations(found: list[tuple[Any, ...]]) -> Check:
    have, phases = {int(row[0]) for row in found}, migration_phases("reverie.store.postgres")
    missing = [number for number in sorted(phases) if number not in have]
    if have - phases.keys():
        newest = f"{max(have)} applied, this release knows {len(phases)}"
        return Check("migrations", "warn", newest, "Upgrade this process soon.")
    if [number for number in missing if phases[number] != "post"]:
        step = "Start any process of this release: it applies them."
        return Check("migrations", "warn", f"{len(missing)} pending", step)
    if missing:
        step = "Once no process of an older release runs: reverie upgrade --finish."
        return Check("migrations", "warn", f"{len(missing)} to be finished", step)
    return Check("migrations", "ok", f"all {len(phases)} applied")


def _indexes(found: list[tuple[Any, ...]]) -> Check:
    schema = files("reverie.store.postgres").joinpath("schema.sql").read_text("utf-8")
    wanted = set(re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", schema))
    missing = sorted(wanted - {str(name) for name, _ in found})
    broken = sorted(str(name) for name, valid in found if not valid)
    if missing or broken:
        step = "REINDEX INDEX CONCURRENTLY reverie.NAME for a broken one; make a missing one as schema.sql says."
        return Check("indexes", "fail", f"missing: {missing or 'none'}, broken: {broken or 'none'}", step)
    return Check("indexes", "ok", f"all {len(found)} can be used")


def _bloat(found: list[tuple[Any, ...]]) -> Check:
    if found:
        shown = ", ".join(f"{name} ({dead} dead of {dead + live})" for name, live, dead in found)
        return Check("dead rows", "warn", shown, "VACUUM those tables, and let autovacuum come more often.")
    return Check("dead rows", "ok", "few")


def _replication(replicas: list[tuple[Any, ...]], follows: list[tuple[Any, ...]]) -> Check:
    if follows == [(True,)]:
        return Check("replication", "fail", "this server is a replica", "Point REVERIE_DATABASE_URL at the primary.")
    late = [(name, behind) for name, behind in replicas if behind > _LAG]
    if late:
        shown = ", ".join(f"{name or 'unnamed'} {behind // 2**20} MiB" for name, behind in late)
        return Check("replication", "warn", f"behind: {shown}", "See what slows the replica down: disk, network, load.")
    return Check("replication", "ok", f"{len(replicas)} replicas, none far behind" if replicas else "no replicas")


def _connections(found: list[tuple[Any, ...]], settings: Settings) -> Check:
    most, reserved, now = found[0]
    each = settings.database_pool + _WORKER_CONNECTIONS
    room = (most - reserved) // each
    shown = f"{now} of {most - reserved}; this configuration takes up to {each} per process"
    if room < 2:
        step = "Raise max_connections, lower REVERIE_DATABASE_POOL, or put a pooler in between."
        return Check("connections", "warn", f"{shown}: room for {room} processes", step)
    return Check("connections", "ok", f"{shown}: room for {room} processes")
