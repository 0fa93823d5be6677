"""Rows of a SQLite file out and in, on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
import orjson

from reverie.store.sqlite.faults import MOVED
from reverie.store.sqlite.read import QUERIES
from reverie.store.sqlite.write import insert_many
from reverie.store.transfer import BOOLEANS, ENTRY, TABLES, Row, Table, TenantRow

_TENANT = "n, name, log_key, seq, epoch, hash, entries, bytes, rules_seq, created_at"


class SqliteTransfer:
    """See `Transfer`."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._db = connect()
        self._readers: list[apsw.Connection] = []

    def tenants(self) -> list[TenantRow]:
        return [TenantRow(*row) for row in self._db.execute(f"SELECT {_TENANT} FROM tenant ORDER BY n")]

    def above(self) -> tuple[list[Row], list[Row]]:
        settings = self._db.execute("SELECT name, value FROM setting WHERE name NOT LIKE 'migration/%' ORDER BY name")
        return settings.fetchall(), self._db.execute("SELECT * FROM api_key ORDER BY id").fetchall()

    def put_above(self, settings: Iterable[Row], keys: Iterable[Row]) -> None:
        with self._db:
            self._db.execute("DELETE FROM setting WHERE name NOT LIKE 'migration/%'")
            self._db.executemany("INSERT INTO setting VALUES (?, ?)", settings)
            self._db.execute("DELETE FROM api_key")
            self._db.executemany("INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", keys)

    def counts(self, tenant: TenantRow) -> Mapping[str, int]:
        found = {}
        for table in TABLES:
            found[table.name] = self._db.execute(
                f"SELECT count(*) FROM {table.name} WHERE tenant = ?",
                (tenant.n,),
            ).get
        return found

    def stamps(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[tuple[Row, Any]]:
        width = len(table.key)
        for row in self._ordered(tenant, table, (*table.key, table.stamp), after):
            yield row[:width], row[width]

    def stream(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[Row]:
        for row in self._ordered(tenant, table, table.columns, after):
            yield _out(table, row)

    def _ordered(self, tenant: TenantRow, table: Table, columns: Sequence[str], after: Row | None) -> Iterator[Row]:
        key = ", ".join(table.key)
        beyond = f"AND ({key}) > ({', '.join('?' * len(table.key))})" if after else ""
        sql = f"SELECT {_columns(columns)} FROM {table.name} WHERE tenant = ? {beyond} ORDER BY {key}"
        db = self._readers.pop() if self._readers else self._connect()
        try:
            yield from db.execute(sql, (tenant.n, *(after or ())))
        finally:
            self._readers.append(db)

    def rows(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> list[Row]:
        key = ", ".join(table.key)
        each = ", ".join(f"value ->> {at}" for at in range(len(table.key)))
        sql = (
            f"SELECT {_columns(table.columns)} FROM {table.name} "
            f"WHERE tenant = ? AND ({key}) IN (SELECT {each} FROM json_each(?))"
        )
        return [_out(table, row) for row in self._db.execute(sql, (tenant.n, orjson.dumps(keys).decode()))]

    def make(self, tenant: TenantRow) -> None:
        with self._db:
            if self._db.execute("SELECT 1 FROM tenant WHERE n = ?", (tenant.n,)).get is None:
                bound = (tenant.n, tenant.name, tenant.log_key, tenant.created_at)
                columns = "n, name, log_key, seq, epoch, hash, entries, bytes, rules_seq, created_at"
                self._db.execute(f"INSERT INTO tenant ({columns}) VALUES (?, ?, ?, 0, 0, x'', 0, 0, 0, ?)", bound)

    def put(self, tenant: TenantRow, table: Table, rows: Sequence[Row]) -> None:
        with self._db:
            if table.name != "event":  # events never change, and a trigger keeps it so
                self._drop(tenant, table, [table.key_of(row) for row in rows])
            columns = ", ".join(("tenant", *table.columns))
            marks = ", ".join("?" * (len(table.columns) + 1))
            sql = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"
            insert_many(self._db, sql, [(tenant.n, *self._in(table, row)) for row in rows])
            if table is ENTRY:
                tags = [(tenant.n, row[1], tag, row[0]) for row in rows for tag in dict.fromkeys(orjson.loads(row[5]))]
                insert_many(self._db, QUERIES["add_tag"], tags)

    def drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        with self._db:
            self._drop(tenant, table, keys)

    def _drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        if table is ENTRY:
            for row in self.rows(tenant, table, keys):
                for tag in orjson.loads(row[5]):
                    self._db.execute(QUERIES["drop_tag"], (tenant.n, row[1], tag, row[0]))
        same = " AND ".join(f"{name} = ?" for name in table.key)
        sql = f"DELETE FROM {table.name} WHERE tenant = ? AND {same}"
        self._db.executemany(sql, [(tenant.n, *key) for key in keys])

    def set_head(self, tenant: TenantRow) -> None:
        head = (tenant.seq, tenant.epoch, tenant.hash, tenant.entries, tenant.bytes, tenant.rules_seq, tenant.n)
        with self._db:
            self._db.execute(QUERIES["set_head"], head)
            self._db.execute(QUERIES["wake_anew"], {"at": 0, "tenant": tenant.n})

    @contextmanager
    def stopped(self) -> Iterator[Callable[[], None]]:
        db = self._connect()
        db.execute("BEGIN IMMEDIATE")

        def seal() -> None:
            for action in ("INSERT", "UPDATE"):
                db.execute(
                    f"CREATE TRIGGER IF NOT EXISTS moved_{action.lower()} BEFORE {action} ON tenant "
                    f"BEGIN SELECT RAISE(ABORT, '{MOVED}'); END"
                )

        try:
            yield seal
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
            db.close()

    def reopen(self) -> None:
        self._db.execute("DROP TRIGGER IF EXISTS moved_insert; DROP TRIGGER IF EXISTS moved_update")

    def close(self) -> None:
        for db in (*self._readers, self._db):
            db.close()

    def _in(self, table: Table, row: Row) -> Row:
        at = table.columns.index("model") if "model" in table.columns else None
        if at is None or row[at] is None:
            return row
        name = row[at]
        number = self._db.execute(QUERIES["model"], (name,)).get
        if number is None:
            number = self._db.execute(QUERIES["add_model"], (name,)).get
        return (*row[:at], number, *row[at + 1 :])


def _columns(names: Sequence[str]) -> str:
    return ", ".join("(SELECT name FROM model WHERE k = model) AS model" if name == "model" else name for name in names)


def _out(table: Table, row: Row) -> Row:
    if BOOLEANS.isdisjoint(table.columns):
        return row
    return tuple(bool(value) if name in BOOLEANS else value for name, value in zip(table.columns, row, strict=True))
