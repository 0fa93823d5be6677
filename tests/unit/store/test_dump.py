"""A backup in SQL that is damaged: refused as such, whatever its rows hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.core.errors import StoreCorrupt
from reverie.store.dump import FIRST_LINE, LAST_LINE, load
from reverie.store.sqlite import SqliteStore

TENANT = "n name log_key seq epoch hash created_at entries bytes rules_seq position wake_at"
KEY = "id tenant digest name rights authority scopes created_at expires_at revoked_at"


def block(table: str, columns: str, *rows: str) -> bytes:
    names = ", ".join(f'"{name}"' for name in columns.split())
    lines = [f'COPY "reverie"."{table}" ({names}) FROM stdin;', *("\t".join(row.split()) for row in rows), "\\."]
    return "".join(f"{line}\n" for line in lines).encode()


def tenant(number: str, name: str) -> bytes:
    return block("tenant", TENANT, rf"{number} {name} \\x00 0 0 \\x00 0 0 0 0 0 0")


KEY_ROW = r"k acme \\x00 robot [] 1 [] 0 \N \N"
DAMAGE = {
    "a tenant twice": tenant("1", "acme") + tenant("2", "acme"),
    "a tenant without a name": tenant("1", r"\N"),
    "a key twice": block("api_key", KEY, KEY_ROW, KEY_ROW),
    "a setting without a value": block("setting", "name value", r"host \N"),
    "a setting without a name": block("setting", "name value", r"\N \\x00"),
}


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "reverie.db")


def put_back(store: SqliteStore, file: Path, body: bytes) -> int:
    file.write_bytes(FIRST_LINE + b"\n" + body + LAST_LINE)
    into = store.transfer()
    try:
        return load(file, into)
    finally:
        into.close()
        store.close()


def test_a_sound_backup_is_read(store: SqliteStore, tmp_path: Path) -> None:
    assert put_back(store, tmp_path / "copy.sql", tenant("1", "acme") + block("api_key", KEY, KEY_ROW)) == 0


@pytest.mark.parametrize("what", DAMAGE)
def test_rows_that_no_store_takes_are_damage_and_no_error_of_the_driver(
    store: SqliteStore, tmp_path: Path, what: str
) -> None:
    with pytest.raises(StoreCorrupt, match="damaged before byte"):
        put_back(store, tmp_path / "copy.sql", DAMAGE[what])
