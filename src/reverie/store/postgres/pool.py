"""Connections: few, shared, with limits.

Connections are in autocommit mode and transactions begin with an explicit BEGIN, so that it and the first query are one
round trip. Integers are always sent as bigint, so that a statement is planned once and not once per integer size.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool

from reverie.store.postgres.rows import NAMES
from reverie.store.sql import session_name

NAME = session_name("reverie.store.postgres")
MOST_WAITING = 1024
"""Number of callers that may wait for a connection; further ones get StoreUnavailable."""
CONNECT_SECONDS = 5

SLOW_SECONDS = 0.5
"""A statement that takes longer is logged."""
_LOG = logging.getLogger("reverie.store")

Connection = psycopg.Connection[tuple[Any, ...]]


class Timed(psycopg.Connection[tuple[Any, ...]]):
    """A connection that logs slow statements: the name and the time, never text or values."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return super().execute(query, *arguments, **options)
        finally:
            took = time.perf_counter() - began
            if took > SLOW_SECONDS:
                fields = {"statement": NAMES.get(query, "other"), "ms": round(took * 1000)}
                _LOG.warning("store.slow", extra={"action": "store.slow", "fields": fields})


def open_pool(url: str, *, size: int, wait_seconds: float) -> ConnectionPool[Connection]:
    """A pool of up to `size` connections. A caller that waits longer than `wait_seconds` gets PoolTimeout."""
    return ConnectionPool(
        url,
        connection_class=Timed,
        kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS, "application_name": NAME},
        configure=_configure,
        min_size=0,
        max_size=size,
        timeout=wait_seconds,
        max_waiting=MOST_WAITING,
        max_idle=60,
        max_lifetime=3600,
        reconnect_timeout=wait_seconds,
        num_workers=2,
        name="reverie",
        open=True,
    )


def connect(url: str) -> Connection:
    """A connection outside the pool."""
    connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name=NAME)
    _configure(connection)
    return connection


class Returns:
    """Ends read transactions in the background, so that callers do not wait for the rollback."""

    def __init__(self, pool: ConnectionPool[Connection]) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, connection: Connection) -> None:
        """Soon roll back a transaction that was not committed, and return its connection to the pool."""
        with self._lock:
            if self._closed:
                give_back(self._pool, connection)
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reverie-returns", daemon=True)
                self._thread.start()
            self._waiting.put(connection)

    def _run(self) -> None:
        while (connection := self._waiting.get()) is not None:
            give_back(self._pool, connection)

    def close(self) -> None:
        """Return all connections to the pool now."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            self._waiting.put(None)
        if thread is not None:
            thread.join(60)


def give_back(pool: ConnectionPool[Connection], connection: Connection) -> None:
    """Roll back and return the connection to the pool, which discards a broken one."""
    try:
        if not connection.broken and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.execute(b"ROLLBACK")
    except Exception:
        connection.close()
    finally:
        pool.putconn(connection)


def _configure(connection: Connection) -> None:
    connection.adapters.register_dumper(int, Int8BinaryDumper)
