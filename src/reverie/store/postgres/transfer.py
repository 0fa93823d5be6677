"""Access to the rows of a PostgreSQL database, on connections of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
from psycopg import sql

from reverie.store.postgres.faults import MOVED, translate
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL, long_id, short_id
from reverie.store.postgres.writer import limits
from reverie.store.transfer import ENTRY, TABLES, Row, Table, TenantRow, about_rows

_TENANT = "n, name, log_key, seq, epoch, hash, entries, bytes, rules_seq, created_at"
_KEY = "id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at"
_SHARED = "name NOT LIKE 'migration/%' AND name NOT LIKE 'vacuum/%'"
"""Condition for settings that do not concern this database itself."""
_numbers = itertools.count()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as fault:
        error = translate(fault)
        raise error from fault


class PostgresTransfer:
    """See `Transfer`."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._open = connect
        self._db = self._connect()

    def _connect(self) -> Connection:
        with _translated():
            return self._open()

    @contextmanager
    def _transaction(
        self, name: str, number: int | None = None, *, db: Connection | None = None
    ) -> Iterator[Connection]:
        """A transaction that sees one tenant (or, without a name, the list of tenants)."""
        db = db or self._db
        with _translated(), db.transaction():
            db.execute(SQL["bind"], limits(name, control=not name))
            for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
                db.execute(f"SET LOCAL {limit} = 0".encode())
            if number is not None:
                db.execute("SELECT set_config('reverie.tenant', %s, true)", (str(number),))
            yield db

    def tenants(self) -> list[TenantRow]:
        with self._transaction("") as db:
            return [TenantRow(*row) for row in db.execute(f"SELECT {_TENANT} FROM reverie.tenant ORDER BY n".encode())]

    def above(self) -> tuple[list[Row], list[Row]]:
        with self._transaction("") as db:
            named = f"SELECT name, value FROM reverie.setting WHERE {_SHARED} ORDER BY name"
            settings = db.execute(named.encode()).fetchall()
            return settings, db.execute(f"SELECT {_KEY} FROM reverie.api_key ORDER BY id".encode()).fetchall()

    def put_above(self, settings: Iterable[Row], keys: Iterable[Row]) -> None:
        with self._transaction("") as db, db.cursor() as cursor:
            cursor.execute(f"DELETE FROM reverie.setting WHERE {_SHARED}".encode())
            cursor.executemany("INSERT INTO reverie.setting (name, value) VALUES (%s, %s)", settings)
            cursor.execute("DELETE FROM reverie.api_key")
            cursor.executemany(SQL["add_key"], keys)

    def counts(self, tenant: TenantRow) -> Mapping[str, int]:
        with self._transaction(tenant.name, tenant.n) as db:
            count = "SELECT count(*) FROM reverie.{} WHERE tenant = %s"
            return {table.name: _one(db, count.format(table.name), tenant.n) for table in TABLES}

    def stamps(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[tuple[Row, Any]]:
        width = len(table.key)
        for row in self._ordered(tenant, table, (*table.key, table.stamp), after):
            yield row[:width], row[width]

    def stream(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[Row]:
        return self._ordered(tenant, table, table.columns, after)

    def _ordered(self, tenant: TenantRow, table: Table, columns: Sequence[str], after: Row | None) -> Iterator[Row]:
        key = ", ".join(table.key)
        beyond = f"AND ({key}) > ({', '.join(['%s'] * len(table.key))})" if after else ""
        query = f"SELECT {_columns(table, columns)} FROM reverie.{table.name} WHERE tenant = %s {beyond} ORDER BY {key}"
        db = self._connect()
        try:
            with (
                self._transaction(tenant.name, tenant.n, db=db),
                db.cursor(f"move_{next(_numbers)}", binary=True) as cursor,
            ):
                cursor.itersize = 1000
                cursor.execute(query.encode(), (tenant.n, *(after or ())))
                yield from cursor
        finally:
            db.close()

    def rows(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> list[Row]:
        if not keys:
            return []
        key, marks = ", ".join(table.key), ", ".join(["%s"] * len(table.key))
        wanted = ", ".join([f"({marks})"] * len(keys))
        query = (
            f"SELECT {_columns(table, table.columns)} FROM reverie.{table.name} "
            f"WHERE tenant = %s AND ({key}) IN ({wanted})"
        )
        with self._transaction(tenant.name, tenant.n) as db:
            bound = (tenant.n, *(value for one in keys for value in one))
            return db.execute(query.encode(), bound, binary=True).fetchall()

    def make(self, tenant: TenantRow) -> None:
        with self._transaction(tenant.name, tenant.n) as db:
            db.execute(
                "INSERT INTO reverie.tenant (n, name, log_key, seq, epoch, hash, entries, bytes, rules_seq, position, "
                "created_at) OVERRIDING SYSTEM VALUE "
                "VALUES (%s, %s, %s, 0, 0, '', 0, 0, 0, 0, %s) ON CONFLICT (name) DO NOTHING",
                (tenant.n, tenant.name, tenant.log_key, tenant.created_at),
            )
            db.execute(
                "SELECT setval(pg_get_serial_sequence('reverie.tenant', 'n'), "
                "greatest(%s, nextval(pg_get_serial_sequence('reverie.tenant', 'n')) - 1))",
                (tenant.n,),
            )

    def put(self, tenant: TenantRow, table: Table, rows: Sequence[Row]) -> None:
        names, made = _stored(table, rows)
        with self._transaction(tenant.name, tenant.n) as db:
            if table.name != "event":  # events never change, and a trigger keeps it so
                self._drop(db, tenant, table, [table.key_of(row) for row in rows])
            # COPY into a table with row security is refused, so the rows go through a temporary table
            columns = sql.SQL(", ").join(map(sql.Identifier, ("tenant", *names)))
            target = sql.Identifier("reverie", table.name)
            db.execute(sql.SQL("CREATE TEMP TABLE moving (LIKE {}) ON COMMIT DROP").format(target))
            with db.cursor().copy(sql.SQL("COPY moving ({}) FROM STDIN").format(columns)) as copy:
                for row in made:
                    copy.write_row((tenant.n, *row))
            db.execute(sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM moving").format(target, columns))
            if table is ENTRY:
                tags = [(tenant.n, row[1], tag, row[0]) for row in rows for tag in dict.fromkeys(orjson.loads(row[5]))]
                with db.cursor() as cursor:
                    cursor.executemany(
                        "INSERT INTO reverie.tag (tenant, ref, tag, n) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                        tags,
                    )
                    cursor.executemany(SQL["add_about"], about_rows(tenant, rows))

    def drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        with self._transaction(tenant.name, tenant.n) as db:
            self._drop(db, tenant, table, keys)

    def _drop(self, db: Connection, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        if not keys:
            return
        same = " AND ".join(f"{name} = %s" for name in table.key)
        with db.cursor() as cursor:
            if table is ENTRY:
                cursor.executemany(
                    "DELETE FROM reverie.tag AS t USING reverie.entry AS e WHERE t.tenant = e.tenant AND t.ref = e.ref "
                    "AND t.n = e.n AND e.tenant = %s AND e.n = %s",
                    [(tenant.n, *key) for key in keys],
                )
                gone = about_rows(tenant, self.rows(tenant, table, keys))
                cursor.executemany(SQL["drop_about"], [(n, [who, b""], position) for n, who, position in gone])
            delete = f"DELETE FROM reverie.{table.name} WHERE tenant = %s AND {same}"
            cursor.executemany(delete.encode(), [(tenant.n, *key) for key in keys])

    def set_head(self, tenant: TenantRow) -> None:
        with self._transaction(tenant.name, tenant.n) as db:
            last = _one(db, "SELECT coalesce(max(n), 0) FROM reverie.entry WHERE tenant = %s", tenant.n)
            head = (tenant.seq, tenant.epoch, tenant.hash, tenant.entries, tenant.bytes, tenant.rules_seq)
            db.execute(SQL["set_head"], (*head, last, tenant.n))
            db.execute(SQL["wake_exactly"], {"at": 0, "tenant": tenant.n})

    @contextmanager
    def stopped(self) -> Iterator[Callable[[], None]]:
        db = self._connect()
        try:
            with self._transaction("", db=db):
                db.execute("LOCK TABLE reverie.tenant, reverie.api_key, reverie.setting IN EXCLUSIVE MODE")

                def seal() -> None:
                    db.execute(
                        "CREATE OR REPLACE FUNCTION reverie.moved() RETURNS trigger LANGUAGE plpgsql AS "
                        f"$$ BEGIN RAISE EXCEPTION 'moved' USING ERRCODE = '{MOVED}'; END $$".encode()
                    )
                    db.execute(
                        "CREATE OR REPLACE TRIGGER moved BEFORE INSERT OR UPDATE ON reverie.tenant "
                        "FOR EACH ROW EXECUTE FUNCTION reverie.moved()"
                    )

                yield seal
        finally:
            db.close()

    def reopen(self) -> None:
        with self._transaction("") as db:
            db.execute("DROP TRIGGER IF EXISTS moved ON reverie.tenant")

    def close(self) -> None:
        self._db.close()


def _one(db: Connection, query: str, *bound: Any) -> int:
    row = db.execute(query.encode(), bound).fetchone()
    return int(row[0]) if row else 0


def _columns(table: Table, names: Sequence[str]) -> str:
    """The columns to select. An id that is too long for an index is in a second column."""
    long = {"id": "long_id"} if table is ENTRY else {"from_id": "long_from", "to_id": "long_to"}
    if table is not ENTRY and table.name != "link":
        return ", ".join(names)
    return ", ".join(f"coalesce({long[name]}, {name}) AS {name}" if name in long else name for name in names)


def _stored(table: Table, rows: Sequence[Row]) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Columns and rows in the form of this store."""
    if table is ENTRY:
        at = table.columns.index("id")

        def entries() -> Iterator[Row]:
            for row in rows:
                short = short_id(row[at])
                yield (*row[:at], short, *row[at + 1 :], long_id(row[at], short))

        return (*table.columns, "long_id"), entries()
    if table.name == "link":

        def links() -> Iterator[Row]:
            for ref, from_id, kind, to_id, note, n in rows:
                one, two = short_id(from_id), short_id(to_id)
                yield ref, one, kind, two, note, n, long_id(from_id, one), long_id(to_id, two)

        return (*table.columns, "long_from", "long_to"), links()
    if table.name == "event":

        def events() -> Iterator[Row]:
            for row in rows:
                run = orjson.loads(row[10]).get("run")
                yield (*row, run if isinstance(run, str) else None)

        return (*table.columns, "run"), events()
    return table.columns, iter(rows)
