"""The server's write-ahead log after a forget: ends its segment, and says when that is gone."""

from __future__ import annotations

import psycopg
from psycopg import errors

from reverie.store.postgres.pool import connect

_SETTINGS = """
SELECT current_setting('archive_mode'), current_setting('wal_keep_size'), current_setting('checkpoint_timeout'),
(SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication)
"""


def switch(url: str) -> str:
    """End the current segment, so that it can be recycled. Returns a sentence on what still holds it."""
    try:
        with connect(url) as connection:
            end = str(connection.execute("SELECT pg_switch_wal()").fetchall()[0][0])
            archive, keep, pause, slots, replicas = connection.execute(_SETTINGS).fetchall()[0]
    except errors.InsufficientPrivilege:
        return (
            "The WAL segment was not switched: this role may not. As a superuser: SELECT pg_switch_wal(); CHECKPOINT; "
            "or GRANT EXECUTE ON FUNCTION pg_switch_wal() to this role."
        )
    except psycopg.Error as fault:
        return f"The WAL segment was not switched ({type(fault).__name__}). Try again: reverie forget --switch-wal."
    text = f"WAL segment ended at {end}. The server recycles it after two checkpoints (one every {pause} or sooner)"
    if keep not in ("0", "0B", "0MB"):
        text += f", and once {keep} more of log was written"
    if slots or replicas:
        text += f"; {slots} replication slots and {replicas} replicas must have read it first, and apply it themselves"
    if archive != "off":
        text += "; archived segments stay in the archive until you let them expire"
    return text + "."
