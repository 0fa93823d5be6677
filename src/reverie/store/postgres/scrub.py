"""After text was destroyed: let the server clear away the old versions of the rows.

An UPDATE in PostgreSQL leaves the old row where it was until VACUUM. Waiting for autovacuum may take days, so a store
that destroyed text asks for it itself: soon, in the background, many forgets at a time. What VACUUM frees is out of
reach of every query and overwritten as pages fill up again; docs/postgres.md says what remains on the disk until then.

ANALYZE comes with it: for its planner the server keeps samples of what columns hold, and gives them to whoever asks
`pg_stats`. New samples take the place of those that hold destroyed text.
"""

from __future__ import annotations

import threading

import psycopg

from reverie.store.postgres.pool import connect

PAUSE_SECONDS = 2.0
_TABLES = "entry, reverie.tag, reverie.link, reverie.document, reverie.recall"
_VACUUM = f"VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, ANALYZE) reverie.{_TABLES}".encode()


class Scrubber:
    """Runs VACUUM some time after it was asked to, on a thread that ends when there is nothing more to do."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._owed = False
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def owe(self) -> None:
        """Text was destroyed."""
        with self._lock:
            self._owed = True
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="reverie-scrubber", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._closing.wait(PAUSE_SECONDS)
            with self._lock:
                if not self._owed:
                    self._thread = None
                    return
                self._owed = False
            self._vacuum()

    def _vacuum(self) -> None:
        try:
            with connect(self._url) as connection:
                connection.execute(_VACUUM)
        except psycopg.Error:
            pass  # the server is away; autovacuum will come to it

    def close(self) -> None:
        """Do what is owed now."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(60)
