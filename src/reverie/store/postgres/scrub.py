"""Runs VACUUM after text was destroyed, so that the server removes the old versions of the rows.

An UPDATE in PostgreSQL leaves the old row where it was until VACUUM. Autovacuum may take days, so a store that
destroyed text runs VACUUM itself: soon, in the background, for many forgets at once. What VACUUM frees is out of reach
of every query, and is overwritten as pages fill up again; docs/postgres.md says what remains on the disk until then.

ANALYZE runs too: for its planner the server keeps samples of column values, which anyone can read in `pg_stats`. New
samples replace those that hold destroyed text.

The transaction that destroys text leaves a note, so that the work of a process that is killed is done by the next one
that starts.
"""

from __future__ import annotations

import threading

import psycopg
from psycopg import errors

from reverie.store.postgres.pool import Connection, connect
from reverie.store.postgres.rows import SQL

PAUSE_SECONDS = 2.0
LOCK_MS = 10_000
"""Time that a store that closes waits for a table. The server's own autovacuum gives way after a second."""
_TABLES = ("entry", "tag", "link", "about", "document", "recall")


def notes(connection: Connection) -> list[str]:
    """The notes of transactions whose VACUUM is pending, from any process."""
    return [name for (name,) in connection.execute(SQL["vacuum_owed"])]


class Scrubber:
    """Runs VACUUM shortly after a request, on a thread that ends when nothing is left to do."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._owed: set[str] = set()
        """Tables that must be vacuumed."""
        self._noted: list[str] = []
        """Notes that are removed when none of those tables is left."""
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def owe(self) -> None:
        """Request VACUUM, because text was destroyed."""
        with self._lock:
            self._owed.update(_TABLES)
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="reverie-scrubber", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._closing.wait(PAUSE_SECONDS)
            last = self._closing.is_set()
            with self._lock:
                if not self._owed:
                    self._thread = None
                    return
                owed, self._owed = self._owed, set()
            left = self._vacuum(owed, wait=last)
            if not last:
                with self._lock:
                    self._owed |= left

    def _vacuum(self, tables: set[str], *, wait: bool = False) -> set[str]:
        """Vacuum tables. Returns those left for the next time.

        A table that another session has locked, perhaps for an earlier VACUUM, is left or, with `wait`, waited for.
        Tables not reached before the connection was lost are left too.
        """
        left = set(tables)
        notices: list[str | None] = []
        options = "INDEX_CLEANUP ON, ANALYZE" if wait else "SKIP_LOCKED, INDEX_CLEANUP ON, ANALYZE"
        try:
            with connect(self._url) as connection:
                if tables.issuperset(_TABLES):
                    self._noted = notes(connection)
                connection.add_notice_handler(lambda notice: notices.append(notice.sqlstate))
                connection.execute(f"SET lock_timeout = {LOCK_MS}".encode())
                for table in sorted(tables):
                    notices.clear()
                    connection.execute(f"VACUUM ({options}) reverie.{table}".encode())
                    if errors.LockNotAvailable.sqlstate not in notices:
                        left.discard(table)
                if not left:
                    connection.execute(SQL["vacuum_done"], (self._noted,))
        except psycopg.Error:
            pass  # the server is away, or ended this session: left for the next time, or for autovacuum
        return left

    def close(self) -> None:
        """Do the pending work now."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(60)
