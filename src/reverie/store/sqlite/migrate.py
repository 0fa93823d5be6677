"""Migrations: each once, each in one transaction, safe between processes."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import orjson

from reverie.core.errors import StoreError
from reverie.core.event import answer_key
from reverie.core.subject import index_keys
from reverie.index.postings import pack
from reverie.store.rows import encode
from reverie.store.sql import load_migrations

APPLICATION_ID = 0x52564531  # "RVE1", by which `file` and other tools recognise the format


def schema_version(db: apsw.Connection) -> int:
    """The number of the last migration the file has."""
    return int(db.execute("PRAGMA user_version").get)


def migrate(db: apsw.Connection, now: int) -> None:
    """Bring a file to this version's schema."""
    migrations = load_migrations("reverie.store.sqlite")
    if schema_version(db) == len(migrations):
        return
    db.execute("BEGIN EXCLUSIVE")
    try:
        have = schema_version(db)
        if have > len(migrations):
            raise StoreError(
                f"This file has schema {have}, and this release of Reverie supports up to {len(migrations)}. "
                "Install a newer release."
            )
        db.create_scalar_function("words_before_0004", _words_before(db), 2)
        db.create_scalar_function("subject_keys", _subject_keys(db), 3)
        db.create_scalar_function("answer_key", _hashed_key(db), 2)
        for number, sql, checksum in migrations[have:]:
            db.execute(sql)
            row = (f"migration/{number:04d}", f"{checksum} {now}".encode())
            db.execute("INSERT INTO setting (name, value) VALUES (?, ?)", row)
        _drop_word_tables(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _words_before(db: apsw.Connection) -> Callable[..., bytes | None]:
    """A function that packs an entry's words from the FTS5 table that its tenant had up to schema 3."""
    keys: dict[int, bytes] = {}

    def words(tenant: int, position: int) -> bytes | None:
        if tenant not in keys:
            keys[tenant] = db.execute("SELECT log_key FROM tenant WHERE n = ?", (tenant,)).get
        body = db.execute(f"SELECT c1 FROM words_{tenant}_content WHERE id = ?", (position,)).get  # noqa: S608
        return pack(body.split(), keys[tenant]) if body is not None else None

    return words


def _subject_keys(db: apsw.Connection) -> Callable[..., str]:
    """A function that returns the index keys of an entry's subjects as a JSON list of hexadecimal texts."""
    log_keys: dict[int, bytes] = {}

    def keys(tenant: int, subject: str | None, tags: str) -> str:
        if tenant not in log_keys:
            log_keys[tenant] = db.execute("SELECT log_key FROM tenant WHERE n = ?", (tenant,)).get
        return encode([key.hex() for key in index_keys(log_keys[tenant], subject, orjson.loads(tags))])

    return keys


def _hashed_key(db: apsw.Connection) -> Callable[..., str]:
    """A function that hashes an idempotency key, which up to schema 6 was stored as it was sent."""

    def hashed(tenant: int, key: str) -> str:
        return answer_key(db.execute("SELECT log_key FROM tenant WHERE n = ?", (tenant,)).get, "put", key)

    return hashed


def _drop_word_tables(db: apsw.Connection) -> None:
    found = db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE words_%'").fetchall()
    for (name,) in found:
        db.execute(f'DROP TABLE "{name}"')
