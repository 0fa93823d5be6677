"""Access to the rows of a SQLite file, on connections of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
import orjson

from reverie.store.rows import positions_of
from reverie.store.sqlite.batch import insert_many
from reverie.store.sqlite.faults import MOVED, translate
from reverie.store.sqlite.read import QUERIES
from reverie.store.transfer import BOOLEANS, ENTRY, EVENT, TABLES, Row, Table, TenantRow, about_rows

_RANGED = frozenset({"event", "entry", "absence", "recall"})
_TENANT = "n, name, log_key, seq, epoch, hash, entries, bytes, rules_seq, created_at"


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.Error as fault:
        error = translate(fault)
        raise error from fault


class SqliteTransfer:
    """See `Transfer`."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._db = connect()
        self._readers: list[apsw.Connection] = []

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _translated(), self._db:
            yield

    def _rows(self, sql: str, bound: Sequence[Any] = ()) -> list[Row]:
        with _translated():
            return self._db.execute(sql, bound).fetchall()

    def tenants(self) -> list[TenantRow]:
        return [TenantRow(*row) for row in self._rows(f"SELECT {_TENANT} FROM tenant ORDER BY n")]

    def above(self) -> tuple[list[Row], list[Row]]:
        settings = self._rows("SELECT name, value FROM setting WHERE name NOT LIKE 'migration/%' ORDER BY name")
        return settings, self._rows("SELECT * FROM api_key ORDER BY id")

    def put_above(self, settings: Iterable[Row], keys: Iterable[Row]) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM setting WHERE name NOT LIKE 'migration/%'")
            self._db.executemany("INSERT INTO setting VALUES (?, ?)", settings)
            self._db.execute("DELETE FROM api_key")
            self._db.executemany("INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", keys)

    def counts(self, tenant: TenantRow) -> Mapping[str, int]:
        count = "SELECT count(*) FROM {} WHERE {}"
        return {table.name: self._rows(count.format(table.name, _rows_of(tenant, table)))[0][0] for table in TABLES}

    def stamps(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[tuple[Row, Any]]:
        width = len(table.key)
        for row in self._ordered(tenant, table, (*table.key, table.stamp), after):
            yield row[:width], row[width]

    def stream(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[Row]:
        for row in self._ordered(tenant, table, table.columns, after):
            yield _out(table, row)

    def _ordered(self, tenant: TenantRow, table: Table, columns: Sequence[str], after: Row | None) -> Iterator[Row]:
        key = ", ".join(_keys(table))
        beyond = f"AND ({key}) > ({', '.join('?' * len(table.key))})" if after else ""
        own = _rows_of(tenant, table)
        sql = f"SELECT {_columns(tenant, table, columns)} FROM {table.name} WHERE {own} {beyond} ORDER BY {key}"
        db = self._readers.pop() if self._readers else self._connect()
        try:
            with _translated():
                yield from db.execute(sql, _within(tenant, table, after) if after else ())
        finally:
            self._readers.append(db)

    def rows(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> list[Row]:
        key = ", ".join(_keys(table))
        each = ", ".join(f"value ->> {at}" for at in range(len(table.key)))
        sql = (
            f"SELECT {_columns(tenant, table, table.columns)} FROM {table.name} "
            f"WHERE {_rows_of(tenant, table)} AND ({key}) IN (SELECT {each} FROM json_each(?))"
        )
        wanted = orjson.dumps([_within(tenant, table, key) for key in keys]).decode()
        return [_out(table, row) for row in self._rows(sql, (wanted,))]

    def make(self, tenant: TenantRow) -> None:
        with self._transaction():
            if self._db.execute("SELECT 1 FROM tenant WHERE n = ?", (tenant.n,)).get is None:
                bound = (tenant.n, tenant.name, tenant.log_key, tenant.created_at)
                self._db.execute(f"INSERT INTO tenant ({_TENANT}) VALUES (?, ?, ?, 0, 0, x'', 0, 0, 0, ?)", bound)

    def put(self, tenant: TenantRow, table: Table, rows: Sequence[Row]) -> None:
        with self._transaction():
            if table.name != "event":  # events never change, and a trigger keeps it so
                self._drop(tenant, table, [table.key_of(row) for row in rows])
            if table is EVENT:
                columns, given = ("n", *table.columns[1:]), [_within(tenant, table, row) for row in rows]
            else:
                columns, given = ("tenant", *table.columns), [(tenant.n, *self._in(table, row)) for row in rows]
            marks = ", ".join("?" * len(columns))
            insert_many(self._db, f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", given)
            if table is ENTRY:
                tags = [(tenant.n, row[1], tag, row[0]) for row in rows for tag in dict.fromkeys(orjson.loads(row[5]))]
                insert_many(self._db, QUERIES["add_tag"], tags)
                insert_many(self._db, QUERIES["add_about"], about_rows(tenant, rows))

    def drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        with self._transaction():
            self._drop(tenant, table, keys)

    def _drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        if table is ENTRY:
            for row in self.rows(tenant, table, keys):
                for tag in orjson.loads(row[5]):
                    self._db.execute(QUERIES["drop_tag"], (tenant.n, row[1], tag, row[0]))
                self._db.executemany(QUERIES["drop_about"], about_rows(tenant, [row]))
        same = " AND ".join(f"{name} = ?" for name in table.key)
        self._db.executemany(f"DELETE FROM {table.name} WHERE {_rows_of(tenant, table)} AND {same}", keys)

    def set_head(self, tenant: TenantRow) -> None:
        head = (tenant.seq, tenant.epoch, tenant.hash, tenant.entries, tenant.bytes, tenant.rules_seq, tenant.n)
        with self._transaction():
            self._db.execute(QUERIES["set_head"], head)
            self._db.execute(QUERIES["wake_exactly"], {"at": 0, "tenant": tenant.n})

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


def _rows_of(tenant: TenantRow, table: Table) -> str:
    """The condition for a tenant's rows: its range of positions, in tables in that order."""
    first, last = positions_of(tenant.n)
    return f"n > {first} AND n <= {last}" if table.name in _RANGED else f"tenant = {tenant.n}"


def _keys(table: Table) -> tuple[str, ...]:
    return ("n",) if table is EVENT else table.key


def _within(tenant: TenantRow, table: Table, row: Row) -> Row:
    """A row or a key as stored: there a log position is inside the tenant's range."""
    return (positions_of(tenant.n)[0] + row[0], *row[1:]) if table is EVENT else row


def _columns(tenant: TenantRow, table: Table, names: Sequence[str]) -> str:
    stored = {"model": "(SELECT name FROM model WHERE k = model) AS model"}
    if table is EVENT:
        stored["seq"] = f"n - {positions_of(tenant.n)[0]}"
    return ", ".join(stored.get(name, name) for name in names)


def _out(table: Table, row: Row) -> Row:
    if BOOLEANS.isdisjoint(table.columns):
        return row
    return tuple(bool(value) if name in BOOLEANS else value for name, value in zip(table.columns, row, strict=True))
