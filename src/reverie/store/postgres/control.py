"""Data outside tenants: names, keys, settings."""

from __future__ import annotations

from typing import Any

from reverie.core.query import Key
from reverie.store.postgres.pool import Connection
from reverie.store.postgres.rows import SQL
from reverie.store.rows import key_row, to_key


class PostgresControlTx:
    """A transaction that is bound to no tenant, and sees no tenant's data."""

    def __init__(self, connection: Connection, now: int) -> None:
        self._connection = connection
        self.now = now

    def _fetch(self, name: str, bound: Any = None) -> list[tuple[Any, ...]]:
        found = self._connection.execute(SQL[name], bound, binary=True)
        return found.fetchall() if found.description else []

    def tenants(self) -> list[str]:
        return [row[0] for row in self._fetch("tenants")]

    def awake(self) -> list[str]:
        return [row[0] for row in self._fetch("awake", (self.now,))]

    def key(self, key_id: str) -> Key | None:
        rows = self._fetch("key", (key_id,))
        return to_key(rows[0]) if rows else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        return [to_key(row) for row in self._fetch("keys", {"tenant": tenant})]

    def add_key(self, key: Key) -> None:
        self._fetch("add_key", key_row(key))

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        return bool(self._fetch("revoke_key", (at, key_id)))

    def setting(self, name: str) -> bytes | None:
        rows = self._fetch("setting", (name,))
        return rows[0][0] if rows else None

    def set_setting(self, name: str, value: bytes) -> None:
        self._fetch("set_setting", (name, value))

    def take_setting(self, name: str) -> bytes | None:
        rows = self._fetch("take_setting", (name,))
        return rows[0][0] if rows else None
