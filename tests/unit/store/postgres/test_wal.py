"""--switch-wal: the segment ends where the role may; where it may not, the answer says what to do."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from tests.postgres import PostgresServer

from reverie.store.postgres import PostgresStore


def test_the_segment_ends_when_the_role_may(make_database: Callable[[], str], postgres: PostgresServer) -> None:
    url = make_database()
    store = PostgresStore(url)
    assert "this role may not" in store.switch_wal()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    postgres.execute("GRANT EXECUTE ON FUNCTION pg_switch_wal() TO reverie", database=name)
    before = postgres.execute("SELECT pg_walfile_name(pg_current_wal_lsn())")
    said = store.switch_wal()
    assert "WAL segment ended at" in said
    assert "checkpoints" in said
    postgres.execute("REVOKE EXECUTE ON FUNCTION pg_switch_wal() FROM reverie", database=name)
    postgres.execute("SELECT pg_logical_emit_message(false, 'reverie', 'next')", database=name)
    assert postgres.execute("SELECT pg_walfile_name(pg_current_wal_lsn())") != before
    store.close()
