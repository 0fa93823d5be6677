"""The PostgreSQL store: many processes on many machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reverie.core.clock import SystemClock
from reverie.core.entry import Scope
from reverie.core.errors import StoreUnavailable
from reverie.core.ports import Clock
from reverie.store.contract import ControlTx, ReadTx, WriteTx
from reverie.store.postgres.faults import translate
from reverie.store.postgres.migrate import migrate
from reverie.store.postgres.pool import connect, open_pool

T = TypeVar("T")
POOL_SIZE = 16
WAIT_SECONDS = 5.0


class PostgresStore:
    """Memory in a PostgreSQL database, safe for any number of threads, processes and machines.

    The role of the URL owns the schema `reverie`, and must be neither a superuser nor exempt from row security.
    After a fork the child has to open its own store.
    """

    name = "postgres"
    durable = True

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        create: bool = True,
        pool_size: int = POOL_SIZE,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._url = url
        self._clock = clock or SystemClock()
        self._process = os.getpid()
        try:
            with connect(url) as connection:
                migrate(connection, self._clock.now(), create=create)
            self._pool = open_pool(url, size=pool_size, wait_seconds=wait_seconds)
        except Exception as fault:
            raise translate(fault) from fault

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        raise NotImplementedError

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        raise NotImplementedError

    def control(self, body: Callable[[ControlTx], T], *, write: bool = False) -> T:
        raise NotImplementedError

    def check(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def backup(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> None:
        raise NotImplementedError

    def _at_home(self) -> None:
        """Connections do not survive a fork."""
        if self._process != os.getpid():
            raise StoreUnavailable("This store was opened before a fork. Open it again in the new process.")

    def close(self) -> None:
        if self._process == os.getpid():
            self._pool.close()
