"""The PostgreSQL store: many processes on many machines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import psycopg

from reverie.core.clock import SystemClock
from reverie.core.entry import Scope
from reverie.core.errors import StoreCorrupt, StoreError, StoreUnavailable
from reverie.core.files import open_new
from reverie.core.pause import without_pauses
from reverie.core.ports import Clock
from reverie.core.query import Anchored
from reverie.index.cache import IndexCache
from reverie.index.files import Files
from reverie.store.contract import ControlTx, ReadTx, WriteTx
from reverie.store.postgres.control import PostgresControlTx
from reverie.store.postgres.dump import dump
from reverie.store.postgres.faults import AGAIN, lost, translate
from reverie.store.postgres.intact import all_tenants, damage
from reverie.store.postgres.migrate import migrate, schema_version
from reverie.store.postgres.pool import Connection, Returns, connect, open_pool
from reverie.store.postgres.read import FRESH, IndexTail, PostgresReadTx
from reverie.store.postgres.rows import SQL
from reverie.store.postgres.scrub import Scrubber, notes
from reverie.store.postgres.transfer import PostgresTransfer
from reverie.store.postgres.writer import ATTEMPTS, Writer, limits

T = TypeVar("T")
POOL_SIZE = 16
WAIT_SECONDS = 5.0
INDEX_IDLE_SECONDS = 86_400
"""Index files that no search has compared with the database for this time are removed."""
_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresStore:
    """Memory in a PostgreSQL database, safe for any number of threads, processes and machines.

    The role of the URL owns the schema `reverie`, and must be neither a superuser nor exempt from row security.
    After a fork the child has to open its own store.
    """

    name = "postgres"
    outside: Sequence[str] = ("wal", "replicas", "free_space", "index_files")
    durable = True
    quick = free = False

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        create: bool = True,
        pool_size: int = POOL_SIZE,
        wait_seconds: float = WAIT_SECONDS,
        index: Path | None = None,
    ) -> None:
        self._url = url
        self._clock = clock or SystemClock()
        self._files = Files(index, idle_seconds=INDEX_IDLE_SECONDS) if index is not None else None
        self._cache = IndexCache(files=self._files)
        self._tenants: dict[str, int] = {}
        """Numbers of tenants by name. They never change."""
        self._process = os.getpid()
        self._closed = False
        try:
            with connect(url) as connection:
                migrate(connection, self._clock.now(), create=create)
                owed = bool(notes(connection))
            self._pool = open_pool(url, size=pool_size, wait_seconds=wait_seconds)
        except Exception as fault:
            error = translate(fault)
            raise error from fault
        if self._files is not None:
            self._files.recover()
        self._returns = Returns(self._pool)
        self._scrubber = Scrubber(url)
        if owed:
            self._scrubber.owe()
        self._writer = Writer(self._pool, self._clock, self._scrubber.owe, self._cache)

    def switch_wal(self) -> str:
        """End the segment of the server's log that may hold destroyed text. Returns a sentence on when it is gone."""
        from reverie.store.postgres.wal import switch

        return switch(self._url)

    def _at_home(self) -> None:
        """Raise StoreUnavailable when the store is closed, or after a fork, which connections do not survive."""
        if self._process != os.getpid():
            raise StoreUnavailable("This store was opened before a fork. Open it again in the new process.")
        if self._closed:
            raise StoreUnavailable("The store is closed.")

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        self._at_home()
        return cast(T, without_pauses(self._writer.submit, scope, body))

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        searches = getattr(body, "searches", False)

        def run(connection: Connection) -> T:
            known = self._known(scope) if searches else None
            with connection.pipeline():
                connection.execute(_SNAPSHOT)
                connection.execute(SQL["bind"], limits(scope.tenant))
                found = connection.execute(SQL["head"], {"name": scope.tenant}, binary=True)
                since = [connection.execute(SQL[name], known, binary=True) for name in FRESH] if known else []
            row, fresh = found.fetchone(), None
            if row is not None:
                self._tenants[scope.tenant] = row[0]
            if known is not None:
                fresh = IndexTail(known["since"], known["after"], *(cursor.fetchall() for cursor in since))
            return body(PostgresReadTx(connection, scope, self._clock.now(), self._cache, row, fresh))

        return self._transact(run)

    def _known(self, scope: Scope) -> dict[str, Any] | None:
        """The log position of the cached index of a memory, so that changes since are fetched with the snapshot.

        None when the index is not cached.
        """
        tenant = self._tenants.get(scope.tenant)
        if tenant is None or scope.ref is None or (at := self._cache.reached((tenant, scope.ref))) is None:
            return None
        return {"tenant": tenant, "ref": scope.ref, "since": at[0], "after": at[1]}

    def control(self, body: Callable[[ControlTx], T], *, write: bool = False) -> T:
        def run(connection: Connection) -> T:
            with connection.pipeline():
                connection.execute(b"BEGIN" if write else _SNAPSHOT)
                connection.execute(SQL["bind"], limits("", control=True))
            result = body(PostgresControlTx(connection, self._clock.now()))
            if write and connection.execute(b"COMMIT").statusmessage != "COMMIT":
                raise StoreError("The database undid the transaction.")
            return result

        return self._transact(run, again=not write)

    def _transact(self, body: Callable[[Connection], T], *, again: bool = True) -> T:
        """Run on a connection of the pool. With `again`, retry when the connection breaks."""
        self._at_home()
        for attempt in range(ATTEMPTS):
            try:
                connection = self._pool.getconn()
                try:
                    return body(connection)
                finally:
                    self._returns.add(connection)
            except (psycopg.Error, OverflowError, UnicodeEncodeError) as fault:
                if again and attempt + 1 < ATTEMPTS and (lost(fault) or isinstance(fault, AGAIN)):
                    time.sleep(0.05 * 2**attempt)
                    continue
                error = translate(fault)
                raise error from fault
        raise AssertionError("unreachable")

    def check(self, *, quick: bool = False) -> Mapping[str, Any]:
        """Check that every row is as it was stored, and return schema, size, and whether row security binds this role.

        Raises StoreCorrupt. Other damage inside the files is left to tools of the server: `pg_amcheck`, data checksums.
        """

        def look(connection: Connection) -> Mapping[str, Any]:
            connection.execute(_SNAPSHOT)
            if not quick:
                for number, name in all_tenants(connection):
                    if what := damage(connection, number):
                        raise StoreCorrupt(f"{what} (tenant {name})")
            return {
                "engine": f"PostgreSQL {connection.info.server_version // 10000}",
                "schema": schema_version(connection),
                "bytes": _one(connection, "database_bytes"),
                "free_bytes": 0,
                "journal": "wal",
                "row_security": bool(_one(connection, "bound_by_row_security")),
                "checksums": connection.execute(b"SHOW data_checksums").fetchone() == ("on",),
            }

        return self._transact(look)

    def anchored(self, tenant: str) -> Anchored | None:  # noqa: ARG002
        """None: nothing is noted, since the server keeps its own log and replicas."""
        return None

    def damaged(self, tenant: str) -> str | None:
        def look(connection: Connection) -> str | None:
            connection.execute(_SNAPSHOT)
            numbers = [number for number, name in all_tenants(connection) if name == tenant]
            return damage(connection, numbers[0]) if numbers else None

        return self._transact(look)

    def backup(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> None:
        path = Path(target)
        try:
            descriptor = open_new(path)
        except FileExistsError:
            message = f"{target} exists already. Choose a new name; a backup never overwrites."
            raise StoreError(message) from None

        def copy(connection: Connection) -> None:
            connection.execute(_SNAPSHOT)
            dump(connection, file, progress)
            file.flush()
            os.fsync(file.fileno())

        try:
            with os.fdopen(descriptor, "wb") as file:
                self._transact(copy, again=False)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def pool(self) -> Mapping[str, float]:
        """Figures on connections: open, free, waiting callers, refused and lost."""
        found = self._pool.get_stats()
        names = {"pool_size": "open", "pool_available": "free", "requests_waiting": "waiting"}
        names |= {"requests_errors": "refused", "connections_lost": "lost"}
        return {shown: float(found.get(name, 0)) for name, shown in names.items()}

    def transfer(self) -> PostgresTransfer:
        self._at_home()
        return PostgresTransfer(lambda: connect(self._url))

    def close(self) -> None:
        if self._process != os.getpid():
            return
        self._closed = True
        self._writer.close()
        self._returns.close()
        self._pool.close()
        self._scrubber.close()


def _one(connection: Connection, name: str) -> Any:
    row = connection.execute(SQL[name]).fetchone()
    return row[0] if row else None
