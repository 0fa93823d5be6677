"""Reads a backup in SQL, as the PostgreSQL store writes it, into another store: to verify it, or to restore it.

It reads nothing but the content of such a backup: `COPY ... FROM stdin` blocks in PostgreSQL's text format, tenant by
tenant. No server is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from reverie.core.errors import StoreCorrupt, StoreError
from reverie.store.transfer import BOOLEANS, TABLES, Row, Table, TenantRow, Transfer

FIRST_LINE = b"-- A backup of Reverie."
LAST_LINE = b"COMMIT;\n"
_BATCH = 1000
_COPY = re.compile(rb'COPY "reverie"\."(\w+)" \((.*)\) FROM stdin;\n')
_ESCAPE = re.compile(rb"\\(.)", re.S)
_CONTROL = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_BYTES = frozenset({"value", "log_key", "hash", "prev_hash", "words", "vector", "body", "answer"})
_NUMBERS = frozenset(
    [
        "n",
        "tenant",
        "seq",
        "epoch",
        "at",
        "trust",
        "created_at",
        "expires_at",
        "version",
        "born_seq",
        "gone_seq",
        "gone_at",
        "back_seq",
        "updated_at",
        "until",
        "authority",
        "revoked_at",
        "entries",
        "bytes",
        "rules_seq",
        "position",
        "wake_at",
    ]
)
_LONG = {"id": "long_id", "from_id": "long_from", "to_id": "long_to"}
_TABLES = {table.name: table for table in TABLES}
_KEY = ["id", "tenant", "digest", "name", "rights", "authority", "scopes", "created_at", "expires_at", "revoked_at"]


def is_dump(file: Path) -> bool:
    """Whether a file is a backup in SQL."""
    with file.open("rb") as source:
        return source.read(len(FIRST_LINE)) == FIRST_LINE


def load(file: Path, into: Transfer) -> int:
    """Load a backup into an empty store. Returns its schema. Raises StoreCorrupt when the backup is damaged."""
    with file.open("rb") as source:
        try:
            return _Load(into).run(source)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, StoreError) as fault:
            at = source.tell()
            raise StoreCorrupt(f"{file} is damaged before byte {at}. Use another backup.") from fault


class _Load:
    def __init__(self, into: Transfer) -> None:
        self._into = into
        self._settings: list[Row] = []
        self._keys: list[Row] = []
        self._tenant: TenantRow | None = None
        self._schema = 0

    def run(self, source: IO[bytes]) -> int:
        last = b""
        while line := source.readline():
            last = line
            named = _COPY.fullmatch(line)
            if named is None:
                continue
            columns = [name.strip(b'" ').decode() for name in named[2].split(b",")]
            self._block(named[1].decode(), columns, source)
        if last != LAST_LINE:
            raise ValueError("the file is cut off")
        self._finish()
        self._into.put_above(self._settings, self._keys)
        return self._schema

    def _block(self, name: str, columns: list[str], source: IO[bytes]) -> None:
        kinds = [_kind(name, column) for column in columns]
        rows = (_row(columns, kinds, line) for line in _lines(source))
        if name == "setting":
            self._take_settings(rows)
        elif name == "api_key":
            self._keys = [tuple(row[column] for column in _KEY) for row in rows]
        elif name == "tenant":
            self._finish()
            for row in rows:
                self._tenant = TenantRow(**{field: row[field] for field in TenantRow.__struct_fields__})
                self._into.make(self._tenant)
        elif name in _TABLES:
            self._rows(_TABLES[name], rows)
        else:  # tags come with their entries, leases end by themselves
            for _ in rows:
                pass

    def _take_settings(self, rows: Iterator[dict[str, Any]]) -> None:
        for row in rows:
            if row["name"].startswith("migration/"):
                self._schema = max(self._schema, int(row["name"].removeprefix("migration/")))
            else:
                self._settings.append((row["name"], row["value"]))

    def _rows(self, table: Table, rows: Iterator[dict[str, Any]]) -> None:
        batch: list[Row] = []
        for row in rows:
            if self._tenant is None or row["tenant"] != self._tenant.n:
                raise ValueError("a row of another tenant")
            batch.append(tuple(row.get(_LONG.get(name, ""), None) or row[name] for name in table.columns))
            if len(batch) == _BATCH:
                self._into.put(self._tenant, table, batch)
                batch = []
        if batch and self._tenant is not None:
            self._into.put(self._tenant, table, batch)

    def _finish(self) -> None:
        """The head goes last, as in a move."""
        if self._tenant is not None:
            self._into.set_head(self._tenant)


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    for line in source:
        if line == b"\\.\n":
            return
        yield line[:-1]
    raise ValueError("a block without its end")


def _kind(table: str, column: str) -> type:
    if column in _NUMBERS and (table, column) != ("api_key", "tenant"):  # a key names its tenant
        return int
    if column in BOOLEANS:
        return bool
    return bytes if column in _BYTES or (table, column) == ("api_key", "digest") else str


def _row(columns: list[str], kinds: list[type], line: bytes) -> dict[str, Any]:
    fields = line.split(b"\t")
    if len(fields) != len(columns):
        raise ValueError("a row with other columns than its block")
    return {name: _value(kind, field) for name, kind, field in zip(columns, kinds, fields, strict=True)}


def _value(kind: type, field: bytes) -> Any:
    if field == b"\\N":
        return None
    if b"\\" in field:
        field = _ESCAPE.sub(lambda found: _CONTROL.get(found[1], found[1]), field)
    if kind is int:
        return int(field)
    if kind is bool:
        return {b"t": True, b"f": False}[field]
    if kind is bytes:
        if field[:2] != b"\\x":
            raise ValueError("not a bytea")
        return bytes.fromhex(field[2:].decode("ascii"))
    return field.decode("utf-8")
