"""Connections: few, shared, with limits.

Every connection commits by itself until a transaction is begun in so many words, so that beginning one and its first
query are one round trip. Integers are always sent as bigint: one statement is then planned once and not once per size.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool

from reverie.store.postgres.rows import NAMES
from reverie.store.sql import session_name

NAME = session_name("reverie.store.postgres")
MOST_WAITING = 1024
"""Callers that may wait for a connection; the next one gets `busy`."""
CONNECT_SECONDS = 5

SLOW_SECONDS = 0.5
"""A statement that takes longer is noted."""
_LOG = logging.getLogger("reverie.store")

Connection = psycopg.Connection[tuple[Any, ...]]


class Timed(psycopg.Connection[tuple[Any, ...]]):
    """A connection that notes in the log which statement took long: its name and the time, nothing it said."""

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
    """Up to `size` connections; who waits longer than `wait_seconds` for one gets PoolTimeout."""
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


def _configure(connection: Connection) -> None:
    connection.adapters.register_dumper(int, Int8BinaryDumper)
