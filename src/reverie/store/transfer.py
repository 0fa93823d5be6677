"""Moving memory from one store to another, row by row, as it is.

Ids, positions, sequence numbers, hashes, versions and times stay what they were: nothing is rewritten. Rows have the
same columns in the same order on every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import orjson
from msgspec import Struct

from reverie.core.subject import index_keys

Row = tuple[Any, ...]


class Table(Struct, frozen=True):
    """A table of a tenant's rows. `key` identifies a row, and `stamp` changes whenever the row does."""

    name: str
    key: tuple[str, ...]
    stamp: str
    columns: tuple[str, ...]

    def key_of(self, row: Sequence[Any]) -> Row:
        """The key of a row."""
        return tuple(row[self.columns.index(name)] for name in self.key)


def _table(name: str, key: str, stamp: str, columns: str) -> Table:
    return Table(name, tuple(key.split()), stamp, tuple(columns.split()))


EVENT = _table(
    "event",
    "seq",
    "hash",
    "seq epoch at type operation actor session entry_id conflict_id task_id data prev_hash hash",
)
ENTRY = _table(
    "entry",
    "n",
    "version",
    "n ref id kind content tags subject attributes actor role door session run node trust state created_at expires_at "
    "pinned archived held version born_seq epoch gone_seq gone_at",
)
TABLES = (
    EVENT,
    ENTRY,
    _table("absence", "n gone_seq", "back_seq", "n gone_seq back_seq"),
    _table("link", "n", "note", "ref from_id type to_id note n"),
    _table("recall", "n", "seq", "n ref seq again cold words model vector"),
    _table("document", "space key version", "seq", "space key version body meta updated_at seq"),
    _table("answer", "key", "until", "key digest answer until"),
    _table("searches", "ref", "at", "ref body at"),
)
"""Every table that is copied. Tags and subjects are derived from the entries; leases are left to expire."""
BOOLEANS = frozenset({"pinned", "archived", "held", "again", "cold"})


class TenantRow(Struct, frozen=True):
    """A tenant and the head of its log."""

    n: int
    name: str
    log_key: bytes
    seq: int
    epoch: int
    hash: bytes
    entries: int
    bytes: int
    rules_seq: int
    created_at: int


def about_rows(tenant: TenantRow, entries: Iterable[Row]) -> list[Row]:
    """The rows of the index of subjects for rows of the table `entry`."""
    subject, tags = ENTRY.columns.index("subject"), ENTRY.columns.index("tags")
    return [
        (tenant.n, key, row[0])
        for row in entries
        for key in index_keys(tenant.log_key, row[subject], orjson.loads(row[tags]))
    ]


class Transfer(Protocol):
    """Access to the rows of a store, only for moving memory."""

    def tenants(self) -> list[TenantRow]:
        """Every tenant, by number."""

    def above(self) -> tuple[list[Row], list[Row]]:
        """Settings (name, value) and API keys, which belong to no tenant."""

    def put_above(self, settings: Iterable[Row], keys: Iterable[Row]) -> None:
        """Replace all settings and API keys."""

    def counts(self, tenant: TenantRow) -> Mapping[str, int]:
        """The number of rows of each table."""

    def stamps(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[tuple[Row, Any]]:
        """(key, stamp) of every row by key, from one snapshot; `after` leaves out keys up to it."""

    def stream(self, tenant: TenantRow, table: Table, after: Row | None = None) -> Iterator[Row]:
        """Every row by key, from one snapshot."""

    def rows(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> list[Row]:
        """The rows of these keys."""

    def make(self, tenant: TenantRow) -> None:
        """Make the tenant under its number with an empty log, unless it exists."""

    def put(self, tenant: TenantRow, table: Table, rows: Sequence[Row]) -> None:
        """Store rows, replacing those of the same key."""

    def drop(self, tenant: TenantRow, table: Table, keys: Sequence[Row]) -> None:
        """Delete rows."""

    def set_head(self, tenant: TenantRow) -> None:
        """Move the head of the tenant's log: the last step of a copy."""

    def stopped(self) -> AbstractContextManager[Callable[[], None]]:
        """Block all writes during the `with` block. Calling the yielded function closes the store for good: it was
        moved.
        """

    def reopen(self) -> None:
        """Make a store that was moved away writable again."""

    def close(self) -> None:
        """Close the connections."""
